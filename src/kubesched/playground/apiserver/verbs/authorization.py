"""May this user do this? Role-based access control over the stored roles and bindings.

Promises the real server's rules: verbs, groups, resources with subresources, names, non-resource URLs, ``*`` wherever
it is allowed; ``system:masters`` may do everything. Compiled bindings are kept until a role or binding changes.
``bootstrap.py`` has the roles that exist from the start.

What one set of rules allows that another does not is counted here, too: the arithmetic behind "you cannot grant what
you do not have". Rules are broken into pieces of one group, resource, verb and name, and a piece is covered only by a
single rule. ``escalation.py`` asks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from kubesched.playground.apiserver.errors import StatusError
from kubesched.playground.apiserver.go_text import quoted
from kubesched.playground.apiserver.served_resource import Object
from kubesched.playground.apiserver.verbs.request import Api, RequestUser

Rule = dict[str, Any]

FULL_AUTHORITY: tuple[Rule, ...] = (
    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
    {"verbs": ["*"], "nonResourceURLs": ["*"]},
)
_SHOWN_FIELDS = (
    ("APIGroups", "apiGroups"),
    ("Resources", "resources"),
    ("NonResourceURLs", "nonResourceURLs"),
    ("ResourceNames", "resourceNames"),
    ("Verbs", "verbs"),
)


def url_matches(url: str, path: str) -> bool:
    """A rule's URL, which may end in ``*``, against a path (or against another rule's URL)."""
    return url in ("*", path) or (url.endswith("*") and path.startswith(url.rstrip("*")))


def missing_rules(held: Sequence[Rule], wanted: Iterable[Rule]) -> list[Rule]:
    """The pieces of ``wanted`` that no rule in ``held`` covers."""
    pieces = (piece for rule in wanted for piece in _pieces(rule))
    return [piece for piece in pieces if not any(_covers(rule, piece) for rule in held)]


def described(missing: Iterable[Rule]) -> str:
    """One line per group, resource and name, with all verbs that are missing."""
    return "\n".join(sorted({_text(rule) for rule in _joined(missing)}))


def _pieces(rule: Rule) -> Iterator[Rule]:
    names = rule.get("resourceNames") or ()
    for group in rule.get("apiGroups") or ():
        for resource in rule.get("resources") or ():
            for verb in rule.get("verbs") or ():
                piece: Rule = {"verbs": [verb], "apiGroups": [group], "resources": [resource]}
                if not names:
                    yield piece
                for name in names:
                    yield {**piece, "resourceNames": [name]}
    for url in rule.get("nonResourceURLs") or ():
        for verb in rule.get("verbs") or ():
            yield {"verbs": [verb], "nonResourceURLs": [url]}


def _covers(rule: Rule, piece: Rule) -> bool:
    verbs = rule.get("verbs") or ()
    if "*" not in verbs and piece["verbs"][0] not in verbs:
        return False
    if "nonResourceURLs" in piece:
        asked = piece["nonResourceURLs"][0]
        return not rule.get("resourceNames") and any(
            url_matches(url, asked) for url in rule.get("nonResourceURLs") or ()
        )
    groups, names = rule.get("apiGroups") or (), rule.get("resourceNames") or ()
    if "*" not in groups and piece["apiGroups"][0] not in groups:
        return False
    if names and ("resourceNames" not in piece or piece["resourceNames"][0] not in names):
        return False
    return _covers_resource(rule.get("resources") or (), piece["resources"][0])


def _covers_resource(resources: Sequence[str], asked: str) -> bool:
    if "*" in resources or asked in resources:
        return True
    _, slash, subresource = asked.partition("/")
    return bool(slash) and f"*/{subresource}" in resources


def _joined(missing: Iterable[Rule]) -> Iterator[Rule]:
    """Pieces that differ by their verb only are one rule again; those of URLs stay apart."""
    joined: dict[tuple[str, ...], Rule] = {}
    for piece in missing:
        if "nonResourceURLs" in piece:
            yield piece
            continue
        key = (piece["apiGroups"][0], piece["resources"][0], *piece.get("resourceNames", ()))
        if key in joined:
            joined[key]["verbs"].extend(piece["verbs"])
        else:
            joined[key] = {**piece, "verbs": list(piece["verbs"])}
    yield from joined.values()


def _text(rule: Rule) -> str:
    parts = [f"{shown}:{quoted_list(rule[name])}" for shown, name in _SHOWN_FIELDS if rule.get(name)]
    return "{" + ", ".join(parts) + "}"


def quoted_list(texts: Iterable[str]) -> str:
    """Go's ``%q`` of a list of strings."""
    return "[" + " ".join(quoted(text) for text in texts) + "]"


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
    """Rules given to subjects, in one namespace or everywhere (""); ``how`` is the reason told when it allows.
    ``gap`` is the role's name when there is no such role, and ``gap_text`` what is said of it.
    """

    namespace: str
    subjects: tuple[dict[str, Any], ...]
    rules: tuple[Rule, ...]
    how: str
    gap: str = ""
    gap_text: str = ""


