"""Server-side apply: merges a configuration into the live object and keeps the owners of its fields.

Raises the real server's errors: 409 with every conflicting field and its owner (unless forced), 500 for a configuration
that does not fit the schema, 400 for one that sets managedFields. Unlike other writes, apply refuses unknown fields,
wrong types and list items that repeat a key. The result still has to be decoded (defaults), admitted and validated like
any other write.

Objects and keyed lists merge item by item; sets unite; everything else is replaced. Items of lists come in the applied
order, live ones that were not applied as early as they can. What its manager no longer wants is taken out.

Owners stand in ``metadata.managedFields``, and ``record`` notes those of an ordinary write: a manager with operation,
API version (not for Apply) and subresource. Owners that lost all their fields go; beyond ten updaters the oldest become
"ancient-changes".
"""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from kubesched.playground.apiserver.errors import StatusError, bad_request, unclassified
from kubesched.playground.apiserver.go_text import in_source, printed, type_name
from kubesched.playground.apiserver.openapi.decoding import zero_object
from kubesched.playground.apiserver.openapi.schemas import ANY, ValueType, struct_type, type_of_kind
from kubesched.playground.apiserver.patching.field_sets import (
    EMPTY,
    Comparison,
    FieldsError,
    FieldSet,
    Path,
    compare,
    fields_of,
    in_order,
    is_granular,
    named_items,
    print_path,
    read_fields,
    with_ancestors,
    without_below,
    write_fields,
)
from kubesched.playground.apiserver.served_resource import Object, ServedResource

_FORMS: dict[str, tuple[type[Any], ...]] = {
    "string": (str,),
    "time": (str,),
    "micro-time": (str,),
    "bytes": (str,),
    "boolean": (bool,),
    "integer": (int, float),
    "number": (int, float),
    "struct": (dict,),
    "map": (dict,),
    "list": (list,),
}


def fits(value: Object, of: ValueType) -> bool:
    """Whether a value has the types of its schema."""
    problems: list[str] = []
    _check(value, of, "", problems)
    return not problems


def check_configuration(applied: Object, kind_type: ValueType, resource: ServedResource) -> None:
    """Raises StatusError if the configuration does not fit."""
    problems: list[str] = []
    _check(applied, kind_type, "", problems)
    if not problems:
        return
    meta = applied.get("metadata")
    name = meta.get("name", "") if isinstance(meta, dict) else ""
    namespace = meta.get("namespace", "") if isinstance(meta, dict) else ""
    name = name if isinstance(name, str) else ""
    kind = f"{resource.group}/{resource.version}, Kind={resource.kind}"
    why = problems[0] if len(problems) == 1 else "errors:" + "".join(f"\n  {one}" for one in problems)
    raise unclassified(f"failed to create typed patch object ({namespace}/{name}; {kind}): {why}")


def _check(value: Any, of: ValueType, path: str, problems: list[str]) -> None:
    if value is None or of.form == "any":
        return
    if of.form in ("quantity", "int-or-string"):
        if isinstance(value, dict | list):
            problems.append(f"{path}: expected any scalar, got &{{{printed(value)}}}")
        return
    wanted = _FORMS[of.form]
    if not isinstance(value, wanted) or (isinstance(value, bool) and bool not in wanted):
        problems.append(f"{path}: expected {_expectation(value, of.form)}")
    elif of.form == "struct":
        for name, part in value.items():
            known = of.fields.get(name)
            if known is None:
                problems.append(f"{path}.{name}: field not declared in schema")
                return  # the real server looks no further in this object
            _check(part, known.type, f"{path}.{name}", problems)
    elif of.form == "map" and of.element is not None:
        for name, part in value.items():
            _check(part, of.element, f"{path}.{name}", problems)
    elif of.form == "list":
        _check_list(value, of, path, problems)


def _check_list(items: list[Any], of: ValueType, path: str, problems: list[str]) -> None:
    element = of.element
    assert element is not None
    if not is_granular(items, of):
        for position, item in enumerate(items):
            _check(item, element, f"{path}[{position}]", problems)
        return
    seen: set[str] = set()
    strays = [f"{path}: element {place}: {why}" for place, item in enumerate(items) if (why := _stray(item, of))]
    if strays:
        problems += strays
        return
    for name, item in named_items(items, of):
        printed = print_path((name,))
        if name in seen:
            problems.append(f"{path}: duplicate entries for key {printed}")
        seen.add(name)
        _check(item, element, f"{path}{printed}", problems)


