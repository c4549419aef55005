"""The sources of a running loop: what there is to tell can be read off it, save what others own.

Next: `sources`, for what each is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

from kubesched.app.serving.health import HealthChecks
from kubesched.app.serving.live_explanation import LiveExplainer
from kubesched.app.serving.pages.cache_report import cache_report
from kubesched.app.serving.pages.queue_report import queue_report
from kubesched.app.serving.sources import MetricChoice, Sources, everything
from kubesched.config import KubeSchedulerConfiguration, to_manifest
from kubesched.config.older import Emulation
from kubesched.config.older.manifest_of_then import manifest_of_then
from kubesched.config.older.running import running
from kubesched.engine.loop import SchedulingLoop
from kubesched.engine.metrics.collect import collect
from kubesched.extension import Assembly
from kubesched.model.core import Pod
from kubesched.model.meta import KubeObject
from kubesched.plugins.registry import REGISTRY


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the loop does not know itself."""

    checks: HealthChecks = field(default_factory=HealthChecks)
    now_s: Callable[[], float]
    """The loop's time."""
    informed: Callable[[], Iterable[KubeObject]]
    """All objects that the informers hold."""
    flags: Mapping[str, str] = field(default_factory=dict)
    requests: Callable[[], Mapping[tuple[str, str, str], float]] = dict
    leads: Callable[[], Mapping[str, bool]] = dict
    set_aside: Callable[[], tuple[Mapping[str, int], Mapping[str, int]]] = lambda: ({}, {})
    failures: Callable[[], Mapping[str, int]] = dict
    is_leader: Callable[[], bool] = lambda: True
    shown: MetricChoice = everything
    assembled: Callable[[], Assembly] | None = None
    """What the scheduler is built from, if not from the configuration and the in-tree plugins alone."""
    emulation: Emulation | None = None
    """The older scheduler that decides, if one does."""


def live_sources(loop: SchedulingLoop, config: KubeSchedulerConfiguration, around: Surroundings) -> Sources:
    emulation = around.emulation
    assembled = around.assembled or (lambda: Assembly(config, REGISTRY))
    return Sources(
        checks=around.checks,
        metrics=lambda: collect(loop),
        shown=around.shown,
        requests=around.requests,
        leads=around.leads,
        set_aside=around.set_aside,
        failures=around.failures,
        is_leader=around.is_leader,
        pods=lambda: (item for item in around.informed() if isinstance(item, Pod)),
        configuration=lambda: to_manifest(assembled().config) if emulation is None else manifest_of_then(emulation),
        emulation=None if emulation is None else partial(running, emulation),
        flags=lambda: around.flags,
        queue=lambda: queue_report(loop.queue, around.now_s()),
        cache=lambda compares: cache_report(loop.cluster, around.informed() if compares else None),
        explain=LiveExplainer(loop.cluster, assembled, emulation),
    )
