"""The owners of an object's fields: reading and writing ``metadata.managedFields``, and recording an ordinary write.

An owner is a manager with operation, API version (not for Apply) and subresource. Owners that lost all their fields
go; beyond ten updaters the oldest become "ancient-changes". ``applying.py`` does the same for Apply.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from kubesched.playground.apiserver.kinds.kind import Object, ServedResource
from kubesched.playground.apiserver.openapi.decoding import zero_object
from kubesched.playground.apiserver.openapi.struct_types import ANY, ValueType, struct_type, type_of_kind
from kubesched.playground.apiserver.patching.apply.comparing import Comparison, compare
from kubesched.playground.apiserver.patching.apply.configuration import fits
from kubesched.playground.apiserver.patching.apply.field_sets import (
    EMPTY,
    FieldsError,
    FieldSet,
    Path,
    read_fields,
    write_fields,
)

_MOST_UPDATERS = 10
_SYSTEM_METADATA = (
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "clusterName",
    "generation",
    "managedFields",
    "resourceVersion",
)
_HEAD = ("apiVersion", "kind", "metadata")
_NEVER_OWNED: FieldSet = frozenset(
    {("f:apiVersion",), ("f:kind",), ("f:metadata",), *(("f:metadata", f"f:{name}") for name in _SYSTEM_METADATA)}
)


class Owner(NamedTuple):
    """Who owns fields; ``api_version`` is empty for Apply, which is one owner whatever version it speaks."""

    manager: str
    operation: str
    api_version: str
    subresource: str = ""


@dataclass(slots=True)
class Managed:
    """All owners with their fields, the time of their last change, and the API version they used."""

    fields: dict[Owner, FieldSet] = field(default_factory=dict)
    times: dict[Owner, str] = field(default_factory=dict)
    versions: dict[Owner, str] = field(default_factory=dict)


def own(manager: str, operation: str, api_version: str, subresource: str = "") -> Owner:
    return Owner(manager, operation, "" if operation == "Apply" else api_version, subresource)


def read_managed(meta: Object) -> Managed:
    """The owners as they are written; nobody, if one of the entries cannot be read."""
    try:
        return _read_entries(meta.get("managedFields") or [])
    except FieldsError:
        return Managed()


def _read_entries(entries: list[Any]) -> Managed:
    managed = Managed()
    for entry in entries:
        version, operation = entry.get("apiVersion", ""), entry.get("operation")
        if operation not in ("Apply", "Update") or entry.get("fieldsType") != "FieldsV1" or not version:
            raise FieldsError("an entry of managedFields without operation, fieldsType or apiVersion")
        owner = own(entry.get("manager", ""), operation, version, entry.get("subresource", ""))
        managed.fields[owner] = read_fields(entry.get("fieldsV1"))
        managed.versions[owner] = version
        if entry.get("time"):
            managed.times[owner] = entry["time"]
    return managed


def write_managed(meta: Object, managed: Managed) -> None:
    _fold_ancient(managed)
    entries = [_entry(managed, owner) for owner in managed.fields]
    entries.sort(
        key=lambda e: (e["operation"], e.get("time", ""), e["manager"], e["apiVersion"], e.get("subresource", ""))
    )
    meta.pop("managedFields", None)
    if entries:
        meta["managedFields"] = entries


def _entry(managed: Managed, owner: Owner) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "manager": owner.manager,
        "operation": owner.operation,
        "apiVersion": managed.versions.get(owner, owner.api_version),
    }
    if owner in managed.times:
        entry["time"] = managed.times[owner]
    entry |= {"fieldsType": "FieldsV1", "fieldsV1": write_fields(managed.fields[owner])}
    if owner.subresource:
        entry["subresource"] = owner.subresource
    return entry


def _fold_ancient(managed: Managed) -> None:
    updaters = [owner for owner in managed.fields if owner.operation == "Update"]
    excess = len(updaters) - _MOST_UPDATERS
    if excess <= 0:
        return
    updaters.sort(key=lambda owner: (managed.times.get(owner, ""), owner.manager))
    for owner in updaters[: excess + 1]:
        ancient = Owner("ancient-changes", "Update", owner.api_version)
        fields = managed.fields.pop(owner)
        managed.fields[ancient] = managed.fields.get(ancient, EMPTY) | fields
        managed.versions[ancient] = owner.api_version
        if (time := managed.times.pop(owner, None)) is not None:
            managed.times[ancient] = max(time, managed.times.get(ancient, ""))


def type_for(resource: ServedResource) -> ValueType:
    return type_of_kind(resource.group, resource.version, resource.kind) or resource.custom_type or ANY


def fields_out_of_reach(resource: ServedResource, subresource: str) -> tuple[Path, ...]:
    """Fields that a request cannot change and therefore cannot own."""
    if subresource == "status":
        return (("f:spec",),)
    if not subresource and "status" in resource.subresources:
        return (("f:status",),)
    return ()


def record(
    new: Object, live: Object | None, resource: ServedResource, manager: str, subresource: str, now: str
) -> None:
    """Sets ``managedFields`` of ``new`` after a create, update or patch by ``manager``.

    ``live`` is None at creation.
    """
    meta = new.setdefault("metadata", {})
    if live is not None and _asks_for_reset(meta):
        meta.pop("managedFields", None)
        return
    managed = read_managed(meta) if not subresource and live is not None else Managed()
    if not managed.fields and live is not None:
        managed = read_managed(live.get("metadata", {}))
        if not managed.fields:
            meta.pop("managedFields", None)
            return
    kind_type = type_for(resource)
    if resource.is_custom and not fits({name: part for name, part in new.items() if name not in _HEAD}, kind_type):
        meta.pop("managedFields", None)  # who owns what cannot be told
        return
    before = _blank(kind_type.schema) if live is None else live
    comparison = compare(_comparable(before), _comparable(new), kind_type)
    comparison = comparison.without(fields_out_of_reach(resource, subresource))
    take_over(managed, comparison)
    _give(managed, own(manager, "Update", resource.api_version, subresource), comparison, resource, now)
    write_managed(meta, managed)


@lru_cache(maxsize=256)
def _blank(schema_name: str) -> Object:
    """An object with nothing set, to compare new ones with; shared, not to be changed."""
    return zero_object(struct_type(schema_name)) if schema_name else {}


def own_all_before(managed: Managed, before: Object, kind_type: ValueType, resource: ServedResource, now: str) -> None:
    """What was there before anybody was recorded belongs to a manager of that name."""
    comparison = compare(_comparable(_blank(kind_type.schema)), _comparable(before), kind_type)
    comparison = comparison.without(fields_out_of_reach(resource, ""))
    _give(managed, own("before-first-apply", "Update", resource.api_version), comparison, resource, now)


def _give(managed: Managed, owner: Owner, comparison: Comparison, resource: ServedResource, now: str) -> None:
    taken = comparison.changed - _NEVER_OWNED
    if taken:
        managed.fields[owner] = managed.fields.get(owner, EMPTY) | taken
        managed.versions[owner] = resource.api_version
        if owner.subresource != "scale":  # the real server loses the time on the way from the Scale to the workload
            managed.times[owner] = now


def take_over(managed: Managed, comparison: Comparison, except_for: Owner | None = None) -> None:
    """Everybody else loses what was changed or removed; owners without fields go."""
    lost = comparison.changed | comparison.removed
    for owner in list(managed.fields):
        if owner == except_for:
            continue
        managed.fields[owner] -= lost
        if not managed.fields[owner]:
            del managed.fields[owner]
            managed.times.pop(owner, None)


def ownable(fields: FieldSet) -> FieldSet:
    return fields - _NEVER_OWNED


def mark_reset(obj: Object) -> None:
    """An empty list of owners asks for a reset; decoding would take it for none: it becomes one empty entry."""
    meta = obj.get("metadata")
    if isinstance(meta, dict) and meta.get("managedFields") == []:
        meta["managedFields"] = [{}]


def _asks_for_reset(meta: Object) -> bool:
    """A client clears all owners by sending one empty entry."""
    entries = meta.get("managedFields") or []
    return len(entries) == 1 and not any(entries[0].values())


def _comparable(obj: Object) -> Object:
    meta = {name: value for name, value in obj.get("metadata", {}).items() if name != "managedFields"}
    return {**obj, "metadata": meta}
