"""The sources of a running loop: what there is to tell can be read off it, save what others own; and explanations.

Why a pod that waits right now goes where it goes, or nowhere, is answered on a copy of what the scheduler knows:
finding the smallest changes tries them out, so it needs a cluster of its own. What is known is taken down in one go, as
references to objects that never change; all the rest happens in another thread, and the loop schedules on. Volumes and
devices that are being bound at this moment count as they were before.

Next: `sources`, for what each is; `kubesched.explanation`, which does the explaining.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from msgspec.structs import replace

from kubesched.explanation.explain import (
    COMPLETE_SEARCH,
    Explanation,
    NotExplainableError,
    explain_as_of_then,
    explain_pending,
)
from kubesched.explanation.pod_groups import WaitingGroups, explain_group_in
from kubesched.framework.handle import Registry
from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.meta import KubeObject, PodKey
from kubesched.live.serving.debug_pages import cache_report, queue_report
from kubesched.live.serving.sources import DecisionReport, HealthChecks, MetricChoice, Sources, everything
from kubesched.older.config import Emulation
from kubesched.older.config.running import manifest_of_then, running
from kubesched.scheduler.build import build_schedulers
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.config import KubeSchedulerConfiguration, to_manifest
from kubesched.scheduler.config.feature_gates import GENERIC_WORKLOAD
from kubesched.scheduler.engine.loop import Scheduler
from kubesched.scheduler.engine.metrics.loop_metrics import collect
from kubesched.scheduler.engine.score import ByName
from kubesched.scheduler.plugin_loading import Assembly
from kubesched.scheduler.plugins.registry import REGISTRY


@dataclass(frozen=True, slots=True)
class ClusterCapture:
    """What a cluster knew at one moment. Nothing in it ever changes."""

    nodes: tuple[Node, ...]
    """In the order in which a search goes through them."""
    placed: tuple[Pod, ...]
    """With their nodes; assumed ones among them."""
    pending: tuple[Pod, ...]
    promised: tuple[tuple[PodKey, str], ...]
    """Pods, and the nodes they are nominated to."""
    others: tuple[KubeObject, ...]

    def without_place_of(self, key: PodKey) -> ClusterCapture:
        """As if this pod had never got its node, and waited."""
        taken = [pod for pod in self.placed if pod.key == key]
        waiting = tuple(replace(pod, spec=replace(pod.spec, node_name="")) for pod in taken)
        placed = tuple(pod for pod in self.placed if pod.key != key)
        return ClusterCapture(self.nodes, placed, (*self.pending, *waiting), self.promised, self.others)

    def rebuilt(self) -> Cluster:
        """A cluster of its own that knows the same."""
        cluster = Cluster()
        for group in (self.nodes, self.placed, self.pending, self.others):
            for item in group:
                cluster.put(item)
        for key, node_name in self.promised:
            cluster.nominations.add(cluster.pending[key], node_name)
        return cluster


def capture(cluster: Cluster) -> ClusterCapture:
    """Looks, and changes nothing."""
    nodes, placed = cluster.table.nodes, cluster.placed
    pending = {key: info for key, info in cluster.pending.items() if key not in placed}
    nominated = ((key, cluster.nominations.node_of(info)) for key, info in pending.items())
    return ClusterCapture(
        nodes=tuple(nodes[row] for row in cluster.rows_in_order.tolist()),
        placed=tuple(info.pod for info in placed.values()),
        pending=tuple(info.pod for info in pending.values()),
        promised=tuple((key, node_name) for key, node_name in nominated if node_name),
        others=tuple(cluster.objects),
    )


def explain_captured(
    known: ClusterCapture,
    key: PodKey,
    config: KubeSchedulerConfiguration,
    registry: Registry | None = None,
    emulation: Emulation | None = None,
    *,
    placed_on: str = "",
    recorded: Mapping[str, Any] | None = None,
) -> Explanation:
    """For a pod that waits, or was taken off the node that it was `placed_on`, by a decision that was `recorded`."""
    cluster = known.rebuilt()
    info = cluster.pending[key]
    if emulation is not None:
        return explain_as_of_then(cluster, info, emulation, placed_on)
    schedulers = build_schedulers(cluster, config, ByName(), registry=registry, percentage=COMPLETE_SEARCH)
    scheduler = schedulers.get(info.spec.scheduler_name) or next(iter(schedulers.values()))
    explanation = explain_pending(cluster, scheduler, info, config, placed_on=placed_on, recorded=recorded)
    if not placed_on and config.gates.get(GENERIC_WORKLOAD):
        explanation.waiting_group = WaitingGroups(known.rebuilt, config, registry=registry).of(info.pod)
    return explanation


class LiveExplainer:
    """One explanation at a time. Implements `PodExplainer`."""

    def __init__(
        self,
        cluster: Cluster,
        assembled: Callable[[], Assembly],
        emulation: Emulation | None = None,
        *,
        decisions: DecisionReport | None = None,
    ) -> None:
        """`assembled` tells what the scheduler is built from at the moment. Pods that have a node are explained as if
        they were to be scheduled again now, beside what `decisions` kept of then."""
        self._emulation = emulation
        self._decisions = decisions
        self._cluster = cluster
        self._assembled = assembled
        self._turn = asyncio.Lock()

    async def __call__(self, namespace: str, name: str, *, as_text: bool) -> dict[str, Any] | str:
        key = PodKey(f"{namespace}/{name}")
        async with self._turn:
            placed = self._cluster.placed.get(key)
            if placed is None and key not in self._cluster.pending:
                raise NotExplainableError(f"pod {key} is not known to the scheduler")
            known, node, recorded = capture(self._cluster), "", None
            if placed is not None:
                known, node = known.without_place_of(key), placed.spec.node_name
                recorded = self._recorded(key, node)
            return await asyncio.to_thread(self._explained, known, key, self._assembled(), as_text, node, recorded)

    def _recorded(self, key: PodKey, node: str) -> Mapping[str, Any] | None:
        """What was kept of the decision that brought the pod to this node; None if nothing was."""
        kept = [] if self._decisions is None else self._decisions(key, 0)["decisions"]
        return next((decision for decision in kept if decision.get("node") == node), None)

    async def report(self, namespace: str, name: str) -> dict[str, Any]:
        """For machines. Raises `NotExplainableError`."""
        answer = await self(namespace, name, as_text=False)
        assert isinstance(answer, dict)
        return answer

    async def group_report(self, namespace: str, name: str) -> dict[str, Any]:
        """Why a pod group waits, for machines. Raises `NotExplainableError`."""
        key, now = f"{namespace}/{name}", self._assembled()
        if not now.config.gates.get(GENERIC_WORKLOAD):
            raise NotExplainableError(
                f"The scheduler runs without the feature gate {GENERIC_WORKLOAD}: it does not look at groups, and "
                "schedules their pods one by one."
            )
        async with self._turn:
            known = capture(self._cluster)
            found = await asyncio.to_thread(
                lambda: explain_group_in(known.rebuilt(), key, now.config, registry=now.registry)
            )
        return found.to_dict()

    async def what_if(self, pod: Pod) -> dict[str, Any]:
        """The report on a pod that is not there: as if it had just been created, and waited, in place of any pod of
        its name."""
        async with self._turn:
            known = capture(self._cluster)
            others = tuple(other for other in known.pending if other.key != pod.key)
            placed = tuple(other for other in known.placed if other.key != pod.key)
            asked = dataclasses.replace(known, placed=placed, pending=(*others, pod))
            answer = await asyncio.to_thread(self._explained, asked, PodKey(pod.key), self._assembled(), False)
        assert isinstance(answer, dict)
        return answer

    def _explained(
        self,
        known: ClusterCapture,
        key: PodKey,
        now: Assembly,
        as_text: bool,
        placed_on: str = "",
        recorded: Mapping[str, Any] | None = None,
    ) -> dict[str, Any] | str:
        explanation = explain_captured(
            known, key, now.config, now.registry, self._emulation, placed_on=placed_on, recorded=recorded
        )
        return str(explanation) if as_text else explanation.report()


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
        explain=LiveExplainer(loop.cluster, assembled, emulation, decisions=around.decisions),
        decisions=around.decisions,
    )
