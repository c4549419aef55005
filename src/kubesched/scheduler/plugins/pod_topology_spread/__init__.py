"""PodTopologySpread: spreads matching pods over zones, hosts or any other topology.

Here are its extension points, and the events that requeue a pod it rejected. Read on in this order: `constraints` (what
is asked for, and which nodes and pods count), `filtering` (`DoNotSchedule`), `scoring` (`ScheduleAnyway`).
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from typing import ClassVar

from kubesched.framework import (
    OK,
    ActionType,
    ClusterEvent,
    CycleState,
    EventResource,
    Handle,
    NodeTable,
    PodInfo,
    PreFilterResult,
    RegisteredEvent,
    Status,
    Verdicts,
)
from kubesched.framework.caching import PodChange, Scope
from kubesched.framework.events import Hint, Subjects
from kubesched.framework.group_room import GroupRoom
from kubesched.framework.nodes import NodeInfo
from kubesched.framework.pod_subjects import of_changed_pod, selected
from kubesched.framework.results import Scores
from kubesched.framework.status import SKIP
from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.selectors import Labels, SelectorError
from kubesched.scheduler.config.plugin_args import PodTopologySpreadArgs
from kubesched.scheduler.plugins.pod_topology_spread.constraints import (
    DO_NOT_SCHEDULE,
    SCHEDULE_ANYWAY,
    SELECTING_KINDS,
    ConstraintError,
    ConstraintSource,
    RowCounts,
    SpreadConstraint,
    compiled_constraints,
)
from kubesched.scheduler.plugins.pod_topology_spread.filtering import SpreadFilterState
from kubesched.scheduler.plugins.pod_topology_spread.scoring import SpreadScoreState

NO_FILTER_STATE = 'reading "PreFilterPodTopologySpread" from cycleState: not found'
NO_SCORE_STATE = 'error reading "PreScorePodTopologySpread" from cycleState: not found'


class PodTopologySpread:
    """Keeps pods of a kind spread over topologies such as zones and hosts."""

    name: ClassVar[str] = "PodTopologySpread"
    filter_scope: ClassVar[Scope] = Scope.CLUSTER
    score_scope: ClassVar[Scope] = Scope.CLUSTER
    reopens: ClassVar[bool] = True

    def __init__(self, args: object, handle: Handle) -> None:
        self._source = ConstraintSource(
            args if isinstance(args, PodTopologySpreadArgs) else PodTopologySpreadArgs(), handle
        )
        self._hints = SpreadHints(self._source)

    def events_to_register(self) -> Sequence[RegisteredEvent]:
        pods = ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_POD_LABEL | ActionType.UPDATE_POD_TOLERATION
        nodes = ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_TAINT
        return (
            RegisteredEvent(
                ClusterEvent(EventResource.POD, pods),
                self._hints.after_pod_change,
                by_signature=True,
                subjects=_SPREAD_AMONG,
            ),
            RegisteredEvent(ClusterEvent(EventResource.NODE, nodes), self._hints.after_node_change, by_signature=True),
        )

    # -- hard constraints ----------------------------------------------------------------------------------------------

    def pre_filter(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> PreFilterResult:
        try:
            constraints = self._source.of(pod.pod, DO_NOT_SCHEDULE)
        except ConstraintError as problem:
            return PreFilterResult(Status.error(f"get constraints from pod: {problem}"))
        if not constraints:
            return PreFilterResult(SKIP)
        row_counts = RowCounts(nodes, pod.namespace)
        cycle.put(row_counts)
        cycle.put(SpreadFilterState(pod, constraints, nodes, row_counts))
        return PreFilterResult()

    def add_pod(self, cycle: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo) -> Status:
        return _change(cycle, pod, added, node.row, +1)

    def remove_pod(self, cycle: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo) -> Status:
        return _change(cycle, pod, removed, node.row, -1)

    def filter(self, cycle: CycleState, _pod: PodInfo, nodes: NodeTable) -> Verdicts:
        state = cycle.find(SpreadFilterState)
        if state is None:
            return Verdicts.from_statuses([Status.error(NO_FILTER_STATE)] * len(nodes))
        return state.verdicts(nodes)

    def bound_group(self, room: GroupRoom) -> bool:
        states = [state for kind in room.kinds if (state := kind.cycle.find(SpreadFilterState)) is not None]
        return not states or (len(states) == len(room.kinds) and states[0].bound(room, states[1:]))

    # -- soft constraints ----------------------------------------------------------------------------------------------

    def pre_score(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> Status:
        try:
            constraints = self._source.of(pod.pod, SCHEDULE_ANYWAY)
        except ConstraintError as problem:
            return Status.error(f"calculating preScoreState: {problem}")
        if not constraints:
            return SKIP
        row_counts = cycle.find(RowCounts) or RowCounts(nodes, pod.namespace)
        requires_all = self._source.requires_all_topologies(pod.pod)
        cycle.put(SpreadScoreState(pod, constraints, nodes, row_counts, requires_all))
        return OK

    def score(self, cycle: CycleState, _pod: PodInfo, nodes: NodeTable) -> Scores:
        state = cycle.find(SpreadScoreState)
        if state is None:
            raise LookupError(NO_SCORE_STATE)
        return state.scores(nodes)

    def normalize_score(self, cycle: CycleState, _pod: PodInfo, nodes: NodeTable, scores: Scores) -> Scores:
        return cycle.get(SpreadScoreState).normalize(nodes, scores)

    # -- pods that come and go -----------------------------------------------------------------------------------------

    def nodes_changed(self, cycle: CycleState, _pod: PodInfo) -> bool:
        return cycle.find(SpreadFilterState) is None and cycle.find(SpreadScoreState) is None

    def objects_changed(self, cycle: CycleState, pod: PodInfo, changed: Sequence[KubeObject]) -> bool:
        """Services and controllers say among whom a pod without constraints is spread."""
        if not any(isinstance(item, SELECTING_KINDS) and item.metadata.namespace == pod.namespace for item in changed):
            return True
        filtering, scoring = cycle.find(SpreadFilterState), cycle.find(SpreadScoreState)
        try:
            hard, soft = self._source.of(pod.pod, DO_NOT_SCHEDULE), self._source.of(pod.pod, SCHEDULE_ANYWAY)
        except ConstraintError:
            return False
        return hard == (() if filtering is None else filtering.constraints) and soft == (
            () if scoring is None else scoring.constraints
        )

    def minds_pods(self, cycle: CycleState, _pod: PodInfo) -> bool:
        """A pod without constraints has none whatever pods there are."""
        return cycle.find(SpreadFilterState) is not None or cycle.find(SpreadScoreState) is not None

    def pods_changed(self, cycle: CycleState, _pod: PodInfo, changes: Sequence[PodChange]) -> bool:
        """Unlike `add_pod`, counts as PreFilter does."""
        cycle.drop(RowCounts)
        filtering, scoring = cycle.find(SpreadFilterState), cycle.find(SpreadScoreState)
        if filtering is not None:
            filtering.follow(changes)
        if scoring is not None:
            scoring.follow(changes)
        return True


def _change(cycle: CycleState, pod: PodInfo, changed: PodInfo, row: int, by: int) -> Status:
    state = cycle.find(SpreadFilterState)
    if state is None:
        return Status.error(NO_FILTER_STATE)
    if changed.namespace == pod.namespace:
        state.change(changed, row, by)
    return OK


# -- queueing hints ----------------------------------------------------------------------------------------------------


class SpreadHints:
    """The plugin's hints. A pod whose constraints cannot be understood is always worth another try."""

    def __init__(self, source: ConstraintSource) -> None:
        self._source = source

    def after_pod_change(self, pod: PodInfo, old: object | None, new: object | None) -> Hint:
        before = old if isinstance(old, Pod) else None
        after = new if isinstance(new, Pod) else None
        if any(changed is not None and not _is_involved(changed, pod) for changed in (before, after)):
            return Hint.SKIP
        try:
            constraints = self._source.of(pod.pod, DO_NOT_SCHEDULE)
        except ConstraintError:
            return Hint.QUEUE
        if before is not None and after is not None:
            return _after_update(pod, before, after, constraints)
        changed = after or before
        return _queue_if(changed is not None and any(c.selector.matches(changed.labels) for c in constraints))

    def after_node_change(self, pod: PodInfo, old: object | None, new: object | None) -> Hint:
        before = old if isinstance(old, Node) else None
        after = new if isinstance(new, Node) else None
        try:
            constraints = self._source.of(pod.pod, DO_NOT_SCHEDULE)
        except ConstraintError:
            return Hint.QUEUE
        if before is not None and after is not None:
            return _queue_if(_moved(before, after, constraints))
        changed = after or before
        return _queue_if(changed is not None and _has_all_keys(changed.labels, constraints))


