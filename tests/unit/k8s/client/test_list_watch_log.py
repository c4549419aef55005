"""What list and watch write to the log: client-go's words, levels and pairs."""

from __future__ import annotations

import asyncio
import io
import logging
import re
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from harness.scripted_server import ScriptedServer, following, until
from harness.scripted_server.listening import Listened
from kubesched.k8s.client.errors import ApiError, Unreachable
from kubesched.k8s.client.list_watch import (
    Informers,
    InformerSettings,
    Pace,
    WatchError,
    default_watch_error_handler,
    log_lines,
)
from kubesched.k8s.client.resources import RESOURCES, Resource, resource_of
from kubesched.k8s.client.rest import RestClient
from kubesched.k8s.client.target import ServerTarget
from kubesched.k8s.model.core import Node, Pod
from kubesched.live.logs.setup import KlogTextFormatter, Verbosity

Story = Callable[[ScriptedServer, Listened], Awaitable[None]]
_HEADER = re.compile(r"^([IWE])\d{4} \S+ +\d+ \S+\] ")


class Log:
    """The lines up to a verbosity, each with its severity."""

    def __init__(self, verbosity: int) -> None:
        self._stream = io.StringIO()
        self.handler = logging.StreamHandler(self._stream)
        self.handler.setFormatter(KlogTextFormatter())
        self.handler.addFilter(Verbosity(verbosity))

    @property
    def lines(self) -> list[str]:
        return [_HEADER.sub(r"\1 ", line) for line in self._stream.getvalue().splitlines()]


@pytest.fixture
def read_log() -> Iterator[Callable[[int], Log]]:
    logger = logging.getLogger("kubesched.k8s.client.list_watch")
    level, logs = logger.level, []

    def read(verbosity: int) -> Log:
        logs.append(Log(verbosity))
        logger.addHandler(logs[-1].handler)
        logger.setLevel(logging.INFO)
        return logs[-1]

    yield read
    logger.setLevel(level)
    for log in logs:
        logger.removeHandler(log.handler)


def tell(story: Story, *, streams_lists: bool = True, **settings: Any) -> None:
    async def run() -> None:
        async with ScriptedServer(streams_lists=streams_lists) as server:
            server.put({"kind": "Node", "metadata": {"name": "a"}})
            async with following(server, Node, name="kube-scheduler", **settings) as listened:
                await listened.informers.wait_for_sync("kube-scheduler")
                await server.watched("nodes")
                await story(server, listened)

    asyncio.run(run())


async def nothing_more(_: ScriptedServer, __: Listened) -> None:
    """The beginning and the end are the story."""


async def a_new_list(server: ScriptedServer, listened: Listened) -> None:
    server.forget_history()
    server.expire_watches()
    server.put({"kind": "Node", "metadata": {"name": "b"}})
    await until(lambda: ("put", "b") in listened.heard)


NODE = 'type="*v1.Node" reflector="kube-scheduler"'
BEGUN = 'type="*v1.Node" resyncPeriod="0s" reflector="kube-scheduler"'
WHICH = 'reflector="kube-scheduler" type="*v1.Node"'


def test_a_kind_is_followed_as_client_go_tells_it(read_log: Callable[[int], Log]) -> None:
    log = read_log(3)
    tell(nothing_more)
    assert log.lines == [
        'I "Waiting for caches to sync" controller="kube-scheduler"',
        f'I "Starting reflector" {BEGUN}',
        f'I "Listing and watching" {NODE}',
        f'I "Caches populated" {NODE}',
        'I "Caches are synced" controller="kube-scheduler"',
        f'I "Stopping reflector" {BEGUN}',
    ]


@pytest.mark.parametrize("verbosity", [0, 1, 2])
def test_at_low_verbosity_there_is_little_of_it(verbosity: int, read_log: Callable[[int], Log]) -> None:
    log = read_log(verbosity)
    tell(a_new_list)
    populated = [f'I "Caches populated" {NODE}'] if verbosity == 2 else []
    assert log.lines == [
        'I "Waiting for caches to sync" controller="kube-scheduler"',
        *populated,
        'I "Caches are synced" controller="kube-scheduler"',
        *populated,
    ]


