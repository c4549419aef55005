"""An event about an object, from what a component wants to be known to what goes to the API server.

Which occurrences are the same event again is pure bookkeeping, as client-go's EventBroadcaster does it: the first makes
an Event, the second a series, the rest only count. Two occurrences are the same when action, reason, type, reporter and
the objects concerned are. kube-scheduler's reference to a pod has its resourceVersion, so that a pod that changed
begins a new Event; where a reference has none, the note takes its place (the message of a pod that cannot be scheduled
is also written into its status, hence both change together).

An Event has two forms: events.k8s.io/v1, and core v1 where that is not served; `choose_form` asks the server. A form
says where Events are written, how one looks, and what changes when it occurs again. kube-scheduler uses core v1 for the
election's own events in any case, and that form keeps neither the action nor the related object.

Next: `event_recorder` writes what comes out of here.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import msgspec

from kubesched.k8s.client.errors import ApiError
from kubesched.k8s.client.lease import print_micro_time
from kubesched.k8s.client.requester import Requester
from kubesched.k8s.model.meta import KubeStruct, ObjectMeta
from kubesched.k8s.model.storage import ObjectReference
from kubesched.k8s.model.times import print_instant

NORMAL = "Normal"
WARNING = "Warning"

NOTE_LIMIT_BYTES = 1024
_CUT = " ..."


@dataclass(frozen=True, slots=True)
class EventToRecord:
    """An event that occurred. `reporting_controller` is who says it: for a pod's events the scheduler's name."""

    regarding: ObjectReference
    type: str
    reason: str
    action: str
    note: str
    reporting_controller: str
    related: ObjectReference | None = None
    reporting_host: str = ""
    """The reporting host, for kubelets: core v1 only."""

    @property
    def namespace(self) -> str:
        """Where the Event lives: with its object, and in "default" for objects that live nowhere."""
        return self.regarding.namespace or "default"


def pod_reference(namespace: str, name: str, uid: str, resource_version: str = "") -> ObjectReference:
    return ObjectReference(
        kind="Pod", namespace=namespace, name=name, uid=uid, api_version="v1", resource_version=resource_version
    )


def shorten(note: str) -> str:
    """The note as the API server takes it: at most 1024 bytes."""
    if len(note) * 4 <= NOTE_LIMIT_BYTES:
        return note
    encoded = note.encode()
    if len(encoded) <= NOTE_LIMIT_BYTES:
        return note
    return encoded[: NOTE_LIMIT_BYTES - len(_CUT)].decode(errors="ignore") + _CUT


FINISH_AFTER_S = 6 * 60.0
REFRESH_EVERY_S = 30 * 60.0
MOST_EVENTS = 65_536
"""Above this the oldest are forgotten: should they occur again, they become Events of their own."""

SeriesKey = tuple[object, ...]


@dataclass(slots=True)
class KnownEvent:
    """An Event that was written, or is about to be, and how often it occurred since."""

    record: EventToRecord
    first_s: float
    last_s: float
    name: str = ""
    """Given by whoever writes it."""
    count: int = 1
    is_queued: bool = False
    """Waits to be written; whatever occurs meanwhile is written with it."""
    is_on_server: bool = False

    @property
    def is_series(self) -> bool:
        return self.count > 1


class SeriesBook:
    """All events of the last minutes, by what makes them the same."""

    def __init__(self, most_events: int = MOST_EVENTS) -> None:
        self._known: dict[SeriesKey, KnownEvent] = {}
        self._most_events = most_events

    def __len__(self) -> int:
        return len(self._known)

    def occurred(self, record: EventToRecord, now_s: float) -> KnownEvent | None:
        """What to write now, if anything: a new Event, or one that has just become a series."""
        key = _key(record)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= self._most_events:
                del self._known[next(iter(self._known))]
            known = self._known[key] = KnownEvent(record, now_s, now_s)
            return known
        known.count += 1
        known.last_s = now_s
        return known if known.count == 2 else None

    def forget(self, record: EventToRecord) -> None:
        """It could not be written: the next occurrence is a first one again."""
        self._known.pop(_key(record), None)

    def series(self) -> Iterator[KnownEvent]:
        """All series, to be written again before the server forgets them."""
        return (known for known in self._known.values() if known.is_series)

    def finish(self, now_s: float) -> list[KnownEvent]:
        """Forgets what has not occurred for a while; gives the series among it, whose last count is to be written."""
        over = [key for key, known in self._known.items() if known.last_s < now_s - FINISH_AFTER_S]
        return [known for known in map(self._known.pop, over) if known.is_series]


def _key(record: EventToRecord) -> SeriesKey:
    regarding = record.regarding
    return (
        record.type,
        record.action,
        record.reason,
        record.reporting_controller,
        regarding,
        record.related,
        "" if regarding.resource_version else record.note,
    )


_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LONGEST_NAME = 253
_encode = msgspec.json.Encoder().encode


class EventForm(Protocol):
    """How Events of one API version are written."""

    def path(self, namespace: str) -> str: ...
    def body(self, event: KnownEvent) -> bytes: ...
    def series_patch(self, event: KnownEvent) -> bytes: ...


class _EventSeries(KubeStruct, frozen=True):
    count: int
    last_observed_time: str


class _SeriesPatch(KubeStruct, frozen=True):
    series: _EventSeries


class _EventsV1Body(KubeStruct, frozen=True):
    kind: str
    api_version: str
    metadata: ObjectMeta
    event_time: str
    reporting_controller: str
    reporting_instance: str
    action: str
    reason: str
    regarding: ObjectReference
    note: str
    type: str
    related: ObjectReference | None = None
    series: _EventSeries | None = None


class _EventSource(KubeStruct, frozen=True):
    component: str
    host: str = ""


class _CoreV1Body(KubeStruct, frozen=True):
    kind: str
    api_version: str
    metadata: ObjectMeta
    involved_object: ObjectReference
    reason: str
    message: str
    source: _EventSource
    first_timestamp: str
    last_timestamp: str
    count: int
    type: str
    reporting_component: str
    reporting_instance: str = ""


class _CountPatch(KubeStruct, frozen=True):
    count: int
    last_timestamp: str


class EventsV1Form:
    """events.k8s.io/v1: what kube-scheduler writes about pods."""

    def __init__(self, hostname: str) -> None:
        self._hostname = hostname

    def path(self, namespace: str) -> str:
        return f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"

    def body(self, event: KnownEvent) -> bytes:
        record = event.record
        return _encode(
            _EventsV1Body(
                kind="Event",
                api_version="events.k8s.io/v1",
                metadata=ObjectMeta(name=event.name, namespace=record.namespace),
                event_time=print_micro_time(event.first_s),
                reporting_controller=record.reporting_controller,
                reporting_instance=f"{record.reporting_controller}-{self._hostname}",
                action=record.action,
                reason=record.reason,
                regarding=record.regarding,
                note=shorten(record.note),
                type=record.type,
                related=record.related,
                series=_series(event) if event.is_series else None,
            )
        )

    def series_patch(self, event: KnownEvent) -> bytes:
        return _encode(_SeriesPatch(_series(event)))


class CoreV1Form:
    """core v1: for servers without events.k8s.io, and for the election's events."""

    def path(self, namespace: str) -> str:
        return f"/api/v1/namespaces/{namespace}/events"

    def body(self, event: KnownEvent) -> bytes:
        record = event.record
        return _encode(
            _CoreV1Body(
                kind="Event",
                api_version="v1",
                metadata=ObjectMeta(name=event.name, namespace=record.namespace),
                involved_object=record.regarding,
                reason=record.reason,
                message=shorten(record.note),
                source=_EventSource(record.reporting_controller, record.reporting_host),
                first_timestamp=print_instant(event.first_s),
                last_timestamp=print_instant(event.last_s),
                count=event.count,
                type=record.type,
                reporting_component=record.reporting_controller,
                reporting_instance=record.reporting_host,
            )
        )

    def series_patch(self, event: KnownEvent) -> bytes:
        return _encode(_CountPatch(event.count, print_instant(event.last_s)))


async def choose_form(requests: Requester, hostname: str) -> EventForm:
    """The form that the server understands: events.k8s.io/v1 unless it says that it does not have that."""
    try:
        await requests.request("GET", "/apis/events.k8s.io/v1")
    except ApiError as error:
        if error.is_not_found:
            return CoreV1Form()
    return EventsV1Form(hostname)


def event_name(object_name: str, unix_ns: int) -> str:
    """`<object>.<time in hex>`, or some other name when that would not be valid for an Event."""
    name = f"{object_name}.{unix_ns:x}"
    if len(name) <= _LONGEST_NAME and _SUBDOMAIN.fullmatch(name):
        return name
    return str(uuid.uuid4())


def _series(event: KnownEvent) -> _EventSeries:
    return _EventSeries(event.count, print_micro_time(event.last_s))
