"""Custom resources: the kinds that a definition adds to those served, one for each version.

The schema of the version drops unknown fields and sets defaults, also of stored objects that are read, and says what is
wrong (``custom_schema.py``, ``custom_rules.py``). Versions differ in their schemas only: nothing is converted between
them. ``custom_definitions.py`` has the rules of definitions themselves.

Columns that a definition asks for (additionalPrinterColumns) are read by simple JSON paths. A path has names,
``['quoted names']``, positions, ``[*]`` and filters like ``[?(@.type=="Ready")]``; its first result is shown. What a
path does not find, or finds in another type than the column's, is an empty cell.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from kubesched.k8s.model.times import InstantError
from kubesched.playground.apiserver.go_text import printed, type_name
from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.kinds import metadata
from kubesched.playground.apiserver.kinds.custom_rules import rule_errors, rules_of
from kubesched.playground.apiserver.kinds.custom_schema import (
    custom_type,
    from_storage,
    list_type_errors,
    shape,
    value_errors,
)
from kubesched.playground.apiserver.kinds.field_errors import dns_subdomain_errors
from kubesched.playground.apiserver.kinds.serving import AGE, NAME, since
from kubesched.playground.apiserver.openapi.decoding import decode_object
from kubesched.playground.apiserver.openapi.go_json import word_for
from kubesched.playground.apiserver.openapi.schemas import struct_type
from kubesched.playground.apiserver.served_resource import (
    DecodeError,
    InvalidField,
    Object,
    ServedResource,
    TableColumn,
    WriteContext,
)
from kubesched.playground.apiserver.storage.store import metadata_fields

_Step = Callable[[Any], Iterator[Any]]
_TOKEN = re.compile(
    r"""\.?\[\s*'(?P<quoted>(?:[^'\\]|\\.)*)'\s*\]"""
    r"""|\.?\[\s*\?\(\s*@(?P<where>[^=!<>\s]+)\s*(?P<sign>==|!=)\s*(?P<what>"[^"]*"|'[^']*'|[^)\s]+)\s*\)\s*\]"""
    r"""|\.?\[\s*(?P<place>-?\d+)\s*\]"""
    r"""|\.?\[\s*(?P<from>-?\d*)\s*:\s*(?P<to>-?\d*)\s*\]"""
    r"""|\.?(?P<all>\[\s*\*\s*\]|\*)"""
    r"""|\.(?P<name>(?:[^.\[\]\\]|\\.)+)"""
)


def columns_of(wanted: list[Object]) -> tuple[TableColumn, ...]:
    """The name and what was asked for; the age, if nothing was."""
    if not wanted:
        return (NAME, TableColumn("Age", AGE.value, type="date", description=AGE.description))
    return (NAME, *(_column(one) for one in wanted))


def _column(one: Object) -> TableColumn:
    steps, form = _steps(one["jsonPath"]), one.get("type", "string")

    def value(obj: Object) -> Any:
        found = None if steps is None else next(_walk(obj, steps), None)
        return _cell(found, form)

    return TableColumn(
        name=one["name"],
        value=value,
        type=form,
        format=one.get("format", ""),
        description=one.get("description")
        or f"Custom resource definition column (in JSONPath format): {one['jsonPath']}",
        priority=one.get("priority", 0),
    )


def _cell(value: Any, form: str) -> Any:
    if value is None:
        return None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    match form:
        case "string":
            return value if isinstance(value, str) else _as_text(value)
        case "integer":
            return int(value) if is_number else None
        case "number":
            return value if is_number else None
        case "boolean":
            return value if isinstance(value, bool) else None
        case "date" if isinstance(value, str):
            try:
                return since(value)
            except InstantError:
                return "<invalid>"
    return None


def _as_text(value: Any) -> str:
    return msgspec.json.encode(value, order="sorted").decode()


def _steps(path: str) -> list[_Step] | None:
    """None for a path that is more than a simple one."""
    steps: list[_Step] = []
    at = 0
    while at < len(path):
        token = _TOKEN.match(path, at)
        if token is None:
            return None
        step = _step(token)
        if step is None:
            return None
        steps.append(step)
        at = token.end()
    return steps