@pytest.mark.parametrize("streams_lists", [True, False])
def test_an_expired_watch_is_told_and_the_list_that_follows(
    streams_lists: bool, read_log: Callable[[int], Log]
) -> None:
    log = read_log(4)
    tell(a_new_list, streams_lists=streams_lists)
    closed = next(index for index, line in enumerate(log.lines) if line.startswith('I "Watch closed"'))
    assert log.lines[closed].startswith(f'I "Watch closed" {WHICH} err="too old resource version: ')
    ended = 'I "Exiting watch because received the bookmark that marks the end of initial events stream"'
    after = [line for line in log.lines[closed + 1 :] if not line.startswith(ended)]
    assert after[:2] == [f'I "Listing and watching" {NODE}', f'I "Caches populated" {NODE}']
    assert any(line.startswith(ended) for line in log.lines) == streams_lists


def test_the_end_of_a_streamed_list_is_told_with_its_size_and_how_long_it_took(read_log: Callable[[int], Log]) -> None:
    log = read_log(4)
    tell(nothing_more)
    (line,) = [line for line in log.lines if "initial events stream" in line]
    assert re.search(r'stream" reflector="kube-scheduler" totalItems=2 duration="[\d.]+(ms|µs|s)"$', line)


def test_a_server_that_does_not_stream_lists_is_told_of(read_log: Callable[[int], Log]) -> None:
    log = read_log(4)
    tell(nothing_more, streams_lists=False)
    (line,) = [line for line in log.lines if "watchlist mode" in line]
    assert "Falling back to regular list. This is expected if watchlist is not supported or disabled in" in line
    assert sum('"Listing and watching"' in line for line in log.lines) == 1


def test_the_end_of_a_watch_is_told_with_the_number_of_its_events(read_log: Callable[[int], Log]) -> None:
    async def story(server: ScriptedServer, listened: Listened) -> None:
        for version in "bcd":
            server.put({"kind": "Node", "metadata": {"name": version}})
        await until(lambda: len(listened.heard) == 4)
        server.end_watches()
        await until(lambda: len(server.requests) == 2)

    log = read_log(4)
    tell(story)
    assert f'I "Watch close" {WHICH} totalItems=3' in log.lines


def test_a_watch_that_ends_at_once_and_empty_is_warned_of(read_log: Callable[[int], Log]) -> None:
    async def story(server: ScriptedServer, _: Listened) -> None:
        server.end_watches()
        await until(lambda: len(server.requests) == 2)

    log = read_log(0)
    tell(story)
    (line,) = [line for line in log.lines if "watch ended" in line]
    assert line.startswith(
        f'I "Warning: watch ended with error" {WHICH} err="very short watch: kube-scheduler: Unexpected'
    )


def test_a_broken_connection_is_told_from_v1_on(read_log: Callable[[int], Log]) -> None:
    now_s = [0.0]

    async def run() -> None:
        async with ScriptedServer() as server, RestClient(ServerTarget(url=server.url), qps=0) as client:
            pace = Pace(now_s=lambda: now_s[0])
            settings = InformerSettings(name="kube-scheduler")
            async with Informers(client, [resource_of(Node)], settings, pace) as informers:
                await informers.wait_for_sync("kube-scheduler")
                await server.watched("nodes")
                now_s[0] += 10
                server.cut_watches()
                await until(lambda: len(server.requests) == 2)

    quiet, log = read_log(0), read_log(1)
    asyncio.run(run())
    (line,) = [line for line in log.lines if "EOF" in line]
    assert line.startswith(f'I "Watch closed with unexpected EOF" {WHICH} err="')
    assert not any("EOF" in line for line in quiet.lines)


@pytest.mark.parametrize(
    ("status", "told"),
    [
        pytest.param(429, f'I "Watch returned 429 - backing off" {WHICH}', id="too many requests"),
        pytest.param(
            500, f'I "Retrying watch after internal error" {WHICH} err="no (500 Odd)"', id="an internal error"
        ),
        pytest.param(503, f'I "Warning: watch ended with error" {WHICH} err="no (503 Odd)"', id="any other error"),
    ],
)
def test_an_error_event_is_told(status: int, told: str, read_log: Callable[[int], Log]) -> None:
    async def story(server: ScriptedServer, _: Listened) -> None:
        problem = f'{{"kind":"Status","status":"Failure","code":{status},"reason":"Odd","message":"no"}}'
        server.send_line(f'{{"type":"ERROR","object":{problem}}}'.encode())
        await until(lambda: len(server.requests) == 2)

    log = read_log(4)
    tell(story)
    assert told in log.lines


