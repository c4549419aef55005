"""The plugin. A profile may add an affinity of its own (`addedAffinity`) that every pod has to meet as well.

Next: `required` and `preferred` for the rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import ClassVar

from kubesched.framework import (
    OK,
    ActionType,
    ClusterEvent,
    CycleState,
    EventResource,
    Handle,
    Hint,
    NodeInfo,
    NodeTable,
    PodInfo,
    PreFilterResult,
    RegisteredEvent,
    Status,
    Verdicts,
    default_normalize_score,
)
from kubesched.framework.caching import Scope
from kubesched.framework.scores import Scores
from kubesched.framework.status import SKIP
from kubesched.k8s.model import core, selectors
from kubesched.k8s.model.selectors import CompiledNodeSelector, SelectorError
from kubesched.scheduler.config.plugin_args import NodeAffinityArgs
from kubesched.scheduler.plugins.node_affinity.matching import selected_nodes
from kubesched.scheduler.plugins.node_affinity.preferred import (
    PreferredNodeAffinity,
    preferred_node_affinity,
    preferred_terms_of,
)
from kubesched.scheduler.plugins.node_affinity.required import (
    RequiredNodeAffinity,
    named_nodes,
    node_selector_of,
    required_node_affinity,
)

REASON_POD = "node(s) didn't match Pod's node affinity/selector"
REASON_ENFORCED = "node(s) didn't match scheduler-enforced node affinity"
REASON_CONFLICT = "pod affinity terms conflict"


class NodeAffinity:
    name: ClassVar[str] = "NodeAffinity"
    filter_scope: ClassVar[Scope] = Scope.NODE
    score_scope: ClassVar[Scope] = Scope.NODE
    reads_objects: ClassVar[bool] = False

    def __init__(self, args: object, _handle: Handle) -> None:
        self._args = args if isinstance(args, NodeAffinityArgs) else NodeAffinityArgs()

    def pre_filter(self, cycle: CycleState, pod: PodInfo, _nodes: NodeTable) -> PreFilterResult:
        selector = node_selector_of(pod.spec)
        if selector is None and self._added_required is None and pod.spec.node_selector is None:
            return PreFilterResult(SKIP)
        cycle.put(required_node_affinity(pod.spec))
        names = None if selector is None else named_nodes(selector)
        if names is not None and not names:
            return PreFilterResult(Status.unresolvable(REASON_CONFLICT))
        return PreFilterResult(node_names=names)

    def filter(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdicts:
        required = cycle.find(RequiredNodeAffinity) or required_node_affinity(pod.spec)
        matched = required.on_table(nodes)
        if self._added_required is None:
            return Verdicts.reject(~matched, REASON_POD, unresolvable=True)
        allowed = selected_nodes(self._added_required, nodes)
        return Verdicts.combine([(REASON_ENFORCED, ~allowed, True), (REASON_POD, allowed & ~matched, True)])

    def filter_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        if self._added_required is not None and not self._added_required.matches(node.node):
            return Status.unresolvable(REASON_ENFORCED)
        required = cycle.find(RequiredNodeAffinity) or required_node_affinity(pod.spec)
        return OK if required.on_node(node.node) else Status.unresolvable(REASON_POD)

    def pre_score(self, cycle: CycleState, pod: PodInfo, _nodes: NodeTable) -> Status:
        if preferred_terms_of(pod.spec) is None and self._added_preferred is None:
            return SKIP
        try:
            cycle.put(preferred_node_affinity(pod.spec))
        except SelectorError as problem:
            return Status.error(str(problem))
        return OK

    def score(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> Scores:
        preferred = cycle.find(PreferredNodeAffinity) or preferred_node_affinity(pod.spec)
        scores = preferred.on_table(nodes)
        return scores if self._added_preferred is None else scores + self._added_preferred.on_table(nodes)

    def score_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        preferred = cycle.find(PreferredNodeAffinity) or preferred_node_affinity(pod.spec)
        score = preferred.on_node(node.node)
        return score if self._added_preferred is None else score + self._added_preferred.on_node(node.node)

    def normalize_score(self, _cycle: CycleState, _pod: PodInfo, _nodes: NodeTable, scores: Scores) -> Scores:
        return default_normalize_score(scores, reverse=False)

    def events_to_register(self) -> Sequence[RegisteredEvent]:
        node_change = ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)
        return (RegisteredEvent(node_change, self._hint_after_node_change),)

    def _hint_after_node_change(self, pod: PodInfo, old: object | None, new: object | None) -> Hint:
        """A node helps that came matching, or that matches since its labels changed."""
        if not isinstance(new, core.Node):
            return Hint.QUEUE
        if self._added_required is not None and not self._added_required.matches(new):
            return Hint.SKIP
        required = required_node_affinity(pod.spec)
        if not required.on_node(new):
            return Hint.QUEUE if required.is_doubtful_on(new) else Hint.SKIP
        return Hint.SKIP if isinstance(old, core.Node) and required.on_node(old) else Hint.QUEUE

    @cached_property
    def _added_required(self) -> CompiledNodeSelector | None:
        added = self._args.added_affinity
        selector = None if added is None else added.required_during_scheduling_ignored_during_execution
        return None if selector is None else selectors.from_node_selector(selector)

    @cached_property
    def _added_preferred(self) -> PreferredNodeAffinity | None:
        added = self._args.added_affinity
        terms = None if added is None else added.preferred_during_scheduling_ignored_during_execution
        return PreferredNodeAffinity(selectors.compile_preferred_terms(terms)) if terms else None
