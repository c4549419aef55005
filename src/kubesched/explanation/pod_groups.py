"""Why a pod group waits: who is missing, which member finds no node, which placement came nearest, and what would help.

The group is tried as its cycle would try it, in every placement, and taken back. What is counted are the pods that find
a node within one: the placement that takes most of them came nearest, and its first pod without a node tells what is
missing there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kubesched.explanation.answer import COMPLETE_SEARCH
from kubesched.explanation.cause import Cause
from kubesched.explanation.changes.for_groups import (
    GroupChange,
    changes_for_group,
    changes_for_members,
    changes_without_gates,
    changes_without_topology,
)
from kubesched.explanation.explain import NotExplainableError, build_cluster
from kubesched.explanation.findings.finding import INSUFFICIENT
from kubesched.explanation.group_trees import GroupTreeExplanation, composite_of, explain_tree
from kubesched.explanation.headline import WaitingGroup
from kubesched.explanation.html import block, html_table, paragraph
from kubesched.explanation.html import numbered as numbered_html
from kubesched.explanation.layout import WHAT_WOULD_HELP, Style, Tone, counted, numbered, table
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.groups import GroupCycle, GroupFeatures, TrySchedule
from kubesched.framework.handle import Registry
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import OK, Status
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.manifests import Manifests
from kubesched.k8s.model.scheduling import PodGroup, group_key_of
from kubesched.scheduler.build import build_schedulers
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.config import KubeSchedulerConfiguration
from kubesched.scheduler.config.defaults import with_gates
from kubesched.scheduler.config.feature_gates import (
    COMPOSITE_POD_GROUP,
    GANG_SCHEDULING,
    GENERIC_WORKLOAD,
    NEXT_VERSION,
    TOPOLOGY_AWARE,
    group_features,
)
from kubesched.scheduler.engine.cycle import ProfileScheduler
from kubesched.scheduler.engine.enqueue import checked_pre_enqueue
from kubesched.scheduler.engine.group_trial import GroupOutcome, GroupTrial
from kubesched.scheduler.engine.placements import choose_placement, generate
from kubesched.scheduler.engine.preemption.group_victims import GroupPreemption
from kubesched.scheduler.engine.score import ByName
from kubesched.scheduler.newer.groups import NewerTrial
from kubesched.scheduler.newer.version import configuration_as_emulated, group_cycles_as_emulated

PLACEMENTS_SHOWN = 12
VICTIMS_NAMED = 3
_DEFAULT_GATES = (GENERIC_WORKLOAD, GANG_SCHEDULING, TOPOLOGY_AWARE)


@dataclass(frozen=True, slots=True)
class PlacementFinding:
    """What becomes of the group within a set of nodes."""

    name: str
    """Empty: all nodes."""
    n_nodes: int
    n_fitting: int
    first_missing: str = ""
    """The first pod that finds no node there."""
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        return {
            "placement": self.name,
            "nodes": self.n_nodes,
            "fitting": self.n_fitting,
            "firstMissing": self.first_missing,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class GroupVictim:
    """A pod that would be evicted for the group."""

    key: str
    node_name: str
    priority: int

    def to_dict(self) -> dict[str, Any]:
        return {"pod": self.key, "node": self.node_name, "priority": self.priority}


@dataclass(frozen=True, slots=True)
class UnmadeMembers:
    """What keeps a workload from creating the pods that its gang lacks."""

    cause: Cause
    pod: Pod | None = None
    """One of them, as it would be created."""
    remedy: str = ""
    """What would let all of them be created, in the imperative; "" if that is not known."""


@dataclass(frozen=True, slots=True, repr=False)
class PodGroupExplanation:
    """What is with a pod group."""

    key: str
    pod_group: PodGroup
    n_pods: int
    n_scheduled: int
    n_tried: int
    """Pods that would be tried now."""
    gate: str = ""
    """What holds its pods back, if they are not even tried."""
    placements: tuple[PlacementFinding, ...] = ()
    """The nearest first."""
    chosen: str | None = None
    """The placement that it would go to; None if it fits in none."""
    problem: str = ""
    """Why there is no placement at all."""
    victims: tuple[GroupVictim, ...] = ()
    """Who would be evicted, so that it fits."""
    changes: tuple[GroupChange, ...] = ()
    """What would make it fit, the most acceptable first."""
    unmade: Cause | None = None
    """What keeps pods of it from being created."""

    @property
    def n_missing(self) -> int:
        """How many more pods must find a node for the gang to be complete."""
        return max(self.pod_group.min_count - self.n_scheduled, 1 if self.n_tried else 0)

    @property
    def headline(self) -> str:
        subject, needs = f"PodGroup {self.key}", self.pod_group.min_count
        if self.gate:
            return f"{subject} waits: {self._who_is_missing if needs > self.n_pods else self.gate}."
        if not self.n_tried:
            return f"{subject}: no pod is pending; {counted(self.n_scheduled, 'pod')} have a node."
        if self.problem:
            return f"{subject} waits: {self.problem}."
        nearest = self.placements[0]
        where = f" in {self._label(nearest)}" if nearest.name else ""
        if self.is_complete:
            return f"{subject} is complete; {self._of_those_that_come_later(nearest, where)}"
        if self.chosen is not None:
            left = self.n_tried - nearest.n_fitting
            rest = f", {left} {'does' if left == 1 else 'do'} not" if left > 0 else ""
            return f"{subject} fits: {nearest.n_fitting} of {counted(self.n_tried, 'pod')} find a node{where}{rest}."
        if self.victims:
            names = [f"{victim.key} on {victim.node_name}" for victim in self.victims[:VICTIMS_NAMED]]
            more = len(self.victims) - len(names)
            listed = ", ".join(names) + (f" and {more} more" if more else "")
            return f"{subject} fits once {counted(len(self.victims), 'pod')} of lower priority left: {listed}."
        find = "finds" if nearest.n_fitting == 1 else "find"
        short = f"{nearest.n_fitting} of the {counted(self.n_missing, 'pod')} that it needs {find} a node"
        came = f"the nearest placement is {self._label(nearest)}, where " if nearest.name else ""
        return f"{subject} waits: {came}{short}; {nearest.first_missing} does not: {nearest.reason}"

    @property
    def _who_is_missing(self) -> str:
        needs, n_missing = self.pod_group.min_count, self.pod_group.min_count - self.n_pods
        held = f"; {self.unmade.text}" if self.unmade is not None else ""
        if needs > 1 and not self.n_pods:
            return f"none of the {needs} pods that it needs exists{held}"
        do = "does" if n_missing == 1 else "do"
        return f"{n_missing} of the {counted(needs, 'pod')} that it needs {do} not exist{held}"

    @property
    def is_complete(self) -> bool:
        """Whether enough pods have a node, whatever becomes of the others."""
        return self.n_scheduled >= max(self.pod_group.min_count, 1)

    def _of_those_that_come_later(self, nearest: PlacementFinding, where: str) -> str:
        left = self.n_tried - nearest.n_fitting
        if left == 0:
            find = "finds" if self.n_tried == 1 else "find"
            return f"{counted(self.n_tried, 'more pod')} {find} a node{where}."
        find = "finds" if left == 1 else "find"
        reason = f"{nearest.first_missing}: {nearest.reason}"
        return f"{left} of {counted(self.n_tried, 'more pod')} {find} no node{where}: {reason}"

    @property
    def is_refusal(self) -> bool:
        return False

    @property
    def is_unschedulable(self) -> bool:
        if self.gate or self.problem:
            return True
        if self.n_tried > 0 and self.is_complete:
            return self.placements[0].n_fitting == 0
        return self.n_tried > 0 and self.chosen is None

    def _label(self, placement: PlacementFinding) -> str:
        return f"{self.pod_group.topology_key}={placement.name}"

    def _rows(self) -> list[tuple[str, str, str, str]]:
        return [
            (
                self._label(one) if one.name else "all nodes",
                str(one.n_nodes),
                f"{one.n_fitting} of {self.n_tried}",
                f"{one.first_missing}: {one.reason}" if one.reason else "",
            )
            for one in self.placements[:PLACEMENTS_SHOWN]
        ]

    def _helps(self) -> list[str]:
        key = self.pod_group.topology_key
        told = []
        for change in self.changes:
            where = f", then it fits in {key}={change.placement}" if change.placement else ""
            told.append(f"{change.description}{where}; {change.cost}")
        return told

    def render(self, style: Style | None = None) -> str:
        chosen = style or Style()
        tone = Tone.BAD if self.is_unschedulable else Tone.GOOD
        lines = [chosen.painted(tone, self.headline)]
        if self.placements:
            lines.extend(["", chosen.heading("Placements, the nearest first")])
            header = ["PLACEMENT", "NODES", "PODS THAT FIT", "WHAT THE NEXT ONE LACKS"]
            lines.extend(table(header, self._rows(), indent=2, n_left=4))
            if len(self.placements) > PLACEMENTS_SHOWN:
                lines.append(f"  and {len(self.placements) - PLACEMENTS_SHOWN} more that take no more of them")
        if self.victims:
            rows = [(victim.key, victim.node_name, str(victim.priority)) for victim in self.victims]
            lines.extend(["", chosen.heading("Who is evicted for it")])
            lines.extend(table(["POD", "NODE", "PRIORITY"], rows, indent=2, n_left=2))
        if self.changes:
            lines.extend(["", chosen.heading(WHAT_WOULD_HELP), *numbered(self._helps(), chosen)])
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.render()

    def __repr__(self) -> str:
        return f"<PodGroupExplanation: {self.headline}>"

    def _repr_html_(self) -> str:
        """As notebooks show it."""
        return block(
            paragraph(self.headline, "head bad" if self.is_unschedulable else "head good"),
            html_table(["placement", "nodes", "pods that fit", "what the next one lacks"], self._rows()),
            *([paragraph(WHAT_WOULD_HELP, "dim"), numbered_html(self._helps())] if self.changes else []),
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "podGroup": self.key,
            "headline": self.headline,
            "minCount": self.pod_group.min_count,
            "pods": self.n_pods,
            "scheduled": self.n_scheduled,
            "tried": self.n_tried,
            "fits": self.chosen is not None,
            "placement": self.chosen or "",
            "placements": [one.to_dict() for one in self.placements],
            "victims": [one.to_dict() for one in self.victims],
            "changes": [one.to_dict() for one in self.changes],
            "unmade": None if self.unmade is None else self.unmade.to_dict(),
        }


def explain_group(
    found: Manifests,
    key: str,
    config: KubeSchedulerConfiguration,
    source: str = "",
    registry: Registry | None = None,
    *,
    unmade: UnmadeMembers | None = None,
) -> PodGroupExplanation | GroupTreeExplanation:
    """The group on the cluster as it is. Without feature gates about groups, those are taken that make one. `unmade`
    is what keeps pods of it from being created, if that is known."""
    config = _with_gates_of_groups(config)
    return explain_group_in(build_cluster(found), key, config, source, registry, unmade=unmade)


class WaitingGroups:
    """The groups that keep their pods waiting, whatever becomes of one of them by itself; each is looked at once."""

    def __init__(
        self,
        rebuilt: Callable[[], Cluster],
        config: KubeSchedulerConfiguration,
        source: str = "",
        registry: Registry | None = None,
    ) -> None:
        """`rebuilt` gives a cluster of its own to try them on."""
        self._rebuilt = rebuilt
        self._config = config
        self._with_whom = (source, registry)
        self._cluster: Cluster | None = None
        self._known: dict[str, WaitingGroup | None] = {}

    def of(self, pod: Pod) -> WaitingGroup | None:
        """None where its group does not wait, it has none, or the configuration turns groups off."""
        key = group_key_of(pod)
        if not key or self._config.gates.get(GENERIC_WORKLOAD) is False:
            return None
        if key not in self._known:
            self._known[key] = self._found(key)
        return self._known[key]

    def _found(self, key: str) -> WaitingGroup | None:
        cluster = self._cluster = self._cluster or self._rebuilt()
        if key not in cluster.objects.pod_groups:
            return WaitingGroup(key, "does not exist", is_incomplete=True, exists=False)
        group = explain_group_in(cluster, key, _with_gates_of_groups(self._config), *self._with_whom, has_changes=False)
        if not group.is_unschedulable:
            return _left_out(group, key) if isinstance(group, GroupTreeExplanation) else None
        subject, headline = f"PodGroup {key} ", group.headline.rstrip(".")
        why = headline.removeprefix(subject) if headline.startswith(subject) else f"waits with its parent: {headline}"
        return WaitingGroup(key, why, is_incomplete=isinstance(group, PodGroupExplanation) and bool(group.gate))


def _left_out(tree: GroupTreeExplanation, key: str) -> WaitingGroup | None:
    """Of a group whose parent starts without it."""
    found = next((one for one in tree.groups if one.group.group_key == key), None)
    if found is None or found.fits or found.n_pods == found.n_scheduled:
        return None
    needed = found.group.min_count or 1
    if not found.is_ready:
        why = f"waits: {found.n_ready} of the {counted(needed, 'pod')} that it needs exist"
    else:
        why = f"finds no room beside the other groups of {tree.kind} {tree.key}: {found.reason or 'too few pods fit'}"
    return WaitingGroup(key, why.rstrip("."), is_incomplete=not found.is_ready)


def explain_composite(
    found: Manifests,
    key: str,
    config: KubeSchedulerConfiguration,
    source: str = "",
    registry: Registry | None = None,
) -> GroupTreeExplanation:
    """The same of a group of groups."""
    config, cluster = _with_gates_of_groups(config), build_cluster(found)
    schedulers = build_schedulers(
        cluster, config, ByName(), registry=registry, percentage=COMPLETE_SEARCH, source=source
    )
    group = composite_of(cluster, key)
    return explain_tree(cluster, group, _scheduler_of(cluster, group.group_key, schedulers))


def _with_gates_of_groups(config: KubeSchedulerConfiguration) -> KubeSchedulerConfiguration:
    if config.gates.get(GENERIC_WORKLOAD):
        return config
    more = (COMPOSITE_POD_GROUP,) if config.emulate == NEXT_VERSION else ()
    return with_gates(config, dict.fromkeys((*_DEFAULT_GATES, *more), True))


def _scheduler_of(cluster: Cluster, key: str, schedulers: Mapping[str, ProfileScheduler]) -> ProfileScheduler:
    """That of its first pod that waits."""
    members = cluster.group_members(key)
    waiting = [] if members is None else sorted(members.unscheduled_pods(), key=lambda info: info.key)
    name = waiting[0].spec.scheduler_name if waiting else ""
    return schedulers.get(name) or next(iter(schedulers.values()))


def explain_group_in(
    cluster: Cluster,
    key: str,
    config: KubeSchedulerConfiguration,
    source: str = "",
    registry: Registry | None = None,
    *,
    has_changes: bool = True,
    unmade: UnmadeMembers | None = None,
) -> PodGroupExplanation | GroupTreeExplanation:
    """On a cluster of its own: what is tried is taken back, and the schedulers that try it are new. Of one that has a
    parent, all are explained that wait with it. Without `has_changes`, nothing is tried out that would make it fit."""
    pod_group = cluster.objects.pod_groups.get(key)
    if pod_group is None:
        raise NotExplainableError(f"PodGroup {key} does not exist")
    schedulers = build_schedulers(
        cluster, config, ByName(), registry=registry, percentage=COMPLETE_SEARCH, source=source
    )
    if cluster.forest is not None and cluster.forest.parent_of(pod_group):
        return explain_tree(cluster, pod_group, _scheduler_of(cluster, key, schedulers))
    state = None if cluster.groups is None else cluster.groups.get(key)
    if state is None:
        needs = f"{counted(pod_group.min_count, 'pod')}" if pod_group.min_count else "one"
        base = PodGroupExplanation(key, pod_group, 0, 0, 0, gate=f"no pod names it, and it needs {needs}")
        if unmade is None:
            return base
        first = [] if unmade.pod is None else [cluster.signatures.info(unmade.pod)]
        named = first[0].spec.scheduler_name if first else ""
        scheduler = schedulers.get(named) or next(iter(schedulers.values()))
        about = (cluster, scheduler, pod_group, first)
        return replace(
            base, unmade=unmade.cause, changes=changes_for_members(*about, 0, unmade.remedy) if first else ()
        )
    waiting = sorted(state.unscheduled_pods(), key=lambda info: (-info.priority, info.key))
    waiting = [info for info in waiting if not info.pod.is_terminating]
    counts = state.n_pods, state.n_scheduled
    if not waiting:
        return PodGroupExplanation(key, pod_group, *counts, 0)
    scheduler = schedulers.get(waiting[0].spec.scheduler_name) or next(iter(schedulers.values()))
    gates = [checked_pre_enqueue(scheduler.profile, info) for info in waiting]
    tried = [info for info, gate in zip(waiting, gates, strict=True) if gate.is_success]
    if not tried:
        base = PodGroupExplanation(key, pod_group, *counts, 0, gate=gates[0].message)
        if not has_changes:
            return base
        about = (cluster, scheduler, pod_group, waiting)
        is_incomplete = pod_group.min_count > state.n_pods
        if not is_incomplete:
            return replace(base, changes=changes_without_gates(*about))
        cause, remedy = (None, None) if unmade is None else (unmade.cause, unmade.remedy)
        return replace(base, unmade=cause, changes=changes_for_members(*about, state.n_pods, remedy))
    as_emulated = configuration_as_emulated(config)
    features = group_features(as_emulated.gates, config.emulate)
    trial = group_cycles_as_emulated(config).trial_type(cluster, scheduler, 0.0)
    if isinstance(trial, NewerTrial) and len(tried) < len(waiting):
        name, gate = next((info.name, gate) for info, gate in zip(waiting, gates, strict=True) if not gate.is_success)
        held = f"its pod {name} is held back, and holds back the others: {gate.message.rstrip('.')}"
        return PodGroupExplanation(key, pod_group, *counts, 0, gate=held)
    base = PodGroupExplanation(key, pod_group, *counts, len(tried))
    return _tried(cluster, scheduler, base, tried, trial, features, has_changes=has_changes)


def _tried(
    cluster: Cluster,
    scheduler: ProfileScheduler,
    base: PodGroupExplanation,
    pods: list[PodInfo],
    trial: GroupTrial,
    features: GroupFeatures,
    *,
    has_changes: bool,
) -> PodGroupExplanation:
    group = GroupCycle(base.key, pods)
    generated = generate(cluster, scheduler.profile, group)
    about = (base.key, base.pod_group, base.n_pods, base.n_scheduled, base.n_tried)
    if not generated.status.is_success:
        problem = PodGroupExplanation(*about, problem=_why_nowhere(cluster, base.pod_group, generated.status))
        if not has_changes or not generated.status.is_rejected:
            return problem
        return replace(problem, changes=changes_without_topology(cluster, scheduler, base.pod_group, pods))
    findings, takes = [], None
    for placement in generated.placements:
        within = None if len(placement.rows) == len(cluster.nodes) else placement.rows
        outcome = trial.run(group, pods, within=within, post_filter=False)
        findings.append(_finding(placement.name, len(placement.rows), outcome))
        takes = placement.name if outcome.status.is_success else takes
    if takes is not None and len(findings) > 1:
        takes = choose_placement(cluster, scheduler, trial, group, post_filter=False, keeps=False).placement
    findings.sort(key=lambda one: (one.name != takes, -one.n_fitting, one.n_nodes, one.name))
    explained = PodGroupExplanation(*about, placements=tuple(findings), chosen=takes)
    if takes is not None:
        return explained
    if victims := _victims(cluster, scheduler, base.pod_group, group, trial, features):
        return replace(explained, victims=victims)
    if not has_changes:
        return explained
    nearest = findings[0]
    placement = next(one for one in generated.placements if one.name == nearest.name)
    resources = dict.fromkeys(resource for pod in pods for resource in pod.resources.wanted)
    lacked = [resource for resource in resources if f"{INSUFFICIENT}{resource}" in nearest.reason]
    n_missing = explained.n_missing - nearest.n_fitting
    others = sorted((one for one in generated.placements if one is not placement), key=lambda one: -len(one.rows))
    changes = changes_for_group(cluster, scheduler, base.pod_group, pods, placement, n_missing, lacked, others)
    return replace(explained, changes=changes)


def _why_nowhere(cluster: Cluster, pod_group: PodGroup, status: Status) -> str:
    """Why there is no placement: in the scheduler's words, and with the label that no node has."""
    key, nodes = pod_group.topology_key, cluster.table.nodes
    if not status.is_rejected or not key or any(key in node.labels for node in nodes):
        return status.message
    return f"{status.message}: {f'no node has the label {key}' if nodes else 'there are no nodes'}"


