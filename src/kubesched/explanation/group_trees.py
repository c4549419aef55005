"""Why a group of groups waits (v1.37): which groups below lack pods, and which find no room.

All groups below the topmost one are tried as their cycle would try them, and taken back. A question about one of them
is answered for all: they wait together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kubesched.explanation.explain import NotExplainableError
from kubesched.explanation.html import block, html_table, paragraph
from kubesched.explanation.layout import Style, Tone, counted, table
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.groups import GroupCycle
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import OK, Status
from kubesched.k8s.model.scheduling import AnyGroup, CompositePodGroup, composite_key, is_composite, plain_key
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.cluster.group_forest import GroupForest
from kubesched.scheduler.engine.cycle import ProfileScheduler
from kubesched.scheduler.engine.enqueue import checked_pre_enqueue
from kubesched.scheduler.engine.group_cycle import GroupAttempt
from kubesched.scheduler.engine.group_trial import GroupOutcome
from kubesched.scheduler.engine.preemption.group_victims import GroupPreemption
from kubesched.scheduler.newer.composites import Outcomes, TreeTrial
from kubesched.scheduler.newer.groups import NewerTrial

VICTIMS_NAMED = 3


@dataclass(frozen=True, slots=True)
class GroupInTree:
    """One of the groups, and what would become of it now."""

    level: int
    group: AnyGroup
    n_pods: int
    n_scheduled: int
    n_ready: int
    """How many of those that it counts, pods or groups, are there: for a group of groups, those with enough pods."""
    fits: bool = False
    reason: str = ""
    """What the first of its pods that finds no node lacks."""

    @property
    def name(self) -> str:
        kind = "CompositePodGroup" if isinstance(self.group, CompositePodGroup) else "PodGroup"
        return f"{kind} {self.group.name}"

    @property
    def needs(self) -> str:
        one = "group" if isinstance(self.group, CompositePodGroup) else "pod"
        least = counted(self.group.min_count, one) if self.group.min_count else f"any {one}"
        return f"{least} in one {key}" if (key := self.group.topology_key) else least

    @property
    def is_ready(self) -> bool:
        return self.n_ready >= (self.group.min_count or 1)

    def to_dict(self) -> dict[str, Any]:
        return {
            "group": self.group.group_key,
            "level": self.level,
            "minCount": self.group.min_count,
            "pods": self.n_pods,
            "scheduled": self.n_scheduled,
            "fits": self.fits,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True, repr=False)
class GroupTreeExplanation:
    """What is with a group of groups."""

    key: str
    """`namespace/name` of the topmost one; of the one that was asked about, if there is no such thing."""
    kind: str = "CompositePodGroup"
    groups: tuple[GroupInTree, ...] = ()
    """The topmost one first, then each with those below it."""
    n_tried: int = 0
    """Pods that would be tried now."""
    problem: str = ""
    """Why none is."""
    status: str = ""
    """What the topmost one comes to, in v1.37's words; empty if it fits."""
    victims: tuple[tuple[str, str, int], ...] = ()
    """Who would be evicted, so that it fits: pod, node, priority."""

    @property
    def headline(self) -> str:
        subject = f"{self.kind} {self.key}"
        if self.problem:
            return f"{subject} waits: {self.problem}."
        n_scheduled = sum(one.n_scheduled for one in self.groups if not is_composite(one.group.group_key))
        if not self.n_tried:
            return f"{subject}: no pod is pending; {counted(n_scheduled, 'pod')} have a node."
        children = [one for one in self.groups if one.level == 1]
        n_fitting = sum(one.fits for one in children)
        if not self.status:
            rest = [one.name for one in children if not one.fits]
            left = f"; {', '.join(rest)} {'does' if len(rest) == 1 else 'do'} not" if rest else ""
            find = "finds" if n_fitting == 1 else "find"
            return f"{subject} fits: {n_fitting} of {counted(len(children), 'group')} {find} room{left}."
        if self.victims:
            named = [f"{pod} on {node}" for pod, node, _ in self.victims[:VICTIMS_NAMED]]
            more = len(self.victims) - len(named)
            listed = ", ".join(named) + (f" and {more} more" if more else "")
            return f"{subject} fits once {counted(len(self.victims), 'pod')} of lower priority left: {listed}."
        needed = self.groups[0].group.min_count or 1
        short = next((one for one in self.groups if one.reason), None)
        lacks = "" if short is None else f"; {short.name} does not: {short.reason}"
        find = "finds" if n_fitting == 1 else "find"
        return f"{subject} waits: {n_fitting} of the {counted(needed, 'group')} that it needs {find} room{lacks}"

    @property
    def is_refusal(self) -> bool:
        return False

    @property
    def is_unschedulable(self) -> bool:
        return bool(self.problem or self.status)

    def _rows(self) -> list[tuple[str, str, str, str, str]]:
        return [
            (
                f"{'  ' * one.level}{one.name}",
                one.needs,
                str(one.n_pods),
                str(one.n_scheduled),
                ("yes" if one.fits else one.reason or "no") if self.n_tried else "",
            )
            for one in self.groups
        ]

    def render(self, style: Style | None = None) -> str:
        chosen = style or Style()
        lines = [chosen.painted(Tone.BAD if self.is_unschedulable else Tone.GOOD, self.headline)]
        if self.groups:
            lines.extend(["", chosen.heading("Groups, each with those below it")])
            header = ["GROUP", "NEEDS", "PODS", "WITH A NODE", "FITS"]
            lines.extend(table(header, self._rows(), indent=2, n_left=2))
        if self.victims:
            rows = [(pod, node, str(priority)) for pod, node, priority in self.victims]
            lines.extend(["", chosen.heading("Who is evicted for it")])
            lines.extend(table(["POD", "NODE", "PRIORITY"], rows, indent=2, n_left=2))
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.render()

    def __repr__(self) -> str:
        return f"<GroupTreeExplanation: {self.headline}>"

    def _repr_html_(self) -> str:
        """As notebooks show it."""
        return block(
            paragraph(self.headline, "head bad" if self.is_unschedulable else "head good"),
            html_table(["group", "needs", "pods", "with a node", "fits"], self._rows()),
        )

    def to_dict(self) -> dict[str, Any]:
        """With the fields that a PodGroup's has, too, as far as they mean anything here."""
        top = self.groups[0] if self.groups else None
        return {
            "compositePodGroup": self.key,
            "headline": self.headline,
            "minCount": 0 if top is None else top.group.min_count,
            "pods": 0 if top is None else top.n_pods,
            "scheduled": 0 if top is None else top.n_scheduled,
            "tried": self.n_tried,
            "fits": self.n_tried > 0 and not self.is_unschedulable,
            "placement": "",
            "placements": [],
            "groups": [one.to_dict() for one in self.groups],
            "victims": [{"pod": pod, "node": node, "priority": priority} for pod, node, priority in self.victims],
            "changes": [],
        }


