"""Evict whom, or raise the priority to what: the room that preemption makes, or would make for a more important pod.

What a higher priority would bring is found node by node, with preemption's own dry run: nodes in the order of the
priority at which their resources would suffice at the earliest, until no node can be better than the best one found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kubesched.explanation.changes.change import (
    Change,
    ChangeKind,
    DeletePods,
    PatchOperation,
    PatchPod,
    Proposal,
    Reluctance,
    patched,
    put,
)
from kubesched.explanation.changes.requests import find_shortfalls
from kubesched.explanation.changes.what_if import Situation
from kubesched.explanation.layout import listed
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.model.meta import controller_of
from kubesched.k8s.model.requests import PODS
from kubesched.scheduler.engine.plugin_call import PluginError
from kubesched.scheduler.engine.preemption import Candidate
from kubesched.scheduler.engine.preemption.candidates import least_harmful
from kubesched.scheduler.engine.preemption.victims import Budgets, select_victims, trial_on
from kubesched.scheduler.engine.prefilter import run_pre_filter
from kubesched.scheduler.engine.row_check import steps_within_node
from kubesched.scheduler.plugins.default_preemption import DefaultPreemption
from kubesched.scheduler.plugins.node_resources_fit import NodeResourcesFit

HIGHEST_PRIORITY = 1_000_000_000
"""What a user may give at most; higher ones are the system's."""
VICTIMS_TOLD = 3
TRIES = 120
"""Dry runs on single nodes."""

_NEVER = "Never"


def evict_pods(situation: Situation) -> list[Change]:
    """What preemption has found, for a pod that has the priority."""
    preemption = situation.decision.preemption
    if preemption is None or not preemption.node_name:
        return []
    keys = tuple(victim.key for victim in preemption.victims)
    proposal = Proposal(
        kind=ChangeKind.EVICT,
        description=f"evict {listed(keys, VICTIMS_TOLD)} from {preemption.node_name}",
        node=preemption.node_name,
        actions=(DeletePods(preemption.node_name, keys),),
        details={"victims": list(keys)},
        n_edits=len(keys),
        reluctance=Reluctance.NONE,
        cost_to_others="what kube-scheduler does now: they have a lower priority",
    )
    change = situation.what_if.first_that_helps([proposal])
    return [] if change is None else [change]


def raise_priority(situation: Situation) -> list[Change]:
    """The lowest priority at which preemption would find room, if it finds none now."""
    preemption = situation.decision.preemption
    can_preempt = DefaultPreemption.name in {plugin.name for plugin in situation.scheduler.profile.post_filter}
    has_preempted = (preemption is not None and preemption.node_name) or situation.pod.pod.status.nominated_node_name
    if not can_preempt or has_preempted:
        return []
    best = PrioritySearch(situation).run()
    return [] if best is None else [_change(situation, best)]


@dataclass(frozen=True, slots=True)
class Room:
    """A priority, and what preemption would do at it."""

    priority: int
    candidate: Candidate