def _step(token: re.Match[str]) -> _Step | None:
    parts = token.groupdict()
    if parts["name"] is not None or parts["quoted"] is not None:
        name = re.sub(r"\\(.)", r"\1", parts["name"] if parts["name"] is not None else parts["quoted"])
        return lambda value: iter([value[name]] if isinstance(value, dict) and name in value else [])
    if parts["place"] is not None:
        place = int(parts["place"])
        return lambda value: iter(value[place : place + 1 or None] if isinstance(value, list) else [])
    if parts["from"] is not None:
        first, last = int(parts["from"] or 0), int(parts["to"]) if parts["to"] else None
        return lambda value: iter(value[first:last] if isinstance(value, list) else [])
    if parts["all"] is not None:
        return lambda value: iter(
            value if isinstance(value, list) else value.values() if isinstance(value, dict) else []
        )
    return _filter(parts["where"], parts["sign"], parts["what"])


def _filter(where: str, sign: str, what: str) -> _Step | None:
    inner = _steps(where)
    if inner is None:
        return None
    wanted = what[1:-1] if what[:1] in "\"'" else what

    def step(value: Any) -> Iterator[Any]:
        for item in value if isinstance(value, list) else ():
            found = next(_walk(item, inner), None)
            if found is not None and ((_shown(found) == wanted) == (sign == "==")):
                yield item

    return step


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else _as_text(value)


def _walk(value: Any, steps: list[_Step]) -> Iterator[Any]:
    if not steps:
        yield value
        return
    for found in steps[0](value):
        yield from _walk(found, steps[1:])


_MOST_REPLICAS = 2**31 - 1
_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
_BLOCKING = (
    "FieldValueNotSupported",
    "FieldValueRequired",
    "FieldValueTooLong",
    "FieldValueTooMany",
    "FieldValueTypeInvalid",
)
_UNCHECKED = (
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete "
    "validation"
)
_OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


def served_resources(definition: Object) -> list[ServedResource]:
    """One resource for each version that the definition serves, the preferred one first."""
    spec = definition["spec"]
    served = [version for version in spec.get("versions") or [] if version.get("served")]
    return [_served(spec, version) for version in sorted(served, key=_age)]


def _age(version: Object) -> tuple[object, ...]:
    """Sorts stable versions before betas before alphas, newest first, and any other names after them."""
    matched = re.fullmatch(r"v(\d+)(?:(alpha|beta)(\d+))?", version["name"])
    if matched is None:
        return (1, version["name"])
    maturity = {None: 0, "beta": 1, "alpha": 2}[matched[2]]
    return (0, maturity, -int(matched[1]), -int(matched[3] or 0))


def _served(spec: Object, version: Object) -> ServedResource:
    names = spec["names"]
    subresources = frozenset(version.get("subresources", {}).keys())
    namespaced = spec.get("scope") == "Namespaced"
    scale = _scale_paths(version.get("subresources", {}).get("scale") or {})
    schema = version.get("schema", {}).get("openAPIV3Schema") or {}
    selectable = tuple(one["jsonPath"] for one in version.get("selectableFields") or ())
    identity = {"apiVersion": f"{spec['group']}/{version['name']}", "kind": names["kind"]}
    return ServedResource(
        group=spec["group"],
        version=version["name"],
        kind=names["kind"],
        plural=names["plural"],
        singular=names.get("singular") or names["kind"].lower(),
        namespaced=namespaced,
        short_names=tuple(names.get("shortNames", ())),
        categories=tuple(names.get("categories", ())),
        subresources=subresources,
        verbs=_VERBS,
        decode=_decoder(schema),
        prepare_create=_creation("status" in subresources),
        validate=_validation(namespaced, schema, scale, identity),
        validate_admission=_warnings(schema, identity),
        columns=columns_of(version.get("additionalPrinterColumns") or []),
        tracks_generation=True,
        unconditional_update=False,
        scale_paths=scale,
        custom_type=custom_type(schema),
        custom_schema=schema,
        selectable_paths=selectable,
        selectable_fields=_selectable(selectable) if selectable else metadata_fields,
        from_stored=from_storage(schema),
        deprecation=_deprecation(version, identity),
        is_custom=True,
    )


