"""sets.contains(), sets.equivalent() and sets.intersects(): lists taken as sets.

Next: `lists`.
"""

from __future__ import annotations

from kubesched.k8s.cel.checking.declarations import CelFunction, function, overload
from kubesched.k8s.cel.values.containers import contains


def has_all(whole: list[object], part: list[object]) -> bool:
    return all(contains(element, whole) for element in part)


def equivalent(left: list[object], right: list[object]) -> bool:
    return has_all(left, right) and has_all(right, left)


def intersects(left: list[object], right: list[object]) -> bool:
    return any(contains(element, right) for element in left)


FUNCTIONS: tuple[CelFunction, ...] = (
    function("sets.contains", overload("list_sets_contains_list", "(list(T), list(T)) -> bool", has_all)),
    function("sets.equivalent", overload("list_sets_equivalent_list", "(list(T), list(T)) -> bool", equivalent)),
    function("sets.intersects", overload("list_sets_intersects_list", "(list(T), list(T)) -> bool", intersects)),
)
