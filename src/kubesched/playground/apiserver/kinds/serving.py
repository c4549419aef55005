"""From a kind's own rules to the ServedResource: what all built-in kinds share is put around them here.

``serve`` guarantees: decoding follows the kind's schema and then sets its defaults (as the real server's decoder does),
validation begins with the metadata, a status sent at creation is dropped where the kind has a status subresource. A
kind's module gives a ``KindRules``, with columns for its table: those that many kinds share are here, with ages as
kubectl shows them; descriptions are those of fields in the schema.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kubesched.k8s.model.times import parse_instant
from kubesched.playground.apiserver.kinds import metadata
from kubesched.playground.apiserver.kinds.field_errors import NameRule, dns_subdomain_errors, path_segment_errors
from kubesched.playground.apiserver.openapi import schemas
from kubesched.playground.apiserver.openapi.decoding import decode_object, zero_value
from kubesched.playground.apiserver.openapi.schemas import ValueType, type_of_kind
from kubesched.playground.apiserver.served_resource import (
    InvalidField,
    Object,
    ServedResource,
    TableColumn,
    WriteContext,
)
from kubesched.playground.apiserver.storage.store import metadata_fields

STATUS = frozenset({"status"})
SCALE = frozenset({"status", "scale"})


def _no_defaults(_: Object) -> None:
    return None


def _no_times(_: Object, __: str) -> None:
    return None


def _no_preparation(_: Object, __: WriteContext) -> None:
    return None


def _no_changes(_: Object, __: Object, ___: WriteContext) -> None:
    return None


def _no_objection(_: Object, __: Object | None, ___: WriteContext) -> None:
    return None


def _nothing_wrong(_: Object, __: Object | None) -> list[InvalidField]:
    return []


def _nothing_wrong_here(_: Object, __: Object | None, ___: WriteContext) -> list[InvalidField]:
    return []


@dataclass(frozen=True)
class KindRules:
    """What is particular to a kind: defaults of the scheme, admission and strategy, validation, table."""

    set_defaults: Callable[[Object], None] = _no_defaults
    set_times: Callable[[Object, str], None] = _no_times
    prepare_create: Callable[[Object, WriteContext], None] = _no_preparation
    prepare_update: Callable[[Object, Object, WriteContext], None] = _no_changes
    validate: Callable[[Object, Object | None], list[InvalidField]] = _nothing_wrong
    validate_through: Mapping[str, Callable[[Object, Object], list[InvalidField]]] = field(default_factory=dict)
    # what is wrong in view of other objects; told before all else
    validate_in_context: Callable[[Object, Object | None, WriteContext], list[InvalidField]] = _nothing_wrong_here
    validate_admission: Callable[[Object, Object | None, WriteContext], None] = _no_objection
    name_rule: NameRule = dns_subdomain_errors
    keeps_status: bool = False  # a status sent at creation counts
    metadata_again: str = "changed"  # what its validation of updates looks at again: changed, all, both or none
    columns: tuple[TableColumn, ...] = ()
    selectable_fields: Callable[[Object], Mapping[str, str]] = metadata_fields


NO_RULES = KindRules()


def serve(
    group_version: str, kind: str, plural: str, *, namespaced: bool, rules: KindRules = NO_RULES, **names: Any
) -> ServedResource:
    """A built-in kind as served.

    ``names`` are further fields of ServedResource (short_names, categories, subresources …).
    """
    group, _, version = group_version.rpartition("/")
    names.setdefault("singular", kind.lower())
    resets_status = "status" in names.get("subresources", ()) and not rules.keeps_status
    return ServedResource(
        group=group,
        version=version,
        kind=kind,
        plural=plural,
        namespaced=namespaced,
        decode=_decoder(group, version, kind, rules),
        set_times=rules.set_times,
        prepare_create=_creation(rules, type_of_kind(group, version, kind) if resets_status else None),
        prepare_update=rules.prepare_update,
        validate=_validation(rules, namespaced),
        validate_through={name: _narrow_validation(check) for name, check in rules.validate_through.items()},
        validate_in_context=rules.validate_in_context,
        validate_admission=rules.validate_admission,
        columns=rules.columns,
        selectable_fields=rules.selectable_fields,
        **names,
    )


def _decoder(group: str, version: str, kind: str, rules: KindRules) -> Callable[[Object], list[str]]:
    def decode(obj: Object) -> list[str]:
        kind_type = type_of_kind(group, version, kind)
        assert kind_type is not None, f"{group}/{version} {kind} has no schema"
        unknown = decode_object(obj, kind_type)
        rules.set_defaults(obj)
        return unknown

    return decode


def _creation(rules: KindRules, kind_type: ValueType | None) -> Callable[[Object, WriteContext], None]:
    if kind_type is None:
        return rules.prepare_create

    def prepare(obj: Object, ctx: WriteContext) -> None:
        fresh = zero_value(kind_type.fields["status"])
        obj.pop("status", None)
        if fresh is not None:
            obj["status"] = fresh
        rules.prepare_create(obj, ctx)

    return prepare


def _validation(rules: KindRules, namespaced: bool) -> Callable[[Object, Object | None], list[InvalidField]]:
    def validate(new: Object, old: Object | None) -> list[InvalidField]:
        meta = new.get("metadata", {})
        if old is None and rules.metadata_again == "none":
            # the kind does not look at metadata: it is looked at for all kinds, when all else is well
            return rules.validate(new, None) or metadata.validate_new(meta, namespaced, path_segment_errors)
        if old is None:
            found = metadata.validate_new(meta, namespaced, rules.name_rule) + metadata.finalizer_name_errors(meta)
        else:
            found = metadata.validate_changed(meta, old.get("metadata", {}), rules.metadata_again)
        return found + rules.validate(new, old)

    return validate


def _narrow_validation(
    check: Callable[[Object, Object], list[InvalidField]],
) -> Callable[[Object, Object | None], list[InvalidField]]:
    """The rules of a subresource, which exists only where the object does."""

    def validate(new: Object, old: Object | None) -> list[InvalidField]:
        before = old or {}
        return metadata.validate_changed(new.get("metadata", {}), before.get("metadata", {})) + check(new, before)

    return validate


_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86_400, 365 * 86_400


def age_of(obj: Object) -> str:
    """Since the object's creation."""
    return since(obj.get("metadata", {}).get("creationTimestamp"))


