"""May this user do this? Role-based access control over the stored roles and bindings; ``system:masters`` may do
everything.

Promises the real server's rules: verbs, groups, resources with subresources, names, non-resource URLs, ``*`` wherever
it is allowed. Compiled bindings are kept until a role or binding changes. ``bootstrap.py`` has the roles that exist
from the start.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from kubesched.apiserver.api import Api
from kubesched.apiserver.kinds.kind import Object
from kubesched.apiserver.verbs.request import RequestUser

RBAC = "rbac.authorization.k8s.io"
_RESOURCES = tuple(f"{plural}.{RBAC}" for plural in ("roles", "rolebindings", "clusterroles", "clusterrolebindings"))

_MOST_USERS = 1024


class Action(msgspec.Struct, frozen=True, gc=False):
    """What somebody wants to do: on a resource, or on a plain path."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    @property
    def full_resource(self) -> str:
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


@dataclass(frozen=True, slots=True)
class Grant:
    """Rules given to subjects, in one namespace or everywhere (""); ``how`` is the reason told when it allows."""

    namespace: str
    subjects: tuple[dict[str, Any], ...]
    rules: tuple[dict[str, Any], ...]
    how: str


class Verdict(msgspec.Struct, frozen=True, gc=False):
    """Allowed, and by which binding."""

    allowed: bool
    reason: str = ""


class RbacAuthorizer:
    """Answers for one API."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._grants: tuple[Grant, ...] = ()
        self._compiled_at: tuple[int, ...] = ()
        self._of_users: dict[tuple[str, tuple[str, ...]], tuple[tuple[Grant, dict[str, Any]], ...]] = {}

    def decide(self, user: RequestUser, action: Action) -> Verdict:
        if "system:masters" in user.groups:
            return Verdict(True)
        for grant, subject in self._granted(user, action.namespace):
            if any(_rule_allows(rule, action) for rule in grant.rules):
                return Verdict(True, f"{grant.how} to {_subject_text(subject)}")
        return Verdict(False)

    def rules_for(self, user: RequestUser, namespace: str) -> list[dict[str, Any]]:
        """Every rule that holds for the user in the namespace."""
        return [rule for grant, _ in self._granted(user, namespace) for rule in grant.rules]

    def _granted(self, user: RequestUser, namespace: str) -> Iterator[tuple[Grant, dict[str, Any]]]:
        for grant, subject in self._all_granted(user):
            if not grant.namespace or grant.namespace == namespace:
                yield grant, subject

    def _all_granted(self, user: RequestUser) -> tuple[tuple[Grant, dict[str, Any]], ...]:
        """What the user has in any namespace; looked up once, until a role or binding changes."""
        grants, who = self._current(), (user.name, user.groups)
        found = self._of_users.get(who)
        if found is None:
            if len(self._of_users) >= _MOST_USERS:
                self._of_users.clear()
            found = self._of_users[who] = tuple(
                (grant, subject)
                for grant in grants
                if (subject := next((s for s in grant.subjects if _is_subject(s, user, grant.namespace)), None))
            )
        return found

    def _current(self) -> tuple[Grant, ...]:
        store = self._api.store
        now = tuple(store.history(resource).position_after(store.revision) for resource in _RESOURCES)
        if now != self._compiled_at:
            self._grants, self._compiled_at = tuple(self._compile()), now
            self._of_users.clear()
        return self._grants

    def _compile(self) -> Iterator[Grant]:
        for binding in self._api.list(f"clusterrolebindings.{RBAC}"):
            yield self._grant(binding, "", "ClusterRoleBinding")
        for binding in self._api.list(f"rolebindings.{RBAC}"):
            yield self._grant(binding, binding["metadata"]["namespace"], "RoleBinding")

    def _grant(self, binding: Object, namespace: str, kind: str) -> Grant:
        ref, name = binding.get("roleRef", {}), binding["metadata"]["name"]
        place, plural = ("", "clusterroles") if ref.get("kind") == "ClusterRole" else (namespace, "roles")
        role = self._api.get(f"{plural}.{RBAC}", place, ref.get("name", "")) or {}
        shown = f"{name}/{namespace}" if namespace else name
        role_shown = f'{ref.get("kind")} "{ref.get("name")}"'
        how = f'RBAC: allowed by {kind} "{shown}" of {role_shown}'
        return Grant(namespace, tuple(binding.get("subjects") or ()), tuple(role.get("rules") or ()), how)


def _subject_text(subject: dict[str, Any]) -> str:
    if subject.get("kind") == "ServiceAccount":
        return f'ServiceAccount "{subject.get("name")}/{subject.get("namespace")}"'
    return f'{subject.get("kind")} "{subject.get("name")}"'


def _is_subject(subject: dict[str, Any], user: RequestUser, namespace: str) -> bool:
    kind, name = subject.get("kind"), subject.get("name", "")
    if kind == "User":
        return bool(name == user.name)
    if kind == "Group":
        return name in user.groups
    if kind == "ServiceAccount":
        return user.name == f"system:serviceaccount:{subject.get('namespace') or namespace}:{name}"
    return False


def _rule_allows(rule: dict[str, Any], action: Action) -> bool:
    verbs = rule.get("verbs") or ()
    if "*" not in verbs and action.verb not in verbs:
        return False
    if action.path:
        return any(_url_matches(url, action.path) for url in rule.get("nonResourceURLs") or ())
    groups, resources = rule.get("apiGroups") or (), rule.get("resources") or ()
    if "*" not in groups and action.group not in groups:
        return False
    named = "*" in resources or action.full_resource in resources
    if not named and not (action.subresource and f"*/{action.subresource}" in resources):
        return False
    names = rule.get("resourceNames") or ()
    return not names or action.name in names


def _url_matches(url: str, path: str) -> bool:
    return url in ("*", path) or (url.endswith("*") and path.startswith(url.rstrip("*")))
