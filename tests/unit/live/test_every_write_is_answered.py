"""Whatever becomes of a write, the loop is answered once: done, failed, withheld, cancelled, or broken by a bug."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from operator import itemgetter
from typing import Any, cast

import pytest

from kubesched.framework.effects import (
    BindPod,
    CallExtender,
    Done,
    Effect,
    EvictPod,
    Failed,
    FindOut,
    PatchObject,
    PatchPodStatus,
    Withheld,
    WriteObject,
    Written,
)
from kubesched.k8s.client import errors
from kubesched.k8s.model.core import PodCondition
from kubesched.k8s.model.meta import PodKey
from kubesched.live.writes.claim_writes import ClaimWrites, VolumeWrites
from kubesched.live.writes.object_writes import ObjectWrites, PodWrites
from kubesched.live.writes.writer import EffectWriter, ExtenderCalls, LeaderGate
from kubesched.scheduler.config import ExtenderConfiguration
from kubesched.scheduler.plugins.volume_binding.binding import SelectNodeForClaim

POD = PodKey("shop/web")
CONDITION = PodCondition("PodScheduled", "False", "Unschedulable", "no room")
BIND = BindPod(POD, "u1", "node-1")
EVICT = EvictPod(POD, "u1", CONDITION, PodKey("shop/big"))
PATCH = PatchPodStatus(POD, "u1", CONDITION)
CLAIM = SelectNodeForClaim("shop", "data", "7", "node-1")
CREATE = WriteObject({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "new"}, "data": {"a": "1"}})
RELABEL = PatchObject("v1", "Node", "node-1", {"metadata": {"labels": {"a": "1", "b": None}}})
EXTENDER_BIND = CallExtender(0, "bind", "http://127.0.0.1:1/bind", b"{}", 5.0)

Server = Callable[[str, str], Awaitable[bytes]]
"""(method, path) -> the answer's body"""


