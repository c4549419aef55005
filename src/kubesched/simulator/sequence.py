"""Pods one after another, in a given order, each seeing the earlier ones on their nodes.

A pod that fits nowhere, even by preemption, is left out from then on. Where preemption helps, the victims go at
once and the pod takes the node. A placed pod counts as started one second after the one before it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from kubesched.explanation.explain import COMPLETE_SEARCH, NotExplainableError, build_cluster, pod_key
from kubesched.explanation.layout import counted, table
from kubesched.framework.handle import Registry
from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.loaded_cluster import Objects, read_objects
from kubesched.k8s.model.manifests import KINDS
from kubesched.k8s.model.meta import PodKey
from kubesched.k8s.model.times import parse_instant, print_instant
from kubesched.older.config import Emulation
from kubesched.older.engine.build import variant_of
from kubesched.scheduler.build import build_schedulers
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.config import KubeSchedulerConfiguration
from kubesched.scheduler.engine.cycle import Decision, ProfileScheduler
from kubesched.scheduler.engine.enqueue import checked_pre_enqueue
from kubesched.scheduler.engine.postfilter import for_event
from kubesched.scheduler.engine.preemption import Preemption
from kubesched.scheduler.engine.reserve import run_reserve
from kubesched.scheduler.engine.score import ByName, Seeded, TieBreak

_FIRST_START_S = parse_instant("2026-01-02T00:00:00Z")
_TIES_LISTED = 20


@dataclass(frozen=True, slots=True, repr=False)
class Step:
    """What became of one pod."""

    pod: PodKey
    feasible: int = 0
    top: int | None = None
    ties: tuple[str, ...] = ()
    node: str = ""
    message: str = ""
    preemption: Preemption | None = None

    def __repr__(self) -> str:
        return f"<Step: {self.pod} -> {self.node or f'nowhere: {self.message}'}>"

    def to_dict(self) -> dict[str, Any]:
        record: dict[str, Any] = {"pod": self.pod, "feasible": self.feasible}
        if self.top is not None:
            record["top"] = self.top
        if self.ties:
            if len(self.ties) <= _TIES_LISTED:
                record["ties"] = list(self.ties)
            record["numTies"] = len(self.ties)
        if self.node:
            record["node"] = self.node
        if self.message:
            record["message"] = self.message
        if self.preemption is not None:
            victims = sorted(victim.key for victim in self.preemption.victims)
            record["preempt"] = {"node": self.preemption.node_name, "victims": victims}
        return record


@dataclass(slots=True, repr=False)
class PlacedSequence:
    """Every step of a run, in order."""

    steps: list[Step] = field(default_factory=list)

    @property
    def headline(self) -> str:
        """How many pods got a node."""
        n_placed = sum(bool(step.node) for step in self.steps)
        return f"{n_placed} of {counted(len(self.steps), 'pod')} placed"

    def __repr__(self) -> str:
        return f"<PlacedSequence: {self.headline}>"

    def __str__(self) -> str:
        rows = [[step.pod, step.node or "-", str(step.feasible), step.message] for step in self.steps]
        return "\n".join(
            [f"{self.headline}.", *table(["POD", "NODE", "FEASIBLE", "MESSAGE"], rows, indent=2, n_left=4)]
        )

    def _repr_html_(self) -> str:
        """As notebooks show it."""
        from kubesched.simulator.report_text import sequence_html

        return sequence_html(self)

    def to_dict(self) -> dict[str, Any]:
        return {"steps": [step.to_dict() for step in self.steps]}


def simulate(
    objects: Objects,
    sequence: Sequence[str],
    config: KubeSchedulerConfiguration,
    tie_break: str = "random",
    seed: int = 0,
    emulation: Emulation | None = None,
    registry: Registry | None = None,
) -> PlacedSequence:
    """Schedules the pods `namespace/name` of the sequence, which are among the objects, in this order.

    `tie_break` is "name" (the lowest name wins) or "random" (by the seed). All nodes are looked at, unless the
    configuration sets percentageOfNodesToScore. With an `emulation`, an older scheduler decides.
    """
    cluster = build_cluster(read_objects(objects, KINDS))
    chooser: TieBreak = ByName() if tie_break == "name" else Seeded(seed)
    schedulers = build_schedulers(
        cluster, config, chooser, registry=registry, percentage=COMPLETE_SEARCH, variant=variant_of(emulation)
    )
    run = SequenceRun(cluster, schedulers)
    for name in sequence:
        run.place_next(pod_key(name))
    return run.simulation


class SequenceRun:
    """A cluster that fills up step by step."""

    def __init__(self, cluster: Cluster, schedulers: Mapping[str, ProfileScheduler]) -> None:
        self.simulation = PlacedSequence()
        self._cluster = cluster
        self._schedulers = schedulers

    def place_next(self, key: PodKey) -> None:
        info = self._cluster.pending.get(key)
        if info is None:
            raise NotExplainableError(f"pod {key} is not among the pending pods")
        scheduler = self._schedulers.get(info.spec.scheduler_name) or next(iter(self._schedulers.values()))
        self.simulation.steps.append(self._step(scheduler, info))

    def _step(self, scheduler: ProfileScheduler, info: PodInfo) -> Step:
        gate = checked_pre_enqueue(scheduler.profile, info)
        if not gate.is_success:
            return Step(info.key, message=gate.message)
        decision = scheduler.decide(info, complete=True)
        if decision.node_name:
            self._bind(scheduler, decision)
            return _placed(decision)
        message = for_event(decision.message)
        preemption = decision.preemption
        if preemption is None:
            return Step(info.key, message=message)
        return self._evict_and_retry(scheduler, info, preemption, message)

    def _evict_and_retry(
        self, scheduler: ProfileScheduler, info: PodInfo, preemption: Preemption, message: str
    ) -> Step:
        for victim in preemption.victims:
            self._cluster.remove(victim.pod)
        status = replace(info.pod.status, nominated_node_name=preemption.node_name)
        self._cluster.put(replace(info.pod, status=status))
        retried = scheduler.decide(self._cluster.pending[info.key], complete=True)
        if retried.node_name:
            self._bind(scheduler, retried)
        return Step(
            info.key,
            feasible=retried.n_feasible,
            top=_total_on(retried, retried.node_name),
            node=retried.node_name,
            message=message,
            preemption=preemption,
        )

    def _bind(self, scheduler: ProfileScheduler, decision: Decision) -> None:
        pod = decision.pod.pod
        run_reserve(scheduler.profile, decision.cycle, decision.pod, decision.node_name)
        started = print_instant(_FIRST_START_S + len(self.simulation.steps))
        self._cluster.put(
            replace(
                pod,
                spec=replace(pod.spec, node_name=decision.node_name),
                status=replace(pod.status, start_time=started, nominated_node_name=""),
            )
        )


def _placed(decision: Decision) -> Step:
    scored = decision.scored
    top = None if scored is None else int(scored.total.max())
    return Step(
        decision.pod.key,
        feasible=decision.n_feasible,
        top=_total_on(decision, decision.node_name) if decision.nominated else top,
        ties=() if decision.nominated else decision.best,
        node=decision.node_name,
    )


def _total_on(decision: Decision, node_name: str) -> int | None:
    scored = decision.scored
    if scored is None or node_name not in scored.nodes.names:
        return None
    return int(scored.total[list(scored.nodes.names).index(node_name)])
