"""Room on nodes: evict whom, free what on which node, tolerate which taints, uncordon which node.

Freed is the amount that is missing, or the pods in the way of a port, a claim or a place. The node where least is
missing comes first, with pods that could go elsewhere.

Preemption evicts pods, or would for a more important one. What a higher priority would bring is found node by node,
with preemption's own dry run: nodes in the order of the priority at which their resources would suffice at the
earliest, until no node can be better than the best one found.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kubesched.explanation.changes.requests import Shortfalls, find_shortfalls
from kubesched.explanation.changes.what_if import (
    Change,
    ChangeKind,
    DeletePods,
    FreeOnNode,
    PatchNode,
    PatchOperation,
    PatchPod,
    Proposal,
    Reluctance,
    Situation,
    append,
    patched,
    put,
    remove,
)
from kubesched.explanation.findings.finding import amount_of, comes_with_node
from kubesched.explanation.findings.pod_affinity import UnmetPodAffinity
from kubesched.explanation.findings.taints import TakenPorts, is_meant_for, is_passing, taint_text, untolerated
from kubesched.explanation.findings.volumes import VolumesInUse
from kubesched.explanation.layout import all_of, counted, exact, exact_and_readable, listed
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.model.core import Node, Taint
from kubesched.k8s.model.meta import PodKey, controller_of
from kubesched.k8s.model.requests import PODS
from kubesched.k8s.model.taints import UNSCHEDULABLE_TAINT
from kubesched.scheduler.engine.plugin_call import PluginError
from kubesched.scheduler.engine.preemption import Candidate
from kubesched.scheduler.engine.preemption.candidates import least_harmful
from kubesched.scheduler.engine.preemption.victims import Budgets, select_victims, trial_on
from kubesched.scheduler.engine.prefilter import run_pre_filter
from kubesched.scheduler.engine.row_check import steps_within_node
from kubesched.scheduler.plugins.default_preemption import DefaultPreemption
from kubesched.scheduler.plugins.inter_pod_affinity import InterPodAffinity
from kubesched.scheduler.plugins.node_ports import NodePorts
from kubesched.scheduler.plugins.node_resources_fit import NodeResourcesFit
from kubesched.scheduler.plugins.node_unschedulable import NodeUnschedulable
from kubesched.scheduler.plugins.taint_toleration import TaintToleration
from kubesched.scheduler.plugins.volume_restrictions import VolumeRestrictions

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


def free_resources(situation: Situation) -> list[Change]:
    if NodeResourcesFit.name not in situation.failures.rejecting():
        return []
    shortfalls = find_shortfalls(situation, situation.failures.only({NodeResourcesFit.name}))
    change = situation.what_if.first_that_helps(_proposals(situation, shortfalls))
    return [] if change is None else [_with_example(situation, change)]


def propose_freeing(situation: Situation, row: int) -> Proposal | None:
    """What would have to be freed on this node; None if it is too small even when empty."""
    shortfalls = find_shortfalls(situation, np.array([row]))
    return next(_proposals(situation, shortfalls), None)


def _proposals(situation: Situation, shortfalls: Shortfalls) -> Iterator[Proposal]:
    """Nodes that would be large enough if they were empty, least missing first."""
    large_enough = (shortfalls.allocatable >= shortfalls.requested[:, np.newaxis]).all(axis=0)
    cost = shortfalls.cost()
    positions = np.flatnonzero(large_enough)
    for position in positions[np.argsort(cost[positions], kind="stable")].tolist():
        row = int(shortfalls.rows[position])
        pods = situation.cluster.table.pods.on(row)
        if pods and all(map(comes_with_node, pods)):
            continue  # they would be back at once
        name = situation.name(row)
        amounts = shortfalls.amounts(position)
        steps = [_amount_text(resource, units) for resource, units in amounts.items()]
        yield Proposal(
            kind=ChangeKind.FREE,
            description=f"free {' and '.join(steps)} on {name}",
            node=name,
            actions=(FreeOnNode(name, amounts),),
            details={"free": {resource: exact(resource, units) for resource, units in amounts.items()}},
            n_edits=len(amounts),
            cost=float(cost[position]),
            reluctance=Reluctance.OTHERS,
            cost_to_others="other pods have to leave the node",
        )


def _amount_text(resource: str, units: int) -> str:
    if resource == PODS:
        return "the place of a pod" if units == 1 else f"the places of {units} pods"
    return f"{exact_and_readable(resource, units)} {resource}"


# -- pods that could go elsewhere --------------------------------------------------------------------------------------


def _with_example(situation: Situation, change: Change) -> Change:
    """Names pods whose leaving frees enough, if there are such and they were tried out."""
    (action,) = change.proposal.actions
    assert isinstance(action, FreeOnNode)
    pods = _enough_pods(situation, action.node, action.amounts)
    if not pods or change.node not in situation.what_if.fits_on([DeletePods(action.node, tuple(p.key for p in pods))]):
        return change
    keys = [pod.key for pod in pods]
    reluctance, cost = _price(situation, pods)
    proposal = replace(
        change.proposal,
        description=f"{change.description}, for example by moving {all_of(keys)} away",
        details={**change.proposal.details, "pods": keys},
        reluctance=reluctance,
        cost_to_others=cost,
    )
    return replace(change, proposal=proposal)


def _enough_pods(situation: Situation, node: str, amounts: Mapping[str, int]) -> list[PodInfo]:
    """Few pods that together have so much: the smallest one that has all of it, else large ones first."""
    row = situation.cluster.table.rows[node]
    movable = [pod for pod in situation.cluster.table.pods.on(row) if _is_movable(pod)]
    single = [pod for pod in movable if _covers([pod], amounts)]
    if single:
        return [min(single, key=lambda pod: (is_weighty(pod, situation.pod), _share(pod, amounts), pod.key))]
    chosen: list[PodInfo] = []
    for pod in sorted(movable, key=lambda pod: (is_weighty(pod, situation.pod), -_share(pod, amounts), pod.key)):
        chosen.append(pod)
        if _covers(chosen, amounts):
            return chosen
    return []


def _price(situation: Situation, pods: list[PodInfo]) -> tuple[Reluctance, str]:
    """What it means for those who have to go."""
    is_work_lost = any(_is_of_job(pod) for pod in pods)
    they = "it restarts" if len(pods) == 1 else "they restart"
    if is_work_lost:
        they = "it starts over" if len(pods) == 1 else "they start over"
    weighty = [pod.key for pod in pods if is_weighty(pod, situation.pod)]
    if weighty:
        return Reluctance.HARM, f"{they} elsewhere, if there is room; {weighty[0]} keeps state or is more important"
    return Reluctance.OTHERS, f"{they} elsewhere, if there is room"


def _is_of_job(pod: PodInfo) -> bool:
    """Whether what it has done so far is lost when it goes."""
    owner = controller_of(pod.pod.metadata)
    return owner is not None and owner.kind == "Job"


def is_weighty(pod: PodInfo, other: PodInfo) -> bool:
    """Whether a pod is not to be moved lightly: it keeps state, or is more important than the other."""
    owner = controller_of(pod.pod.metadata)
    is_stateful = (owner is not None and owner.kind == "StatefulSet") or any(
        volume.persistent_volume_claim is not None for volume in pod.spec.volumes or ()
    )
    return is_stateful or pod.priority > other.priority


def _is_movable(pod: PodInfo) -> bool:
    return not pod.pod.is_terminating and not comes_with_node(pod)


def _covers(pods: list[PodInfo], amounts: Mapping[str, int]) -> bool:
    return all(sum(amount_of(pod, resource) for pod in pods) >= units for resource, units in amounts.items())


def _share(pod: PodInfo, amounts: Mapping[str, int]) -> float:
    return sum(amount_of(pod, resource) / units for resource, units in amounts.items())


ROWS_CONSIDERED = 200
MOST_PODS = 3
"""More pods than that are not in the way, they live there."""


def move_pods_in_the_way(situation: Situation) -> list[Change]:
    found = []
    for plugin in (NodePorts.name, VolumeRestrictions.name, InterPodAffinity.name):
        if plugin in situation.failures.rejecting():
            rows = situation.failures.only({plugin})[:ROWS_CONSIDERED].tolist()
            proposals = sorted(_moves(situation, plugin, rows), key=lambda proposal: proposal.acceptance)
            change = situation.what_if.first_that_helps(proposals)
            found.extend([] if change is None else [change])
    return found


def _moves(situation: Situation, plugin: str, rows: Iterable[int]) -> Iterator[Proposal]:
    source = _source(situation, plugin)
    told: set[tuple[PodKey, ...]] = set()
    for row in rows:
        facts = [fact for fact in source.of(row) if "pod" in fact.fields]
        keys = dict.fromkeys(fact.fields["pod"] for fact in facts)
        pods = [pod for key in keys if (pod := situation.cluster.placed.get(key)) is not None]
        if pods and len(pods) == len(keys) <= MOST_PODS and tuple(keys) not in told:
            told.add(tuple(keys))
            yield _move(situation, row, pods, is_claim=any("claim" in fact.fields for fact in facts))


def _source(situation: Situation, plugin: str) -> TakenPorts | VolumesInUse | UnmetPodAffinity:
    if plugin == NodePorts.name:
        return TakenPorts(situation.cluster, situation.pod, situation.nominated_pods)
    if plugin == VolumeRestrictions.name:
        return VolumesInUse(situation.cluster, situation.pod)
    return UnmetPodAffinity(situation.cluster, situation.pod, situation.nominated_pods)


def _move(situation: Situation, row: int, pods: Sequence[PodInfo], *, is_claim: bool = False) -> Proposal:
    keys = [pod.key for pod in pods]
    by_node: dict[str, list[PodKey]] = {}
    for pod in pods:
        by_node.setdefault(pod.spec.node_name, []).append(pod.key)
    weighty = any(is_weighty(pod, situation.pod) for pod in pods)
    where = all_of(sorted(by_node))
    description = f"move {all_of(keys)} away from {where}"
    cost = f"{'it has' if len(keys) == 1 else 'they have'} to run elsewhere"
    if is_claim:  # which is in use wherever the other pod runs
        description, cost = f"delete {all_of(keys)} on {where}", "it loses the claim and whatever it uses it for"
    if all(pod.pod.is_terminating for pod in pods):
        description, cost = f"wait until {all_of(keys)} on {where} is gone", "it is being deleted anyway"
        weighty = False
    return Proposal(
        kind=ChangeKind.FREE,
        description=description,
        node=situation.name(row),
        actions=tuple(DeletePods(node, tuple(on_node)) for node, on_node in by_node.items()),
        details={"pods": keys},
        n_edits=len(keys),
        reluctance=Reluctance.HARM if weighty else Reluctance.OTHERS,
        cost_to_others=cost,
    )


def tolerate_taints(situation: Situation) -> list[Change]:
    """The smallest set of tolerations after which the pod fits somewhere."""
    proposals: dict[tuple[Taint, ...], Proposal] = {}
    for row in situation.failures.only({TaintToleration.name}).tolist():
        taints = _keeping_off(situation, row)
        if taints not in proposals:
            proposals[taints] = _toleration(situation, row, taints)
    change = situation.what_if.first_that_helps(sorted(proposals.values(), key=lambda proposal: proposal.size))
    return [] if change is None else [change]


def uncordon_node(situation: Situation) -> list[Change]:
    change = situation.what_if.first_that_helps(_cordoned(situation))
    return [] if change is None else [change]


def propose_tolerations(situation: Situation, row: int) -> Proposal | None:
    """Tolerations for all taints of the node, but for the one that goes with its being cordoned."""
    node = situation.cluster.table.nodes[row]
    taints = tuple(taint for taint in _keeping_off(situation, row) if not _stands_for_cordon(taint, node))
    return _toleration(situation, row, taints) if taints else None


def propose_uncordoning(situation: Situation, row: int) -> Proposal:
    node = situation.cluster.table.nodes[row]
    operations = [remove("spec", "unschedulable")]
    taints = node.spec.taints or ()
    operations.extend(
        remove("spec", "taints", index)
        for index in reversed(range(len(taints)))
        if _stands_for_cordon(taints[index], node)
    )
    return Proposal(
        ChangeKind.UNCORDON,
        f"uncordon {node.name}",
        node.name,
        (PatchNode(node.name, tuple(operations)),),
        reluctance=Reluctance.OTHERS,
        cost_to_others="ask whoever cordoned it: it may be about to be drained",
    )


def _cordoned(situation: Situation) -> Iterator[Proposal]:
    """Nodes that are rejected for being cordoned and nothing else."""
    for row in situation.failures.only({NodeUnschedulable.name, TaintToleration.name}).tolist():
        node = situation.cluster.table.nodes[row]
        if node.spec.unschedulable and propose_tolerations(situation, row) is None:
            yield propose_uncordoning(situation, row)


def _keeping_off(situation: Situation, row: int) -> tuple[Taint, ...]:
    return untolerated(situation.cluster.table.nodes[row].spec.taints or (), situation.pod.tolerations)


def _stands_for_cordon(taint: Taint, node: Node) -> bool:
    return node.spec.unschedulable and taint.key == UNSCHEDULABLE_TAINT.key


def _toleration(situation: Situation, row: int, taints: tuple[Taint, ...]) -> Proposal:
    tolerations = [_toleration_of(taint) for taint in taints]
    reluctance, cost = _price_of_opening(situation, row, taints)
    operations = append(tolerations, "spec", "tolerations", has_list=situation.pod.spec.tolerations is not None)
    return Proposal(
        kind=ChangeKind.TOLERATE,
        description=f"tolerate {' and '.join(taint_text(taint) for taint in taints)}",
        node=situation.name(row),
        actions=(PatchPod(situation.pod.key, tuple(operations)),),
        details={"tolerations": tolerations},
        n_edits=len(taints),
        cost=sum(is_passing(taint) for taint in taints),
        reluctance=reluctance,
        cost_to_others=cost,
    )


def _price_of_opening(situation: Situation, row: int, taints: tuple[Taint, ...]) -> tuple[Reluctance, str]:
    """A taint that keeps a resource for those who ask for it is meant to be tolerated by them; no other is."""
    if any(map(is_passing, taints)):
        return Reluctance.LAST, "the node is not well, or about to go"
    if all(is_meant_for(taint, situation.pod) for taint in taints):
        return Reluctance.NONE, "costs others nothing: the taint reserves what the pod asks for"
    n_pods = len(situation.cluster.table.pods.on(row))
    return Reluctance.LAST, f"takes room that is kept for others ({counted(n_pods, 'pod')} there)"


def _toleration_of(taint: Taint) -> dict[str, str]:
    if not taint.value:
        return {"key": taint.key, "operator": "Exists", "effect": taint.effect}
    return {"key": taint.key, "operator": "Equal", "value": taint.value, "effect": taint.effect}
