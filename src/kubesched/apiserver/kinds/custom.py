"""Custom resources: a definition's own rules, and the kinds that it adds to those served.

The schema of the version drops unknown fields, sets defaults and validates: see ``custom_schema.py``. No conversion
between versions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubesched.apiserver.go_text import printed, type_name
from kubesched.apiserver.kinds import field_errors as errors
from kubesched.apiserver.kinds import metadata, printer_columns
from kubesched.apiserver.kinds.custom_schema import definition_pattern_errors, schema_errors, shape
from kubesched.apiserver.kinds.custom_types import custom_type
from kubesched.apiserver.kinds.kind import DecodeError, InvalidField, Object, ServedResource, WriteContext
from kubesched.apiserver.kinds.name_syntax import dns_subdomain_mistakes
from kubesched.apiserver.kinds.serving import KindRules
from kubesched.apiserver.kinds.table_columns import DEFAULT_COLUMNS
from kubesched.apiserver.openapi.decoding import decode_object
from kubesched.apiserver.openapi.go_json import word_for
from kubesched.apiserver.openapi.struct_types import struct_type

_MOST_REPLICAS = 2**31 - 1
_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
_OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


def served_resources(definition: Object) -> list[ServedResource]:
    """One resource for each version that the definition serves."""
    spec = definition["spec"]
    return [_served(spec, version) for version in spec.get("versions") or [] if version.get("served")]


def _served(spec: Object, version: Object) -> ServedResource:
    names = spec["names"]
    subresources = frozenset(version.get("subresources", {}).keys())
    namespaced = spec.get("scope") == "Namespaced"
    scale = _scale_paths(version.get("subresources", {}).get("scale") or {})
    schema = version.get("schema", {}).get("openAPIV3Schema") or {}
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
        validate=_validation(namespaced, schema, scale),
        columns=printer_columns.columns_of(version.get("additionalPrinterColumns") or []),
        tracks_generation=True,
        unconditional_update=False,
        scale_paths=scale,
        custom_type=custom_type(schema),
        is_custom=True,
    )


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
    namespaced: bool, schema: Object, scale: tuple[str, str, str]
) -> Callable[[Object, Object | None], list[InvalidField]]:
    def validate(new: Object, old: Object | None) -> list[InvalidField]:
        if old is None:
            found = metadata.validate_new(new["metadata"], namespaced, dns_subdomain_mistakes)
        else:
            found = metadata.validate_changed(new["metadata"], old["metadata"])
        return found + schema_errors(new, {**schema, "type": "object"}) + _scale_errors(new, scale)

    return validate


def _set_definition_defaults(obj: Object) -> None:
    spec = obj["spec"]
    names = spec["names"]
    if names.get("kind"):
        if not names.get("singular"):
            names["singular"] = names["kind"].lower()
        if not names.get("listKind"):
            names["listKind"] = names["kind"] + "List"
    spec.setdefault("conversion", {"strategy": "None"})


def _create_definition(obj: Object, _: WriteContext) -> None:
    """The status of a definition whose names nobody has looked at yet."""
    versions = obj["spec"].get("versions") or []
    stored = [version["name"] for version in versions if version.get("storage")]
    obj["status"] = {"conditions": None, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": stored}


def _validate_definition(obj: Object, old: Object | None) -> list[InvalidField]:
    spec = obj["spec"]
    wanted = f"{spec['names'].get('plural', '')}.{spec.get('group', '')}"
    name = obj["metadata"].get("name", "")
    found: list[InvalidField] = []
    if name != wanted:
        found.append(errors.invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group'))
    if not spec.get("group"):
        found.append(errors.required("spec.group"))
    if spec.get("scope") not in ("Cluster", "Namespaced"):
        found.append(errors.unsupported("spec.scope", spec.get("scope", ""), ("Cluster", "Namespaced")))
    versions = spec.get("versions") or []
    if sum(bool(version.get("storage")) for version in versions) != 1:
        why = "must have exactly one version marked as storage version"
        found.append(errors.invalid("spec.versions", [version["name"] for version in versions], why))
    for position, version in enumerate(versions):
        if "openAPIV3Schema" not in version.get("schema", {}):
            at = errors.index("spec.versions", position)
            found.append(errors.required(f"{at}.schema.openAPIV3Schema"))
    found += definition_pattern_errors(versions)
    found += [errors.required(f"spec.names.{n}") for n in ("plural", "kind") if not spec["names"].get(n)]
    if old is not None:
        found += [
            errors.immutable(f"spec.{n}", spec.get(n)) for n in ("group", "scope") if spec.get(n) != old["spec"].get(n)
        ]
    return found


DEFINITION = KindRules(
    set_defaults=_set_definition_defaults,
    prepare_create=_create_definition,
    validate=_validate_definition,
    columns=DEFAULT_COLUMNS,
)