def explain_tree(cluster: Cluster, group: AnyGroup, scheduler: ProfileScheduler) -> GroupTreeExplanation:
    """Of the topmost group above this one. What is tried is taken back."""
    forest = cluster.forest
    assert forest is not None
    root = forest.get(forest.root_of(group.group_key))
    if root is None:
        kind = type(group).__name__
        return GroupTreeExplanation(plain_key(group.group_key), kind, problem=_no_root(forest, group))
    key = root.group_key
    members = cluster.group_members(key)
    pods = [] if members is None else [info for info in members.unscheduled_pods() if not info.pod.is_terminating]
    pods.sort(key=lambda info: (-info.priority, info.key))
    groups = tuple(_groups_below(cluster, forest, root, 0))
    found = GroupTreeExplanation(plain_key(key), groups=groups)
    gates = [(info, status) for info in pods if not (status := checked_pre_enqueue(scheduler.profile, info)).is_success]
    unready = [one for one in groups if not one.is_ready]
    if not groups[0].is_ready:
        return replace(found, problem=_lacks(groups[0], unready))
    if gates:
        info, status = gates[0]
        return replace(found, problem=f"its pod {info.name} holds back the others: {status.message.rstrip('.')}")
    return _tried(cluster, scheduler, found, root, pods) if pods else found