def _selectable(paths: tuple[str, ...]) -> Callable[[Object], dict[str, str]]:
    """Their paths have names only, no lists."""

    def fields(obj: Object) -> dict[str, str]:
        found = dict(metadata_fields(obj))
        for path in paths:
            value: Any = obj
            for name in path.lstrip(".").split("."):
                value = value.get(name) if isinstance(value, dict) else None
            found[path.lstrip(".")] = _field_text(value)
        return found

    return fields


def _field_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def _deprecation(version: Object, identity: Object) -> str:
    if not version.get("deprecated"):
        return ""
    return version.get("deprecationWarning") or f"{identity['apiVersion']} {identity['kind']} is deprecated"


def _scale_paths(scale: Object) -> tuple[str, str, str]:
    names = ("specReplicasPath", "statusReplicasPath", "labelSelectorPath")
    wanted, seen, selector = (scale.get(name) or "" for name in names)
    return wanted, seen, selector


def _decoder(schema: Object) -> Callable[[Object], list[str]]:
    def decode(obj: Object) -> list[str]:
        return _decode_metadata(obj) + shape(obj, schema)

    return decode


def _decode_metadata(obj: Object) -> list[str]:
    meta = obj.get("metadata")
    if meta is None:
        obj["metadata"] = {}
        return []
    if not isinstance(meta, dict):
        raise DecodeError(
            f"json: cannot unmarshal {word_for(meta)} into Go struct field .metadata of type v1.ObjectMeta"
        )
    return [f"metadata.{path}" for path in decode_object(meta, struct_type(_OBJECT_META))]


def _creation(drops_status: bool) -> Callable[[Object, WriteContext], None]:
    def prepare(obj: Object, _: WriteContext) -> None:
        if drops_status:
            obj.pop("status", None)

    return prepare


def _scale_errors(obj: Object, paths: tuple[str, str, str]) -> list[InvalidField]:
    """Where the definition says that replicas lie, there must be a number that can be one."""
    found: list[InvalidField] = []
    for path in filter(None, paths[:2]):
        value: Any = obj
        for name in filter(None, path.split(".")):
            value = value.get(name) if isinstance(value, dict) else None
        if value is None:
            continue
        if not isinstance(value, int) or isinstance(value, bool):
            why = f"{path} accessor error: {printed(value)} is of the type {type_name(value)}, expected int64"
            found.append(errors.invalid(path, 0, why))
        elif value < 0:
            found.append(errors.invalid(path, value, "should be a non-negative integer"))
        elif value > _MOST_REPLICAS:
            found.append(errors.invalid(path, value, f"should be less than or equal to {_MOST_REPLICAS}"))
    return found


def _validation(
    namespaced: bool, schema: Object, scale: tuple[str, str, str], identity: Object
) -> Callable[[Object, Object | None], list[InvalidField]]:
    typed = {**schema, "type": "object"}
    text = json.dumps(schema)

    def validate(new: Object, old: Object | None) -> list[InvalidField]:
        if old is None:
            found = metadata.validate_new(new["metadata"], namespaced, dns_subdomain_errors)
        else:
            found = metadata.validate_changed(new["metadata"], old["metadata"])
        found += value_errors(new, typed, old=old)
        if old is None or not list_type_errors(old, schema):
            found += list_type_errors(new, schema)
        found += _scale_errors(new, scale)
        rules = rules_of(text)
        if rules is None:
            return found
        if any(wrong.reason in _BLOCKING for wrong in found):
            return [*found, errors.invalid("<nil>", None, _UNCHECKED)]
        before = None if old is None else {**old, **identity}
        return found + rule_errors(rules, {**new, **identity}, before)[0]

    return validate


def _warnings(schema: Object, identity: Object) -> Callable[[Object, Object | None, WriteContext], None]:
    """Rules that are broken where nothing changed are told, and no more."""
    text = json.dumps(schema)

    def warn(new: Object, old: Object | None, ctx: WriteContext) -> None:
        rules = rules_of(text) if old is not None else None
        if rules is not None and old is not None:
            ctx.warnings += rule_errors(rules, {**new, **identity}, {**old, **identity})[1]

    return warn
