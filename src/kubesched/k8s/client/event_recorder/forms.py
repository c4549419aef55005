"""The two shapes in which an Event goes to the API server: events.k8s.io/v1, and core v1 where that is not served.

A form says where Events are written, how one looks, and what changes when it occurs again. kube-scheduler uses core v1
for the election's own events in any case, and that form keeps neither the action nor the related object.

Next: `recorder`.
"""

from __future__ import annotations

import re
import uuid
from typing import Protocol

import msgspec

from kubesched.k8s.client.errors import ApiError
from kubesched.k8s.client.event_recorder.record import shorten
from kubesched.k8s.client.event_recorder.series import KnownEvent
from kubesched.k8s.client.lease import print_micro_time
from kubesched.k8s.client.requester import Requester
from kubesched.k8s.model.meta import KubeStruct, ObjectMeta
from kubesched.k8s.model.storage import ObjectReference
from kubesched.k8s.model.times import print_instant

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