def since(timestamp: Any) -> str:
    return human(time.time() - parse_instant(timestamp)) if timestamp else "<unknown>"


def human(for_s: float) -> str:
    """A duration as Kubernetes prints it: exact while short, ever coarser as it grows."""
    seconds = int(for_s)
    if seconds < -1:
        return "<invalid>"
    if seconds < 2 * _MINUTE:
        return f"{max(seconds, 0)}s"
    if seconds < 10 * _MINUTE:
        return _two(seconds // _MINUTE, "m", seconds % _MINUTE, "s")
    if seconds < 3 * _HOUR:
        return f"{seconds // _MINUTE}m"
    if seconds < 8 * _HOUR:
        return _two(seconds // _HOUR, "h", seconds // _MINUTE % 60, "m")
    if seconds < 2 * _DAY:
        return f"{seconds // _HOUR}h"
    if seconds < 8 * _DAY:
        return _two(seconds // _DAY, "d", seconds // _HOUR % 24, "h")
    if seconds < 2 * _YEAR:
        return f"{seconds // _DAY}d"
    if seconds < 8 * _YEAR:
        return _two(seconds // _YEAR, "y", seconds // _DAY % 365, "d")
    return f"{seconds // _YEAR}y"


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"


_OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


def field_text(schema_name: str, field_name: str) -> str:
    """What the schema says of a field."""
    text: str = schemas.all_schemas()[schema_name]["properties"][field_name].get("description", "")
    return text


def described(
    name: str,
    value: Callable[[Object], Any],
    schema_name: str,
    field_name: str,
    *,
    type: str = "string",
    priority: int = 0,
) -> TableColumn:
    return TableColumn(name, value, type=type, description=field_text(schema_name, field_name), priority=priority)


def name_of(obj: Object) -> str:
    name: str = obj.get("metadata", {}).get("name", "")
    return name


NAME = TableColumn("Name", name_of, format="name", description=field_text(_OBJECT_META, "name"))
AGE = TableColumn("Age", age_of, description=field_text(_OBJECT_META, "creationTimestamp"))

CONTAINERS_TEXT = "Names of each container in the template."
IMAGES_TEXT = "Images referenced by each container in the template."


def dig(path: str, default: Any = "") -> Callable[[Object], Any]:
    """Reads a value by its dotted path."""
    names = path.split(".")

    def read(obj: Object) -> Any:
        value: Any = obj
        for name in names:
            if not isinstance(value, dict) or value.get(name) is None:
                return default
            value = value[name]
        return value

    return read


def print_labels(labels: Object | None) -> str:
    return ",".join(f"{name}={value}" for name, value in sorted((labels or {}).items())) or "<none>"


def print_selector(selector: Object | None) -> str:
    """A label selector as text, requirements sorted by key."""
    if selector is None:
        return "<none>"
    parts = [(name, f"{name}={value}") for name, value in selector.get("matchLabels", {}).items()]
    parts += [
        (one["key"], _print_requirement(one["key"], one["operator"], one.get("values", [])))
        for one in selector.get("matchExpressions", [])
    ]
    return ",".join(text for _, text in sorted(parts)) or "<none>"


def _print_requirement(key: str, operator: str, values: list[str]) -> str:
    if operator in ("In", "NotIn"):
        word = "in" if operator == "In" else "notin"
        return f"{key} {word} ({','.join(sorted(values))})"
    return key if operator == "Exists" else f"!{key}"


def template_columns(where: str) -> tuple[TableColumn, TableColumn]:
    """Containers and images of the pod template at a dotted path."""
    containers = dig(f"{where}.spec.containers", [])

    def names(obj: Object) -> str:
        return ",".join(container.get("name", "") for container in containers(obj))

    def images(obj: Object) -> str:
        return ",".join(container.get("image", "") for container in containers(obj))

    return (
        TableColumn("Containers", names, description=CONTAINERS_TEXT, priority=1),
        TableColumn("Images", images, description=IMAGES_TEXT, priority=1),
    )


PLAIN = (NAME, AGE)


def _created_at(obj: Object) -> str:
    return str(obj["metadata"].get("creationTimestamp", ""))


# of kinds for which the real server has no printer
DEFAULT_COLUMNS = (NAME, TableColumn("Created At", _created_at, type="date", description=AGE.description))
