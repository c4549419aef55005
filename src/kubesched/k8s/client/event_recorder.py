"""Events for `kubectl describe`: taken at once, told apart from repetitions, written in the background.

`EventRecorder.record` takes an `EventToRecord`. Recording never waits and never fails. At most 50,000 events wait to be
written; beyond that they are dropped and counted. A write that may yet succeed (no answer, server out of reach) is
tried 12 times, about 10 s apart; one that the server refused is not tried again. While the server is away, the writers
stand still with one event each, so nothing piles up but the queue.

`EventBroadcaster` is for controllers and kubelets, which write core v1. When one component has said the same reason
about the same object ten times in ten minutes, with other words each time, all that follow are one event:
"(combined from similar events): ...". What cannot be written because its namespace is about to go is passed over in
silence.

Next: `event_forms` (what is the same event again, and how it is written).
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from msgspec.structs import replace

from kubesched.k8s.client.errors import AnswerLost, ApiError, ClientConfigError, Unreachable
from kubesched.k8s.client.event_forms import (
    FINISH_AFTER_S,
    NORMAL,
    REFRESH_EVERY_S,
    WARNING,
    CoreV1Form,
    EventForm,
    EventToRecord,
    KnownEvent,
    SeriesBook,
    event_name,
)
from kubesched.k8s.client.requester import STRATEGIC_PATCH, Requester
from kubesched.k8s.model.storage import ObjectReference

MOST_QUEUED = 50_000
"""kube-scheduler drops events beyond a thousand; it is seldom fast enough to have so many to write."""
MOST_TRIES = 12
RETRY_PAUSE_S = 10.0
RETRY_JITTER = 0.25
N_WRITERS = 16
PATIENCE_S = 1.0
"""How long other writes may hold up all events."""

_log = logging.getLogger("kubesched.k8s.client.event_recorder")


@dataclass(frozen=True, slots=True)
class RecorderClocks:
    """Time and chance, handed in."""

    wall_ns: Callable[[], int] = time.time_ns
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    random: Callable[[], float] = random.random


class EventRecorder:
    """Takes records at once, writes them when it can. `run` it beside everything else, `drain` it at the end."""

    def __init__(
        self,
        requests: Requester,
        form: EventForm,
        *,
        clocks: RecorderClocks | None = None,
        most_queued: int = MOST_QUEUED,
        n_writers: int = N_WRITERS,
        passes_over: Callable[[ApiError], bool] = lambda _: False,
        turn: asyncio.Event | None = None,
    ) -> None:
        """`passes_over` tells which refusals are not worth a word. While `turn` is not set, other writes go before: all
        writers wait for it, and after `PATIENCE_S` one goes on; unless so many events have gathered that some might be
        dropped."""
        self.n_written = 0
        self.n_dropped = 0
        self.n_refused = 0
        self._requests = requests
        self._form = form
        self._clocks = clocks or RecorderClocks()
        self._n_writers = n_writers
        self._passes_over = passes_over
        self._turn = turn
        self._many = most_queued // 2
        self._is_patient = True
        self._book = SeriesBook()
        self._queue: asyncio.Queue[KnownEvent] = asyncio.Queue(most_queued)

    def record(self, record: EventToRecord) -> None:
        if record.type not in (NORMAL, WARNING):
            _log.error("Unsupported event type", extra={"fields": {"eventType": record.type}})
            return
        now_ns = self._clocks.wall_ns()
        event = self._book.occurred(record, now_ns / 1e9)
        if event is None:
            return
        event.name = event.name or event_name(record.regarding.name, now_ns)
        if not self._enqueue(event):
            self._book.forget(record)

    async def run(self) -> None:
        """Writes until it is cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for number in range(self._n_writers):
                tasks.create_task(self._write_events(is_first=number == 0))
            tasks.create_task(self._every(FINISH_AFTER_S, self._finish_series))
            tasks.create_task(self._every(REFRESH_EVERY_S, self._refresh_series))

    async def drain(self, limit_s: float) -> None:
        """Waits until all is written, but no longer than this. For the end: `run` must still be going."""
        with suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                await self._queue.join()

    def _enqueue(self, event: KnownEvent) -> bool:
        if event.is_queued:
            return True
        try:
            self._queue.put_nowait(event)
        except asyncio.QueueFull:
            self.n_dropped += 1
            return False
        event.is_queued = True
        return True

    async def _every(self, period_s: float, work: Callable[[], None]) -> None:
        while True:
            await self._clocks.sleep(period_s)
            work()

    def _finish_series(self) -> None:
        for event in self._book.finish(self._clocks.wall_ns() / 1e9):
            self._enqueue(event)

    def _refresh_series(self) -> None:
        for event in self._book.series():
            self._enqueue(event)

    async def _write_events(self, *, is_first: bool) -> None:
        turn = self._turn
        while True:
            event = await self._queue.get()
            if turn is not None and self._queue.qsize() < self._many:
                await (self._wait_patiently(turn) if is_first else turn.wait())
            event.is_queued = False
            try:
                await self._attempt(event)
            finally:
                self._queue.task_done()

    async def _wait_patiently(self, turn: asyncio.Event) -> None:
        """Once for each stretch of other writes, and only so long."""
        if self._is_patient and not turn.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(PATIENCE_S):
                    await turn.wait()
        self._is_patient = turn.is_set()

    async def _attempt(self, event: KnownEvent) -> None:
        for n_tries in range(1, MOST_TRIES + 1):
            if not await self._must_retry(event):
                return
            if n_tries < MOST_TRIES:
                await self._clocks.sleep(RETRY_PAUSE_S * (1.0 + RETRY_JITTER * self._clocks.random()))
        self.n_dropped += 1
        _log.error("Unable to write event (retry limit exceeded!)", extra={"fields": _about(event)})

    async def _must_retry(self, event: KnownEvent) -> bool:
        try:
            await self._write(event)
        except ApiError as error:
            self.n_refused += 1
            if self._passes_over(error):
                return False
            fields = {**_about(event), "err": str(error)}
            _log.error("Server rejected event (will not retry!)", extra={"fields": fields})
            return False
        except (Unreachable, AnswerLost, ClientConfigError) as error:
            fields = {**_about(event), "err": str(error)}
            _log.error("Unable to write event (may retry after sleeping)", extra={"fields": fields})
            return True
        self.n_written += 1
        event.is_on_server = True
        return False

    async def _write(self, event: KnownEvent) -> None:
        """Patches what is on the server, creates what is not, and believes the server about which is the case."""
        if not (event.is_series and event.is_on_server and await self._patch(event)):
            await self._create(event)

    async def _patch(self, event: KnownEvent) -> bool:
        """Whether the Event was there."""
        one = f"{self._form.path(event.record.namespace)}/{event.name}"
        try:
            patch = self._form.series_patch(event)
            await self._requests.request("PATCH", one, body=patch, content_type=STRATEGIC_PATCH)
        except ApiError as error:
            if error.is_not_found:
                return False
            raise
        return True

    async def _create(self, event: KnownEvent) -> None:
        collection = self._form.path(event.record.namespace)
        try:
            await self._requests.request("POST", collection, body=self._form.body(event))
        except ApiError as error:
            if not error.is_already_exists:
                raise
            # Our own, by a request whose answer was lost or is still under way: only the count may be missing.
            if event.is_series:
                await self._patch(event)


def _about(event: KnownEvent) -> dict[str, str]:
    regarding = event.record.regarding
    return {
        "object": f"{regarding.namespace}/{regarding.name}",
        "kind": regarding.kind,
        "reason": event.record.reason,
        "event": event.name,
    }


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
