"""Writes events to the API server in the background. Recording never waits and never fails.

At most 50,000 events wait to be written; beyond that they are dropped and counted. A write that may yet succeed (no
answer, server out of reach) is tried 12 times, about 10 s apart; one that the server refused is not tried again. While
the server is away, the writers stand still with one event each, so nothing piles up but the queue.

Next: `series` (what is the same event again), `forms` (how it is written).
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from kubesched.k8s.client.errors import AnswerLost, ApiError, ClientConfigError, Unreachable
from kubesched.k8s.client.event_recorder.forms import EventForm, event_name
from kubesched.k8s.client.event_recorder.record import NORMAL, WARNING, EventToRecord
from kubesched.k8s.client.event_recorder.series import FINISH_AFTER_S, REFRESH_EVERY_S, KnownEvent, SeriesBook
from kubesched.k8s.client.patch_types import STRATEGIC_PATCH
from kubesched.k8s.client.requester import Requester

MOST_QUEUED = 50_000
"""kube-scheduler drops events beyond a thousand; it is seldom fast enough to have so many to write."""
MOST_TRIES = 12
RETRY_PAUSE_S = 10.0
RETRY_JITTER = 0.25
N_WRITERS = 16

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
    ) -> None:
        """`passes_over` tells which refusals are not worth a word."""
        self.n_written = 0
        self.n_dropped = 0
        self.n_refused = 0
        self._requests = requests
        self._form = form
        self._clocks = clocks or RecorderClocks()
        self._n_writers = n_writers
        self._passes_over = passes_over
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
            for _ in range(self._n_writers):
                tasks.create_task(self._write_events())
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

    async def _write_events(self) -> None:
        while True:
            event = await self._queue.get()
            event.is_queued = False
            try:
                await self._attempt(event)
            finally:
                self._queue.task_done()

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
