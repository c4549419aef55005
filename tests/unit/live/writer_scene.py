"""A writer whose requests a test carries, and the answers that come of its effects."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from kubesched.framework.effects import BindPod, Effect
from kubesched.k8s.model.meta import PodKey
from kubesched.live.writes.claim_writes import ClaimWrites, VolumeWrites
from kubesched.live.writes.object_writes import ObjectWrites, PodWrites
from kubesched.live.writes.writer import EffectWriter, ExtenderCalls, LeaderGate


class WriterScene:
    """Inherited by whoever has `request`, and `begin` if bindings `begins`."""

    def __init__(self, *, begins: bool = False) -> None:
        self.sent: list[str] = []
        self.answers: dict[int, object] = {}
        gate = LeaderGate(cast("Any", self))
        self.writer = EffectWriter(
            PodWrites(
                gate,
                lambda key: None,
                now=lambda: "now",
                sleep=lambda for_s: asyncio.sleep(0),
                begin=gate.begin if begins else None,
            ),
            VolumeWrites(gate),
            ClaimWrites(gate),
            ObjectWrites(gate),
            ExtenderCalls((), lambda: 10.0),
            lambda record: None,
            lambda key: None,
        )

    def bind(self, n: int) -> None:
        self.send(*(BindPod(PodKey(f"shop/web-{number}"), "u1", "node-1") for number in range(n)))

    def send(self, *actions: object, first: int = 0) -> None:
        effects = [Effect(first + number, action) for number, action in enumerate(actions)]
        self.writer.send(effects, self._answered)

    def _answered(self, number: int, answer: object) -> None:
        assert number not in self.answers, "answered twice"
        self.answers[number] = answer
