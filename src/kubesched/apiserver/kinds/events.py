"""Events: one stored object, two views.

The core view is what is stored; the view of events.k8s.io has other names for the same fields.

Events made in the new view must say when, by whom and what was done; events of the core view need little.
"""

from __future__ import annotations

from collections.abc import Callable

from kubesched.apiserver.kinds import field_errors as errors
from kubesched.apiserver.kinds.ages import since
from kubesched.apiserver.kinds.kind import InvalidField, Object, TableColumn, metadata_fields
from kubesched.apiserver.kinds.name_syntax import any_name
from kubesched.apiserver.kinds.serving import KindRules
from kubesched.apiserver.kinds.table_columns import NAME, described, dig
from kubesched.apiserver.openapi.decoding import decode_object
from kubesched.apiserver.openapi.struct_types import struct_type
from kubesched.model.label_syntax import label_key_mistakes

_EVENT = "io.k8s.api.core.v1.Event"
_NEW_EVENT = "io.k8s.api.events.v1.Event"
_REFERENCE = "io.k8s.api.core.v1.ObjectReference"
# name in events.k8s.io -> name in the core group
_NAMES = {
    "regarding": "involvedObject",
    "note": "message",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
    "reportingController": "reportingComponent",
}
_MOST_NOTE = 1024


def to_core(event: Object) -> Object:
    """From the view of events.k8s.io to the stored form."""
    core = {_NAMES.get(name, name): value for name, value in event.items()}
    decode_object(core, struct_type(_EVENT))
    return core


def from_core(event: Object) -> Object:
    """From the stored form to the view of events.k8s.io."""
    back = {old: new for new, old in _NAMES.items()}
    new = {back.get(name, name): value for name, value in event.items()}
    decode_object(new, struct_type(_NEW_EVENT))
    return new


def _validate_core(event: Object, old: Object | None) -> list[InvalidField]:
    if event.get("eventTime"):
        return _validate_strictly(event, old)
    return _namespace_errors(event)


def _validate_new(event: Object, old: Object | None) -> list[InvalidField]:
    core = to_core(event)
    return _validate_strictly(core, None if old is None else to_core(old))


def _namespace_errors(event: Object) -> list[InvalidField]:
    about = event.get("involvedObject", {}).get("namespace", "")
    namespace = event["metadata"].get("namespace", "")
    if about == namespace or (not about and namespace == "default"):
        return []
    return [errors.invalid("involvedObject.namespace", about, "does not match event.namespace")]


def _validate_strictly(event: Object, old: Object | None) -> list[InvalidField]:
    if old is not None:
        return _change_errors(event, old)
    found: list[InvalidField] = []
    if not event.get("eventTime"):
        return [errors.required("eventTime")]
    controller = event.get("reportingComponent", "")
    if not controller:
        found.append(errors.required("reportingController"))
    else:
        found += errors.all_invalid("reportingController", controller, label_key_mistakes(controller))
    for name in ("reportingInstance", "action", "reason"):
        value, most = event.get(name, ""), 128
        if not value:
            found.append(errors.required(name))
        elif len(value) > most:
            found.append(errors.invalid(name, "", f"can have at most {most} characters"))
    if len(event.get("message", "")) > _MOST_NOTE:
        found.append(errors.invalid("message", "", f"can have at most {_MOST_NOTE} characters"))
    if event.get("type") not in ("Normal", "Warning"):
        found.append(errors.invalid("type", "", f"has invalid value: {event.get('type', '')}"))
    return found


def _change_errors(event: Object, old: Object) -> list[InvalidField]:
    fixed = (
        *("involvedObject", "reason", "message", "source", "firstTimestamp", "lastTimestamp", "count", "type"),
        *("eventTime", "action", "related", "reportingComponent", "reportingInstance"),
    )
    return [errors.immutable(name, event.get(name)) for name in fixed if event.get(name) != old.get(name)]


def _selectable(event: Object) -> dict[str, str]:
    about = event.get("involvedObject", {})
    names = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
    source = event.get("source", {}).get("component", "") or event.get("reportingComponent", "")
    return {
        **metadata_fields(event),
        **{f"{what}.{name}": about.get(name, "") for what in ("involvedObject", "regarding") for name in names},
        "reason": event.get("reason", ""),
        "reportingComponent": event.get("reportingComponent", ""),
        "reportingController": event.get("reportingComponent", ""),
        "source": source,
        "type": event.get("type", ""),
    }


def _first_seen(event: Object) -> str:
    return since(event.get("firstTimestamp") or event.get("eventTime"))


def _last_seen(event: Object) -> str:
    if "series" in event:
        return since(event["series"].get("lastObservedTime"))
    return since(event["lastTimestamp"]) if event.get("lastTimestamp") else _first_seen(event)


def _count(event: Object) -> int:
    return int(event["series"].get("count", 0) if "series" in event else event.get("count") or 1)


def _object(event: Object) -> str:
    about = event.get("involvedObject", {})
    kind = about.get("kind", "").lower()
    return f"{kind}/{about['name']}" if about.get("name") else kind


def _source(event: Object) -> str:
    component = event.get("source", {}).get("component") or event.get("reportingComponent", "")
    host = event.get("source", {}).get("host") or event.get("reportingInstance", "")
    return f"{component}, {host}" if host else component


def _columns(view: Callable[[Object], Object]) -> tuple[TableColumn, ...]:
    def seen(read: Callable[[Object], object]) -> Callable[[Object], object]:
        return lambda event: read(view(event))

    return (
        described("Last Seen", seen(_last_seen), _EVENT, "lastTimestamp"),
        described("Type", dig("type"), _EVENT, "type"),
        described("Reason", dig("reason"), _EVENT, "reason"),
        described("Object", seen(_object), _EVENT, "involvedObject"),
        described("Subobject", seen(dig("involvedObject.fieldPath")), _REFERENCE, "fieldPath", priority=1),
        described("Source", seen(_source), _EVENT, "source", priority=1),
        described("Message", seen(lambda event: event.get("message", "").strip()), _EVENT, "message"),
        described("First Seen", seen(_first_seen), _EVENT, "firstTimestamp", priority=1),
        described("Count", seen(_count), _EVENT, "count", priority=1),
        TableColumn("Name", NAME.value, format="name", description=NAME.description, priority=1),
    )


CORE_EVENT = KindRules(
    validate=_validate_core,
    name_rule=any_name,
    selectable_fields=_selectable,
    columns=_columns(lambda event: event),
)
NEW_EVENT = KindRules(
    validate=_validate_new,
    name_rule=any_name,
    selectable_fields=lambda event: _selectable(to_core(event)),
    columns=_columns(lambda event: to_core(dict(event))),
)
