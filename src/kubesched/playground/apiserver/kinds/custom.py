"""Custom resources: the kinds that a definition adds to those served, one for each version.

The schema of the version drops unknown fields and sets defaults (``custom_schema.py``), also of stored objects that are
read, and says what is wrong (``custom_values.py``, ``custom_rules.py``). Versions differ in their schemas only: nothing
is converted between them. ``custom_definitions.py`` has the rules of definitions themselves.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from kubesched.playground.apiserver.go_text import printed, type_name
from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.kinds import metadata, printer_columns
from kubesched.playground.apiserver.kinds.compiled_rules import rules_of
from kubesched.playground.apiserver.kinds.custom_rules import rule_errors
from kubesched.playground.apiserver.kinds.custom_schema import custom_type, from_storage, shape
from kubesched.playground.apiserver.kinds.custom_values import list_type_errors, value_errors
from kubesched.playground.apiserver.kinds.name_syntax import dns_subdomain_errors
from kubesched.playground.apiserver.openapi.decoding import decode_object
from kubesched.playground.apiserver.openapi.go_json import word_for
from kubesched.playground.apiserver.openapi.schemas import struct_type
from kubesched.playground.apiserver.served_resource import (
    DecodeError,
    InvalidField,
    Object,
    ServedResource,
    WriteContext,
    metadata_fields,
)

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
        columns=printer_columns.columns_of(version.get("additionalPrinterColumns") or []),
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