def _victims(
    cluster: Cluster,
    scheduler: ProfileScheduler,
    pod_group: PodGroup,
    group: GroupCycle,
    trial: GroupTrial,
    features: GroupFeatures,
) -> tuple[GroupVictim, ...]:
    """Who would be evicted so that the group fits: by it, or by its pods where it does not preempt as a whole."""
    plans: list[Sequence[PodInfo]] = []
    if features.preemption:
        plugins = scheduler.profile.pod_group_post_filter
        if plugins and (isinstance(trial, NewerTrial) or not pod_group.topology_key):
            cycle = CycleState()
            plugins[0].pod_group_post_filter(cycle, group, pod_group, _fits(cluster, scheduler, group, trial, features))
            found = cycle.find(GroupPreemption)
            plans = [] if found is None else [found.victims]
    elif not pod_group.topology_key:
        outcome = trial.run(group, group.pods)
        decided = [member.decision.preemption for member in outcome.members if outcome.waits_for_preemption]
        plans = [preemption.victims for preemption in decided if preemption is not None]
    victims = {info.key: info for plan in plans for info in plan}
    return tuple(GroupVictim(info.key, info.spec.node_name, info.priority) for info in victims.values())


def _fits(
    cluster: Cluster, scheduler: ProfileScheduler, group: GroupCycle, trial: GroupTrial, features: GroupFeatures
) -> TrySchedule:
    """Whether the group fits; in v1.37, once it did, whether it still fits where it was found to."""
    assignments: list[tuple[PodInfo, str]] = []

    def fits() -> Status:
        if assignments and isinstance(trial, NewerTrial):
            return OK if trial.still_fit(group, assignments) else Status.unschedulable()
        if features.topology:
            outcome = choose_placement(cluster, scheduler, trial, group, post_filter=False, keeps=False)
        else:
            outcome = trial.run(group, group.pods, post_filter=False)
        if outcome.status.is_success:
            assignments.extend((one.decision.pod, one.node_name) for one in outcome.members if one.node_name)
        return outcome.status

    return fits


def _finding(name: str, n_nodes: int, outcome: GroupOutcome) -> PlacementFinding:
    n_fitting = sum(member.status.is_success for member in outcome.members)
    failed = next((member for member in outcome.members if member.has_failed), None)
    if failed is None:
        return PlacementFinding(name, n_nodes, n_fitting)
    reason = failed.decision.message.partition(" no new claims")[0].partition(" preemption:")[0]
    return PlacementFinding(name, n_nodes, n_fitting, failed.decision.pod.name, reason)
