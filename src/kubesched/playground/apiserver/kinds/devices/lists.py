"""Lists, sets and maps within the kinds for devices: those that hold more than they may are not looked into."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.served_resource import InvalidField

ItemRule = Callable[[Any, str], list[InvalidField]]
_SHORTEST_CUT = 16


def list_errors(items: Sequence[Any], most: int, rule: ItemRule, path: str) -> list[InvalidField]:
    """``most`` below zero: as many as you like."""
    if 0 <= most < len(items):
        return [errors.too_many(path, len(items), most)]
    return [error for position, item in enumerate(items) for error in rule(item, errors.index(path, position))]


def set_errors(
    items: Sequence[Any], most: int, rule: ItemRule, path: str, key: Callable[[Any], Any] = lambda item: item
) -> list[InvalidField]:
    """A list in which no two items have the same key."""
    if 0 <= most < len(items):
        return [errors.too_many(path, len(items), most)]
    found = list_errors(items, -1, rule, path)
    seen: list[Any] = []
    for position, item in enumerate(items):
        if key(item) in seen:
            found.append(errors.duplicate(errors.index(path, position), key(item)))
        seen.append(key(item))
    return found


def map_errors(
    entries: Mapping[str, Any], most: int, longest_shown: int, key_rule: ItemRule, rule: ItemRule, path: str
) -> list[InvalidField]:
    if 0 <= most < len(entries):
        return [errors.too_many(path, len(entries), most)]
    found: list[InvalidField] = []
    for name, value in sorted(entries.items()):
        found += key_rule(name, path) + rule(value, errors.key(path, _cut(name, longest_shown)))
    return found


def _cut(text: str, longest: int) -> str:
    """Long keys are shown without their middle."""
    longest = max(longest, _SHORTEST_CUT)
    if len(text) <= longest:
        return text
    kept = longest - len("...")
    return text[: (kept + 1) // 2] + "..." + text[len(text) - kept // 2 :]
