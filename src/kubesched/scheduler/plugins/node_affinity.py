"""NodeAffinity: which nodes a pod's node selector and node affinity allow, and which it prefers.

Required are every label of the pod's node selector and one term of its required node affinity. Preferred terms add
their weight to the score where they match. Unlike a required term, a preferred one with a validation error ends the
cycle with an error: the API server lets some through (text under `Gt`, a value that no label can have). A profile may
add an affinity of its own (`addedAffinity`) that every pod has to satisfy as well.

Selectors are evaluated for the whole table at once; `kubesched.k8s.model.selectors` does the same for one node.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

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
from kubesched.framework.results import Scores
from kubesched.framework.status import SKIP
from kubesched.framework.verdicts import BoolArray
from kubesched.k8s.model import core, selectors
from kubesched.k8s.model.core import Node, NodeSelector, NodeSelectorTerm, PodSpec
from kubesched.k8s.model.selectors import (
    NODE_NAME_FIELD,
    CompiledNodeSelector,
    NodeTerm,
    Requirement,
    Selector,
    SelectorError,
)
from kubesched.scheduler.config.errors import ErrorList
from kubesched.scheduler.config.plugin_args import NodeAffinityArgs
from kubesched.scheduler.config.validation import validate_node_affinity

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
        return (RegisteredEvent(node_change, self._hint_after_node_change, by_signature=True),)

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


# -- required ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RequiredNodeAffinity:
    """Compiled once a cycle. `affinity` is None for a pod that has only a node selector."""

    labels: Selector
    affinity: CompiledNodeSelector | None

    def on_table(self, nodes: NodeTable) -> BoolArray:
        """(n_nodes,) which nodes the pod may go to."""
        if len(nodes) == 1:  # dry runs ask about one node, often; columns pay only for many
            return np.array([self.on_node(nodes.at(0).node)])
        mask = labelled_nodes(self.labels.requirements, nodes)
        return mask if self.affinity is None else mask & selected_nodes(self.affinity, nodes)

    def on_node(self, node: Node) -> bool:
        return self.labels.matches(node.labels) and (self.affinity is None or self.affinity.matches(node))

    def is_doubtful_on(self, node: Node) -> bool:
        """Whether the node does not match, but some terms could not be parsed and might have matched."""
        if self.affinity is None or not self.labels.matches(node.labels):
            return False
        return bool(self.affinity.errors) and not self.affinity.matches(node)


def node_selector_of(spec: PodSpec) -> NodeSelector | None:
    """The pod's required node affinity, if it has one."""
    affinity = spec.affinity
    if affinity is None or affinity.node_affinity is None:
        return None
    return affinity.node_affinity.required_during_scheduling_ignored_during_execution


def required_node_affinity(spec: PodSpec) -> RequiredNodeAffinity:
    selector = node_selector_of(spec)
    return RequiredNodeAffinity(
        labels=selectors.from_labels(spec.node_selector),
        affinity=None if selector is None else selectors.from_node_selector(selector),
    )


def named_nodes(selector: NodeSelector) -> frozenset[str] | None:
    """The only nodes that the selector can match, by their names; None when one of its terms names none."""
    names: frozenset[str] = frozenset()
    for term in selector.node_selector_terms:
        of_term = _named_by(term)
        if of_term is None:
            return None
        names |= of_term
    return names if selector.node_selector_terms else None


def _named_by(term: NodeSelectorTerm) -> frozenset[str] | None:
    """Names that all of the term's fields agree on; None when it has no field about names."""
    lists = [
        frozenset(field.values or ())
        for field in term.match_fields or ()
        if field.key == NODE_NAME_FIELD and field.operator == "In"
    ]
    return frozenset.intersection(*lists) if lists else None


# -- preferred ---------------------------------------------------------------------------------------------------------


_FIELD = ".preferredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True, slots=True)
class PreferredNodeAffinity:
    terms: tuple[tuple[NodeTerm, int], ...] = ()

    def on_table(self, nodes: NodeTable) -> Scores:
        """(n_nodes,) the sum of the weights of the terms that match."""
        scores: Scores = np.zeros(len(nodes), dtype=np.int64)
        for term, weight in self.terms:
            scores[term_nodes(term, nodes)] += weight
        return scores

    def on_node(self, node: core.Node) -> int:
        return sum(weight for term, weight in self.terms if term.matches(node.labels, node.name))


def preferred_terms_of(spec: core.PodSpec) -> tuple[core.PreferredSchedulingTerm, ...] | None:
    """The pod's preferred terms; None, as against none at all, when it says nothing about them."""
    affinity = spec.affinity
    if affinity is None or affinity.node_affinity is None:
        return None
    return affinity.node_affinity.preferred_during_scheduling_ignored_during_execution


def preferred_node_affinity(spec: core.PodSpec) -> PreferredNodeAffinity:
    """Raises SelectorError, with all validation errors in Kubernetes' words, where a term cannot be understood."""
    terms = preferred_terms_of(spec) or ()
    errors = ErrorList()
    validate_node_affinity(core.NodeAffinity(preferred_during_scheduling_ignored_during_execution=terms), "", errors)
    if errors:
        # Kubernetes counts from the list of terms here, not from the affinity that holds it.
        problems = [f"{error.path.removeprefix(_FIELD)}: {error.message}" for error in errors]
        raise SelectorError(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")
    return PreferredNodeAffinity(selectors.compile_preferred_terms(terms))


# -- selectors over the whole table ------------------------------------------------------------------------------------


def selected_nodes(selector: CompiledNodeSelector, nodes: NodeTable) -> BoolArray:
    """(n_nodes,) where at least one term matches."""
    mask = np.zeros(len(nodes), dtype=np.bool_)
    for term in selector.terms:
        mask |= term_nodes(term, nodes)
    return mask


def term_nodes(term: NodeTerm, nodes: NodeTable) -> BoolArray:
    """(n_nodes,) where everything in the term holds; nowhere if it has a validation error in it."""
    if term.error is not None:
        return np.zeros(len(nodes), dtype=np.bool_)
    mask = labelled_nodes(term.labels, nodes)
    for requirement in term.fields:
        mask &= _field_nodes(requirement, nodes)
    return mask


def labelled_nodes(requirements: Iterable[Requirement], nodes: NodeTable) -> BoolArray:
    """(n_nodes,) where all of these requirements on labels hold."""
    mask = np.ones(len(nodes), dtype=np.bool_)
    for requirement in requirements:
        mask &= nodes.matching(requirement)
    return mask


def _field_nodes(requirement: Requirement, nodes: NodeTable) -> BoolArray:
    """The name is the only field there is; any other is empty on every node."""
    if requirement.key != NODE_NAME_FIELD:
        return np.full(len(nodes), requirement.matches(""))
    named = nodes.named(requirement.values[0])
    return named if requirement.operator == "In" else ~named