def _pods_spread_among(pod: PodInfo) -> Collection[Hashable] | None:
    """What the pods that its own hard constraints count are about; whom the default ones count, services may change."""
    own = pod.spec.topology_spread_constraints
    if not own:
        return None
    try:
        constraints = tuple(compiled_constraints(own, pod.labels, DO_NOT_SCHEDULE))
    except SelectorError:
        return None
    return {subject for one in constraints for subject in selected(one.selector, (pod.namespace,))}


_SPREAD_AMONG = Subjects(_pods_spread_among, of_changed_pod)


def _is_involved(changed: Pod, pod: PodInfo) -> bool:
    """Whether the changed pod can matter: the pod itself, or one of its namespace that has, or may get, a node."""
    if _is_same(changed, pod):
        return True
    placed = changed.spec.node_name or changed.status.nominated_node_name
    return bool(placed) and changed.namespace == pod.namespace


def _is_same(changed: Pod, pod: PodInfo) -> bool:
    return (changed.metadata.uid or changed.pod_key) == pod.uid


def _after_update(pod: PodInfo, before: Pod, after: Pod, constraints: Sequence[SpreadConstraint]) -> Hint:
    tolerates_other_taints = (before.spec.tolerations or ()) != (after.spec.tolerations or ())
    if _is_same(after, pod) and tolerates_other_taints and any(c.honors_taints for c in constraints):
        return Hint.QUEUE
    return _queue_if(any(c.selector.matches(before.labels) != c.selector.matches(after.labels) for c in constraints))


def _moved(before: Node, after: Node, constraints: Sequence[SpreadConstraint]) -> bool:
    """Whether the node came to count, ceased to count, changed its domain, or counts and has other taints."""
    counts = _has_all_keys(after.labels, constraints)
    if _has_all_keys(before.labels, constraints) != counts:
        return True
    keys = [constraint.topology_key for constraint in constraints]
    other_domain = any(before.labels.get(key) != after.labels.get(key) for key in keys)
    return counts and (other_domain or (before.spec.taints or ()) != (after.spec.taints or ()))


def _has_all_keys(labels: Labels, constraints: Sequence[SpreadConstraint]) -> bool:
    return all(constraint.topology_key in labels for constraint in constraints)


def _queue_if(worth_it: bool) -> Hint:
    return Hint.QUEUE if worth_it else Hint.SKIP
