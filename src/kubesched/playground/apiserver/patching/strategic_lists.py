"""Lists in a strategic merge patch: objects merged by their merge key, scalars as a set, both in a given order.

``strategic.py`` merges the objects around them, and the items of a list (``merge`` here). Refusals that the real server
does not classify have its code for them, 500.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubesched.playground.apiserver.errors import StatusError, unclassified
from kubesched.playground.apiserver.go_text import as_text, printed, type_name
from kubesched.playground.apiserver.kinds.kind import Object
from kubesched.playground.apiserver.openapi.struct_types import ANY, ValueType


def in_order(merged: list[Any], wanted: list[Any], live: list[Any], merge_key: str) -> list[Any]:
    """Items that ``wanted`` names come in its order; the others are put in where the live list has them.

    An item of the live list goes before the first named item that follows it there, and to the end if none does.
    """

    def identity(item: Any) -> Any:
        return item.get(merge_key) if merge_key and isinstance(item, dict) else item

    wanted_order = [identity(item) for item in wanted]
    live_order = [identity(item) for item in live]
    named = [item for item in merged if identity(item) in wanted_order]
    named.sort(key=lambda item: wanted_order.index(identity(item)))
    others = [item for item in merged if identity(item) not in wanted_order]
    ordered: list[Any] = []
    while named and others:
        ordered.append((others if _precedes(identity(others[0]), identity(named[0]), live_order) else named).pop(0))
    return ordered + named + others


def _precedes(other: Any, named: Any, live_order: list[Any]) -> bool:
    return other in live_order and named in live_order and live_order.index(other) < live_order.index(named)


PATCH = "$patch"

_Merge = Callable[[Object, Object, ValueType], Object]


def wrong_type(expected: type, found: Any) -> StatusError:
    shown = "%!s(<nil>)" if found is None else type_name(found)
    return unclassified(f"expected a {type_name(expected())}, but received a {shown}")


def _no_key(item: Any, merge_key: str) -> StatusError:
    return unclassified(f"map: {printed(item)} does not contain declared merge key: {merge_key}")


def merged(current: list[Any], patch: list[Any], merge_key: str, element: ValueType, merge: _Merge) -> list[Any]:
    """The list after the patch, in the patch's order for what it names."""
    if not current and not patch:
        return current
    if not _are_objects(current, patch):
        both = current + [item for item in patch if item not in current]
        return in_order(list(_unique(both)), patch, current, "")
    if not merge_key:
        raise unclassified(f"cannot merge lists without merge key for {_go_kind(element)}")
    current, rest = _after_directives(current, patch, merge_key)
    result = list(current)
    for item in rest:
        if merge_key not in item:
            raise _no_key(item, merge_key)
        place = _place_of(result, merge_key, item[merge_key])
        if place is None:
            result.append(item)
        else:
            result[place] = merge(result[place], item, element)
    _check_keys(result, merge_key)
    return in_order(result, rest, current, merge_key)


def without_values(current: list[Any], values: list[Any], of: ValueType, merge: _Merge) -> list[Any]:
    """The list without these scalars; of objects, the directive merges like any list."""
    if not current and not values:
        return current
    if _are_objects(current, values):
        return merged(current, values, of.merge_key, of.element or ANY, merge)
    return [item for item in current if item not in values]


def check_order(patch: list[Any], order: list[Any], merge_key: str) -> None:
    """The order directive names what the patch has, in the patch's order."""
    if not order or not patch:
        return
    named = patch
    if merge_key:
        for item in patch:
            if not isinstance(item, dict):
                raise wrong_type(dict, item)
        named = [item for item in patch if item.get(PATCH) != "delete"]
    at, place = 0, 0
    while at < len(named) and place < len(order):
        if isinstance(named[at], dict) and PATCH in named[at]:
            at += 1
            continue
        at += _are_same(named[at], order[place], merge_key)
        place += 1
    if at < len(named):
        lists = f"\n{printed(patch)}\n doesn't match $setElementOrder list:\n{printed(order)}\n"
        raise unclassified(f"The order in patch list:{lists}")


def _are_same(one: Any, other: Any, merge_key: str) -> bool:
    if not merge_key:
        return bool(one == other)
    _check_keys([one, other], merge_key)
    return bool(one[merge_key] == other[merge_key])


def arranged(items: list[Any], order: list[Any], live: list[Any], patch: list[Any], merge_key: str) -> list[Any]:
    """The merged list in the order of its directive."""
    if merge_key:
        _check_keys(items, merge_key)
        for item in items:
            _place_of(order, merge_key, item[merge_key])
    if not live and not patch:
        raise unclassified("no elements in any of the given slices")
    if _are_objects(live, patch) and merge_key:
        _check_keys(order, merge_key)
    return in_order(items, order, live, merge_key)


def _are_objects(*lists: list[Any]) -> bool:
    """Whether the items are objects; all must be of one type, and no lists."""
    items = [item for one in lists for item in one]
    if isinstance(items[0], list):
        raise StatusError(422, "", "lists of lists are not supported")
    if len({type(item) for item in items}) > 1:
        raise unclassified(f"list element types are not identical: {printed(list(lists))}")
    return isinstance(items[0], dict)


def _after_directives(current: list[Any], patch: list[Any], merge_key: str) -> tuple[list[Any], list[Any]]:
    """Deletes what the patch deletes; gives what to merge into, and what to merge."""
    rest: list[Any] = []
    replaces = False
    for item in patch:
        if PATCH not in item:
            rest.append(item)
            continue
        directive = item[PATCH]
        if directive == "delete":
            if merge_key not in item:
                raise _no_key(item, merge_key)
            current = [one for one in current if one.get(merge_key) != item[merge_key]]
        elif directive == "replace":
            replaces = True
        elif directive == "merge":
            raise unclassified("merging lists cannot yet be specified in the patch")
        else:
            raise unclassified(f"unknown patch type: {as_text(directive)} in map: {printed(item)}")
    return (rest, []) if replaces else (current, rest)


def _check_keys(items: list[Any], merge_key: str) -> None:
    for item in items:
        if not isinstance(item, dict):
            raise wrong_type(dict, item)
        if merge_key not in item:
            raise _no_key(item, merge_key)


def _place_of(items: list[Any], merge_key: str, wanted: Any) -> int | None:
    for place, item in enumerate(items):
        if not isinstance(item, dict):
            raise unclassified(f"value for key {place} is not a map")
        if merge_key in item and _is_equal(item[merge_key], wanted):
            return place
    return None


def _is_equal(one: Any, other: Any) -> bool:
    """Equal in value and type: 80 is not 80.0."""
    return type(one) is type(other) and bool(one == other)


def _unique(items: list[Any]) -> list[Any]:
    found: list[Any] = []
    for item in items:
        if item not in found:
            found.append(item)
    return found


def _go_kind(element: ValueType) -> str:
    return {"struct": "struct", "map": "map", "any": "interface"}.get(element.form, element.form)
