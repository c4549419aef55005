"""While a pod's patch waits for its turn, later ones join it instead of piling up behind it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, cast

from kubesched.framework.effects import BindPod, Done, Effect, PatchPodStatus
from kubesched.k8s.model.core import PodCondition
from kubesched.k8s.model.meta import PodKey
from kubesched.live.writes.claim_writes import ClaimWrites, VolumeWrites
from kubesched.live.writes.object_writes import ObjectWrites, PodWrites
from kubesched.live.writes.writer import EffectWriter, ExtenderCalls

POD = PodKey("shop/web")


class SlowPods:
    """Takes each write in, and ends it only when it is told to."""

    def __init__(self) -> None:
        self.written: list[object] = []
        self.go_on = asyncio.Event()

    async def patch_status(self, action: PatchPodStatus) -> None:
        self.written.append(action)
        await self.go_on.wait()

    async def bind(self, action: BindPod) -> Done:
        self.written.append(action)
        await self.go_on.wait()
        return Done()

    async def evict(self, action: object) -> Done:
        raise AssertionError


def written_after(actions: Sequence[object]) -> list[Any]:
    async def scene() -> list[object]:
        pods, nobody = SlowPods(), object()
        writer = EffectWriter(
            cast("PodWrites", pods),
            VolumeWrites(cast("Any", nobody)),
            ClaimWrites(cast("Any", nobody)),
            ObjectWrites(cast("Any", nobody)),
            ExtenderCalls(()),
            lambda record: None,
            lambda key: None,
        )
        for number, action in enumerate(actions):
            writer.send([Effect(number, action)], lambda effect_id, answer: None)
            await asyncio.sleep(0)
        pods.go_on.set()
        await writer.settled()
        return pods.written

    return asyncio.run(scene())


def patch(message: str, nominated: str | None = None) -> PatchPodStatus:
    return PatchPodStatus(POD, "u1", PodCondition("PodScheduled", "False", "Unschedulable", message), nominated)


def test_what_waits_is_written_once_with_the_last_word_on_each_field() -> None:
    written = written_after([patch("first"), patch("second", "node-1"), patch("third"), patch("fourth")])
    assert [action.condition.message for action in written] == ["first", "fourth"]
    assert written[1].nominated_node_name == "node-1"


def test_a_patch_after_a_binding_does_not_go_before_it() -> None:
    bind = BindPod(POD, "u1", "node-1")
    written = written_after([patch("first"), patch("second"), bind, patch("third")])
    assert [getattr(action, "condition", None) and action.condition.message for action in written] == [
        "first",
        "second",
        None,
        "third",
    ]


def test_patches_of_another_pod_of_the_same_name_stay_apart() -> None:
    other = PatchPodStatus(POD, "u2", PodCondition("PodScheduled", "False", "Unschedulable", "of the next"))
    written = written_after([patch("first"), patch("second"), other])
    assert [action.uid for action in written] == ["u1", "u1", "u2"]
