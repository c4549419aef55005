"""Strategic merge patch: a merge patch that knows which lists are merged by key, and understands directives.

Lists whose field has the patch strategy "merge" are merged: by merge key if their items are objects, else as sets
(``strategic_lists.py``). Directives: ``$patch`` (replace, delete), ``$deleteFromPrimitiveList/…``,
``$setElementOrder/…`` and ``$retainKeys``. What a patch puts where nothing was is taken as it is, without nulls and
without what carries ``$patch``; the other directives have no meaning there and are unknown fields.
"""

from __future__ import annotations

from typing import Any

from kubesched.playground.apiserver.errors import bad_request, unclassified, unsupported_media_type
from kubesched.playground.apiserver.go_text import as_text, printed, quoted
from kubesched.playground.apiserver.kinds.kind import Object, ServedResource
from kubesched.playground.apiserver.openapi.struct_types import ANY, ValueType, type_of_kind
from kubesched.playground.apiserver.patching import strategic_lists
from kubesched.playground.apiserver.patching.strategic_lists import PATCH, wrong_type

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
    strategic_lists.check_order(patch.get(name, []), order, field_type.merge_key)
    if name in original:
        live = original[name]
        merged = _merged_list(live, patch[name], field_type) if name in patch else live
    elif name in patch:
        live, merged = [], _without_directives(patch[name])
    else:
        return
    original[name] = strategic_lists.arranged(merged, order, live, patch.pop(name, []), field_type.merge_key)


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
        original[name] = strategic_lists.without_values(original[name], values, of.child(name), _merge_objects)


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
    return strategic_lists.merged(current, patch, of.merge_key, of.element or ANY, _merge_objects)


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
