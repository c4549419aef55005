"""Events on their way to the API server: names, series, drops, retries, both forms."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import pytest

from harness.virtual_asyncio import run_virtually
from kubesched.k8s.client.errors import AnswerLost, ApiError, Unreachable
from kubesched.k8s.client.event_forms import (
    NORMAL,
    WARNING,
    CoreV1Form,
    EventsV1Form,
    EventToRecord,
    SeriesBook,
    choose_form,
    event_name,
    pod_reference,
    shorten,
)
from kubesched.k8s.client.event_recorder import EventRecorder, RecorderClocks

POD = pod_reference("shop", "web-1", "uid-1")
FAILED = EventToRecord(POD, WARNING, "FailedScheduling", "Scheduling", "0/3 nodes are available", "default-scheduler")
SCHEDULED = EventToRecord(POD, NORMAL, "Scheduled", "Binding", "Successfully assigned", "default-scheduler")


@dataclass
class Sent:
    method: str
    path: str
    body: dict[str, Any]
    content_type: str


class EventServer:
    """Keeps Events by path; fails when told to."""

    def __init__(self, takes_s: float = 0.0) -> None:
        self.sent: list[Sent] = []
        self.failures: list[Exception] = []
        self.events: dict[str, dict[str, Any]] = {}
        self._takes_s = takes_s

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        timeout_s: float | None = None,
        gzip: bool = False,
    ) -> bytes:
        sent = Sent(method, path, msgspec.json.decode(body or b"{}"), content_type)
        self.sent.append(sent)
        await asyncio.sleep(self._takes_s)
        failure = self.failures.pop(0) if self.failures else None
        if failure is None or isinstance(failure, AnswerLost):
            self._do(sent)
        if failure is not None:
            raise failure
        return b"{}"

    def _do(self, sent: Sent) -> None:
        if sent.method == "POST":
            path = f"{sent.path}/{sent.body['metadata']['name']}"
            if path in self.events:
                raise ApiError(409, "AlreadyExists", "exists")
            self.events[path] = dict(sent.body)
        elif sent.method == "PATCH":
            if sent.path not in self.events:
                raise ApiError(404, "NotFound", "events not found")
            self.events[sent.path].update(sent.body)


def clocks() -> RecorderClocks:
    return RecorderClocks(
        wall_ns=lambda: 1_700_000_000_000_000_000 + int(asyncio.get_running_loop().time() * 1e9), random=lambda: 0.0
    )


def play(scene: Coroutine[Any, Any, None]) -> None:
    run_virtually(scene)


async def stop(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def test_an_event_goes_out_as_kube_scheduler_writes_it() -> None:
    async def scene() -> None:
        server = EventServer()
        recorder = EventRecorder(server, EventsV1Form("host"), clocks=clocks())
        running = asyncio.create_task(recorder.run())
        recorder.record(FAILED)
        await recorder.drain(1)
        (sent,) = server.sent
        assert (sent.method, sent.path) == ("POST", "/apis/events.k8s.io/v1/namespaces/shop/events")
        assert sent.body == {
            "kind": "Event",
            "apiVersion": "events.k8s.io/v1",
            "metadata": {"name": "web-1.17979cfe362a0000", "namespace": "shop"},
            "eventTime": "2023-11-14T22:13:20.000000Z",
            "reportingController": "default-scheduler",
            "reportingInstance": "default-scheduler-host",
            "action": "Scheduling",
            "reason": "FailedScheduling",
            "regarding": {
                "kind": "Pod",
                "namespace": "shop",
                "name": "web-1",
                "uid": "uid-1",
                "apiVersion": "v1",
            },
            "note": "0/3 nodes are available",
            "type": "Warning",
        }
        assert recorder.n_written == 1
        await stop(running)

    play(scene())


def test_the_second_occurrence_makes_a_series_and_further_ones_only_count() -> None:
    async def scene() -> None:
        server = EventServer()
        recorder = EventRecorder(server, EventsV1Form("host"), clocks=clocks())
        running = asyncio.create_task(recorder.run())
        for _ in range(4):
            recorder.record(FAILED)
            await asyncio.sleep(60)
        assert [sent.method for sent in server.sent] == ["POST", "PATCH"]
        assert server.sent[1].path.endswith("/events/web-1.17979cfe362a0000")
        assert server.sent[1].content_type == "application/strategic-merge-patch+json"
        assert server.sent[1].body == {"series": {"count": 2, "lastObservedTime": "2023-11-14T22:14:20.000000Z"}}
        await asyncio.sleep(12 * 60)
        assert server.sent[2].body == {"series": {"count": 4, "lastObservedTime": "2023-11-14T22:16:20.000000Z"}}
        recorder.record(FAILED)
        await asyncio.sleep(1)
        assert [sent.method for sent in server.sent] == ["POST", "PATCH", "PATCH", "POST"]
        await stop(running)

    play(scene())


def test_a_series_that_goes_on_is_written_every_half_hour() -> None:
    async def scene() -> None:
        server = EventServer()
        recorder = EventRecorder(server, EventsV1Form("host"), clocks=clocks())
        running = asyncio.create_task(recorder.run())
        for _ in range(31):
            recorder.record(FAILED)
            await asyncio.sleep(61)
        assert [sent.body["series"]["count"] for sent in server.sent[1:]] == [2, 30]
        await stop(running)

    play(scene())


def test_occurrences_while_the_event_waits_are_written_with_it() -> None:
    async def scene() -> None:
        server = EventServer()
        recorder = EventRecorder(server, EventsV1Form("host"), clocks=clocks())
        for _ in range(3):
            recorder.record(FAILED)
        running = asyncio.create_task(recorder.run())
        await recorder.drain(1)
        (sent,) = server.sent
        assert sent.body["series"]["count"] == 3
        await stop(running)

    play(scene())


def test_an_event_that_the_server_forgot_is_created_anew() -> None:
    async def scene() -> None:
        server = EventServer()
        recorder = EventRecorder(server, EventsV1Form("host"), clocks=clocks())
        running = asyncio.create_task(recorder.run())
        recorder.record(FAILED)
        await recorder.drain(1)
        server.events.clear()
        recorder.record(FAILED)
        await recorder.drain(1)
        assert [sent.method for sent in server.sent] == ["POST", "PATCH", "POST"]
        assert server.sent[-1].body["series"]["count"] == 2
        await stop(running)

    play(scene())


def test_a_series_that_overtakes_its_event_finds_it() -> None:
    async def scene() -> None:
        server = EventServer(takes_s=1.0)
        recorder = EventRecorder(server, EventsV1Form("host"), clocks=clocks())
        running = asyncio.create_task(recorder.run())
        recorder.record(FAILED)
        await asyncio.sleep(0.5)
        recorder.record(FAILED)
        await recorder.drain(10)
        assert [sent.method for sent in server.sent] == ["POST", "POST", "PATCH"]
        assert [stored["series"]["count"] for stored in server.events.values()] == [2]
        await stop(running)

    play(scene())


@pytest.mark.parametrize(
    "failure",
    [
        pytest.param(Unreachable("refused"), id="the server was out of reach"),
        pytest.param(AnswerLost("reset"), id="the answer was lost"),
    ],
)
def test_a_write_that_may_yet_succeed_is_tried_again(failure: Exception) -> None:
    async def scene() -> None:
        server = EventServer()
        server.failures = [failure]
        recorder = EventRecorder(server, EventsV1Form("host"), clocks=clocks())
        running = asyncio.create_task(recorder.run())
        recorder.record(FAILED)
        await recorder.drain(10.5)
        assert len(server.events) == 1
        assert (len(server.sent), recorder.n_written, recorder.n_refused) == (2, 1, 0)
        await stop(running)

    play(scene())


def test_after_twelve_tries_an_event_is_given_up() -> None:
    async def scene() -> None:
        server = EventServer()
        server.failures = [Unreachable("refused")] * 20
        recorder = EventRecorder(server, EventsV1Form("host"), clocks=clocks())
        running = asyncio.create_task(recorder.run())
        recorder.record(FAILED)
        await recorder.drain(1000)
        assert (len(server.sent), recorder.n_dropped) == (12, 1)
        assert asyncio.get_running_loop().time() == 110
        await stop(running)

    play(scene())


def test_what_the_server_refuses_is_not_tried_again() -> None:
    async def scene() -> None:
        server = EventServer()
        server.failures = [ApiError(403, "Forbidden", "no")]
        recorder = EventRecorder(server, EventsV1Form("host"), clocks=clocks())
        running = asyncio.create_task(recorder.run())
        recorder.record(FAILED)
        await recorder.drain(100)
        assert (len(server.sent), recorder.n_refused, recorder.n_written) == (1, 1, 0)
        await stop(running)

    play(scene())


def test_a_full_queue_drops_and_counts_and_never_waits() -> None:
    async def scene() -> None:
        server = EventServer()
        recorder = EventRecorder(server, EventsV1Form("host"), clocks=clocks(), most_queued=1000)
        for number in range(1005):
            pod = pod_reference("shop", f"web-{number}", f"uid-{number}")
            recorder.record(EventToRecord(pod, NORMAL, "Scheduled", "Binding", "", "default-scheduler"))
        assert recorder.n_dropped == 5
        running = asyncio.create_task(recorder.run())
        await recorder.drain(1)
        assert len(server.events) == 1000
        await stop(running)

    play(scene())


def test_an_unknown_type_is_not_recorded() -> None:
    async def scene() -> None:
        recorder = EventRecorder(EventServer(), EventsV1Form("host"), clocks=clocks())
        recorder.record(EventToRecord(POD, "Fatal", "r", "a", "n", "c"))
        assert recorder._queue.empty()

    play(scene())


def test_core_events_count_and_know_no_action() -> None:
    async def scene() -> None:
        server = EventServer()
        recorder = EventRecorder(server, CoreV1Form(), clocks=clocks())
        running = asyncio.create_task(recorder.run())
        recorder.record(SCHEDULED)
        await asyncio.sleep(2)
        recorder.record(SCHEDULED)
        await recorder.drain(1)
        first, second = server.sent
        assert first.path == "/api/v1/namespaces/shop/events"
        assert first.body["involvedObject"]["name"] == "web-1"
        assert first.body["source"] == {"component": "default-scheduler"}
        assert (first.body["message"], first.body["count"]) == ("Successfully assigned", 1)
        assert first.body["firstTimestamp"] == first.body["lastTimestamp"] == "2023-11-14T22:13:20Z"
        assert "action" not in first.body
        assert second.body == {"count": 2, "lastTimestamp": "2023-11-14T22:13:22Z"}
        await stop(running)

    play(scene())


@pytest.mark.parametrize(
    ("failure", "form"),
    [
        pytest.param(None, EventsV1Form, id="events.k8s.io is served"),
        pytest.param(ApiError(404, "NotFound"), CoreV1Form, id="it is not"),
        pytest.param(ApiError(403, "Forbidden"), EventsV1Form, id="the server does not say"),
    ],
)
def test_the_server_says_which_form_it_understands(failure: Exception | None, form: type) -> None:
    async def scene() -> None:
        server = EventServer()
        server.failures = [failure] if failure else []
        assert isinstance(await choose_form(server, "host"), form)

    play(scene())


def with_version(version: str, note: str = "n") -> EventToRecord:
    return EventToRecord(pod_reference("a", "p", "u", version), WARNING, "r", "a", note, "c")


@pytest.mark.parametrize(
    ("first", "second", "is_same"),
    [
        pytest.param(with_version("1"), with_version("1", "other"), True, id="same version of the pod, other note"),
        pytest.param(with_version("1"), with_version("2"), False, id="another version of the pod"),
        pytest.param(with_version(""), with_version("", "other"), False, id="no version known, other note"),
        pytest.param(with_version(""), with_version(""), True, id="no version known, same note"),
        pytest.param(FAILED, SCHEDULED, False, id="another reason"),
    ],
)
def test_what_counts_as_the_same_event(first: EventToRecord, second: EventToRecord, is_same: bool) -> None:
    book = SeriesBook()
    book.occurred(first, 0)
    again = book.occurred(second, 1)
    assert again is not None
    assert again.is_series == is_same


def test_the_book_forgets_the_oldest_when_it_is_full() -> None:
    book = SeriesBook(most_events=2)
    for version in ("1", "2", "3"):
        book.occurred(with_version(version), 0)
    assert len(book) == 2
    again = book.occurred(with_version("1"), 1)
    assert again is not None and not again.is_series


def test_names_that_no_event_may_have_are_replaced() -> None:
    assert event_name("web-1", 255) == "web-1.ff"
    assert len(event_name("Not_A_Name", 255)) == 36
    assert len(event_name("x" * 250, 1 << 60)) == 36


@pytest.mark.parametrize(
    ("note", "expected"),
    [
        pytest.param("short", "short", id="a short note"),
        pytest.param("x" * 1024, "x" * 1024, id="a note of just the limit"),
        pytest.param("x" * 1025, "x" * 1020 + " ...", id="one byte more"),
        pytest.param("ü" * 600, "ü" * 510 + " ...", id="bytes count, not characters"),
        pytest.param("a" + "ü" * 600, "a" + "ü" * 509 + " ...", id="no half characters"),
    ],
)
def test_long_notes_are_cut(note: str, expected: str) -> None:
    assert shorten(note) == expected


def test_events_give_way_to_more_urgent_writes_and_after_a_second_but_for_a_trickle() -> None:
    async def scene() -> None:
        server, turn = EventServer(takes_s=1.0), asyncio.Event()
        recorder = EventRecorder(server, EventsV1Form("host"), clocks=clocks(), n_writers=4, turn=turn)
        running = asyncio.create_task(recorder.run())
        for number in range(20):
            recorder.record(replace(FAILED, note=f"for the {number}th time"))
        await asyncio.sleep(0.5)
        assert not server.sent
        await asyncio.sleep(4.0)
        assert len(server.sent) == 4, "one writer goes on"
        turn.set()
        await recorder.drain(100)
        assert recorder.n_written == 20
        await stop(running)

    play(scene())


def test_events_give_way_anew_to_each_stretch_of_urgent_writes() -> None:
    async def scene() -> None:
        server, turn = EventServer(takes_s=0.1), asyncio.Event()
        recorder = EventRecorder(server, EventsV1Form("host"), clocks=clocks(), n_writers=1, turn=turn)
        running = asyncio.create_task(recorder.run())
        for number in range(2):
            turn.clear()
            recorder.record(replace(FAILED, note=f"for the {number}th time"))
            await asyncio.sleep(0.5)
            assert len(server.sent) == number
            turn.set()
            await recorder.drain(100)
        for number in range(3):
            turn.clear()
            recorder.record(replace(FAILED, note=f"late for the {number}th time"))
        await asyncio.sleep(2.0)
        assert len(server.sent) == 5, "one of them waited for all"
        await stop(running)

    play(scene())


def test_events_do_not_give_way_when_they_would_be_dropped() -> None:
    async def scene() -> None:
        server, turn = EventServer(takes_s=1.0), asyncio.Event()
        recorder = EventRecorder(server, EventsV1Form("host"), clocks=clocks(), n_writers=4, most_queued=20, turn=turn)
        running = asyncio.create_task(recorder.run())
        for number in range(20):
            recorder.record(replace(FAILED, note=f"for the {number}th time"))
        await asyncio.sleep(1.5)
        assert len(server.sent) == 8, "all go on"
        await stop(running)

    play(scene())
