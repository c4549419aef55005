"""Closed replay: pods come as recorded, and ours are the decisions that take effect; and what it came to.

Nodes and all other objects come and go as recorded. A pod runs for as long as it ran then, from when it gets its node
here. Pods that had their nodes when the recording began stay on them. Volumes are where they were, so that pods which
use them go there; devices are assigned again. A pod that we preempt is gone; its replacement, if there was one, comes
as recorded.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import replace

from kubesched.explanation.layout import Style, Tone, counted, table
from kubesched.framework.effects import BindPod, EvictPod, RecordEvent
from kubesched.framework.handle import Registry
from kubesched.k8s.model.core import Pod, PodStatus
from kubesched.k8s.model.manifests import KINDS, collector_paused
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.requests import AmountError
from kubesched.k8s.model.resource import ResourceClaim, ResourceClaimStatus
from kubesched.k8s.model.times import print_instant
from kubesched.k8s.workloads.pod_states import POD_PENDING
from kubesched.older.config import Emulation
from kubesched.older.engine.build import variant_of
from kubesched.scheduler.build import build_loop
from kubesched.scheduler.config import KubeSchedulerConfiguration
from kubesched.scheduler.engine.loop import Scheduler
from kubesched.scheduler.engine.score import Seeded
from kubesched.simulator.api_model import EffectInterpreter, TypedStore
from kubesched.simulator.recording.reader import ObjectGone, ObjectSeen, Recorded, RecordingReader
from kubesched.simulator.report_text import readable_span
from kubesched.simulator.run import without_extenders

_LOOKED_AT = frozenset(KINDS.values())


def closed_replay(
    path: Path,
    config: KubeSchedulerConfiguration,
    *,
    registry: Registry | None = None,
    emulation: Emulation | None = None,
    seed: int = 0,
) -> ClosedReplay:
    """Reads the recording twice: first for how long each pod ran."""
    with collector_paused():
        recorded = recorded_lives(RecordingReader(path))
        loop = build_loop(without_extenders(config), Seeded(seed), registry=registry, variant=variant_of(emulation))
        world = ReplayWorld(loop, recorded.lives)
        end_s = recorded.last_s
        for event in RecordingReader(path):
            world.take(event)
        world.pass_time(end_s)
        return ClosedReplay(recorded.first_s, end_s, recorded.lives, world.lives, world.n_preempted)


@dataclass(slots=True)
class RecordedLives:
    lives: dict[str, PodLife] = field(default_factory=dict)
    """By uid."""
    first_s: float = inf
    last_s: float = 0.0


def recorded_lives(events: Iterable[Recorded]) -> RecordedLives:
    """When each pod came, got its node, and ended."""
    found = RecordedLives()
    for event in events:
        found.first_s, found.last_s = min(found.first_s, event.at_s), max(found.last_s, event.at_s)
        match event:
            case ObjectSeen(at_s=at_s, item=Pod() as pod, is_initial=is_initial):
                life = found.lives.get(pod.metadata.uid)
                if life is None:
                    life = found.lives[pod.metadata.uid] = PodLife.of(pod, at_s, was_there=is_initial)
                if pod.spec.node_name and life.bound_s is None:
                    life.bound_s, life.node = at_s, pod.spec.node_name
                if pod.is_terminal and life.ended_s is None:
                    life.ended_s = at_s
            case ObjectGone(at_s=at_s, item=Pod() as pod):
                life = found.lives.get(pod.metadata.uid)
                if life is not None and life.ended_s is None:
                    life.ended_s = at_s
            case _:
                pass
    return found


class ReplayWorld:
    """An API server that does at once what it is asked, and the scheduling loop; time is that of the recording."""

    def __init__(self, loop: Scheduler, recorded: dict[str, PodLife]) -> None:
        self._loop = loop
        self._recorded = recorded
        self.lives: dict[str, PodLife] = {}
        self.n_preempted = 0
        self.now_s = 0.0
        self._ends: list[tuple[float, str]] = []
        """When pods end, and their uids."""
        self.store = TypedStore()
        self.store.listen(self._tell_loop)
        self._interpreter = EffectInterpreter(
            self.store,
            now=lambda: print_instant(self.now_s),
            delete=self._evicted,
            also={RecordEvent: lambda action: None},
        )
        self._interpreter.follow_up(BindPod, self._bound)

    # -- the recording -------------------------------------------------------------------------------------------------

    def take(self, event: Recorded) -> None:
        self.pass_time(event.at_s)
        match event:
            case ObjectSeen(item=Pod() as pod):
                self._put_pod(pod, event.is_initial)
            case ObjectGone(item=Pod() as pod):
                self._pod_gone(pod)
            case ObjectSeen(item=ResourceClaim() as claim):
                known = self.store.find(ResourceClaim, claim.key)
                status = ResourceClaimStatus() if known is None else known.status
                self._keep(claim if event.is_initial else replace(claim, status=status))
            case ObjectSeen(item=item) if type(item) in _LOOKED_AT:
                self._keep(item)
            case ObjectGone(item=item) if type(item) in _LOOKED_AT:
                self.store.remove(item)
            case _:
                return
        self._settle()

    def _keep(self, item: KubeObject) -> None:
        try:
            self.store.keep(item)
        except AmountError:
            return  # one object that cannot be used does not stop the others

    def _put_pod(self, pod: Pod, is_initial: bool) -> None:
        """As recorded, but for what is decided here: its node, and what its status says of that."""
        uid = pod.metadata.uid
        if pod.is_terminal:
            self._pod_gone(pod)
            return
        known = self.store.find(Pod, pod.key)
        if known is not None and known.metadata.uid == uid:
            status = replace(known.status, resource_claim_statuses=pod.status.resource_claim_statuses)
            self._keep(replace(_running_on(pod, known.spec.node_name), status=status))
            return
        if uid in self.lives:
            return  # it has ended here
        life = self.lives[uid] = PodLife.of(pod, self.now_s, was_there=is_initial)
        if is_initial and pod.spec.node_name:
            life.bound_s, life.node = self.now_s, pod.spec.node_name
            self._keep(pod)
            return
        status = PodStatus(phase=POD_PENDING, resource_claim_statuses=pod.status.resource_claim_statuses)
        self._keep(replace(_running_on(pod, ""), status=status))

    def _pod_gone(self, pod: Pod) -> None:
        """Then and there. One that had a node ends here when it has run for as long."""
        recorded = self._recorded.get(pod.metadata.uid)
        if recorded is None or recorded.bound_s is None or recorded.was_there:
            self._end(pod.metadata.uid, pod.key)

    # -- time ----------------------------------------------------------------------------------------------------------

    def pass_time(self, until_s: float) -> None:
        while (next_s := self._next_s()) <= until_s:
            self.now_s = max(self.now_s, next_s)
            self._loop.tick(self.now_s)
            while self._ends and self._ends[0][0] <= self.now_s:
                _, uid = heappop(self._ends)
                self._end(uid, self.lives[uid].key)
            self._settle()
        self.now_s = max(self.now_s, until_s)

    def _next_s(self) -> float:
        deadline_s = self._loop.next_deadline_s()
        return min(self._ends[0][0] if self._ends else inf, inf if deadline_s is None else deadline_s)

    def _settle(self) -> None:
        loop = self._loop
        while True:
            effects = loop.take_effects()
            for effect in effects:
                answer = self._interpreter.carry_out(effect.action)
                if answer is not None:
                    loop.answer(effect.id, answer, self.now_s)
            if not effects and not loop.schedule_one(self.now_s):
                return

    # -- what becomes of pods ------------------------------------------------------------------------------------------

    def _bound(self, action: BindPod) -> None:
        life = self.lives[action.uid]
        life.bound_s, life.node = self.now_s, action.node_name
        recorded = self._recorded.get(action.uid)
        if recorded is not None and recorded.bound_s is not None and recorded.ended_s is not None:
            heappush(self._ends, (self.now_s + recorded.ended_s - recorded.bound_s, action.uid))

    def _evicted(self, pod: Pod, action: EvictPod) -> None:
        self.n_preempted += 1
        self._end(pod.metadata.uid, pod.key)

    def _end(self, uid: str, key: str) -> None:
        life = self.lives.get(uid)
        if life is not None and life.ended_s is None:
            life.ended_s = self.now_s
        pod = self.store.find(Pod, key)
        if pod is None or pod.metadata.uid != uid:
            return
        self.store.remove(pod)
        if pod.spec.resource_claims:
            self._release_claims(uid)

    def _release_claims(self, uid: str) -> None:
        for claim in list(self.store.of(ResourceClaim).values()):
            users = claim.status.reserved_for or ()
            others = tuple(user for user in users if user.uid != uid)
            if len(others) < len(users):
                status = replace(claim.status, reserved_for=others) if others else ResourceClaimStatus()
                self.store.write(claim, status=status)

    def _tell_loop(self, before: KubeObject | None, after: KubeObject | None) -> None:
        if after is not None:
            self._loop.put(after, self.now_s)
        elif before is not None:
            self._loop.remove(before, self.now_s)


def _running_on(pod: Pod, node: str) -> Pod:
    """Whether it is being deleted is not the recording's to say, once its node is ours to choose."""
    return replace(pod, metadata=replace(pod.metadata, deletion_timestamp=None), spec=replace(pod.spec, node_name=node))


