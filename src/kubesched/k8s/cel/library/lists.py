"""Functions on lists: Kubernetes' sum, min, max, isSorted and indexOf, cel-go's lists extension (version 3), and sets.

sets.contains(), sets.equivalent() and sets.intersects() take lists as sets.

Next: `quantities`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cmp_to_key
from itertools import pairwise
from typing import Any

from kubesched.k8s.cel import operations
from kubesched.k8s.cel.errors import COST_EXCEEDED, MAX_COST, CelAbort, CelEvaluationError, no_such_overload
from kubesched.k8s.cel.kinds import CelFunction, CelOverload, function, overload
from kubesched.k8s.cel.operations import compare, contains, is_ordered, is_same
from kubesched.k8s.cel.values import CelDuration, Uint, plain


def has_all(whole: list[object], part: list[object]) -> bool:
    return all(contains(element, whole) for element in part)


def equivalent(left: list[object], right: list[object]) -> bool:
    return has_all(left, right) and has_all(right, left)


def intersects(left: list[object], right: list[object]) -> bool:
    return any(contains(element, right) for element in left)


SET_FUNCTIONS: tuple[CelFunction, ...] = (
    function("sets.contains", overload("list_sets_contains_list", "(list(T), list(T)) -> bool", has_all)),
    function("sets.equivalent", overload("list_sets_equivalent_list", "(list(T), list(T)) -> bool", equivalent)),
    function("sets.intersects", overload("list_sets_intersects_list", "(list(T), list(T)) -> bool", intersects)),
)


_COMPARABLE = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
_ZEROS: dict[str, object] = {"int": 0, "uint": Uint(0), "double": 0.0, "duration": CelDuration(0)}
_add = operations.operator("_+_", operations.ADD)


def is_sorted(elements: list[object]) -> bool:
    return all(not _is_less(after, before) for before, after in pairwise(elements))


def _is_less(left: object, right: object) -> bool:
    try:
        return compare(left, right) < 0
    except CelEvaluationError:
        return False


def total(zero: object) -> Callable[[list[object]], object]:
    """The sum of a list, which is `zero` for an empty one."""

    def apply(elements: list[object]) -> object:
        result = zero
        for element in elements:
            result = _add(result, element)
        return result

    return apply


def _extreme(name: str, preferred: int) -> Callable[[list[object]], object]:
    def apply(elements: list[object]) -> object:
        if not elements:
            raise CelEvaluationError(f"{name} called on empty list")
        best = elements[0]
        for element in elements[1:]:
            if not is_ordered(element):
                raise no_such_overload()
            if _is_less(*((element, best) if preferred < 0 else (best, element))):
                best = element
        return best

    return apply


def index_of(elements: list[object], sought: object) -> int:
    return next((index for index, element in enumerate(elements) if is_same(element, sought)), -1)


def last_index_of(elements: list[object], sought: object) -> int:
    backwards = range(len(elements) - 1, -1, -1)
    return next((index for index in backwards if is_same(elements[index], sought)), -1)


def slice_list(elements: list[object], start: int, end: int) -> list[object]:
    if start < 0 or end < 0:
        raise CelEvaluationError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        reason = "start index must be less than or equal to end index"
        raise CelEvaluationError(f"cannot slice({start}, {end}), {reason}")
    if len(elements) < end:
        raise CelEvaluationError(f"cannot slice({start}, {end}), list is length {len(elements)}")
    return elements[start:end]


def flatten(elements: object, depth: object = 1) -> list[object]:
    if type(elements) is not list or type(depth) is not int:
        raise no_such_overload()
    if depth < 0:
        raise CelEvaluationError("level must be non-negative")
    flat: list[object] = []
    for element in elements:
        if type(element) is list and depth > 0:
            flat.extend(flatten(element, depth - 1))
        else:
            flat.append(element)
    return flat


def sort_by_keys(elements: Any, keys: Any) -> list[object]:
    """The elements in the order of their keys, which are of one type that has an order."""
    if type(elements) is not list or type(keys) is not list:
        raise CelEvaluationError("no such overload: sort")
    if not elements:
        return elements
    if not is_ordered(keys[0]):
        raise CelEvaluationError("list elements must be comparable")
    if any(type(key) is not type(keys[0]) for key in keys):
        raise CelEvaluationError("list elements must have the same type")
    ranked = sorted(zip(keys, elements, strict=True), key=cmp_to_key(_by_key))
    return [element for _, element in ranked]


def _by_key(left: tuple[object, object], right: tuple[object, object]) -> int:
    return -1 if _is_less(left[0], right[0]) else int(_is_less(right[0], left[0]))


def sort(elements: list[object]) -> list[object]:
    return sort_by_keys(elements, elements)


def distinct(elements: list[object]) -> list[object]:
    unique: list[object] = []
    for element in elements:
        if not any(is_same(element, seen) for seen in unique):
            unique.append(element)
    return unique


def insert_entry(mapping: dict[object, object], key: object, value: object) -> dict[object, object]:
    """A map with one more entry, as transformMap() builds it."""
    if operations.find(mapping, key) is not operations.ABSENT:
        raise CelEvaluationError(f"insert failed: key {plain(key)} already exists")
    return {**mapping, operations.encode_key(key): value}


def int_range(count: int) -> list[int]:
    """lists.range(count). What the cost limit forbids anyway is not even built."""
    if count > MAX_COST:
        raise CelAbort(COST_EXCEEDED)
    return list(range(count))


def _for_each_type(identity: str, signature: str, implementation: Any) -> tuple[CelOverload, ...]:
    return tuple(overload(identity.format(name), signature.format(name), implementation) for name in _COMPARABLE)


KUBERNETES_FUNCTIONS: tuple[CelFunction, ...] = (
    function("isSorted", *_for_each_type("list_{0}_is_sorted_bool", "list({0}).() -> bool", is_sorted)),
    function(
        "sum",
        *(
            overload(f"list_{name}_sum_{name}", f"list({name}).() -> {name}", total(zero))
            for name, zero in _ZEROS.items()
        ),
    ),
    function("max", *_for_each_type("list_{0}_max_{0}", "list({0}).() -> {0}", _extreme("max", 1))),
    function("min", *_for_each_type("list_{0}_min_{0}", "list({0}).() -> {0}", _extreme("min", -1))),
    function("indexOf", overload("list_a_index_of_int", "list(A).(A) -> int", index_of)),
    function("lastIndexOf", overload("list_a_last_index_of_int", "list(A).(A) -> int", last_index_of)),
)

FUNCTIONS: tuple[CelFunction, ...] = (
    function("slice", overload("list_slice", "list(T).(int, int) -> list(T)", slice_list)),
    function(
        "flatten",
        overload("list_flatten", "list(list(T)).() -> list(T)"),
        overload("list_flatten_int", "list(dyn).(int) -> list(dyn)"),
        shared=flatten,
    ),
    function("sort", *_for_each_type("list_{0}_sort", "list({0}).() -> list({0})", None), shared=sort),
    function(
        "@sortByAssociatedKeys",
        *_for_each_type("list_{0}_sortByAssociatedKeys", "list(T).(list({0})) -> list(T)", None),
        shared=sort_by_keys,
    ),
    function("lists.range", overload("lists_range", "(int) -> list(int)", int_range)),
    function("reverse", overload("list_reverse", "list(T).() -> list(T)", lambda elements: elements[::-1])),
    function("distinct", overload("list_distinct", "list(T).() -> list(T)", distinct)),
    function(
        "cel.@mapInsert",
        overload("@mapInsert_map_key_value", "(map(K, V), K, V) -> map(K, V)", insert_entry),
        overload("@mapInsert_map_map", "(map(K, V), map(K, V)) -> map(K, V)"),
    ),
)
