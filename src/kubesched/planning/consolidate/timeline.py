"""The steps of a consolidation in virtual time: how long each takes, who waits for a node meanwhile, where it stops.

The nodes that are to go are cordoned first. Then, round by round, new machines are launched and boot, the round's nodes
are drained as disruption budgets allow, and each is deleted when it is empty; the next round begins when all pods run
again. The scheduler of the simulation places the pods anew, so that they may go elsewhere than the steps say.

Next: `kubesched.simulator.run`, which lets time pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from kubesched.framework.handle import Registry
from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.meta import KubeObject, PodKey
from kubesched.k8s.model.storage import CSINode
from kubesched.k8s.workloads.pod_states import POD_PENDING, belongs_to_its_node
from kubesched.planning.consolidate.removal import LaunchedNode
from kubesched.planning.consolidate.state import ConsolidationStep
from kubesched.planning.headroom import headroom_sets, is_headroom
from kubesched.planning.new_nodes import manifest_of, node_from_offer
from kubesched.planning.spare_one import spared_by
from kubesched.planning.waits import is_of_its_node, waited_s, waiting_over_time
from kubesched.scheduler.config import KubeSchedulerConfiguration
from kubesched.simulator.ledger import PodRecord
from kubesched.simulator.loading import SimulationInput
from kubesched.simulator.options import SimulationOptions
from kubesched.simulator.run import run_simulation
from kubesched.simulator.scenario import SCENARIO_VERSION
from kubesched.simulator.virtual.cluster import VirtualCluster

BEGINS_AT_S = 60.0
"""Time for pods that were pending to be placed and start."""
PLAYED_FOR_S = 14 * 24 * 3600.0
"""How long the steps are played where workloads would never end by themselves."""
_DIGITS = 3


@dataclass(frozen=True, slots=True)
class PlayedStep:
    """Seconds count from the beginning of the first round."""

    delete: tuple[str, ...]
    began_s: float | None = None
    """When its round began; None if that never happened."""
    drained_s: float | None = None
    """From when on its nodes were drained: once new machines had booted."""
    ended_s: float | None = None
    """When the last of its nodes was deleted."""


@dataclass(frozen=True, slots=True)
class StepTimeline:
    steps: tuple[PlayedStep, ...]
    boot_s: float
    duration_s: float | None
    """Until all pods run again after the last step; None if that never happens."""
    evictions: int
    most_pending: int
    """Pods without a node at a time."""
    waits: tuple[tuple[PodKey, float], ...]
    """Pods that waited for a node, the longest first."""
    pending: tuple[PodKey, ...]
    """Pods that have no node in the end."""
    blocked: tuple[tuple[str, tuple[PodKey, ...]], ...]
    """Nodes that are drained forever, with the pods that stay."""
    cordoned: tuple[str, ...] = ()
    launched: tuple[tuple[float, tuple[KubeObject, ...]], ...] = ()
    """When new machines were ready."""

    @property
    def finishes(self) -> bool:
        return self.duration_s is not None

    @property
    def longest_wait_s(self) -> float:
        return self.waits[0][1] if self.waits else 0.0

    def to_dict(self) -> dict[str, Any]:
        return {
            "finishes": self.finishes,
            "durationSeconds": self.duration_s,
            "bootSeconds": self.boot_s,
            "evictions": self.evictions,
            "mostPending": self.most_pending,
            "longestWaitSeconds": self.longest_wait_s,
            "waits": [{"pod": key, "seconds": wait_s} for key, wait_s in self.waits],
            "pending": list(self.pending),
            "blocked": [{"node": name, "pods": list(pods)} for name, pods in self.blocked],
        }

    def scenario(self) -> dict[str, Any]:
        """The steps at their times, as a Scenario that `kubesched simulate` plays."""
        events: list[tuple[float, dict[str, Any]]] = []
        if self.cordoned:
            events.append((0.0, {"cordon": list(self.cordoned)}))
        for at_s, objects in self.launched:
            events.append((at_s, {"apply": [manifest_of(item) for item in objects]}))
        for step in self.steps:
            if step.drained_s is not None:
                events.append((step.drained_s, {"drain": list(step.delete)}))
            if step.ended_s is not None:
                events.append((step.ended_s, {"delete": [{"kind": "Node", "name": name} for name in step.delete]}))
        told = [{"at": f"{BEGINS_AT_S + at_s:g}s", **event} for at_s, event in sorted(events, key=lambda one: one[0])]
        about = {"apiVersion": SCENARIO_VERSION, "kind": "Scenario", "metadata": {"name": "consolidation"}}
        return {**about, "events": told}


def played(
    given: SimulationInput,
    steps: Sequence[ConsolidationStep],
    rounds: Sequence[int],
    config: KubeSchedulerConfiguration,
    options: SimulationOptions,
    *,
    registry: Registry | None = None,
    boot_s: float = 60.0,
    keep: Sequence[str] = (),
) -> StepTimeline:
    """The cluster of `given` from its beginning, with the room to `keep`, and with these steps."""
    plays: list[_Play] = []

    def look(_cluster: VirtualCluster) -> None:
        _cluster.is_stopped = plays[0].is_over

    until_s = None if given.ends_by_itself else BEGINS_AT_S + PLAYED_FOR_S
    room = headroom_sets(spared_by(tuple(keep))[1], given.objects)
    cluster = run_simulation(
        SimulationInput((*given.objects, *room), ()),
        config,
        replace(options, until_s=options.until_s or until_s),
        registry=registry,
        before=lambda cluster: plays.append(_Play(cluster, steps, rounds, boot_s)),
        progress=look,
    )
    return plays[0].told(cluster)


@dataclass
class _Play:
    cluster: VirtualCluster
    steps: Sequence[ConsolidationStep]
    rounds: Sequence[int]
    boot_s: float
    is_over: bool = False
    _number: int = 0
    """Of the round that is under way."""
    _began_s: dict[int, float] = field(default_factory=dict)
    _drained_s: dict[int, float] = field(default_factory=dict)
    _gone_s: dict[str, float] = field(default_factory=dict)
    _left: set[str] = field(default_factory=set)
    """Nodes of the round that are still there."""
    _unsettled: set[PodKey] = field(default_factory=set)
    """Pods that came since the beginning, and do not run yet."""
    _launched: list[tuple[float, tuple[KubeObject, ...]]] = field(default_factory=list)
    _ended_s: float | None = None
    _is_planned: bool = False

    def __post_init__(self) -> None:
        self.cluster.clock.at(self.cluster.clock.start_s + BEGINS_AT_S, self._begin)

    def _begin(self) -> None:
        self.cluster.store.listen(self._on_pod, Pod)
        for name in self._cordoned:
            self.cluster.drains.cordon(name)
        self._next_round()

    @property
    def _cordoned(self) -> tuple[str, ...]:
        return tuple(name for step in self.steps for name in step.cordon)

    @property
    def _now_s(self) -> float:
        return round(self.cluster.clock.elapsed_s - BEGINS_AT_S, _DIGITS)

    def _next_round(self) -> None:
        self._number += 1
        mine = self._of_round(self._number)
        if not mine:
            self._ended_s, self.is_over = self._now_s, True
            return
        self._began_s[self._number] = self._now_s
        launched = [one for step in mine for one in step.launch]
        self._left = {name for step in mine for name in step.delete}
        self.cluster.clock.after(self.boot_s if launched else 0.0, lambda: self._drain(launched))

    def _of_round(self, number: int) -> list[ConsolidationStep]:
        return [step for step, turn in zip(self.steps, self.rounds, strict=True) if turn == number]

    def _drain(self, launched: Iterable[LaunchedNode]) -> None:
        for one in launched:
            objects = _objects_of(one)
            self._launched.append((self._now_s, objects))
            for item in objects:
                self.cluster.admission.apply(item)
        self._drained_s[self._number] = self._now_s
        for name in sorted(self._left):
            self.cluster.drains.start(name)
        self._look_soon()

    def _on_pod(self, before: KubeObject | None, after: KubeObject | None) -> None:
        pod = before if after is None else after
        assert isinstance(pod, Pod)
        if isinstance(after, Pod) and not after.is_terminal and not after.is_terminating:
            waits = not after.spec.node_name or after.status.phase == POD_PENDING
            is_new = before is None or pod.pod_key in self._unsettled
            if waits and is_new and not belongs_to_its_node(after):
                self._unsettled.add(pod.pod_key)
                return
        self._unsettled.discard(pod.pod_key)
        self._look_soon()

    def _look_soon(self) -> None:
        if not self._is_planned and not self.is_over:
            self._is_planned = True
            self.cluster.clock.after(0.0, self._look)

    def _look(self) -> None:
        self._is_planned = False
        if self._number not in self._drained_s:
            return
        for name in sorted(self._left):
            if all(map(belongs_to_its_node, self.cluster.store.pods_on(name))):
                self._left.discard(name)
                self._gone_s[name] = self._now_s
                for item in (self.cluster.store.find(CSINode, name), self.cluster.store.find(Node, name)):
                    if item is not None:
                        self.cluster.deletions.delete(item)
        if not self._left and not self._unsettled:
            self._next_round()

    # -- what came of it -----------------------------------------------------------------------------------------------

    def told(self, cluster: VirtualCluster) -> StepTimeline:
        end_s = cluster.clock.elapsed_s
        records = [one for one in cluster.ledger.pods.values() if not (is_headroom(one.key) or is_of_its_node(one))]
        later = [one for one in records if one.created_s >= BEGINS_AT_S]
        waits = [(one.key, round(waited_s(one, end_s), _DIGITS)) for one in later]
        pending = () if self.is_over else tuple(sorted(one.key for one in later if _has_no_node(one)))
        blocked = () if self.is_over else tuple(sorted(cluster.drains.blocked().items()))
        return StepTimeline(
            tuple(map(self._played, self.steps, self.rounds)),
            self.boot_s,
            self._ended_s,
            sum(one.cause.startswith("drained from ") for one in records),
            max((n for _, n in waiting_over_time(later, end_s)), default=0),
            tuple(sorted((one for one in waits if one[1] > 0), key=lambda one: (-one[1], one[0]))),
            pending,
            tuple((name, tuple(sorted(pod.pod_key for pod in pods))) for name, pods in blocked),
            self._cordoned,
            tuple(self._launched),
        )

    def _played(self, step: ConsolidationStep, turn: int) -> PlayedStep:
        ends = [self._gone_s.get(name) for name in step.delete]
        ended_s = None if None in ends else max(at_s for at_s in ends if at_s is not None)
        return PlayedStep(step.delete, self._began_s.get(turn), self._drained_s.get(turn), ended_s)


def _objects_of(launched: LaunchedNode) -> tuple[KubeObject, ...]:
    """Under the name that it has in the steps."""
    made = (node_from_offer(launched.option, number) for number in count(1))
    return tuple(next(objects for objects in made if objects[0].metadata.name == launched.name))


def _has_no_node(record: PodRecord) -> bool:
    return record.scheduled_s is None and not record.is_gone