_DIGITS = 3


@dataclass(slots=True)
class PodLife:
    """When a pod came, got its node, and ended; seconds since the epoch."""

    key: str
    arrived_s: float
    was_there: bool = False
    """When the recording began."""
    bound_s: float | None = None
    node: str = ""
    ended_s: float | None = None

    @classmethod
    def of(cls, pod: Pod, at_s: float, *, was_there: bool) -> PodLife:
        return cls(pod.key, at_s, was_there=was_there and bool(pod.spec.node_name))


@dataclass(frozen=True, slots=True)
class ReplayOutcome:
    """One side of the comparison, of the pods that had to be scheduled."""

    n_pods: int
    n_bound: int
    n_pending: int
    """At the end."""
    pending_s: float
    """Waited by all pods together."""
    wait_p50_s: float
    wait_p99_s: float
    """From arriving to having a node, of those that got one."""
    n_nodes: int
    """That got any of them."""

    @classmethod
    def of(cls, lives: Iterable[PodLife], end_s: float) -> ReplayOutcome:
        scheduled = [life for life in lives if not life.was_there]
        waits = [life.bound_s - life.arrived_s for life in scheduled if life.bound_s is not None]
        ends = [life.bound_s or life.ended_s or end_s for life in scheduled]
        p50, p99 = (float(one) for one in np.percentile(waits, [50, 99])) if waits else (0.0, 0.0)
        return cls(
            n_pods=len(scheduled),
            n_bound=len(waits),
            n_pending=sum(life.bound_s is None and life.ended_s is None for life in scheduled),
            pending_s=round(sum(e - life.arrived_s for e, life in zip(ends, scheduled, strict=True)), _DIGITS),
            wait_p50_s=round(p50, _DIGITS),
            wait_p99_s=round(p99, _DIGITS),
            n_nodes=len({life.node for life in scheduled if life.node}),
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "pods": self.n_pods,
            "bound": self.n_bound,
            "pendingAtEnd": self.n_pending,
            "pendingPodSeconds": self.pending_s,
            "waitP50S": self.wait_p50_s,
            "waitP99S": self.wait_p99_s,
            "nodesUsed": self.n_nodes,
        }


