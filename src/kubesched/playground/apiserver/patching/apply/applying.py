"""Server-side apply: merges a configuration into the live object and keeps the owners of its fields.

Raises the real server's errors: 409 with every conflicting field and its owner (unless forced), 500 for a
configuration that does not fit the schema, 400 for one that sets managedFields. The result still has to be decoded
(defaults), admitted and validated like any other write.
"""

from __future__ import annotations

import copy
import json
from typing import Any

from kubesched.playground.apiserver.errors import StatusError, bad_request
from kubesched.playground.apiserver.kinds.kind import Object, ServedResource
from kubesched.playground.apiserver.openapi.struct_types import ValueType
from kubesched.playground.apiserver.patching.apply.comparing import compare, fields_of
from kubesched.playground.apiserver.patching.apply.configuration import check_configuration
from kubesched.playground.apiserver.patching.apply.field_sets import (
    EMPTY,
    FieldSet,
    in_order,
    print_path,
    without_below,
)
from kubesched.playground.apiserver.patching.apply.managed import (
    Managed,
    Owner,
    fields_out_of_reach,
    own,
    own_all_before,
    ownable,
    read_managed,
    take_over,
    type_for,
    write_managed,
)
from kubesched.playground.apiserver.patching.apply.merging import merge, prune

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