def _no_root(forest: GroupForest, group: AnyGroup) -> str:
    seen: set[str] = set()
    key = group.group_key
    while (known := forest.get(key)) is not None and key not in seen:
        seen.add(key)
        key = forest.parent_of(known)
    name = key.rpartition("/")[2]
    if known is not None:
        return f"the groups above it are each other's parents, CompositePodGroup {name} among them"
    return f"CompositePodGroup {name} above it does not exist"


def _groups_below(cluster: Cluster, forest: GroupForest, group: AnyGroup, level: int) -> Iterator[GroupInTree]:
    members = cluster.group_members(group.group_key)
    n_pods, n_scheduled = (0, 0) if members is None else (members.n_pods, members.n_scheduled)
    below = [list(_groups_below(cluster, forest, child, level + 1)) for child in forest.children(group.group_key)]
    n_ready = sum(rows[0].is_ready for rows in below) if isinstance(group, CompositePodGroup) else n_pods
    yield GroupInTree(level, group, n_pods, n_scheduled, n_ready)
    for rows in below:
        yield from rows


def _lacks(top: GroupInTree, unready: Sequence[GroupInTree]) -> str:
    needed = top.group.min_count or 1
    have = "has" if top.n_ready == 1 else "have"
    short = [one for one in unready if not isinstance(one.group, CompositePodGroup)]
    told = "".join(
        f"; {one.name} has {one.n_pods} of {counted(one.group.min_count or 1, 'pod')}" for one in short[:VICTIMS_NAMED]
    )
    return f"{top.n_ready} of the {counted(needed, 'group')} that it needs {have} enough pods{told}"


def _tried(
    cluster: Cluster, scheduler: ProfileScheduler, found: GroupTreeExplanation, root: AnyGroup, pods: list[PodInfo]
) -> GroupTreeExplanation:
    trial = NewerTrial(cluster, scheduler, 0.0)
    attempt = GroupAttempt(GroupCycle(root.group_key, pods), [], scheduler, 0.0, 0.0, trial)

    def outcomes_now() -> Outcomes:
        outcomes = TreeTrial(cluster, attempt, reasons=True).run(root.group_key)
        trial.take_back()
        return outcomes

    outcomes = outcomes_now()
    groups = tuple(_with_outcome(one, outcomes.get(one.group.group_key)) for one in found.groups)
    status = outcomes[root.group_key].status
    told = replace(found, groups=groups, n_tried=len(pods), status="" if status.is_success else status.message)
    if status.is_success:
        return told
    assignments: list[tuple[PodInfo, str]] = []

    def fits() -> Status:
        if assignments:
            return OK if trial.still_fit(attempt.group, assignments) else Status.unschedulable()
        without = outcomes_now()
        if without[root.group_key].status.is_success:
            members = [member for outcome in without.values() for member in outcome.members]
            assignments.extend((one.decision.pod, one.node_name) for one in members if one.node_name)
        return without[root.group_key].status

    cycle = CycleState()
    for plugin in scheduler.profile.pod_group_post_filter[:1]:
        plugin.pod_group_post_filter(cycle, attempt.group, root, fits)
    evicted = cycle.find(GroupPreemption)
    victims = () if evicted is None else evicted.victims
    return replace(told, victims=tuple((info.key, info.spec.node_name, info.priority) for info in victims))


def _with_outcome(one: GroupInTree, outcome: GroupOutcome | None) -> GroupInTree:
    if outcome is None:
        return one
    failed = next((member for member in outcome.members if member.has_failed), None)
    reason = ""
    if failed is not None and not outcome.status.is_success:
        reason = f"{failed.decision.pod.name}: {failed.decision.message.partition(' preemption:')[0]}"
    return replace(one, fits=outcome.status.is_success, reason=reason)


def composite_of(cluster: Cluster, key: str) -> CompositePodGroup:
    """Raises `NotExplainableError`."""
    namespace, _, name = key.partition("/")
    if cluster.forest is None:
        raise NotExplainableError(
            f"CompositePodGroup {key}: groups of groups are scheduled with --emulate 1.37 and the feature gate "
            "CompositePodGroup"
        )
    found = cluster.forest.get(composite_key(namespace, name))
    if not isinstance(found, CompositePodGroup):
        raise NotExplainableError(f"CompositePodGroup {key} does not exist")
    return found
