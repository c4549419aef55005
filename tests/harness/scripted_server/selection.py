"""Label and field selectors on stored objects, as far as schedulers and kubectl use them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

Stored = dict[str, Any]
"""An object as JSON. Never changed in place once it is stored."""

Matches = Callable[[Stored], bool]

_SET = re.compile(r"^(\S+)\s+(in|notin)\s+\(([^)]*)\)$")
_OUTSIDE_PARENTHESES = re.compile(r",(?![^(]*\))")


def selection(query: Mapping[str, str], namespace: str | None) -> Matches | None:
    """What a list or watch asks for; `None` if it is everything."""
    tests: list[Matches] = []
    if namespace is not None:
        tests.append(lambda item: item["metadata"].get("namespace") == namespace)
    if fields := query.get("fieldSelector"):
        tests.extend(_field_test(part) for part in fields.split(","))
    if labels := query.get("labelSelector"):
        tests.extend(_label_test(part.strip()) for part in _OUTSIDE_PARENTHESES.split(labels))
    return (lambda item: all(test(item) for test in tests)) if tests else None


def _field_test(part: str) -> Matches:
    path, operator, value = _split(part)
    steps = path.split(".")

    def field_of(item: Stored) -> str:
        found: Any = item
        for step in steps:
            found = found.get(step) if isinstance(found, dict) else None
        return "" if found is None else str(found)

    return (lambda item: field_of(item) != value) if operator == "!=" else (lambda item: field_of(item) == value)


def _label_test(part: str) -> Matches:
    if found := _SET.match(part):
        key, operator, listed = found.groups()
        values = {value.strip() for value in listed.split(",")}
        wanted = operator == "in"
        return lambda item: (_labels(item).get(key) in values) == wanted
    if part.startswith("!"):
        return lambda item: part[1:] not in _labels(item)
    if "=" not in part:
        return lambda item: part in _labels(item)
    key, operator, value = _split(part)
    return lambda item: (_labels(item).get(key) == value) == (operator == "=")


def _split(part: str) -> tuple[str, str, str]:
    for operator in ("!=", "==", "="):
        left, found, right = part.partition(operator)
        if found:
            return left.strip(), "!=" if operator == "!=" else "=", right.strip()
    return part, "=", ""


def _labels(item: Stored) -> dict[str, str]:
    labels: dict[str, str] = item["metadata"].get("labels") or {}
    return labels
