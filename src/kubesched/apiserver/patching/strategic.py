"""Strategic merge patch: a merge patch that knows which lists are merged by key, and understands directives.

Lists whose field has the patch strategy "merge" are merged: by merge key if their items are objects, else as sets.
Directives: ``$patch`` (replace, delete, merge), ``$deleteFromPrimitiveList/…``, ``$setElementOrder/…`` and
``$retainKeys``. ``list_order.py`` puts merged lists in order.
"""

from __future__ import annotations

from typing import Any

from kubesched.apiserver.errors import StatusError, bad_request, unsupported_media_type
from kubesched.apiserver.go_text import printed
from kubesched.apiserver.kinds.kind import Object, ServedResource
from kubesched.apiserver.openapi.struct_types import ANY, ValueType, type_of_kind
from kubesched.apiserver.patching.list_order import in_order
from kubesched.apiserver.patching.plain_copies import plain_copy

_FOR_CUSTOM_RESOURCES = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/apply-patch+yaml",
)
_PATCH = "$patch"
_RETAIN = "$retainKeys"
_DELETE_PREFIX = "$deleteFromPrimitiveList/"
_ORDER_PREFIX = "$setElementOrder/"


def apply(document: Object, patch: Any, resource: ServedResource) -> Object:
    """A new document that shares with the old one what the patch does not touch; neither argument is changed.

    Raises StatusError; custom resources cannot be patched so.
    """
    kind_type = type_of_kind(resource.group, resource.version, resource.kind)
    if kind_type is None:
        raise unsupported_media_type(_FOR_CUSTOM_RESOURCES)
    return apply_by_type(document, patch, kind_type)


def apply_by_type(document: Object, patch: Any, kind_type: ValueType) -> Object:
    """The same for what is no resource of its own, such as a Scale."""
    if not isinstance(patch, dict):
        raise bad_request("invalid JSON document")
    return _merge_objects(document, plain_copy(patch), kind_type)


def _merge_objects(original: dict[str, Any], patch: dict[str, Any], of: ValueType) -> dict[str, Any]:
    if _PATCH in patch:
        shown = printed(patch)
        directive = patch.pop(_PATCH)
        if directive == "replace":
            return patch
        if directive == "delete":
            return {}
        if directive != "merge":
            raise _failed(f"unknown patch type: {directive} in map: {shown}")
    original = dict(original)
    _retain_keys(original, patch)
    orders = _take_prefixed(patch, _ORDER_PREFIX)
    for name, order in orders.items():
        merge_key = of.child(name).merge_key
        for item in order if merge_key else ():
            if not isinstance(item, dict) or merge_key not in item:
                raise _failed(f"map: {printed(item)} does not contain declared merge key: {merge_key}")
    for name, values in _take_prefixed(patch, _DELETE_PREFIX).items():
        if isinstance(original.get(name), list):
            original[name] = [item for item in original[name] if item not in values]
    for name, value in patch.items():
        _merge_field(original, name, value, of.child(name), orders.get(name))
    for name, order in orders.items():
        if name not in patch and isinstance(original.get(name), list):
            field_type = of.child(name)
            original[name] = in_order(original[name], order, original[name], field_type.merge_key)
    return original


def _merge_field(original: dict[str, Any], name: str, value: Any, of: ValueType, order: list[Any] | None) -> None:
    if value is None:
        original.pop(name, None)
        return
    current = original.get(name)
    if isinstance(value, dict) and isinstance(current, dict) and "replace" not in of.patch_strategy:
        original[name] = _merge_objects(current, value, of)
    elif isinstance(value, list) and isinstance(current, list) and "merge" in of.patch_strategy:
        original[name] = _merge_lists(current, value, of, order)
    else:
        original[name] = _without_directives(value)


def _merge_lists(original: list[Any], patch: list[Any], of: ValueType, order: list[Any] | None) -> list[Any]:
    if not of.merge_key:
        merged = original + [item for item in patch if item not in original]
        return in_order(merged, order if order is not None else patch, original, "")
    element, original = of.element or ANY, list(original)
    patch, replaces = _apply_list_directives(original, patch, of.merge_key)
    if replaces:
        return patch
    if len({isinstance(item, dict) for item in (*original, *patch)}) > 1:
        raise _failed(f"list element types are not identical: [{printed(original)} {printed(patch)}]")
    merged = list(original)
    for item in patch:
        place = _place_of(merged, item, of.merge_key)
        if place is None:
            merged.append(_without_directives(item))
        else:
            merged[place] = _merge_objects(merged[place], item, element)
    return in_order(merged, order if order is not None else patch, original, of.merge_key)


def _apply_list_directives(original: list[Any], patch: list[Any], merge_key: str) -> tuple[list[Any], bool]:
    """Does ``$patch: delete`` items at once (on ``original``); says whether the rest replaces the list."""
    rest = []
    replaces = False
    for item in patch:
        directive = item.get(_PATCH) if isinstance(item, dict) else None
        if directive is None or directive == "merge":
            rest.append(item)
        elif directive == "replace":
            replaces = True
        elif directive == "delete":
            if merge_key not in item:
                raise _failed(f"delete patch type with no merge key defined: {merge_key}")
            original[:] = [one for one in original if one.get(merge_key) != item[merge_key]]
        else:
            raise _failed(f"unknown patch type: {directive} in map: {printed(item)}")
    return rest, replaces


def _place_of(items: list[Any], wanted: Any, merge_key: str) -> int | None:
    if not isinstance(wanted, dict) or merge_key not in wanted:
        raise _failed(f"map: {printed(wanted)} does not contain declared merge key: {merge_key}")
    for place, item in enumerate(items):
        if isinstance(item, dict) and item.get(merge_key) == wanted[merge_key]:
            return place
    return None


def _retain_keys(original: dict[str, Any], patch: dict[str, Any]) -> None:
    if _RETAIN not in patch:
        return
    kept = patch.pop(_RETAIN)
    if not isinstance(kept, list) or any(name not in kept for name, value in patch.items() if value is not None):
        raise bad_request("invalid patch format of retainKeys")
    for name in [name for name in original if name not in kept]:
        del original[name]


def _take_prefixed(patch: dict[str, Any], prefix: str) -> dict[str, list[Any]]:
    taken = {}
    for name in [name for name in patch if name.startswith(prefix)]:
        values = patch.pop(name)
        if not isinstance(values, list):
            raise bad_request("invalid patch format of primitive list")
        taken[name.removeprefix(prefix)] = values
    return taken


def _without_directives(value: Any) -> Any:
    """What is new in the document is taken as it is, without nulls and directives."""
    if isinstance(value, dict):
        return {
            name: _without_directives(item)
            for name, item in value.items()
            if item is not None and not name.startswith(("$patch", _RETAIN, _DELETE_PREFIX, _ORDER_PREFIX))
        }
    if isinstance(value, list):
        return [
            _without_directives(item)
            for item in value
            if not (isinstance(item, dict) and item.get(_PATCH) in ("delete", "replace"))
        ]
    return value


def _failed(message: str) -> StatusError:
    """An error that the real server does not classify."""
    return StatusError(500, "", message)