def _stray(item: Any, of: ValueType) -> str:
    """Why an item cannot be told from the others by its key or value."""
    if of.list_type != "map":
        return "" if item is not None else "associative list without keys has an element that's an explicit null"
    if item is None:
        return "associative list with keys may not have a null element"
    return "" if isinstance(item, dict) else "associative list with keys may not have non-map elements"


def _expectation(value: Any, form: str) -> str:
    """Each sort of type has its own way to show what it got."""
    if form in ("integer", "number"):
        return f"numeric (int or float), got {type_name(value)}"
    if form in ("struct", "map", "list", "boolean"):
        return f"{'map' if form == 'struct' else form}, got &{{{printed(value)}}}"
    return f"string, got &value.valueUnstructured{{Value:{in_source(value)}}}"


def merge(live: Any, applied: Any, of: ValueType) -> Any:
    """A new value; neither argument is changed."""
    if not is_granular(applied, of) or not is_granular(live, of):
        return copy.deepcopy(applied)
    if isinstance(applied, dict) and isinstance(live, dict):
        merged = dict(live)
        for name, value in applied.items():
            part_type = of.child(name)
            merged[name] = merge(live[name], value, part_type) if name in live else copy.deepcopy(value)
        return merged
    if isinstance(applied, list) and isinstance(live, list):
        return _merge_lists(live, applied, of)
    return copy.deepcopy(applied)


def _merge_lists(live: list[Any], applied: list[Any], of: ValueType) -> list[Any]:
    before = dict(named_items(live, of))
    wanted = dict(named_items(applied, of))
    element = of.element or ANY
    return [
        before[name]
        if name not in wanted
        else merge(before[name], wanted[name], element)
        if name in before
        else copy.deepcopy(wanted[name])
        for name in _order(list(before), list(wanted))
    ]


def _order(live: list[str], applied: list[str]) -> list[str]:
    """Applied items in their order; live ones that were not applied as soon as their turn comes."""
    shared = [name for name in applied if name in live]
    done: dict[str, None] = {}
    at = n_applied = 0
    while at < len(live) or n_applied < len(applied):
        awaited = next((name for name in shared if name not in done), None)
        if at < len(live):
            name = live[at]
            if name not in applied:
                done[name] = None
                at += 1
                continue
            if name in done or (n_applied < len(applied) and name != applied[n_applied] and name != awaited):
                at += 1
                continue
        if n_applied < len(applied):
            done[applied[n_applied]] = None
            n_applied += 1
    return list(done)


def prune(merged: Any, no_longer_applied: FieldSet, still_owned: FieldSet, of: ValueType) -> Any:
    """Without the fields that their manager gave up and nobody else owns."""
    doomed = frozenset(no_longer_applied - with_ancestors(still_owned))
    return _without(merged, doomed, (), of) if doomed else merged


def _without(value: Any, doomed: FieldSet, path: Path, of: ValueType) -> Any:
    if isinstance(value, dict) and is_granular(value, of):
        kept = {}
        for name, part in value.items():
            inner = (*path, f"f:{name}")
            if inner not in doomed:
                kept[name] = _without(part, doomed, inner, of.child(name))
        return kept
    if isinstance(value, list) and is_granular(value, of):
        return [
            _without(item, doomed, (*path, name), of.element or ANY)
            for name, item in named_items(value, of)
            if (*path, name) not in doomed
        ]
    return value


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


_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_ESCAPED = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}


