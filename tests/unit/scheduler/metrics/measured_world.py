"""A world whose loop has a clock that ticks by itself: a hundredth of a second at every look."""

from __future__ import annotations

from typing import Any

from kubesched.framework.handle import Registry
from kubesched.k8s.model import manifests
from kubesched.scheduler.build import build_loop
from kubesched.scheduler.config import load
from kubesched.scheduler.engine.metrics.loop_metrics import collect
from kubesched.scheduler.engine.metrics.series import Distribution, LabelValues
from kubesched.scheduler.engine.score import ByName
from kubesched.testing.make import Manifest
from kubesched.testing.world import World

TICK_S = 0.01


class TickingClock:
    def __init__(self, tick_s: float = TICK_S) -> None:
        self.tick_s = tick_s
        self.at_s = 1000.0

    def __call__(self) -> float:
        self.at_s += self.tick_s
        return self.at_s


class MeasuredWorld(World):
    def __init__(
        self,
        *items: Manifest,
        clock: TickingClock | None = None,
        registry: Registry | None = None,
        keeps_classes: bool = False,
        **config: Any,
    ) -> None:
        configuration = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            **config,
        }
        loop = build_loop(
            load(configuration, "test"), ByName(), registry=registry, clock=clock, keeps_classes=keeps_classes
        )
        super().__init__(loop)
        self.put(*items)

    def put(self, *items: Manifest) -> None:
        self.add(*manifests.from_dicts(items).objects)

    def values(self, name: str) -> dict[LabelValues, float]:
        return dict(self._family(name).values or {})

    def distributions(self, name: str) -> dict[LabelValues, Distribution]:
        return dict(self._family(name).distributions or {})

    def counts(self, name: str) -> dict[LabelValues, int]:
        """How many values a histogram has, by labels."""
        return {labels: found.count for labels, found in self.distributions(name).items()}

    def _family(self, name: str) -> Any:
        return next(family for family in collect(self.loop) if family.definition.name == name)