class PrioritySearch:
    """Looks for the lowest priority, and at that for the node that preemption would choose."""

    def __init__(self, situation: Situation) -> None:
        self._situation = situation
        self._budgets = Budgets(situation.cluster.objects.pod_disruption_budgets.values())
        self._prepared: dict[int, tuple[PodInfo, CycleState] | None] = {}
        self._n_trials = 0

    def run(self) -> Room | None:
        best: Room | None = None
        bounds = sorted(self._bounds())
        for at_least, row in bounds:
            if best is not None and at_least >= best.priority:
                break
            best = self._lowest_on(row, at_least, best) or best
        if best is None:
            return None
        rows = [row for at_least, row in bounds if at_least <= best.priority][:TRIES]
        candidates = [found for row in rows if (found := self._dry_run(row, best.priority)) is not None]
        return Room(best.priority, least_harmful(candidates)[0]) if candidates else best

    def _bounds(self) -> list[tuple[int, int]]:
        """(lowest priority that may suffice, row) of every node where evictions can help at all."""
        filtered = self._situation.decision.filtered
        if filtered is None:
            return []
        rows = filtered.nodes.rows[~filtered.fits & ~filtered.unresolvable]
        missing = self._missing(rows.tolist())
        found = []
        for row in rows.tolist():
            bound = _priority_to_free(self._situation.cluster.table.pods.on(row), missing.get(row, {}))
            if bound is not None:
                found.append((bound, row))
        return found

    def _missing(self, rows: list[int]) -> dict[int, dict[str, int]]:
        if NodeResourcesFit.name not in self._situation.failures.rejecting():
            return {}
        shortfalls = find_shortfalls(self._situation, np.array(rows, dtype=np.intp))
        return {row: shortfalls.amounts(position) for position, row in enumerate(rows)}

    def _lowest_on(self, row: int, at_least: int, best: Room | None) -> Room | None:
        """The lowest priority below the best one at which preemption helps on this node."""
        lowest = self._situation.pod.priority + (self._situation.pod.spec.preemption_policy != _NEVER)
        levels = {max(other.priority + 1, lowest) for other in self._situation.cluster.table.pods.on(row)}
        for level in sorted(levels):
            if level < at_least or level > HIGHEST_PRIORITY or (best is not None and level >= best.priority):
                continue
            if self._n_trials >= TRIES:
                return None
            self._n_trials += 1
            found = self._dry_run(row, level)
            if found is not None:
                return Room(level, found)
        return None

    def _dry_run(self, row: int, priority: int) -> Candidate | None:
        if priority not in self._prepared:
            self._prepared[priority] = self._prepare(priority)
        prepared = self._prepared[priority]
        if prepared is None:
            return None
        pod, cycle = prepared
        cluster, profile = self._situation.cluster, self._situation.scheduler.profile
        try:
            trial = trial_on(cluster, profile, cycle, pod, row, steps_within_node(profile, cycle, pod))
            found = select_victims(cluster, trial, row, self._budgets)
        except PluginError:
            return None
        return found if isinstance(found, Candidate) and found.victims else None

    def _prepare(self, priority: int) -> tuple[PodInfo, CycleState] | None:
        """The pod with this priority, and its cycle after PreFilter."""
        situation = self._situation
        pod = situation.cluster.signatures.info(patched(situation.pod.pod, _operations(situation, priority)))
        cycle = CycleState()
        try:
            outcome = run_pre_filter(situation.scheduler.profile, cycle, pod, situation.cluster.nodes)
        except PluginError:
            return None
        return (pod, cycle) if outcome.status.is_success else None


def _priority_to_free(pods: Sequence[PodInfo], missing: dict[str, int]) -> int | None:
    """The priority at which all pods that may then go have at least what is missing; None if all pods have not."""
    left = dict(missing)
    for pod in sorted(pods, key=lambda pod: pod.priority):
        for resource in left:
            left[resource] -= 1 if resource == PODS else pod.resources.requests.get(resource, 0)
        if all(units <= 0 for units in left.values()):
            return pod.priority + 1
    return None


def _operations(situation: Situation, priority: int) -> tuple[PatchOperation, ...]:
    operations = []
    if priority != situation.pod.priority:
        operations.append(put("spec", "priority", value=priority))
    if situation.pod.spec.preemption_policy == _NEVER:
        operations.append(put("spec", "preemptionPolicy", value="PreemptLowerPriority"))
    return tuple(operations)


def _change(situation: Situation, room: Room) -> Change:
    victims = [victim.key for victim in room.candidate.victims]
    before = situation.pod.priority
    operations = _operations(situation, room.priority)
    steps = []
    if room.priority != before:
        steps.append(f"raise the priority from {before} to {room.priority}{_class_hint(situation, room.priority)}")
    if situation.pod.spec.preemption_policy == _NEVER:
        steps.append("let it preempt (preemptionPolicy: PreemptLowerPriority)")
    evicting = f"which evicts {listed(victims, VICTIMS_TOLD)} from {room.candidate.node_name}"
    proposal = Proposal(
        kind=ChangeKind.PRIORITY,
        description=f"{' and '.join(steps)}, {evicting}",
        node=room.candidate.node_name,
        actions=(PatchPod(situation.pod.key, operations),),
        details={"priority": {"from": before, "to": room.priority}, "victims": victims},
        n_edits=len(operations) + len(victims),
        reluctance=Reluctance.LAST,
        cost_to_others=_harm(room.candidate.victims),
    )
    return Change(proposal, room.candidate.node_name)


def _harm(victims: Sequence[PodInfo]) -> str:
    owners = [controller_of(victim.pod.metadata) for victim in victims]
    stateful = sorted({owner.name for owner in owners if owner is not None and owner.kind == "StatefulSet"})
    whose = f", {' and '.join(stateful)} (StatefulSet) among them" if stateful else ""
    return f"others lose {len(victims)} running pod{'s' if len(victims) > 1 else ''}{whose}"


def _class_hint(situation: Situation, priority: int) -> str:
    """The lowest priority class there is that suffices."""
    classes = situation.cluster.objects.priority_classes.values()
    enough = [
        found
        for found in classes
        if found.value >= priority and found.value <= HIGHEST_PRIORITY and found.preemption_policy != _NEVER
    ]
    if not enough:
        return ""
    lowest = min(enough, key=lambda found: (found.value, found.name))
    return f" (priorityClassName {lowest.name} has {lowest.value})"
