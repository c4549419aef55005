"""Events of controllers and kubelets, as `kubectl describe` shows them: core v1, and alike ones put together.

When one component has said the same reason about the same object ten times in ten minutes, with other words each time,
all that follow are one event: "(combined from similar events): ...". Telling never waits and never fails; what cannot
be written because its namespace is about to go is passed over in silence.

Next: `recorder`, which writes them.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass

from msgspec.structs import replace

from kubesched.k8s.client.errors import ApiError
from kubesched.k8s.client.event_recorder.forms import CoreV1Form
from kubesched.k8s.client.event_recorder.record import NORMAL, EventToRecord
from kubesched.k8s.client.event_recorder.recorder import MOST_QUEUED, N_WRITERS, EventRecorder
from kubesched.k8s.client.requester import Requester
from kubesched.k8s.model.storage import ObjectReference

MOST_ALIKE = 10
ALIKE_WITHIN_S = 600.0
COMBINED = "(combined from similar events): "

_MOST_GROUPS = 4096


@dataclass(frozen=True, slots=True)
class EventSource:
    """Who says it: a component, and for kubelets the node."""

    component: str
    host: str = ""


RecordEvent = Callable[[EventSource, ObjectReference, str, str, str], None]
"""Who says it, about what, the reason, the note, and whether it is normal: becomes an event."""


class EventBroadcaster:
    """`run` it beside everything else."""

    def __init__(
        self,
        requests: Requester,
        now_s: Callable[[], float] = time.time,
        *,
        most_queued: int = MOST_QUEUED,
        n_writers: int = N_WRITERS,
    ) -> None:
        self._recorder = EventRecorder(
            requests, CoreV1Form(), most_queued=most_queued, n_writers=n_writers, passes_over=_is_about_to_go
        )
        self._combining = AlikeEvents(now_s)

    def tell(
        self, source: EventSource, regarding: ObjectReference, reason: str, note: str, type_: str = NORMAL
    ) -> None:
        record = EventToRecord(regarding, type_, reason, "", note, source.component, reporting_host=source.host)
        self._recorder.record(self._combining.combined(record))

    async def run(self) -> None:
        """Writes until it is cancelled."""
        await self._recorder.run()


@dataclass(slots=True)
class _Group:
    since_s: float
    notes: set[str]
    regarding: ObjectReference


class AlikeEvents:
    """Which events have been said in other words before. References are kept without version, so that only notes tell
    events apart; those that are combined have one, so that notes do not."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._groups: dict[tuple[str, ...], _Group] = {}

    def combined(self, record: EventToRecord) -> EventToRecord:
        """The event to write instead."""
        now_s = self._now_s()
        regarding = record.regarding
        key = (regarding.uid, regarding.field_path, record.type, record.reason, record.reporting_controller)
        group = self._groups.get(key)
        if group is None or now_s - group.since_s > ALIKE_WITHIN_S:
            if len(self._groups) >= _MOST_GROUPS:
                del self._groups[next(iter(self._groups))]
            group = self._groups[key] = _Group(now_s, set(), regarding)
        if record.note in group.notes or len(group.notes) < MOST_ALIKE - 1:
            group.notes.add(record.note)
            return dataclasses.replace(record, regarding=replace(regarding, resource_version=""))
        version = group.regarding.resource_version or "0"
        about = replace(regarding, resource_version=version)
        return dataclasses.replace(record, regarding=about, note=COMBINED + record.note)


def _is_about_to_go(error: ApiError) -> bool:
    """The namespace ends, or has ended."""
    return error.is_forbidden or error.is_not_found
