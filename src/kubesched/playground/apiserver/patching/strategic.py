"""Strategic merge patch: a merge patch that knows which lists are merged by key, and understands directives.

Lists whose field has the patch strategy "merge" are merged: by merge key if their items are objects, else as sets, both
in a given order. Directives: ``$patch`` (replace, delete), ``$deleteFromPrimitiveList/…``, ``$setElementOrder/…`` and
``$retainKeys``. What a patch puts where nothing was is taken as it is, without nulls and without what carries
``$patch``; the other directives have no meaning there and are unknown fields. Refusals that the real server does not
classify have its code for them, 500.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubesched.playground.apiserver.errors import StatusError, bad_request, unclassified, unsupported_media_type
from kubesched.playground.apiserver.go_text import as_text, printed, quoted, type_name
from kubesched.playground.apiserver.openapi.schemas import ANY, ValueType, type_of_kind
from kubesched.playground.apiserver.served_resource import Object, ServedResource


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


_FOR_CUSTOM_RESOURCES = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/apply-patch+yaml",
)
_RETAIN = "$retainKeys"
_DELETE = "$deleteFromPrimitiveList"
_ORDER = "$setElementOrder"


def apply(document: Object, patch: Object, resource: ServedResource) -> Object:
    """A new document that shares with the old one what the patch does not touch.

    The patch is used up: what is left of it is what messages show. Raises StatusError; custom resources cannot be
    patched so.
    """
    kind_type = type_of_kind(resource.group, resource.version, resource.kind)
    if kind_type is None:
        raise unsupported_media_type(_FOR_CUSTOM_RESOURCES)
    return apply_by_type(document, patch, kind_type)


def apply_by_type(document: Object, patch: Object, kind_type: ValueType) -> Object:
    """The same for what is no resource of its own, such as a Scale."""
    return _merge_objects(document, patch, kind_type)


def _merge_objects(original: Object, patch: Object, of: ValueType) -> Object:
    if PATCH in patch:
        return _replaced(patch)
    original = dict(original)
    _retain_keys(original, patch)
    for name in [name for name in patch if name.startswith(_ORDER)]:
        _merge_in_order(original, patch, name, of)
    for name in list(patch):
        value = patch[name]
        if name.startswith(_DELETE):
            _delete_from(original, _named_by(name, _DELETE, "primitive list"), value, of)
        elif value is None:
            original.pop(name, None)
        else:
            _merge_field(original, name, value, of)
    return original


def _replaced(patch: Object) -> Object:
    directive = patch[PATCH]
    if directive == "replace":
        del patch[PATCH]
        return patch
    if directive == "delete":
        return {}
    raise unclassified(f"unknown patch type: {as_text(directive)} in map: {printed(patch)}")


def _retain_keys(original: Object, patch: Object) -> None:
    if _RETAIN not in patch:
        return
    kept = patch.pop(_RETAIN)
    given = [name for name, value in patch.items() if value is not None and not name.startswith((_DELETE, _ORDER))]
    if not isinstance(kept, list) or any(name not in kept for name in given):
        raise bad_request("invalid patch format of retainKeys")
    for name in [name for name in original if name not in kept]:
        del original[name]


def _named_by(directive: str, prefix: str, what: str) -> str:
    """The field that a directive is about: "$setElementOrder/containers"."""
    start, slash, name = directive.partition("/")
    if not slash or start != prefix:
        raise bad_request(f"invalid patch format of {what}")
    return name


def _merge_in_order(original: Object, patch: Object, directive: str, of: ValueType) -> None:
    """Merges the list that an order directive is about, and takes both out of the patch."""
    order = patch.pop(directive)
    if not isinstance(order, list):
        raise wrong_type(list, order)
    name = _named_by(directive, _ORDER, "setElementOrder list")
    for side in (original, patch):
        if name in side and not isinstance(side[name], list):
            raise wrong_type(list, side[name])
    field_type = _field_type(of, name)
    if field_type.form not in ("list", "bytes"):
        raise unclassified("expected slice or array type, but got: struct")
    check_order(patch.get(name, []), order, field_type.merge_key)
    if name in original:
        live = original[name]
        merged = _merged_list(live, patch[name], field_type) if name in patch else live
    elif name in patch:
        live, merged = [], _without_directives(patch[name])
    else:
        return
    original[name] = arranged(merged, order, live, patch.pop(name, []), field_type.merge_key)


def _field_type(of: ValueType, name: str) -> ValueType:
    if of.form != "struct":
        form = "map" if of.form == "map" else "interface"
        raise unclassified(f"merging an object in json but data type is not struct, instead is: {form}")
    if name not in of.fields:
        struct, field = of.struct_name, quoted(name)
        raise unclassified(f"unable to find api field in struct {struct} for the json field {field}")
    return of.fields[name].type


def _delete_from(original: Object, name: str, values: Any, of: ValueType) -> None:
    if values is None:
        original.pop(name, None)
    elif isinstance(original.get(name), list) and isinstance(values, list):
        original[name] = without_values(original[name], values, of.child(name), _merge_objects)


def _merge_field(original: Object, name: str, value: Any, of: ValueType) -> None:
    current = original.get(name)
    if isinstance(value, dict) and isinstance(current, dict):
        field_type = _field_type(of, name)
        original[name] = value if "replace" in field_type.patch_strategy else _merge_objects(current, value, field_type)
    elif isinstance(value, list) and isinstance(current, list):
        original[name] = _merged_list(current, value, _field_type(of, name))
    else:
        _drop_nulls(value)
        if isinstance(value, dict) and PATCH in value:
            original.pop(name, None)
        else:
            original[name] = _without_directives(value)


def _merged_list(current: list[Any], patch: list[Any], of: ValueType) -> list[Any]:
    if "merge" not in of.patch_strategy:
        return patch
    return merged(current, patch, of.merge_key, of.element or ANY, _merge_objects)


def _drop_nulls(value: Any) -> None:
    """Of what is new: a null there deletes nothing."""
    if isinstance(value, dict):
        for name in [name for name, item in value.items() if item is None]:
            del value[name]
        for item in value.values():
            _drop_nulls(item)
    elif isinstance(value, list):
        for item in value:
            _drop_nulls(item)


def _without_directives(value: Any) -> Any:
    """What is new in the document, without the objects that carry ``$patch``."""
    if isinstance(value, dict):
        return {name: _without_directives(item) for name, item in value.items() if not _is_directive(item)}
    if isinstance(value, list):
        return [_without_directives(item) for item in value if not _is_directive(item)]
    return value


def _is_directive(value: Any) -> bool:
    return isinstance(value, dict) and PATCH in value