def apply(
    live: Object | None,
    applied: Object,
    resource: ServedResource,
    manager: str,
    force: bool,
    now: str,
    subresource: str = "",
) -> Object:
    """The new object with its managedFields; ``live`` is None when the object does not exist yet."""
    metadata = applied.get("metadata")
    owners = metadata.get("managedFields") if isinstance(metadata, dict) else None
    if isinstance(owners, list) and all(isinstance(entry, dict) for entry in owners):
        raise bad_request("metadata.managedFields must be nil")
    kind_type = type_for(resource)
    applied = {name: value for name, value in applied.items() if name not in ("kind", "apiVersion")}
    check_configuration(applied, kind_type, resource)
    if owners is not None:
        applied["metadata"].pop("managedFields")
    before = {} if live is None else _without_owners(live)
    managed = _owners_of(live, before, kind_type, resource, now)
    owner = own(manager, "Apply", resource.api_version, subresource)
    out_of_reach = fields_out_of_reach(resource, subresource)
    last = managed.fields.get(owner, EMPTY)
    fields = ownable(without_below(fields_of(applied, kind_type), out_of_reach))
    managed.fields[owner] = fields
    managed.versions[owner] = resource.api_version
    everybody = frozenset().union(*managed.fields.values())
    merged: Object = prune(merge(before, applied, kind_type), last - fields, everybody, kind_type)
    comparison = compare(before, merged, kind_type).without(out_of_reach)
    if not force:
        _refuse_conflicts(managed, owner, comparison.changed, _forgiven(live, manager, kind_type))
    take_over(managed, comparison, except_for=owner)
    if merged != before:
        managed.times[owner] = now
    if not fields:
        managed.fields.pop(owner, None)
    write_managed(merged.setdefault("metadata", {}), managed)
    if live is not None and manager == "kubectl":
        _refresh_last_applied(merged, applied, resource)
    return merged


def _owners_of(
    live: Object | None, before: Object, kind_type: ValueType, resource: ServedResource, now: str
) -> Managed:
    if live is None:
        return Managed()
    managed = read_managed(live.get("metadata", {}))
    if not managed.fields:
        own_all_before(managed, before, kind_type, resource, now)
    return managed


def _refresh_last_applied(merged: Object, applied: Object, resource: ServedResource) -> None:
    """Where kubectl keeps its last configuration in an annotation, the annotation follows."""
    annotations = merged["metadata"].get("annotations", {})
    if _LAST_APPLIED not in annotations:
        return
    plain = copy.deepcopy(applied)
    plain.get("metadata", {}).get("annotations", {}).pop(_LAST_APPLIED, None)
    configuration = {"apiVersion": resource.api_version, "kind": resource.kind, **plain}
    annotations[_LAST_APPLIED] = _as_kubectl_writes(configuration)


def _as_kubectl_writes(configuration: Object) -> str:
    """Compact and in order, with the characters escaped that a page of HTML would take for its own."""
    text = json.dumps(configuration, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    return text.translate(_ESCAPED) + "\n"


def _without_owners(live: Object) -> Object:
    before = copy.deepcopy(live)
    before.get("metadata", {}).pop("managedFields", None)
    return before


def _forgiven(live: Object | None, manager: str, kind_type: ValueType) -> FieldSet:
    """kubectl may take back what it applied itself before, client-side: its annotation says what that was."""
    if live is None or manager != "kubectl":
        return EMPTY
    text = live.get("metadata", {}).get("annotations", {}).get(_LAST_APPLIED)
    try:
        configuration = json.loads(text) if text else None
    except ValueError:
        return EMPTY
    return fields_of(configuration, kind_type) if isinstance(configuration, dict) else EMPTY


def _refuse_conflicts(managed: Managed, owner: Owner, changed: FieldSet, forgiven: FieldSet) -> None:
    conflicts = {
        other: in_order(fields & changed)
        for other, fields in managed.fields.items()
        if other != owner and fields & changed
    }
    if not conflicts or all(path in forgiven for paths in conflicts.values() for path in paths):
        return
    groups: dict[str, list[str]] = {}
    for other in sorted(conflicts, key=lambda one: _describe(one)):
        groups.setdefault(_describe(other), []).extend(print_path(path) for path in conflicts[other])
    raise _conflict_error(groups)


def _describe(owner: Owner) -> str:
    text = f'"{owner.manager}"'
    if owner.subresource:
        text += f' with subresource "{owner.subresource}"'
    return text + (f" using {owner.api_version}" if owner.operation == "Update" else "")


def _conflict_error(groups: dict[str, list[str]]) -> StatusError:
    n_conflicts = sum(len(paths) for paths in groups.values())
    if n_conflicts == 1:
        who, paths = next(iter(groups.items()))
        message = f"Apply failed with 1 conflict: conflict with {who}: {paths[0]}"
    else:
        message = f"Apply failed with {n_conflicts} conflicts: " + "\n".join(
            f"conflicts with {who}:\n" + "\n".join(f"- {path}" for path in paths) for who, paths in groups.items()
        )
    causes: list[dict[str, Any]] = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {who}", "field": path}
        for who, paths in groups.items()
        for path in paths
    ]
    return StatusError(409, "Conflict", message, {"causes": causes})
