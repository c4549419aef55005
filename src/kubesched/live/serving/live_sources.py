"""The sources of a running loop: what there is to tell can be read off it, save what others own.

Next: `sources`, for what each is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import KubeObject
from kubesched.live.serving.health import HealthChecks
from kubesched.live.serving.live_explanation import LiveExplainer
from kubesched.live.serving.pages.debug_pages import cache_report, queue_report
from kubesched.live.serving.sources import DecisionReport, MetricChoice, Sources, everything
from kubesched.older.config import Emulation
from kubesched.older.config.manifest_of_then import manifest_of_then
from kubesched.older.config.running import running
from kubesched.scheduler.config import KubeSchedulerConfiguration, to_manifest
from kubesched.scheduler.engine.loop import Scheduler
from kubesched.scheduler.engine.metrics.loop_metrics import collect
from kubesched.scheduler.plugin_loading import Assembly
from kubesched.scheduler.plugins.registry import REGISTRY


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
    decisions: DecisionReport | None = None
    emulation: Emulation | None = None
    """The older scheduler that decides, if one does."""


def live_sources(loop: Scheduler, config: KubeSchedulerConfiguration, around: Surroundings) -> Sources:
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
        decisions=around.decisions,
    )
