"""Of many bindings, as many are under way as connections can carry; the others stand in line, and none is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from writer_scene import WriterScene

from kubesched.framework.effects import BindPod, Done, Failed, FindOut, PatchPodStatus
from kubesched.k8s.model.core import PodCondition
from kubesched.k8s.model.meta import PodKey
from kubesched.live.writes.writer import BINDINGS_AT_ONCE

MANY = 3 * BINDINGS_AT_ONCE
LAST = PodKey(f"shop/web-{MANY - 1}")
PATCH = PatchPodStatus(LAST, "u1", PodCondition("PodScheduled", "False", "Unschedulable", "no room"))


class Scene(WriterScene):
    """A writer whose writes are answered when `go_on` is set; reads tell of pods without a node."""

    def __init__(self) -> None:
        super().__init__()
        self.go_on = asyncio.Event()
        self.n_under_way = 0
        self.most_under_way = 0

    async def request(self, method: str, path: str, *, left_s: Callable[[], float] | None, **_rest: object) -> bytes:
        if method == "GET":
            return b'{"metadata": {"name": "web", "namespace": "shop", "uid": "u1"}}'
        self.sent.append(path.removeprefix("/api/v1/namespaces/shop/pods/"))
        self.n_under_way += 1
        self.most_under_way = max(self.most_under_way, self.n_under_way)
        await self.go_on.wait()
        await asyncio.sleep(0)
        self.n_under_way -= 1
        return b"{}"


def test_they_go_out_in_their_order_as_others_end() -> None:
    async def scene() -> None:
        it = Scene()
        assert it.writer.is_quiet.is_set()
        it.bind(MANY)
        await asyncio.sleep(0.01)
        assert len(it.sent) == it.most_under_way == BINDINGS_AT_ONCE
        assert not it.writer.is_quiet.is_set()
        it.go_on.set()
        await it.writer.settled()
        assert it.sent == [f"web-{number}/binding" for number in range(MANY)]
        assert it.most_under_way == BINDINGS_AT_ONCE
        assert it.answers == dict.fromkeys(range(MANY), Done())
        assert it.writer.is_quiet.is_set()

    asyncio.run(scene())


def test_when_all_is_called_off_those_in_line_are_answered_too() -> None:
    async def scene() -> None:
        it = Scene()
        it.bind(MANY)
        await asyncio.sleep(0.01)
        it.writer.cancel()
        await it.writer.settled()
        assert it.answers == dict.fromkeys(range(MANY), Failed("context canceled"))
        assert len(it.sent) == BINDINGS_AT_ONCE
        assert it.writer.is_quiet.is_set()

    asyncio.run(scene())


def test_what_became_of_one_in_line_is_known_and_it_is_never_sent() -> None:
    async def scene() -> None:
        it = Scene()
        it.bind(MANY)
        await asyncio.sleep(0.01)
        it.send(FindOut(MANY - 1, BindPod(LAST, "u1", "node-1")), first=MANY)
        await asyncio.sleep(0.01)
        assert it.answers[MANY - 1] == Failed("context canceled")
        assert isinstance(it.answers[MANY], Failed)
        it.go_on.set()
        await it.writer.settled()
        assert len(it.sent) == MANY - 1 and f"{LAST.partition('/')[2]}/binding" not in it.sent

    asyncio.run(scene())


def test_a_patch_of_a_pod_in_line_comes_after_its_binding() -> None:
    async def scene() -> None:
        it = Scene()
        it.send(PATCH, first=2 * MANY)
        it.bind(MANY)
        it.send(PATCH, first=3 * MANY)
        it.go_on.set()
        await it.writer.settled()
        name = LAST.partition("/")[2]
        mine = [path for path in it.sent if path.startswith(name)]
        assert mine == [f"{name}/status", f"{name}/binding", f"{name}/status"]

    asyncio.run(scene())