class Requests:
    """What a `RestClient` does with a request that has had its turn."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.sent: list[tuple[str, str]] = []

    async def request(
        self, method: str, path: str, *, left_s: Callable[[], float] | None = None, **_rest: object
    ) -> bytes:
        await asyncio.sleep(0)
        if left_s is not None and left_s() <= 0:
            raise errors.NotSent
        self.sent.append((method, path.rpartition("/")[2]))
        return await self._server(method, path)


class Scene:
    """A writer over such requests, the lease held or not, and all that the loop was answered."""

    def __init__(self, server: Server) -> None:
        self.holds_lease = True
        self.requests = Requests(server)
        self.answers: list[tuple[int, object]] = []
        gate = LeaderGate(cast("Any", self.requests), self._left_s)
        self.writer = EffectWriter(
            PodWrites(gate, lambda key: None, now=lambda: "now", sleep=lambda for_s: asyncio.sleep(0)),
            VolumeWrites(gate),
            ClaimWrites(gate),
            ObjectWrites(gate, sleep=lambda for_s: asyncio.sleep(0)),
            ExtenderCalls([ExtenderConfiguration(url_prefix="http://127.0.0.1:1", bind_verb="bind")], self._left_s),
            lambda record: None,
            lambda key: None,
        )

    def _left_s(self) -> float:
        return 10.0 if self.holds_lease else 0.0

    def send(self, actions: Sequence[object]) -> None:
        effects = [Effect(number, action) for number, action in enumerate(actions)]
        self.writer.send(effects, lambda number, answer: self.answers.append((number, answer)))


async def agrees(_method: str, _path: str) -> bytes:
    return b'{"metadata": {"resourceVersion": "8"}}'


async def never_answers(_method: str, _path: str) -> bytes:
    await asyncio.Event().wait()
    return b""


async def refuses(_method: str, _path: str) -> bytes:
    raise errors.ApiError(403, "Forbidden", "no")


async def is_out_of_reach(_method: str, _path: str) -> bytes:
    raise errors.Unreachable("connection refused")


async def loses_answers(_method: str, _path: str) -> bytes:
    raise errors.AnswerLost("timeout")


async def breaks(_method: str, _path: str) -> bytes:
    raise RuntimeError("a bug")


async def speaks_nonsense(_method: str, _path: str) -> bytes:
    return b"<html>"


WAITED_FOR = (BIND, EVICT, CLAIM, RELABEL)


@pytest.mark.parametrize("server", [agrees, refuses, is_out_of_reach, loses_answers, breaks, speaks_nonsense])
def test_whatever_the_server_does(server: Server) -> None:
    async def scene() -> None:
        it = Scene(server)
        it.send(WAITED_FOR)
        await it.writer.settled()
        assert sorted(number for number, _ in it.answers) == [0, 1, 2, 3]
        if server is not agrees and server is not speaks_nonsense:
            assert all(isinstance(answer, Failed) and not isinstance(answer, Withheld) for _, answer in it.answers)

    asyncio.run(scene())


def test_what_is_withheld_is_answered_so_and_nothing_was_sent() -> None:
    async def scene() -> None:
        it = Scene(agrees)
        it.holds_lease = False
        it.send([*WAITED_FOR, EXTENDER_BIND])
        await it.writer.settled()
        assert sorted(it.answers, key=itemgetter(0)) == [(number, Withheld()) for number in range(5)]
        assert it.requests.sent == []

    asyncio.run(scene())


@pytest.mark.parametrize("has_begun", [False, True])
def test_what_is_cancelled_is_answered_too(has_begun: bool) -> None:
    async def scene() -> None:
        it = Scene(never_answers)
        it.send(WAITED_FOR)
        if has_begun:
            await asyncio.sleep(0.01)
        it.writer.cancel()
        await it.writer.settled()
        assert sorted(it.answers, key=itemgetter(0)) == [(number, Failed("context canceled")) for number in range(4)]

    asyncio.run(scene())


def test_an_answer_that_was_lost_with_the_lease_is_still_read() -> None:
    """The binding may have come about: it must not be told that nothing was written."""

    async def scene() -> None:
        async def binds_and_hangs_up(method: str, _path: str) -> bytes:
            if method == "GET":
                return (
                    b'{"metadata": {"name": "web", "namespace": "shop", "uid": "u1"}, "spec": {"nodeName": "node-1"}}'
                )
            it.holds_lease = False
            raise errors.AnswerLost("timeout")

        it = Scene(binds_and_hangs_up)
        it.send([BIND])
        await it.writer.settled()
        assert it.answers == [(0, Done())]

    asyncio.run(scene())


def test_a_patch_that_was_withheld_goes_out_when_the_lease_is_held_again() -> None:
    """Nobody waits for it, so nobody would ask for it again."""

    async def scene() -> None:
        it = Scene(agrees)
        it.holds_lease = False
        it.send([PATCH])
        await it.writer.settled()
        assert it.requests.sent == []
        it.holds_lease = True
        it.writer.resume()
        it.send([BIND])
        await it.writer.settled()
        assert it.requests.sent == [("PATCH", "status"), ("POST", "binding")]
        it.writer.resume()
        await it.writer.settled()
        assert len(it.requests.sent) == 2

    asyncio.run(scene())


@pytest.mark.parametrize("is_bound", [False, True])
def test_what_hangs_is_left_and_found_out_about(is_bound: bool) -> None:
    async def scene() -> None:
        async def answers_reads(method: str, path: str) -> bytes:
            if method == "POST":
                await never_answers(method, path)
            node = b"node-1" if is_bound else b""
            return b'{"metadata": {"name": "web", "namespace": "shop", "uid": "u1"}, "spec": {"nodeName": "%s"}}' % node

        it = Scene(answers_reads)
        it.send([BIND])
        await asyncio.sleep(0.01)
        found: list[tuple[int, object]] = []
        it.writer.send([Effect(7, FindOut(0, BIND))], lambda number, answer: found.append((number, answer)))
        await it.writer.settled()
        assert it.answers == [(0, Failed("context canceled"))], "nobody waits for that any more"
        ((number, answer),) = found
        assert number == 7 and isinstance(answer, Done if is_bound else Failed)

    asyncio.run(scene())


@pytest.mark.parametrize("action", [CLAIM, EXTENDER_BIND])
def test_where_nothing_can_be_read_it_counts_as_failed(action: object) -> None:
    async def scene() -> None:
        it = Scene(agrees)
        it.send([FindOut(99, action)])
        await it.writer.settled()
        ((_, answer),) = it.answers
        assert isinstance(answer, Failed)
        assert it.requests.sent == []

    asyncio.run(scene())


CORE_KINDS = b'{"resources": [{"name": "configmaps/x", "kind": "ConfigMap"}, %s]}' % (
    b'{"name": "configmaps", "kind": "ConfigMap", "namespaced": true}'
)


def test_kinds_that_the_scheduler_does_not_watch_are_asked_of_the_server_once() -> None:
    async def scene() -> None:
        paths: list[tuple[str, str]] = []

        async def server(method: str, path: str) -> bytes:
            paths.append((method, path))
            if method == "GET":
                return CORE_KINDS
            return b'{"metadata": {"name": "new", "uid": "u7", "resourceVersion": "8"}}'

        it = Scene(server)
        it.send([CREATE])
        await it.writer.settled()
        it.send([CREATE, WriteObject({"apiVersion": "v1", "kind": "Nonsense", "metadata": {"name": "n"}})])
        await it.writer.settled()
        maps = ("POST", "/api/v1/namespaces/default/configmaps")
        assert paths.count(maps) == 2 and paths.count(("GET", "/api/v1")) == 2
        none = Failed('no matches for kind "Nonsense" in version "v1"', is_gone=True, reason="NotFound")
        assert [answer for _, answer in it.answers].count(Written("8", "new", "u7")) == 2
        assert (1, none) in it.answers

    asyncio.run(scene())


def test_a_refusal_comes_with_its_reason() -> None:
    async def scene() -> None:
        async def server(method: str, _path: str) -> bytes:
            if method == "GET":
                return CORE_KINDS
            raise errors.ApiError(409, "AlreadyExists", 'configmaps "new" already exists')

        it = Scene(server)
        it.send([CREATE])
        await it.writer.settled()
        assert it.answers == [(0, Failed('configmaps "new" already exists', reason="AlreadyExists"))]

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("found", "has_come_about"),
    [
        (b'{"metadata": {"name": "node-1", "resourceVersion": "8", "labels": {"a": "1", "c": "3"}}}', True),
        (b'{"metadata": {"name": "node-1", "resourceVersion": "8", "labels": {"a": "1", "b": "2"}}}', False),
        (b'{"metadata": {"name": "node-1", "resourceVersion": "8"}}', False),
    ],
)
@pytest.mark.parametrize("is_found_out", [False, True])
def test_whether_a_lost_write_came_about_is_read_off_the_object(
    found: bytes, has_come_about: bool, is_found_out: bool
) -> None:
    async def scene() -> None:
        async def server(method: str, _path: str) -> bytes:
            if method == "GET":
                return found
            raise errors.AnswerLost("timeout")

        it = Scene(server)
        it.send([FindOut(99, RELABEL) if is_found_out else RELABEL])
        await it.writer.settled()
        ((_, answer),) = it.answers
        assert answer == Written("8", "node-1") if has_come_about else isinstance(answer, Failed)

    asyncio.run(scene())