class Verdict(msgspec.Struct, frozen=True, gc=False):
    """Allowed, and by which binding; or not, and which roles could not be asked."""

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
        gaps: list[str] = []
        for grant, subject in self._granted(user, action.namespace):
            if any(_rule_allows(rule, action) for rule in grant.rules):
                return Verdict(True, f"{grant.how} to {_subject_text(subject, grant.namespace)}")
            if grant.gap:
                gaps.append(grant.gap_text)
        return Verdict(False, f"RBAC: {_aggregate(gaps)}" if gaps else "")

    def rules_for(self, user: RequestUser, namespace: str) -> list[Rule]:
        """Every rule that holds for the user in the namespace."""
        return [rule for grant, _ in self._granted(user, namespace) for rule in grant.rules]

    def rules_and_gaps(self, user: RequestUser, namespace: str) -> tuple[list[Rule], list[str]]:
        """The rules of ``rules_for``, and the names of roles that bindings of the user name and nobody has written."""
        held = [*FULL_AUTHORITY] if "system:masters" in user.groups else []
        gaps: list[str] = []
        for grant, _ in self._granted(user, namespace):
            held.extend(grant.rules)
            if grant.gap:
                gaps.append(grant.gap)
        return held, gaps

    def gap_texts(self, user: RequestUser, namespace: str) -> list[str]:
        """What is said of roles that bindings of the user name and nobody has written."""
        return [grant.gap_text for grant, _ in self._granted(user, namespace) if grant.gap]

    def rules_of_role(self, kind: str, name: str, namespace: str) -> tuple[Rule, ...] | None:
        """The rules of a role that a binding in ``namespace`` ("" for the whole cluster) names."""
        place, plural = ("", "clusterroles") if kind == "ClusterRole" else (namespace, "roles")
        role = self._api.get(f"{plural}.{RBAC}", place, name)
        return None if role is None else tuple(role.get("rules") or ())

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

    def forget(self) -> None:
        """Recompiles what is known: writes may have been taken back."""
        self._compiled_at = ()

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
        role_kind, role_name = ref.get("kind", ""), ref.get("name", "")
        rules = self.rules_of_role(role_kind, role_name, namespace)
        shown = f"{name}/{namespace}" if namespace else name
        how = f'RBAC: allowed by {kind} "{shown}" of {role_kind} "{role_name}"'
        subjects = tuple(binding.get("subjects") or ())
        if rules is None:
            gap_text = f'{role_kind.lower()}.{RBAC} "{role_name}" not found'
            return Grant(namespace, subjects, (), how, role_name, gap_text)
        return Grant(namespace, subjects, rules, how)


def _aggregate(texts: list[str]) -> str:
    """Several errors as Go's aggregate words them; the same one is told once."""
    unique = list(dict.fromkeys(texts))
    return unique[0] if len(unique) == 1 else "[" + ", ".join(unique) + "]"


def _subject_text(subject: dict[str, Any], binding_namespace: str) -> str:
    if subject.get("kind") == "ServiceAccount":
        return f'ServiceAccount "{subject.get("name")}/{subject.get("namespace") or binding_namespace}"'
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
        return any(url_matches(url, action.path) for url in rule.get("nonResourceURLs") or ())
    groups, resources = rule.get("apiGroups") or (), rule.get("resources") or ()
    if "*" not in groups and action.group not in groups:
        return False
    named = "*" in resources or action.full_resource in resources
    if not named and not (action.subresource and f"*/{action.subresource}" in resources):
        return False
    names = rule.get("resourceNames") or ()
    return not names or action.name in names


def forbidden_action(user: RequestUser, action: Action, reason: str = "") -> StatusError:
    """The refusal of what the user may not do."""
    because = f": {reason}" if reason else ""
    if action.path:
        text = f'User "{user.name}" cannot {action.verb} path "{action.path}"'
        return StatusError(403, "Forbidden", f"forbidden: {_without_markup(text)}{because}", {})
    resource = f"{action.resource}.{action.group}" if action.group else action.resource
    subject = f'{resource} "{action.name}"' if action.name else resource
    where = f'in the namespace "{action.namespace}"' if action.namespace else "at the cluster scope"
    text = (
        f'User "{user.name}" cannot {action.verb} resource "{action.full_resource}" '
        f'in API group "{action.group}" {where}'
    )
    details = {"name": action.name} if action.name else {}
    if action.group:
        details["group"] = action.group
    message = f"{subject} is forbidden: {_without_markup(text)}{because}"
    return StatusError(403, "Forbidden", message, {**details, "kind": action.resource})


def _without_markup(text: str) -> str:
    """Nothing that a client asked for comes back as HTML."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