@pytest.mark.parametrize(
    ("line", "told"),
    [
        pytest.param(
            b'{"type":"WEIRD","object":{"metadata":{"name":"a","resourceVersion":"9"}}}',
            'E "Unknown watch event" reflector="kube-scheduler" event="WEIRD *v1.Node a"',
            id="a type that nobody knows",
        ),
        pytest.param(
            b'{"type":"WEIRD","object":{"metadata":{"name":"a"},"spec":7}}',
            'E "Unknown watch event" reflector="kube-scheduler" event="WEIRD *v1.Node a"',
            id="and an object that cannot be read",
        ),
        pytest.param(
            b'{"type":"ADDED","object":7}',
            'E "Unable to understand watch event" err="object does not implement the Object interfaces" '
            'reflector="kube-scheduler" event="ADDED"',
            id="no object",
        ),
    ],
)
def test_an_event_that_nobody_understands_is_an_error_and_passed_over(
    line: bytes, told: str, read_log: Callable[[int], Log]
) -> None:
    async def story(server: ScriptedServer, listened: Listened) -> None:
        server.send_line(line)
        server.put({"kind": "Node", "metadata": {"name": "b"}})
        await until(lambda: ("put", "b") in listened.heard)
        assert listened.heard == [("put", "a"), ("put", "b")]

    log = read_log(0)
    tell(story)
    assert told in log.lines


def test_a_server_that_is_away_is_an_error_once_and_the_attempts_are_told_at_higher_verbosity(
    read_log: Callable[[int], Log],
) -> None:
    async def story(server: ScriptedServer, _: Listened) -> None:
        server.fail_next("watch", "nodes", status=503, times=40)
        server.cut_watches()
        await until(lambda: any("Followed again" in line for line in quiet.lines))

    quiet, log = read_log(0), read_log(4)
    tell(story)
    errors = [line for line in quiet.lines if line.startswith("E ")]
    assert len(errors) == 1
    assert errors[0].startswith('E "Failed to watch" err="')
    assert f'I "Followed again" {WHICH}' in quiet.lines
    assert any(line.startswith(f'I "Watch failed - backing off" {WHICH} err="') for line in log.lines)


def test_a_resync_is_told(read_log: Callable[[int], Log]) -> None:
    async def story(_: ScriptedServer, listened: Listened) -> None:
        await until(lambda: listened.heard.count(("put", "a")) > 2)

    log = read_log(4)
    tell(story, resync_s=90.0)
    assert 'I "Forcing resync" reflector="kube-scheduler"' in log.lines
    assert 'I "Starting reflector" type="*v1.Node" resyncPeriod="1m30s" reflector="kube-scheduler"' in log.lines


def test_a_kind_that_goes_by_another_name_here_is_told_by_the_servers() -> None:
    class PodAsReported(Pod, frozen=True):
        """A pod, and more of it."""

    assert Resource(PodAsReported, "", "v1", "pods", True, kind_name="Pod").go_type == "*v1.Pod"


def test_every_line_has_words_and_pairs_of_its_own() -> None:
    lines = log_lines.LINES
    assert len({(line.message, line.pairs) for line in lines}) == len(lines) > 20
    assert all(line.v == 0 for line in lines if line.level > logging.INFO)


def test_a_refusal_of_many_kinds_is_told_of_each_and_a_server_that_is_away_of_a_few(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def told(problem: Exception) -> set[object]:
        caplog.clear()
        for resource in RESOURCES:
            default_watch_error_handler(WatchError(resource, "kube-scheduler", "list", problem))
        return {record.__dict__["apart"] for record in caplog.records}

    assert len(told(ApiError(403, "Forbidden", "no"))) == len(RESOURCES)
    assert told(Unreachable("refused")) == {""}
