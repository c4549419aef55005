"""Admission policies and their bindings: defaults and validation, in which every expression is compiled.

They consist of rules that choose requests, and of expressions. Policies whose rules are wrong or whose expressions do
not compile are refused here; ``admission/`` applies those that are good.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from kubesched.k8s.cel import CelCompileError, Expression, compile_expression, kinds
from kubesched.k8s.cel.kinds import CelType, TypeKind
from kubesched.k8s.model.selectors import label_key_errors
from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.kinds.field_errors import dns_subdomain_errors, path_segment_errors
from kubesched.playground.apiserver.kinds.metadata import label_selector_errors
from kubesched.playground.apiserver.kinds.serving import AGE, NAME, KindRules, dig, print_selector
from kubesched.playground.apiserver.served_resource import InvalidField, Object, TableColumn

_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")


def set_match_defaults(criteria: Object | None) -> None:
    if criteria is None:
        return
    criteria.setdefault("matchPolicy", "Equivalent")
    criteria.setdefault("namespaceSelector", {})
    criteria.setdefault("objectSelector", {})
    for name in ("resourceRules", "excludeResourceRules"):
        for rule in criteria.get(name) or ():
            rule.setdefault("scope", "*")


def choice_errors(value: Any, allowed: Iterable[str], path: str) -> list[InvalidField]:
    if not value:
        return [errors.required(path)]
    return [] if value in allowed else [errors.unsupported(path, value, allowed)]


def match_errors(criteria: Object | None, path: str) -> list[InvalidField]:
    if criteria is None:
        return []
    found = choice_errors(criteria.get("matchPolicy"), ("Equivalent", "Exact"), f"{path}.matchPolicy")
    for name in ("namespaceSelector", "objectSelector"):
        found += label_selector_errors(criteria.get(name), f"{path}.{name}")
    for name in ("resourceRules", "excludeResourceRules"):
        for place, rule in enumerate(criteria.get(name) or ()):
            found += _rule_errors(rule, errors.index(f"{path}.{name}", place))
    return found


def _rule_errors(rule: Object, path: str) -> list[InvalidField]:
    found: list[InvalidField] = []
    seen: set[str] = set()
    for place, name in enumerate(rule.get("resourceNames") or ()):
        at = errors.index(f"{path}.resourceNames", place)
        found += errors.all_invalid(at, name, path_segment_errors(name))
        if name in seen:
            found.append(errors.duplicate(at, name))
        seen.add(name)
    operations = rule.get("operations") or []
    found += _wildcards(operations, f"{path}.operations", "operations")
    found += [
        errors.unsupported(errors.index(f"{path}.operations", place), one, _OPERATIONS)
        for place, one in enumerate(operations)
        if one not in _OPERATIONS
    ]
    found += _wildcards(rule.get("apiGroups") or [], f"{path}.apiGroups", "API groups")
    versions = rule.get("apiVersions") or []
    found += _wildcards(versions, f"{path}.apiVersions", "API versions")
    found += [errors.required(errors.index(f"{path}.apiVersions", i)) for i, one in enumerate(versions) if not one]
    found += _resource_errors(rule.get("resources") or [], f"{path}.resources")
    return found + choice_errors(rule.get("scope", "*"), ("*", "Cluster", "Namespaced"), f"{path}.scope")


def _wildcards(values: list[str], path: str, what: str) -> list[InvalidField]:
    if not values:
        return [errors.required(path)]
    if len(values) > 1 and "*" in values:
        return [errors.invalid(path, values, f"if '*' is present, must not specify other {what}")]
    return []


def _resource_errors(resources: list[str], path: str) -> list[InvalidField]:
    if not resources:
        return [errors.required(path)]
    found: list[InvalidField] = []
    whole: set[str] = set()
    everywhere: set[str] = set()
    for place, one in enumerate(resources):
        at = errors.index(path, place)
        if not one:
            found.append(errors.required(at))
            continue
        name, slash, sub = one.partition("/")
        if not slash:
            continue
        if name in whole:
            found.append(errors.invalid(at, one, f"if '{name}/*' is present, must not specify {one}"))
        if sub in everywhere:
            found.append(errors.invalid(at, one, f"if '*/{sub}' is present, must not specify {one}"))
        if sub == "*":
            whole.add(name)
        if name == "*":
            everywhere.add(sub)
    if len(resources) > 1 and "*/*" in resources:
        found.append(errors.invalid(path, resources, "if '*/*' is present, must not specify other resources"))
    if "*" in resources and any(one and one != "*" and "/" not in one for one in resources):
        why = "if '*' is present, must not specify other resources without subresources"
        found.append(errors.invalid(path, resources, why))
    return found


OBJECT = "Object"
JSON_PATCH = "JSONPatch"


def struct(name: str) -> CelType:
    return CelType(TypeKind.STRUCT, name)


_GROUP_KIND = dict.fromkeys(("group", "version", "kind"), kinds.STRING)
_GROUP_RESOURCE = dict.fromkeys(("group", "version", "resource"), kinds.STRING)
_STRUCTS: Mapping[str, Mapping[str, CelType]] = {
    "kubernetes.GroupVersionKind": _GROUP_KIND,
    "kubernetes.GroupVersionResource": _GROUP_RESOURCE,
    "kubernetes.UserInfo": {
        "username": kinds.STRING,
        "uid": kinds.STRING,
        "groups": kinds.list_of(kinds.STRING),
        "extra": kinds.map_of(kinds.STRING, kinds.list_of(kinds.STRING)),
    },
    "kubernetes.AdmissionRequest": {
        "kind": struct("kubernetes.GroupVersionKind"),
        "resource": struct("kubernetes.GroupVersionResource"),
        "subResource": kinds.STRING,
        "requestKind": struct("kubernetes.GroupVersionKind"),
        "requestResource": struct("kubernetes.GroupVersionResource"),
        "requestSubResource": kinds.STRING,
        "name": kinds.STRING,
        "namespace": kinds.STRING,
        "operation": kinds.STRING,
        "userInfo": struct("kubernetes.UserInfo"),
        "dryRun": kinds.BOOL,
        "options": kinds.DYN,
    },
    JSON_PATCH: {"op": kinds.STRING, "path": kinds.STRING, "from": kinds.STRING, "value": kinds.DYN},
}


class PolicyTypes:
    """The struct types of policies. `Object` and all below it may be built, with any field, where patches are made."""

    def __init__(self, variables: Mapping[str, CelType], has_patches: bool) -> None:
        self._variables = variables
        self._has_patches = has_patches

    def is_constructible(self, type_name: str) -> bool:
        return self._has_patches and (type_name == JSON_PATCH or self._is_object(type_name))

    def field_type(self, type_name: str, field: str) -> CelType | None:
        if self._is_object(type_name):
            return kinds.DYN
        fields = self._variables if type_name == "kubernetes.variables" else _STRUCTS[type_name]
        return fields.get(field)

    def _is_object(self, type_name: str) -> bool:
        return type_name == OBJECT or type_name.startswith(OBJECT + ".")


class PolicyCompiler:
    """Compiles the expressions of one policy; a variable can be used by all that is compiled after it."""

    def __init__(self, has_params: bool) -> None:
        self._variables: dict[str, CelType] = {}
        self._names: dict[str, CelType] = {
            "object": kinds.DYN,
            "oldObject": kinds.DYN,
            "request": struct("kubernetes.AdmissionRequest"),
            "namespaceObject": kinds.DYN,
            **({"params": kinds.DYN} if has_params else {}),
        }

    def compile(self, text: str, wanted: Iterable[CelType] = (), *, has_patches: bool = False) -> Expression:
        """Raises CelCompileError, also where the result cannot be of a wanted type."""
        names = {**self._names, **({"variables": struct("kubernetes.variables")} if self._variables else {})}
        compiled = compile_expression(text, names, PolicyTypes(dict(self._variables), has_patches))
        types = list(wanted)
        if types and compiled.type not in types:
            wanted_text = str(types[0]) if len(types) == 1 else f"one of [{' '.join(map(str, types))}]"
            raise CelCompileError(f"must evaluate to {wanted_text} but got {compiled.type}")
        return compiled

    def add_variable(self, name: str, text: str) -> Expression:
        compiled = self.compile(text)
        self._variables[name] = compiled.type
        return compiled


_MUTABLE = ("*", "CREATE", "UPDATE")
_REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_MOST_CONDITIONS = 64
_MOST_ANNOTATIONS = 20
_LONGEST_ANNOTATION = 5 * 1024
_POLICY_NAME_TEXT = "PolicyName indicates the policy definition which the policy binding binded to"
_PARAM_REF_TEXT = "ParamRef indicates the param resource which sets the configuration param"
_PARAM_KIND_TEXT = "ParamKind specifies the kind of resources used to parameterize this policy"
_VALIDATIONS_TEXT = "Validations indicates the number of validation rules defined in this configuration"
_MUTATIONS_TEXT = "Mutation indicates the number of mutations rules defined in this configuration"
_IDENTIFIER = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*")


# -- defaults --------------------------------------------------------------------------------------------------------


def _set_policy_defaults(obj: Object) -> None:
    spec = obj["spec"]
    spec.setdefault("failurePolicy", "Fail")
    set_match_defaults(spec.get("matchConstraints"))


def _set_binding_defaults(obj: Object) -> None:
    set_match_defaults(obj["spec"].get("matchResources"))


# -- what policies and bindings share --------------------------------------------------------------------------------


def _param_kind_errors(kind: Object, path: str) -> list[InvalidField]:
    found: list[InvalidField] = []
    version = kind.get("apiVersion", "")
    if not version:
        found.append(errors.required(f"{path}.apiVersion"))
    elif version.count("/") > 1:
        found.append(errors.invalid(f"{path}.apiVersion", version, f"unexpected GroupVersion string: {version}"))
    if not kind.get("kind"):
        found.append(errors.required(f"{path}.kind"))
    return found


def _param_ref_errors(reference: Object | None, path: str) -> list[InvalidField]:
    if reference is None:
        return []
    found: list[InvalidField] = []
    name, selector = reference.get("name", ""), reference.get("selector")
    if name:
        found += errors.all_invalid(f"{path}.name", name, path_segment_errors(name))
        if selector is not None:
            found.append(errors.forbidden(f"{path}.name", "name and selector are mutually exclusive"))
    if selector is not None:
        found += label_selector_errors(selector, f"{path}.selector")
        if name:
            found.append(errors.forbidden(f"{path}.selector", "name and selector are mutually exclusive"))
    if not name and selector is None:
        found.append(errors.required(path, "one of name or selector must be specified"))
    action = reference.get("parameterNotFoundAction")
    return found + choice_errors(action, ("Deny", "Allow"), f"{path}.parameterNotFoundAction")


# -- expressions -----------------------------------------------------------------------------------------------------


def _compile_errors(path: str, text: str, compile_text: Callable[[str], object]) -> list[InvalidField]:
    try:
        compile_text(text)
    except CelCompileError as problem:
        return [errors.invalid(path, text, str(problem))]
    return []


def _of_type(compiler: PolicyCompiler, *wanted: CelType) -> Callable[[str], object]:
    return lambda text: compiler.compile(text, wanted)


def _condition_errors(spec: Object, path: str) -> list[InvalidField]:
    conditions = spec.get("matchConditions") or []
    found: list[InvalidField] = []
    if len(conditions) > _MOST_CONDITIONS:
        found.append(errors.too_many(path, len(conditions), _MOST_CONDITIONS))
    compiler, seen = PolicyCompiler(bool(spec.get("paramKind"))), set[str]()
    for place, one in enumerate(conditions):
        at, text, name = errors.index(path, place), one.get("expression", "").strip(), one.get("name", "")
        if not text:
            found.append(errors.required(f"{at}.expression"))
        else:
            found += _compile_errors(f"{at}.expression", text, _of_type(compiler, kinds.BOOL))
        if not name:
            found.append(errors.required(f"{at}.name"))
        else:
            found += errors.all_invalid(f"{at}.name", name, label_key_errors(name))
            if name in seen:
                found.append(errors.duplicate(f"{at}.name", name))
            seen.add(name)
    return found


def _variable_errors(variables: list[Object], compiler: PolicyCompiler, path: str) -> list[InvalidField]:
    found: list[InvalidField] = []
    for place, one in enumerate(variables):
        at, name, text = errors.index(path, place), one.get("name", ""), one.get("expression", "")
        if not name.strip():
            found.append(errors.required(f"{at}.name", "name is not specified"))
        elif not _IDENTIFIER.fullmatch(name):
            found.append(errors.invalid(f"{at}.name", name, "must be a valid CEL identifier"))
        if not text.strip():
            found.append(errors.required(f"{at}.expression", "expression is not specified"))
        else:
            found += _compile_errors(f"{at}.expression", text, partial(compiler.add_variable, name))
    return found


def _validation_errors(rule: Object, compiler: PolicyCompiler, path: str) -> list[InvalidField]:
    found: list[InvalidField] = []
    text, computed, message = (rule.get(name, "") for name in ("expression", "messageExpression", "message"))
    if not text.strip():
        found.append(errors.required(f"{path}.expression", "expression is not specified"))
    else:
        found += _compile_errors(f"{path}.expression", text, _of_type(compiler, kinds.BOOL))
    if computed and not computed.strip():
        found.append(errors.invalid(f"{path}.messageExpression", computed, "must be non-empty if specified"))
    elif computed:
        found += _compile_errors(f"{path}.messageExpression", computed, _of_type(compiler, kinds.STRING))
    if message and not message.strip():
        found.append(errors.invalid(f"{path}.message", message, "must be non-empty if specified"))
    elif re.search(r"[\n\r]", message.strip()):
        found.append(errors.invalid(f"{path}.message", message, "must not contain line breaks"))
    if rule.get("reason") and rule["reason"] not in _REASONS:
        found.append(errors.unsupported(f"{path}.reason", rule["reason"], _REASONS))
    return found


def _annotation_errors(spec: Object, policy: str, compiler: PolicyCompiler, path: str) -> list[InvalidField]:
    annotations = spec.get("auditAnnotations") or []
    found: list[InvalidField] = []
    if len(annotations) > _MOST_ANNOTATIONS:
        why = f"must not have more than {_MOST_ANNOTATIONS} auditAnnotations"
        found.append(errors.invalid(path, annotations, why))
    seen: set[str] = set()
    for place, one in enumerate(annotations):
        at, key, text = errors.index(path, place), one.get("key", ""), one.get("valueExpression", "")
        found += errors.all_invalid(f"{at}.key", f"{policy}/{key}", label_key_errors(f"{policy}/{key}"))
        if not text.strip():
            found.append(errors.required(f"{at}.valueExpression", "valueExpression is not specified"))
        elif len(text.strip()) > _LONGEST_ANNOTATION:
            why = f"must not exceed {_LONGEST_ANNOTATION} bytes in length"
            found.append(errors.required(f"{at}.valueExpression", why))
        else:
            either = _of_type(compiler, kinds.STRING, kinds.NULL)
            found += _compile_errors(f"{at}.valueExpression", text, either)
        if key in seen:
            found.append(errors.duplicate(f"{at}.key", key))
        seen.add(key)
    return found


def _mutation_errors(mutation: Object, compiler: PolicyCompiler, path: str) -> list[InvalidField]:
    chosen = mutation.get("patchType", "")
    found = choice_errors(chosen, ("ApplyConfiguration", "JSONPatch"), f"{path}.patchType")
    if found:
        return found
    name, other = "applyConfiguration", "jsonPatch"
    result = struct(OBJECT)
    if chosen == "JSONPatch":
        name, other, result = other, name, kinds.list_of(struct(JSON_PATCH))
    if mutation.get(name) is None:
        found.append(errors.required(f"{path}.{name}", f"must be specified when patchType is {chosen}"))
    else:
        text = mutation[name].get("expression", "").strip()
        if text:
            patches = lambda t: compiler.compile(t, (result,), has_patches=True)  # noqa: E731 - used once, here
            found += _compile_errors(f"{path}.{name}.expression", text, patches)
        else:
            found.append(errors.required(f"{path}.{name}.expression"))
    if mutation.get(other) is not None:
        why = f"must not be specified when patchType is {chosen}"
        found.append(errors.invalid(f"{path}.{other}", f"{{{other}}}", why))
    return found


# -- the four kinds --------------------------------------------------------------------------------------------------


def _reach_errors(spec: Object) -> list[InvalidField]:
    """Which requests a policy is about, and what happens when it cannot be applied."""
    found = choice_errors(spec.get("failurePolicy"), ("Fail", "Ignore"), "spec.failurePolicy")
    if spec.get("paramKind") is not None:
        found += _param_kind_errors(spec["paramKind"], "spec.paramKind")
    criteria = spec.get("matchConstraints")
    if criteria is None:
        return [*found, errors.required("spec.matchConstraints")]
    found += match_errors(criteria, "spec.matchConstraints")
    if not criteria.get("resourceRules"):
        found.append(errors.required("spec.matchConstraints.resourceRules"))
    return found


def _only_mutable(criteria: Object | None, path: str) -> list[InvalidField]:
    return [
        errors.unsupported(f"{path}.resourceRules.operations", operation, _MUTABLE)
        for rule in (criteria or {}).get("resourceRules") or ()
        for operation in rule.get("operations") or ()
        if operation not in _MUTABLE
    ]


def _policy_errors(spec: Object, *, is_mutating: bool) -> tuple[list[InvalidField], PolicyCompiler]:
    """What both sorts of policies must have; the compiler knows the variables."""
    compiler = PolicyCompiler(bool(spec.get("paramKind")))
    found = _reach_errors(spec)
    if is_mutating:
        found += _only_mutable(spec.get("matchConstraints"), "spec.matchConstraints")
    found += _condition_errors(spec, "spec.matchConditions")
    return found + _variable_errors(spec.get("variables") or [], compiler, "spec.variables"), compiler


def _validate_validating_policy(obj: Object, _: Object | None) -> list[InvalidField]:
    spec = obj["spec"]
    found, compiler = _policy_errors(spec, is_mutating=False)
    if not spec.get("validations") and not spec.get("auditAnnotations"):
        why = "validations or auditAnnotations must contain at least one item"
        return [*found, errors.required("spec.validations", why), errors.required("spec.auditAnnotations", why)]
    for place, rule in enumerate(spec.get("validations") or ()):
        found += _validation_errors(rule, compiler, errors.index("spec.validations", place))
    return found + _annotation_errors(spec, obj["metadata"].get("name", ""), compiler, "spec.auditAnnotations")


def _validate_mutating_policy(obj: Object, _: Object | None) -> list[InvalidField]:
    spec = obj["spec"]
    found, compiler = _policy_errors(spec, is_mutating=True)
    if not spec.get("mutations"):
        found.append(errors.required("spec.mutations", "mutations must contain at least one item"))
    for place, mutation in enumerate(spec.get("mutations") or ()):
        found += _mutation_errors(mutation, compiler, errors.index("spec.mutations", place))
    return found + choice_errors(spec.get("reinvocationPolicy"), ("IfNeeded", "Never"), "spec.reinvocationPolicy")


def _binding_errors(spec: Object) -> list[InvalidField]:
    name = spec.get("policyName", "")
    found = errors.all_invalid("spec.policyName", name, dns_subdomain_errors(name)) if name else []
    if not name:
        found.append(errors.required("spec.policyName"))
    found += _param_ref_errors(spec.get("paramRef"), "spec.paramRef")
    return found + match_errors(spec.get("matchResources"), "spec.matchResources")


def _validate_validating_binding(obj: Object, _: Object | None) -> list[InvalidField]:
    spec = obj["spec"]
    found, path = _binding_errors(spec), "spec.validationActions"
    actions = spec.get("validationActions") or []
    for place, action in enumerate(actions):
        if action not in ("Audit", "Deny", "Warn"):
            found.append(errors.unsupported(errors.index(path, place), action, ("Audit", "Deny", "Warn")))
        if action in actions[:place]:
            found.append(errors.duplicate(errors.index(path, place), action))
    if {"Deny", "Warn"} <= set(actions):
        why = (
            "must not contain both Deny and Warn (repeating the same validation failure information in the API "
            "response and headers serves no purpose)"
        )
        found.append(errors.invalid(path, actions, why))
    if not actions:
        found.append(errors.required(path, "at least one validation action is required"))
    return found


def _validate_mutating_binding(obj: Object, _: Object | None) -> list[InvalidField]:
    spec = obj["spec"]
    return _binding_errors(spec) + _only_mutable(spec.get("matchResources"), "spec.matchResources")


def _count(path: str) -> Callable[[Object], int]:
    read = dig(path, [])
    return lambda obj: len(read(obj) or [])


def _param_kind(obj: Object) -> str:
    kind = obj["spec"].get("paramKind")
    return f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}" if kind else "<unset>"


def _param_ref(obj: Object) -> str:
    reference = obj["spec"].get("paramRef") or {}
    if reference.get("name"):
        return f"{reference.get('namespace') or '*'}/{reference['name']}"
    selector = reference.get("selector")
    return "<unset>" if selector is None else print_selector(selector)


_BINDING_COLUMNS = (
    NAME,
    TableColumn("PolicyName", dig("spec.policyName"), description=_POLICY_NAME_TEXT),
    TableColumn("ParamRef", _param_ref, description=_PARAM_REF_TEXT),
    AGE,
)
VALIDATING_POLICY = KindRules(
    set_defaults=_set_policy_defaults,
    validate=_validate_validating_policy,
    columns=(
        NAME,
        TableColumn("Validations", _count("spec.validations"), type="integer", description=_VALIDATIONS_TEXT),
        TableColumn("ParamKind", _param_kind, description=_PARAM_KIND_TEXT),
        AGE,
    ),
)
VALIDATING_BINDING = KindRules(
    set_defaults=_set_binding_defaults, validate=_validate_validating_binding, columns=_BINDING_COLUMNS
)
MUTATING_POLICY = KindRules(
    set_defaults=_set_policy_defaults,
    validate=_validate_mutating_policy,
    columns=(
        NAME,
        TableColumn("Mutations", _count("spec.mutations"), type="integer", description=_MUTATIONS_TEXT),
        TableColumn("ParamKind", _param_kind, description=_PARAM_KIND_TEXT),
        AGE,
    ),
)
MUTATING_BINDING = KindRules(
    set_defaults=_set_binding_defaults, validate=_validate_mutating_binding, columns=_BINDING_COLUMNS
)
