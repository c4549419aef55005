"""What one set of RBAC rules allows that another does not: the arithmetic behind "you cannot grant what you do not
have".

Promises kube-apiserver's reading: rules are broken into pieces of one group, resource, verb and name, and a piece is
covered only by a single rule. ``escalation.py`` asks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from kubesched.playground.apiserver.go_text import quoted

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
