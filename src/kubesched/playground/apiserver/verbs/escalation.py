"""Nobody grants what they do not have: the checks on writing roles and bindings beyond the right to write them, and on
approving and signing certificates.

A role may hold only rules that its writer holds (or the writer may ``escalate`` it), a binding may name only a role
whose rules its writer holds (or the writer may ``bind`` it); members of ``system:masters`` may do both. The checks come
before validation, as in kube-apiserver, on every way to write: create, update, patch and apply.
``authorization.py`` knows who has what, and compares.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kubesched.playground.apiserver.errors import StatusError, bad_request, forbidden, not_found
from kubesched.playground.apiserver.go_text import quoted
from kubesched.playground.apiserver.kinds.access_kinds import RESOURCE as CERTIFICATE_REQUESTS
from kubesched.playground.apiserver.served_resource import Object
from kubesched.playground.apiserver.verbs.authorization import (
    FULL_AUTHORITY,
    RBAC,
    Action,
    RbacAuthorizer,
    Rule,
    described,
    missing_rules,
    quoted_list,
)
from kubesched.playground.apiserver.verbs.request import RequestUser, Target

_ROLES = (f"roles.{RBAC}", f"clusterroles.{RBAC}")
_BINDINGS = (f"rolebindings.{RBAC}", f"clusterrolebindings.{RBAC}")
_SIGNED = ("certificate", "conditions")
_COLLECTED_FIELDS = ("ownerReferences", "finalizers", "selfLink", "managedFields")


class EscalationCheck:
    """Refuses writes of roles and bindings that would grant more than the writer has."""

    def __init__(self, authorizer: RbacAuthorizer) -> None:
        self._authorizer = authorizer

    def __call__(self, user: RequestUser, target: Target, new: Object, old: Object | None) -> None:
        """Raises StatusError; ``new`` as it was sent, before the server fills anything in."""
        resource = target.resource.group_resource
        if resource == CERTIFICATE_REQUESTS and old is not None:
            self._check_signer(user, target, new, old)
        if resource not in _ROLES + _BINDINGS or "system:masters" in user.groups:
            return
        if old is not None and _only_collection_changes(new, old):
            return
        if resource in _ROLES:
            self._check_role(user, target, new, old)
        else:
            self._check_binding(user, target, new)

    def _check_signer(self, user: RequestUser, target: Target, new: Object, old: Object) -> None:
        """Who approves or signs requests needs the right to do so for their signer."""
        status, before = new.get("status") or {}, old.get("status") or {}
        if target.subresource == "approval":
            verb = "approve"
        elif target.subresource == "status" and any(status.get(part) != before.get(part) for part in _SIGNED):
            verb = "sign"
        else:
            return
        signer = old["spec"].get("signerName", "")
        names = (signer, signer.partition("/")[0] + "/*")
        may = (Action(verb, "certificates.k8s.io", "signers", name=name) for name in names)
        if not any(self._authorizer.decide(user, action).allowed for action in may):
            why = f"user not permitted to {verb} requests with signerName {quoted(signer)}"
            raise forbidden(target.resource, target.name, why)

    def _check_role(self, user: RequestUser, target: Target, role: Object, old: Object | None) -> None:
        escalate = Action("escalate", RBAC, target.resource.plural, "", target.namespace, target.name)
        if self._authorizer.decide(user, escalate).allowed:
            return
        self._require_rules(user, target, role, role.get("rules") or ())
        if _aggregates(role) or _aggregates(old or {}):
            held, _ = self._held(user, target)
            if missing_rules(held, FULL_AUTHORITY):
                why = "must have cluster-admin privileges to use the aggregationRule"
                raise forbidden(target.resource, _name(role), why)

    def _check_binding(self, user: RequestUser, target: Target, binding: Object) -> None:
        ref = binding.get("roleRef") or {}
        kind, name = ref.get("kind", ""), ref.get("name", "")
        plural = {"ClusterRole": "clusterroles", "Role": "roles"}.get(kind)
        if plural is not None:
            bind = Action("bind", ref.get("apiGroup", ""), plural, "", target.namespace, name)
            if self._authorizer.decide(user, bind).allowed:
                return
        if plural is None:
            raise StatusError(500, "", f"unsupported role reference kind: {quoted(kind)}")
        if kind == "Role" and not target.namespace:
            raise bad_request("Namespace parameter required.")
        rules = self._authorizer.rules_of_role(kind, name, target.namespace)
        if rules is None:
            raise not_found(target.resource, name)  # the real server names the binding's resource here, too
        self._require_rules(user, target, binding, rules)

    def _require_rules(self, user: RequestUser, target: Target, obj: Object, wanted: Sequence[Rule]) -> None:
        held, unresolved = self._held(user, target)
        missing = missing_rules(held, wanted)
        if not missing:
            return
        why = (
            f"user {quoted(user.name)} (groups={quoted_list(user.groups)}) is attempting to grant RBAC permissions "
            f"not currently held:\n{described(missing)}"
        )
        if unresolved:
            resource = target.resource.group_resource
            listed = ", ".join(f"{resource} {quoted(name)} not found" for name in unresolved)
            why += f"; resolution errors: [{listed}]"
        raise forbidden(target.resource, _name(obj), why)

    def _held(self, user: RequestUser, target: Target) -> tuple[list[Rule], list[str]]:
        return self._authorizer.rules_and_gaps(user, target.namespace)


def _aggregates(role: Object) -> bool:
    return bool((role.get("aggregationRule") or {}).get("clusterRoleSelectors"))


def _name(obj: Object) -> str:
    return str(obj["metadata"].get("name", ""))


def _only_collection_changes(new: Object, old: Object) -> bool:
    """Only what the garbage collector needs to change so that the object can go."""
    metadata = {name: value for name, value in new["metadata"].items() if name not in _COLLECTED_FIELDS}
    metadata |= {name: old["metadata"][name] for name in _COLLECTED_FIELDS if name in old["metadata"]}
    return bool(_without_empty({**new, "metadata": metadata}) == _without_empty(old))


def _without_empty(value: Any) -> Any:
    """Nothing, an empty list and an empty map are the same to Go's semantic comparison."""
    if isinstance(value, dict):
        kept = {name: _without_empty(inner) for name, inner in value.items()}
        return {name: inner for name, inner in kept.items() if inner not in (None, [], {}, "")}
    if isinstance(value, list):
        return [_without_empty(inner) for inner in value]
    return value
