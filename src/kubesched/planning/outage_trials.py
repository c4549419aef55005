"""Failures tried on a cluster at rest, for thousands of cases: no time passes, only the scheduler decides.

The failed nodes are NotReady and tainted; their pods are asked to go in the order of what they tolerate, and stay
Terminating; what controllers recreate is placed. When that happens follows from what pods tolerate. A case costs what
the failed nodes hold, not what the cluster holds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from kubesched.framework.handle import Registry
from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.model.meta import PodKey, controller_of
from kubesched.k8s.model.requests import pod_resources
from kubesched.k8s.workloads.pod_states import driving_taints, tolerated_for_s
from kubesched.planning.headroom import is_headroom
from kubesched.planning.outage_report import (
    OF_THE_NODE,
    CaseResult,
    FailureCase,
    OutageRules,
    WorkloadLoss,
    asked_together,
    why_missing,
    worst_first,
)
from kubesched.planning.resting_workloads import PodOwners
from kubesched.scheduler.config import KubeSchedulerConfiguration
from kubesched.simulator.expansion import expand
from kubesched.simulator.loading import SimulationInput
from kubesched.simulator.options import SimulationOptions
from kubesched.simulator.trial import LoadedWorld, WorldTrial
from kubesched.simulator.virtual.kubelets import CLEANED_UP_AFTER_S, NOTICED_AFTER_S

Workload = tuple[str, str]
"""Its namespace; its kind and name."""


@dataclass(slots=True)
class _Aftermath:
    """What came of a failure, in numbers."""

    hit_pods: set[PodKey] = field(default_factory=set)
    hit: Counter[Workload] = field(default_factory=Counter)
    gained: Counter[Workload] = field(default_factory=Counter)
    """Pods that found a node since, less those that were preempted."""
    preempted: Counter[Workload] = field(default_factory=Counter)
    placed_at_s: dict[Workload, list[float]] = field(default_factory=dict)
    messages: dict[Workload, list[str]] = field(default_factory=dict)


class OutageTrials:
    def __init__(self, world: LoadedWorld, n_scenarios: int = 0) -> None:
        self._world = world
        self._n_scenarios = n_scenarios
        self._owners = PodOwners(world.workloads)
        with world.trial() as trial:
            settled = trial.settle()
            for waiting in world.pending:
                trial.delete_pod(waiting)
            trial.commit()
        self._n_left_out = len(settled.pending)
        self._ran: dict[PodKey, Workload] = {}
        self._patterns: dict[Workload, PodInfo] = {}
        for info in world.cluster.placed.values():
            if not info.pod.is_terminating:
                workload = self._ran[info.key] = self._workload(info)
                self._patterns.setdefault(workload, info)
        self._had = Counter(self._ran.values())

    @classmethod
    def of(
        cls,
        given: SimulationInput,
        config: KubeSchedulerConfiguration,
        options: SimulationOptions,
        registry: Registry | None,
    ) -> OutageTrials:
        expanded = expand(given, options.seed)
        world = LoadedWorld(
            expanded.objects,
            config,
            registry=registry,
            tie_break=options.tie_break,
            seed=options.seed,
            workloads=expanded.workloads,
            keeps_classes=None,
        )
        return cls(world, len(given.steps))

    def assumptions(self) -> Iterable[str]:
        yield "Tried on the cluster at rest: nothing ends or begins by itself; --full plays every case in virtual time."
        if self._n_left_out:
            yield f"{self._n_left_out} pods that were pending before are left out."
        if self._n_scenarios:
            yield "The scenario in the files is not played."

    def result(self, case: FailureCase, rules: OutageRules) -> CaseResult:
        found = self._tried(case, rules)
        losses = self._losses(found, rules.priority_at_least)
        placed_if_gone = 0
        n_missing = sum(loss.missing for loss in losses)
        if n_missing and not rules.gone:
            otherwise = self._losses(self._tried(case, replace(rules, gone=True)), rules.priority_at_least)
            placed_if_gone = max(0, n_missing - sum(loss.missing for loss in otherwise))
        return CaseResult(case, tuple(losses), found.preempted.total(), placed_if_gone)

    # -- a case --------------------------------------------------------------------------------------------------------

    def _tried(self, case: FailureCase, rules: OutageRules) -> _Aftermath:
        found = _Aftermath()
        with self._world.trial() as trial:
            for info in (info for name in case.nodes for info in self._world.pods_on(name)):
                if info.key in self._ran:
                    found.hit_pods.add(info.key)
                    found.hit[self._ran[info.key]] += 1
            if rules.gone:
                for name in case.nodes:
                    trial.delete_node(name)
                self._replace_in_order(trial, CLEANED_UP_AFTER_S, found)
            else:
                self._lose(trial, case, rules.force_delete_after_s, found)
        return found

    def _lose(self, trial: WorldTrial, case: FailureCase, force_after_s: float | None, found: _Aftermath) -> None:
        for name in case.nodes:
            trial.lose_node(name)
        leaving: dict[float, list[PodInfo]] = {}
        for name in case.nodes:
            taints = driving_taints(self._world.node(name))
            for info in self._world.pods_on(name):
                tolerated_s = tolerated_for_s(info.spec.tolerations or (), taints)
                if tolerated_s is not None and not info.pod.is_terminating:
                    leaving.setdefault(tolerated_s, []).append(info)
        moments = [(NOTICED_AFTER_S + tolerated_s, False, pods) for tolerated_s, pods in leaving.items()]
        if force_after_s is not None:
            moments += [(at_s + force_after_s, True, pods) for at_s, _, pods in moments]
        for at_s, is_forced, pods in sorted(moments, key=lambda moment: moment[:2]):
            if is_forced:
                self._delete_by_force(trial, pods)
                self._replace_in_order(trial, at_s, found)
            else:
                trial.strand(*(info.key for info in _by_owner(pods)))
                found.messages.clear()
                self._settle(trial, at_s, found)

    def _delete_by_force(self, trial: WorldTrial, pods: Iterable[PodInfo]) -> None:
        """Those of a StatefulSet come back; of others, controllers have made new ones already."""
        for info in pods:
            owner = controller_of(info.pod.metadata)
            if owner is not None and owner.kind == "StatefulSet":
                trial.evict(info.key)
            else:
                trial.delete_pod(info.key)

    def _replace_in_order(self, trial: WorldTrial, at_s: float, found: _Aftermath) -> None:
        """A StatefulSet whose pods are ordered makes one when the one before runs, and no other as long as it waits."""
        ordered: dict[str, list[PodInfo]] = {}
        for info in self._world.cluster.pending.values():
            owner = self._owners.ordered_set_of(info.pod)
            if owner is not None:
                ordered.setdefault(owner, []).append(info)
        later = [sorted(pods, key=_ordinal)[1:] for pods in ordered.values()]
        for info in (info for pods in later for info in pods):
            trial.delete_pod(info.key)
        while True:
            found.messages.clear()
            self._settle(trial, at_s, found)
            blocked = {self._owners.ordered_set_of(info.pod) for info in self._world.cluster.pending.values()}
            next_ones = [
                pods.pop(0) for pods in later if pods and self._owners.ordered_set_of(pods[0].pod) not in blocked
            ]
            if not next_ones:
                return
            for info in next_ones:
                trial.add_admitted(info.pod)

    def _settle(self, trial: WorldTrial, at_s: float, found: _Aftermath) -> None:
        settled = trial.settle()
        for key in settled.placed:
            workload = self._workload(self._world.pod(key))
            found.gained[workload] += 1
            found.placed_at_s.setdefault(workload, []).append(at_s)
        for key in settled.preempted:
            if key in self._ran and key not in found.hit_pods:
                found.gained[self._ran[key]] -= 1
                found.preempted[self._ran[key]] += 1
        for waiting in settled.pending:
            workload = self._workload(self._world.pod(waiting.pod))
            found.messages.setdefault(workload, []).append(waiting.message)

    # -- what it means -------------------------------------------------------------------------------------------------

    def _losses(self, found: _Aftermath, priority_at_least: int | None) -> list[WorkloadLoss]:
        touched = {**found.hit, **found.gained, **found.preempted}
        losses = []
        for workload in touched:
            pattern = self._patterns.get(workload)
            if pattern is None or workload[1].startswith(OF_THE_NODE):
                continue
            least = pattern.priority if priority_at_least is None or is_headroom(pattern.key) else priority_at_least
            if pattern.priority >= least:
                losses.append(self._loss(workload, pattern, found))
        return worst_first(losses)

    def _loss(self, workload: Workload, pattern: PodInfo, found: _Aftermath) -> WorkloadLoss:
        had, hit = self._had[workload], found.hit[workload]
        left = had - hit + found.gained[workload]
        n_missing = max(0, had - left)
        placed_at_s = sorted(found.placed_at_s.get(workload, ()))
        return WorkloadLoss(
            *workload,
            pattern.priority,
            had=had,
            hit=hit,
            left=left,
            lowest=max(0, had - hit - found.preempted[workload]),
            replaced_s=placed_at_s[min(hit, len(placed_at_s)) - 1] if placed_at_s and hit else None,
            reason=why_missing(workload[1], found.messages.get(workload, ())) if n_missing else "",
            requests=asked_together(pod_resources(pattern.pod).requests, n_missing),
        )

    def _workload(self, info: PodInfo) -> Workload:
        return info.namespace, self._owners.workload_of(info.pod)


def _ordinal(info: PodInfo) -> int:
    number = info.name.rpartition("-")[2]
    return int(number) if number.isdecimal() else 0


def _by_owner(pods: list[PodInfo]) -> list[PodInfo]:
    """Controllers look one after another, and each makes all its pods at once."""
    groups: dict[str, list[PodInfo]] = {}
    for info in pods:
        owner = controller_of(info.pod.metadata)
        groups.setdefault(info.key if owner is None else owner.uid or owner.name, []).append(info)
    return [info for group in groups.values() for info in group]
