"""Events: one stored object, two views.

The core view is what is stored; the view of events.k8s.io has other names for the same fields.

Events made in the new view must say when, by whom and what was done; events of the core view need little.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubesched.k8s.model.selectors import label_key_errors
from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.kinds.field_errors import any_name
from kubesched.playground.apiserver.kinds.serving import NAME, KindRules, described, dig, since
from kubesched.playground.apiserver.openapi.decoding import decode_object
from kubesched.playground.apiserver.openapi.schemas import struct_type
from kubesched.playground.apiserver.served_resource import InvalidField, Object, TableColumn
from kubesched.playground.apiserver.storage.store import metadata_fields

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
_MOST_IN_A_WORD = 128
_FEWEST_IN_A_SERIES = 2


def _reference_shown(reference: Object | None) -> Object:
    names = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
    shown = {"uid": "UID", "apiVersion": "APIVersion"}
    return {shown.get(name, name[0].upper() + name[1:]): (reference or {}).get(name, "") for name in names}


def _source_shown(source: Object | None) -> Object:
    return {"Component": (source or {}).get("component", ""), "Host": (source or {}).get("host", "")}


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


def _validate_core(event: Object, _: Object | None) -> list[InvalidField]:
    return _plain_errors(event, "reportingComponent")


def _validate_new(event: Object, old: Object | None) -> list[InvalidField]:
    core = to_core(event)
    found = _plain_errors(core, "reportingController")
    return found + (_new_errors(core) if old is None else _change_errors(core, to_core(old)))


def _plain_errors(event: Object, controller_field: str) -> list[InvalidField]:
    """What is asked of events in both views: little of those that do not say when they happened."""
    about = event.get("involvedObject", {}).get("namespace", "")
    namespace = event["metadata"].get("namespace", "")
    wrong_namespace = [errors.invalid("involvedObject.namespace", about, "does not match event.namespace")]
    if not event.get("eventTime"):
        return [] if about == namespace or (not about and namespace == "default") else wrong_namespace
    found = wrong_namespace if not about and namespace not in ("default", "kube-system") else []
    controller = event.get("reportingComponent", "")
    if not controller:
        found.append(errors.required(controller_field))
    found += errors.all_invalid(controller_field, controller, label_key_errors(controller))
    for name in ("reportingInstance", "action", "reason"):
        if not event.get(name):
            found.append(errors.required(name))
        found += _length_errors(event, name, _MOST_IN_A_WORD)
    return found + _length_errors(event, "message", _MOST_NOTE)


def _length_errors(event: Object, name: str, most: int) -> list[InvalidField]:
    if len(event.get(name, "").encode()) <= most:
        return []
    return [errors.invalid(name, "", f"can have at most {most} characters")]


def _new_errors(event: Object) -> list[InvalidField]:
    """What else is asked of events made in the view of events.k8s.io: nothing of the old fields may be set."""
    found = _series_errors(event)
    if not event.get("eventTime"):
        found.append(errors.required("eventTime"))
    if event.get("type") not in ("Normal", "Warning"):
        found.append(errors.invalid("type", "", f"has invalid value: {event.get('type', '')}"))
    set_anyway = [name for name in ("firstTimestamp", "lastTimestamp", "count", "source") if event.get(name)]
    return found + [errors.invalid(name, "", "needs to be unset") for name in set_anyway]


def _series_errors(event: Object) -> list[InvalidField]:
    series = event.get("series")
    if series is None:
        return []
    found: list[InvalidField] = []
    if series.get("count", 0) < _FEWEST_IN_A_SERIES:
        found.append(errors.invalid("series.count", "", f"should be at least {_FEWEST_IN_A_SERIES}"))
    if not series.get("lastObservedTime"):
        found.append(errors.required("series.lastObservedTime"))
    return found


# in the order of the errors: how an absent value is shown, or the struct that is shown in its inner form
_FIXED: dict[str, Any] = {
    "involvedObject": _reference_shown,
    "reason": "",
    "message": "",
    "source": _source_shown,
    "firstTimestamp": None,
    "lastTimestamp": None,
    "count": 0,
    "type": "",
    "eventTime": None,
    "action": "",
    "related": lambda related: None if related is None else _reference_shown(related),
    "reportingComponent": "",
    "reportingInstance": "",
}


def _change_errors(event: Object, old: Object) -> list[InvalidField]:
    found = [] if event.get("series") == old.get("series") else _series_errors(event)
    for name, absent in _FIXED.items():
        value = event.get(name)
        if (value or None) == (old.get(name) or None):
            continue
        shown = absent(value) if callable(absent) else absent if value is None else value
        field = "reportingController" if name == "reportingComponent" else name
        found += [errors.immutable(field, shown)] * (2 if name == "reason" else 1)
    return found


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