@dataclass(frozen=True, slots=True, repr=False)
class ClosedReplay:
    first_s: float
    last_s: float
    recorded_lives: dict[str, PodLife]
    """By uid."""
    replayed_lives: dict[str, PodLife]
    n_preempted: int

    @property
    def recorded(self) -> ReplayOutcome:
        return ReplayOutcome.of(self.recorded_lives.values(), self.last_s)

    @property
    def replayed(self) -> ReplayOutcome:
        return ReplayOutcome.of(self.replayed_lives.values(), self.last_s)

    @property
    def n_same_node(self) -> int:
        """Pods that went where they were recorded."""
        pairs = ((life, self.recorded_lives.get(uid)) for uid, life in self.replayed_lives.items())
        return sum(
            bool(ours.node) and not ours.was_there and then is not None and then.node == ours.node
            for ours, then in pairs
        )

    @property
    def headline(self) -> str:
        then, now = self.recorded, self.replayed
        got = f"{now.n_bound} of {counted(now.n_pods, 'pod')} got a node"
        if not then.n_bound:
            return f"{got}, half of them within {readable_span(now.wait_p50_s)}."
        told = f"{got}, {then.n_bound} did then"
        waits = f"half of them within {readable_span(now.wait_p50_s)} ({readable_span(then.wait_p50_s)} then)"
        return f"{told}; {waits}."

    def __repr__(self) -> str:
        return f"<ClosedReplay: {self.headline}>"

    def __str__(self) -> str:
        return render_closed(self, Style())

    def to_dict(self) -> dict[str, Any]:
        return {
            "recorded": self.recorded.to_dict(),
            "replayed": self.replayed.to_dict(),
            "preempted": self.n_preempted,
            "sameNode": self.n_same_node,
            "seconds": round(self.last_s - self.first_s, _DIGITS),
        }


def render_closed(found: ClosedReplay, style: Style) -> str:
    then, now = found.recorded, found.replayed
    is_worse = now.n_bound < then.n_bound
    rows = [
        ["pods to schedule", str(then.n_pods), str(now.n_pods)],
        ["got a node", str(then.n_bound), str(now.n_bound)],
        ["pending at the end", str(then.n_pending), str(now.n_pending)],
        ["waited, all together", readable_span(then.pending_s), readable_span(now.pending_s)],
        ["half got a node within", readable_span(then.wait_p50_s), readable_span(now.wait_p50_s)],
        ["99 % within", readable_span(then.wait_p99_s), readable_span(now.wait_p99_s)],
        ["nodes that got any", str(then.n_nodes), str(now.n_nodes)],
    ]
    if not then.n_bound:  # the recording does not say where pods went
        rows = [[name, now_] for name, _, now_ in rows]
        lines = table(["", "REPLAYED"], rows, indent=2)
        return "\n".join([style.first_line(found.headline, Tone.GOOD), "", *lines])
    notes = [f"  {found.n_same_node} of {now.n_bound} went to the node that was recorded."]
    if found.n_preempted:
        notes.append(f"  {counted(found.n_preempted, 'pod')} preempted here.")
    return "\n".join(
        [
            style.first_line(found.headline, Tone.BAD if is_worse else Tone.GOOD),
            "",
            *table(["", "RECORDED", "REPLAYED"], rows, indent=2),
            "",
            *notes,
        ]
    )
