"""Applies the stored admission policies to what is written: changes it, refuses it, warns of it.

Guarantees the real server's order (in-tree admission, mutating policies, validation, validating policies), its words,
and that a server without policies pays nothing for them. Policies and bindings are compiled when they change. Policies
do not apply to policies and bindings. ``verbs/create.py``, ``verbs/update.py`` and ``verbs/delete.py`` call this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kubesched.k8s.cel import CelCompileError, CelEvaluationError, Expression
from kubesched.playground.apiserver.admission.evaluation import (
    MATCH_BUDGET,
    Attributes,
    Evaluation,
    MutationError,
    evaluation,
    matches,
    mutate,
    selects,
)
from kubesched.playground.apiserver.errors import StatusError, forbidden
from kubesched.playground.apiserver.kinds.admission_kinds import PolicyCompiler
from kubesched.playground.apiserver.served_resource import Object
from kubesched.playground.apiserver.verbs.request import Api, Target, WriteOptions

GROUP = "admissionregistration.k8s.io"
_POLICIES = {kind: f"{kind}admissionpolicies.{GROUP}" for kind in ("validating", "mutating")}
_BINDINGS = {kind: f"{kind}admissionpolicybindings.{GROUP}" for kind in ("validating", "mutating")}
_TABLES = (*_POLICIES.values(), *_BINDINGS.values())
_CODES = {"Unauthorized": 401, "Forbidden": 403, "Invalid": 422, "RequestEntityTooLarge": 413}
_LONGEST_MESSAGE = 5 * 1024


class PolicyConfigurationError(Exception):
    """A policy or binding cannot be applied as it is configured."""


@dataclass(frozen=True, slots=True)
class CompiledPolicy:
    """A policy with its bindings and compiled expressions; ``broken`` says why it could not be compiled."""

    name: str
    spec: Mapping[str, Any]
    bindings: tuple[Object, ...]
    conditions: tuple[Expression, ...] = ()
    variables: Mapping[str, Expression] = field(default_factory=dict)
    validations: tuple[tuple[Mapping[str, Any], Expression, Expression | None], ...] = ()
    mutations: tuple[tuple[str, Expression], ...] = ()
    broken: str = ""

    @property
    def must_fail(self) -> bool:
        return bool(self.spec.get("failurePolicy", "Fail") != "Ignore")


@dataclass(frozen=True, slots=True)
class Denial:
    """Why a request is refused, by which policy and binding."""

    policy: str
    binding: str
    message: str
    reason: str = "Invalid"


class AdmissionPolicies:
    """The policies of one API."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._compiled_at: tuple[int, ...] = ()
        self._policies: dict[str, tuple[CompiledPolicy, ...]] = {"validating": (), "mutating": ()}

    def mutate(self, target: Target, operation: str, new: Object, old: Object | None, options: WriteOptions) -> Object:
        """The object as the mutating policies leave it; raises StatusError."""
        policies = self._current("mutating")
        if not policies or target.resource.group == GROUP:
            return new
        request = self._attributes(target, operation, new, old, options)
        changed_by: dict[str, Object] = {}
        for is_second_round in (False, True):
            for policy in policies:
                if is_second_round and not _runs_again(policy, changed_by.get(policy.name), new):
                    continue
                new = self._mutated_by(policy, request, new)
                changed_by[policy.name] = new
        return new

    def validate(
        self, target: Target, operation: str, new: Object | None, old: Object | None, options: WriteOptions
    ) -> None:
        """Raises StatusError if a validating policy denies the request; adds warnings of those that only warn."""
        policies = self._current("validating")
        if not policies or target.resource.group == GROUP:
            return
        request = self._attributes(target, operation, new, old, options)
        denials: list[Denial] = []
        for policy in policies:
            for binding, denial in self._denials(policy, request):
                actions = binding["spec"].get("validationActions") or () if binding else ("Deny",)
                if "Deny" in actions:
                    denials.append(denial)
                if "Warn" in actions:
                    options.warnings.append(
                        f"Validation failed for ValidatingAdmissionPolicy '{denial.policy}' with binding "
                        f"'{denial.binding}': {denial.message}"
                    )
        if denials:
            raise _denied(request, denials[0])

    # -- policies as they are now ------------------------------------------------------------------------------------

    def forget(self) -> None:
        """Recompiles what is known: writes may have been taken back."""
        self._compiled_at = ()

    def _current(self, kind: str) -> tuple[CompiledPolicy, ...]:
        store = self._api.store
        now = tuple(store.history(table).position_after(store.revision) for table in _TABLES)
        if now != self._compiled_at:
            self._policies = {kind: tuple(self._compile(kind)) for kind in self._policies}
            self._compiled_at = now
        return self._policies[kind]

    def _compile(self, kind: str) -> Iterator[CompiledPolicy]:
        bindings = list(self._api.list(_BINDINGS[kind]))
        for policy in sorted(self._api.list(_POLICIES[kind]), key=lambda one: str(one["metadata"]["name"])):
            name = policy["metadata"]["name"]
            bound = tuple(one for one in bindings if one["spec"].get("policyName") == name)
            if bound:
                yield compiled_policy(name, policy["spec"], bound)

    def _attributes(
        self, target: Target, operation: str, new: Object | None, old: Object | None, options: WriteOptions
    ) -> Attributes:
        metadata = (new or old or {}).get("metadata", {})
        namespace = self._api.get("namespaces", "", target.namespace) if target.resource.namespaced else None
        return Attributes(
            operation,
            target.resource,
            target.namespace if target.resource.namespaced else "",
            target.name or metadata.get("name", ""),
            target.subresource,
            new,
            old,
            options.user,
            options.dry_run,
            namespace,
        )

    # -- one policy, one request -------------------------------------------------------------------------------------

    def _invocations(self, policy: CompiledPolicy, request: Attributes) -> Iterator[tuple[Object, Object | None]]:
        """The bindings that match, each with each of its parameters; raises PolicyConfigurationError."""
        if not matches(policy.spec.get("matchConstraints") or {}, request):
            return
        for binding in policy.bindings:
            within = binding["spec"].get("matchResources")
            if within and not matches(within, request):
                continue
            for params in self._params(policy, binding, request):
                yield binding, params

    def _params(self, policy: CompiledPolicy, binding: Object, request: Attributes) -> list[Object | None]:
        kind, reference = policy.spec.get("paramKind"), binding["spec"].get("paramRef")
        if not kind or not reference:
            return [None]
        resource = next(
            (
                one
                for one in self._api.all_kinds()
                if one.api_version == kind.get("apiVersion") and one.kind == kind.get("kind")
            ),
            None,
        )
        if resource is None:
            shown = f"&ParamKind{{APIVersion:{kind.get('apiVersion')},Kind:{kind.get('kind')},}}"
            raise PolicyConfigurationError(f"paramKind kind `{shown}` not known")
        namespace = ""
        if resource.namespaced:
            namespace = reference.get("namespace") or request.namespace
            if not namespace:
                raise PolicyConfigurationError(
                    "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
                )
        elif reference.get("namespace"):
            raise PolicyConfigurationError("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
        typed = {"apiVersion": resource.api_version, "kind": resource.kind}
        if reference.get("name"):
            one = self._api.get(resource.storage_key, namespace, reference["name"])
            found: list[Object | None] = [] if one is None else [{**typed, **one}]
        else:
            selector = reference.get("selector")
            found = [
                {**typed, **one}
                for one in self._api.list(resource.storage_key, namespace)
                if selects(selector, one["metadata"].get("labels") or {})
            ]
        if not found and reference.get("parameterNotFoundAction") == "Deny":
            raise PolicyConfigurationError("no params found for policy binding with `Deny` parameterNotFoundAction")
        return found

    def _denials(self, policy: CompiledPolicy, request: Attributes) -> Iterator[tuple[Object | None, Denial]]:
        try:
            invocations = list(self._invocations(policy, request))
        except PolicyConfigurationError as problem:
            if policy.must_fail:
                yield None, Denial(policy.name, "", f"failed to configure binding: {problem}")
            return
        for binding, params in invocations:
            name = binding["metadata"]["name"]
            try:
                if policy.broken:
                    raise CelEvaluationError(policy.broken)
                if not _is_within(policy, request, params):
                    continue
            except CelEvaluationError as problem:
                if policy.must_fail:
                    yield binding, Denial(policy.name, name, str(problem))
                continue
            seen = evaluation(request, params, policy.variables)
            for rule, expression, message in policy.validations:
                denial = _validated(policy, name, seen, rule, expression, message)
                if denial is not None:
                    yield binding, denial

    def _mutated_by(self, policy: CompiledPolicy, request: Attributes, new: Object) -> Object:
        try:
            invocations = list(self._invocations(policy, request))
        except PolicyConfigurationError as problem:
            if policy.must_fail:
                message = f'policy "{policy.name}" denied request: failed to configure binding: {problem}'
                raise _refused(request, message) from None
            return new
        for binding, params in invocations:
            try:
                if policy.broken:
                    raise CelEvaluationError(policy.broken)
                if not _is_within(policy, request, params):
                    continue
                seen = evaluation(request, params, policy.variables)
                for patch_type, expression in policy.mutations:
                    current = {**seen.values["object"], **new}
                    new = mutate(new, request.resource, patch_type, seen.with_object(current).run(expression))
            except (CelEvaluationError, MutationError) as problem:
                if policy.must_fail:
                    name = binding["metadata"]["name"]
                    message = f"policy '{policy.name}' with binding '{name}' denied request: {problem}"
                    raise _refused(request, message) from None
        return new


def compiled_policy(name: str, spec: Mapping[str, Any], bindings: tuple[Object, ...]) -> CompiledPolicy:
    """A stored policy, ready to run."""
    compiler = PolicyCompiler(bool(spec.get("paramKind")))
    try:
        conditions = tuple(compiler.compile(one["expression"].strip()) for one in spec.get("matchConditions") or ())
        variables = {
            one["name"]: compiler.add_variable(one["name"], one["expression"]) for one in _listed(spec, "variables")
        }
        validations = tuple(
            (rule, compiler.compile(rule["expression"]), _message_of(rule, compiler.compile))
            for rule in _listed(spec, "validations")
        )
        mutations = tuple(
            (one["patchType"], compiler.compile(_patch_text(one), has_patches=True))
            for one in _listed(spec, "mutations")
        )
    except CelCompileError as problem:
        return CompiledPolicy(name, spec, bindings, broken=str(problem))
    return CompiledPolicy(name, spec, bindings, conditions, variables, validations, mutations)


def _listed(spec: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    return list(spec.get(name) or ())


def _message_of(rule: Mapping[str, Any], compile_text: Callable[[str], Expression]) -> Expression | None:
    text = rule.get("messageExpression", "")
    return compile_text(text) if text.strip() else None


def _patch_text(mutation: Mapping[str, Any]) -> str:
    patch = mutation.get("jsonPatch" if mutation["patchType"] == "JSONPatch" else "applyConfiguration") or {}
    return str(patch.get("expression", "")).strip()


def _runs_again(policy: CompiledPolicy, left_as: Object | None, now: Object) -> bool:
    return policy.spec.get("reinvocationPolicy") == "IfNeeded" and left_as is not None and left_as != now


def _is_within(policy: CompiledPolicy, request: Attributes, params: Object | None) -> bool:
    """Whether all match conditions hold; one that is false decides, before any that has no value."""
    seen = evaluation(request, params, policy.variables, MATCH_BUDGET)
    problems: list[CelEvaluationError] = []
    for condition in policy.conditions:
        try:
            if seen.run(condition) is False:
                return False
        except CelEvaluationError as problem:
            problems.append(problem)
    if problems:
        raise problems[0]
    return True


def _validated(
    policy: CompiledPolicy,
    binding: str,
    seen: Evaluation,
    rule: Mapping[str, Any],
    expression: Expression,
    message: Expression | None,
) -> Denial | None:
    try:
        if seen.run(expression) is True:
            return None
    except CelEvaluationError as problem:
        shown = f"expression '{expression.text}' resulted in error: {problem}"
        return Denial(policy.name, binding, shown) if policy.must_fail else None
    return Denial(policy.name, binding, _told(seen, rule, message), rule.get("reason") or "Invalid")


def _told(seen: Evaluation, rule: Mapping[str, Any], message: Expression | None) -> str:
    """What the client is told: the message that was computed, the one given, or the expression that failed."""
    if message is not None:
        try:
            computed = seen.run(message)
        except CelEvaluationError:
            computed = ""
        text = computed.strip() if isinstance(computed, str) else ""
        if text and len(text) <= _LONGEST_MESSAGE and "\n" not in text:
            return text
    given = str(rule.get("message") or "").strip()
    return given or f"failed expression: {str(rule['expression']).strip()}"


def _denied(request: Attributes, denial: Denial) -> StatusError:
    bound = f" with binding '{denial.binding}'" if denial.binding else ""
    message = f"ValidatingAdmissionPolicy '{denial.policy}'{bound} denied request: {denial.message}"
    refusal = forbidden(request.resource, request.name, message)
    refusal.reason, refusal.code = denial.reason, _CODES.get(denial.reason, 422)
    refusal.details = {**(refusal.details or {}), "causes": [{"message": message}]}
    return refusal


def _refused(request: Attributes, message: str) -> StatusError:
    refusal = forbidden(request.resource, request.name, "admission request denied by policy")
    details = {**(refusal.details or {}), "causes": [{"message": message}]}
    return StatusError(403, "Invalid", message, details)
