"""InterPodAffinity: places pods near to, or away from, other pods.

Here are its extension points, and the events that requeue a pod it rejected. Queueing hints match terms as they are
written, without resolving namespace selectors; and several anti-affinity terms count as one, as in kube-scheduler.

Read in this order: `terms` (which pods a term matches, and how they are counted by topology), `filtering` (required
terms), `scoring` (preferred terms).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from functools import partial
from typing import ClassVar

import numpy as np

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
from kubesched.framework.pod_info import AffinityTerm, compile_pod_affinity
from kubesched.framework.pod_subjects import ANY_NAMESPACE, of_changed_pod, selected
from kubesched.framework.results import Scores
from kubesched.framework.status import SKIP
from kubesched.k8s.model.core import Namespace, Node, Pod
from kubesched.k8s.model.meta import KubeObject
from kubesched.scheduler.config.plugin_args import InterPodAffinityArgs
from kubesched.scheduler.plugins.inter_pod_affinity.filtering import AffinityFilterState, required_anti_terms
from kubesched.scheduler.plugins.inter_pod_affinity.group_bounds import bound_by_terms
from kubesched.scheduler.plugins.inter_pod_affinity.scoring import AffinityScoreState, normalize, scoring_terms
from kubesched.scheduler.plugins.inter_pod_affinity.terms import UNLABELLED, ScopedTerm, TermIndex, errors_in, scoped

NO_FILTER_STATE = 'error reading "PreFilterInterPodAffinity" from cycleState: not found'
NO_SCORE_STATE = 'failed to read "PreScoreInterPodAffinity" from cycleState: not found'


class IdleOnAnyNodes:
    """In the place of idle state that was prepared for other nodes than there are now."""


class InterPodAffinity:
    """Places pods near to, or away from, other pods."""

    name: ClassVar[str] = "InterPodAffinity"
    filter_scope: ClassVar[Scope] = Scope.CLUSTER
    score_scope: ClassVar[Scope] = Scope.CLUSTER

    def __init__(self, args: object, handle: Handle) -> None:
        self._args = args if isinstance(args, InterPodAffinityArgs) else InterPodAffinityArgs()
        self._handle = handle
        self._anti_terms = TermIndex(required_anti_terms)
        self._scoring_terms = TermIndex(partial(scoring_terms, hard_weight=self._args.hard_pod_affinity_weight))

    def events_to_register(self) -> Sequence[RegisteredEvent]:
        pods = ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_POD_LABEL
        nodes = ActionType.ADD | ActionType.UPDATE_NODE_LABEL
        return (
            RegisteredEvent(
                ClusterEvent(EventResource.POD, pods),
                self.after_pod_change,
                by_signature=True,
                subjects=_NEAR_OR_AWAY_FROM,
            ),
            RegisteredEvent(ClusterEvent(EventResource.NODE, nodes), after_node_change, by_signature=True),
        )

    def after_pod_change(self, pod: PodInfo, old: object | None, new: object | None) -> Hint:
        return after_pod_change(pod, old, new)

    def scoped(self, terms: Iterable[AffinityTerm]) -> tuple[ScopedTerm, ...]:
        """Terms of the pod that is scheduled, with their namespaces known by name."""
        return scoped(terms, self._handle.objects.namespaces)

    # -- required terms ------------------------------------------------------------------------------------------------

    def pre_filter(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> PreFilterResult:
        if (errors := errors_in(pod)) is not None:
            return PreFilterResult(Status.unresolvable(f"parsing pod: {errors}"))
        handle = self._handle
        namespace_labels = handle.namespace_labels(pod.namespace)
        state = AffinityFilterState(pod, nodes, self.scoped, namespace_labels, self._anti_terms)
        cycle.put(state)  # an idle one, too: it sees pods come that change that
        return PreFilterResult(SKIP) if state.is_idle else PreFilterResult()

    def add_pod(self, cycle: CycleState, _pod: PodInfo, added: PodInfo, node: NodeInfo) -> Status:
        return _change(cycle, added, node.row, +1)

    def remove_pod(self, cycle: CycleState, _pod: PodInfo, removed: PodInfo, node: NodeInfo) -> Status:
        return _change(cycle, removed, node.row, -1)

    def filter(self, cycle: CycleState, _pod: PodInfo, nodes: NodeTable) -> Verdicts:
        state = cycle.find(AffinityFilterState)
        if state is None:
            return Verdicts.from_statuses([Status.error(NO_FILTER_STATE)] * len(nodes))
        return state.verdicts(nodes)

    def bound_group(self, room: GroupRoom) -> bool:
        return bound_by_terms(room, self.scoped, self._handle.namespace_labels(room.kinds[0].pod.namespace))

    # -- preferred terms -----------------------------------------------------------------------------------------------

    def pre_score(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> Status:
        if self._args.ignore_preferred_terms_of_existing_pods and not _has_preferred_terms(pod.pod):
            return SKIP
        if (errors := errors_in(pod)) is not None:
            return Status.error(f"failed to parse pod: {errors}")
        handle = self._handle
        namespace_labels = handle.namespace_labels(pod.namespace)
        state = AffinityScoreState(pod, nodes, self.scoped, namespace_labels, self._scoring_terms)
        cycle.put(state)
        return SKIP if state.is_idle else OK

    def score(self, cycle: CycleState, _pod: PodInfo, nodes: NodeTable) -> Scores:
        state = cycle.find(AffinityScoreState)
        if state is None:
            raise LookupError(NO_SCORE_STATE)
        return state.scores(nodes)

    def normalize_score(self, _cycle: CycleState, _pod: PodInfo, _nodes: NodeTable, scores: Scores) -> Scores:
        return normalize(scores) if len(scores) else np.zeros_like(scores)

    # -- pods that come and go -----------------------------------------------------------------------------------------

    def nodes_changed(self, cycle: CycleState, _pod: PodInfo) -> bool:
        """Idle state is only good for seeing pods come that change that; without it, all pods with terms do."""
        filtering, scoring = cycle.find(AffinityFilterState), cycle.find(AffinityScoreState)
        if (filtering is not None and not filtering.is_idle) or (scoring is not None and not scoring.is_idle):
            return False
        cycle.drop(AffinityFilterState)
        cycle.drop(AffinityScoreState)
        cycle.put(IdleOnAnyNodes())
        return True

    def objects_changed(self, _cycle: CycleState, _pod: PodInfo, changed: Sequence[KubeObject]) -> bool:
        """Terms select namespaces by their labels."""
        return not any(isinstance(item, Namespace) for item in changed)

    def minds_pods_without_terms(self, _cycle: CycleState, pod: PodInfo) -> bool:
        """Where neither has terms, they do not concern each other."""
        return bool(pod.affinity)

    def pods_changed(self, cycle: CycleState, pod: PodInfo, changes: Sequence[PodChange]) -> bool:
        """Cannot follow where an extension point that was left out has something to say from now on."""
        if not pod.affinity:
            changes = [change for change in changes if change[1].signature.affinity_class >= 0]
            if not changes:
                return True  # neither has terms: they do not concern each other
        if cycle.find(IdleOnAnyNodes) is not None:
            return False
        filtering, scoring = cycle.find(AffinityFilterState), cycle.find(AffinityScoreState)
        filter_followed = filtering is None or filtering.follow(changes)
        score_followed = scoring is None or scoring.follow(changes)
        return filter_followed and score_followed


def _change(cycle: CycleState, changed: PodInfo, row: int, by: int) -> Status:
    state = cycle.find(AffinityFilterState)
    if state is None:
        return Status.error(NO_FILTER_STATE)
    state.change(changed, row, by)
    return OK


def _has_preferred_terms(pod: Pod) -> bool:
    affinity = pod.spec.affinity
    if affinity is None:
        return False
    return any(
        kind is not None and kind.preferred_during_scheduling_ignored_during_execution
        for kind in (affinity.pod_affinity, affinity.pod_anti_affinity)
    )


# -- queueing hints ----------------------------------------------------------------------------------------------------


MatchTerms = Callable[[Sequence[AffinityTerm], Pod], bool]


def after_pod_change(
    pod: PodInfo, old: object | None, new: object | None, *, is_kept_away: MatchTerms | None = None
) -> Hint:
    """`is_kept_away` says which pods such terms of anti-affinity are about; as v1.36 has it, those that all match."""
    before = old if isinstance(old, Pod) else None
    after = new if isinstance(new, Pod) else None
    if before is not None and after is not None and (after.metadata.uid or after.pod_key) == pod.uid:
        # Its labels changed: others may no longer have terms against it.
        return Hint.QUEUE
    if any(changed is not None and not _has_node(changed) for changed in (before, after)):
        return Hint.SKIP
    if pod.affinity.errors:
        return Hint.QUEUE  # terms that cannot be parsed are always worth a try
    return _queue_if(_may_help(pod, before, after, is_kept_away or _all_match_as_written))


def _pods_minded(pod: PodInfo) -> Collection[Hashable] | None:
    """What the pods that its required terms match as they are written are about."""
    terms = pod.affinity
    if terms.errors:
        return None
    found: set[Hashable] = set()
    for term in (*terms.required, *terms.required_anti):
        namespaces = (ANY_NAMESPACE,) if term.namespace_selector.matches(UNLABELLED) else term.namespaces
        found.update(selected(term.selector, namespaces))
    return found


def _about_changed_pod(old: object | None, new: object | None) -> Collection[Hashable] | None:
    """A pod that goes may be one that kept others away by terms of its own."""
    if new is None and isinstance(old, Pod):
        its_own = compile_pod_affinity(old)
        if its_own.errors or its_own.required_anti:
            return None
    return of_changed_pod(old, new)


_NEAR_OR_AWAY_FROM = Subjects(_pods_minded, _about_changed_pod)


def after_node_change(pod: PodInfo, old: object | None, new: object | None) -> Hint:
    before = old if isinstance(old, Node) else None
    if not isinstance(new, Node):
        return Hint.QUEUE
    terms = pod.affinity
    if terms.errors:
        return Hint.QUEUE
    if before is None:
        # A node without the topology label takes every pod that only wants to be away from others.
        return _queue_if(any(t.topology_key in new.labels for t in terms.required) or bool(terms.required_anti))
    joined = any(_has_other_value(before, new, term.topology_key, new) for term in terms.required)
    left = any(_has_other_value(before, new, term.topology_key, before) for term in terms.required_anti)
    return _queue_if(joined or left)


def _has_node(pod: Pod) -> bool:
    return bool(pod.spec.node_name or pod.status.nominated_node_name)


def _may_help(pod: PodInfo, before: Pod | None, after: Pod | None, is_kept_away: MatchTerms) -> bool:
    toward, away = pod.affinity.required, pod.affinity.required_anti
    if after is not None and before is not None:
        came = not _all_match_as_written(toward, before) and _all_match_as_written(toward, after)
        went = is_kept_away(away, before) and not is_kept_away(away, after)
        return came or went
    if after is not None:
        return _all_match_as_written(toward, after)
    if before is None:
        return False
    if is_kept_away(away, before):
        return True
    its_own = compile_pod_affinity(before)
    return bool(its_own.errors) or is_kept_away(its_own.required_anti, pod.pod)


def _all_match_as_written(terms: Sequence[AffinityTerm], pod: Pod) -> bool:
    return bool(terms) and all(term.matches(pod.namespace, pod.labels, UNLABELLED) for term in terms)


def any_matches_as_written(terms: Sequence[AffinityTerm], pod: Pod) -> bool:
    return any(term.matches(pod.namespace, pod.labels, UNLABELLED) for term in terms)


def _has_other_value(before: Node, after: Node, key: str, holder: Node) -> bool:
    """Whether the label changed, and the holder, of the two, has it."""
    return key in holder.labels and before.labels.get(key) != after.labels.get(key)


def _queue_if(worth_it: bool) -> Hint:
    return Hint.QUEUE if worth_it else Hint.SKIP
