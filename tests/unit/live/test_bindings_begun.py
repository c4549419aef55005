"""A binding that can leave at once has no task. Whatever is said of it, it is answered once, and its pod's other writes
keep their order."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from writer_scene import WriterScene

from kubesched.framework.effects import BindPod, Done, Failed, FindOut, PatchPodStatus
from kubesched.k8s.client.errors import AnswerLost, ApiError
from kubesched.k8s.client.rest import Again
from kubesched.k8s.model.core import PodCondition
from kubesched.k8s.model.meta import PodKey
from kubesched.live.writes.writer import BINDINGS_AT_ONCE

MANY = 3 * BINDINGS_AT_ONCE
POD = PodKey("shop/web-0")
PATCH = PatchPodStatus(POD, "u1", PodCondition("PodScheduled", "False", "Unschedulable", "no room"))
LOST = AnswerLost("the connection broke")
NODE_OF_READ = b'{"metadata": {"name": "web-0", "namespace": "shop", "uid": "u1"}, "spec": {"nodeName": "node-1"}}'


class Scene(WriterScene):
    """A writer whose bindings are begun; the test says what became of each."""

    def __init__(self) -> None:
        super().__init__(begins=True)
        self.begun: dict[str, Callable[[Any], None]] = {}
        self.called_off: list[str] = []
        self.begins = True

    def begin(
        self, _method: str, path: str, _body: bytes, _type: str, tell: Callable[[Any], None], _left_s: object
    ) -> Callable[[], None] | None:
        if not self.begins:
            return None
        what = path.removeprefix("/api/v1/namespaces/shop/pods/")
        self.sent.append(f"begun {what}")
        name = what.partition("/")[0]
        self.begun[name] = tell
        return lambda: self.called_off.append(name)

    async def request(self, method: str, path: str, **_rest: object) -> bytes:
        self.sent.append(f"{method} {path.removeprefix('/api/v1/namespaces/shop/pods/')}")
        await asyncio.sleep(0)
        return NODE_OF_READ

    def told(self, name: str, outcome: object) -> None:
        self.begun.pop(name)(outcome)


def play(story: Callable[[Scene], Awaitable[None]]) -> None:
    async def run() -> None:
        it = Scene()
        await story(it)
        assert it.writer.is_quiet.is_set()
        await asyncio.wait_for(it.writer.settled(), 1.0)

    asyncio.run(run())


def test_they_leave_in_their_order_as_answers_come_and_no_task_runs() -> None:
    async def story(it: Scene) -> None:
        tasks = asyncio.all_tasks()
        it.bind(MANY)
        assert len(it.begun) == BINDINGS_AT_ONCE and not it.writer.is_quiet.is_set()
        for number in range(MANY):
            it.told(f"web-{number}", b"{}")
            assert len(it.begun) == min(BINDINGS_AT_ONCE, MANY - number - 1)
        assert it.answers == dict.fromkeys(range(MANY), Done())
        assert it.sent == [f"begun web-{number}/binding" for number in range(MANY)]
        assert asyncio.all_tasks() == tasks

    play(story)


def test_a_refusal_is_the_answer() -> None:
    async def story(it: Scene) -> None:
        it.bind(2)
        it.told("web-0", ApiError(409, "Conflict", "already assigned"))
        it.told("web-1", ApiError(404, "NotFound", "not found"))
        assert it.answers == {0: Failed("already assigned"), 1: Failed("not found", is_gone=True)}

    play(story)


@pytest.mark.parametrize(("outcome", "then"), [(LOST, "GET web-0"), (Again(0.1), "POST web-0/binding")])
def test_what_leaves_something_to_be_done_is_answered_when_it_is_done(outcome: object, then: str) -> None:
    async def story(it: Scene) -> None:
        it.bind(1)
        it.told("web-0", outcome)
        assert it.answers == {} and not it.writer.is_quiet.is_set()
        await it.writer.settled()
        assert it.answers == {0: Done()}
        assert it.sent == ["begun web-0/binding", then]

    play(story)


@pytest.mark.parametrize("outcome", [b"{}", LOST, Again(0.1)])
def test_a_patch_waits_until_the_binding_is_over(outcome: object) -> None:
    async def story(it: Scene) -> None:
        it.bind(1)
        it.send(PATCH, first=10)
        await asyncio.sleep(0.01)
        assert it.sent == ["begun web-0/binding"]
        it.told("web-0", outcome)
        await it.writer.settled()
        assert it.sent[-1] == "PATCH web-0/status" and it.answers == {0: Done()}

    play(story)


def test_a_binding_waits_for_the_patch_before_it() -> None:
    async def story(it: Scene) -> None:
        it.send(PATCH, first=10)
        await asyncio.sleep(0)
        it.bind(1)
        await it.writer.settled()
        assert it.sent == ["PATCH web-0/status", "POST web-0/binding"]

    play(story)


def test_a_second_binding_of_the_name_waits_for_the_first() -> None:
    """The pod was deleted, and another one has its name."""

    async def story(it: Scene) -> None:
        it.bind(1)
        it.send(BindPod(POD, "u2", "node-2"), first=1)
        await asyncio.sleep(0.01)
        assert it.sent == ["begun web-0/binding"]
        it.told("web-0", b"{}")
        await it.writer.settled()
        assert it.sent == ["begun web-0/binding", "POST web-0/binding"]
        assert it.answers == {0: Done(), 1: Done()}

    play(story)


def test_to_find_out_it_is_called_off_and_read() -> None:
    async def story(it: Scene) -> None:
        it.bind(1)
        it.send(FindOut(0, BindPod(POD, "u1", "node-1")), first=1)
        await it.writer.settled()
        assert it.called_off == ["web-0"] and it.sent == ["begun web-0/binding", "GET web-0"]
        assert it.answers == {0: Failed("context canceled"), 1: Done()}

    play(story)


def test_when_all_is_called_off_each_is_answered() -> None:
    async def story(it: Scene) -> None:
        it.bind(MANY)
        it.told("web-1", LOST)
        it.writer.cancel()
        await it.writer.settled()
        assert it.answers == dict.fromkeys(range(MANY), Failed("context canceled"))
        assert len(it.called_off) == BINDINGS_AT_ONCE - 1

    play(story)


def test_nothing_has_settled_while_one_is_under_way() -> None:
    async def story(it: Scene) -> None:
        it.bind(1)
        settled = asyncio.create_task(it.writer.settled())
        await asyncio.sleep(0.01)
        assert not settled.done()
        it.told("web-0", b"{}")
        await settled

    play(story)


def test_what_cannot_begin_at_once_has_a_task() -> None:
    async def story(it: Scene) -> None:
        it.begins = False
        it.bind(2)
        await it.writer.settled()
        assert it.sent == ["POST web-0/binding", "POST web-1/binding"]
        assert it.answers == {0: Done(), 1: Done()}

    play(story)


def test_a_name_that_is_too_long_is_answered() -> None:
    async def story(it: Scene) -> None:
        it.writer._pods._binds_in_protobuf = True
        it.send(BindPod(PodKey("shop/" + "x" * 20_000), "u1", "node-1"))
        await it.writer.settled()
        assert it.answers == {0: Failed("too long for a name")}

    play(story)
