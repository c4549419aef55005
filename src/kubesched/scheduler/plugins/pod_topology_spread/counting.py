"""What a constraint counts: which nodes are eligible by its inclusion policies, and which pods match.

Eligible nodes depend on the pod and the nodes alone: they hold for a whole cycle. Pods are counted per row, once for
each selector and cycle, by Filter and Score together; pods that are added or removed later are matched by their label
class.

Next: `filtering`, `scoring`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kubesched.framework.nodes import MISSING, IntArray, NodeTable
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.verdicts import BoolArray
from kubesched.k8s.model.core import PodSpec
from kubesched.k8s.model.selectors import (
    NODE_NAME_FIELD,
    NodeTerm,
    Requirement,
    Selector,
    from_labels,
    from_node_selector,
)
from kubesched.k8s.model.taints import find_untolerated
from kubesched.scheduler.plugins.pod_topology_spread.constraints import SpreadConstraint

# -- eligible nodes ----------------------------------------------------------------------------------------------------


def with_all_keys(constraints: Sequence[SpreadConstraint], nodes: NodeTable) -> BoolArray:
    """(n_nodes,) nodes that have the topology label of every constraint."""
    complete = np.ones(len(nodes), dtype=np.bool_)
    for key in {constraint.topology_key for constraint in constraints}:
        complete &= nodes.label(key).codes != MISSING
    return complete


class InclusionPolicies:
    """Nodes as the policies of a pod's constraints see them; each question is answered at most once."""

    def __init__(self, pod: PodInfo, nodes: NodeTable) -> None:
        self._pod = pod
        self._nodes = nodes
        self._admitted: BoolArray | None = None
        self._tolerated: BoolArray | None = None

    def included(self, constraint: SpreadConstraint) -> BoolArray:
        """(n_nodes,) nodes that neither policy of the constraint leaves out."""
        if constraint.honors_affinity and constraint.honors_taints:
            return self._by_affinity() & self._by_taints()
        if constraint.honors_affinity:
            return self._by_affinity()
        if constraint.honors_taints:
            return self._by_taints()
        return np.ones(len(self._nodes), dtype=np.bool_)

    def _by_affinity(self) -> BoolArray:
        if self._admitted is None:
            self._admitted = _admitted_by_affinity(self._pod.spec, self._nodes)
        return self._admitted

    def _by_taints(self) -> BoolArray:
        if self._tolerated is None:
            tolerations = self._pod.tolerations
            self._tolerated = self._nodes.taints.where(
                lambda taints: find_untolerated(taints or (), tolerations) is None
            )
        return self._tolerated


def _admitted_by_affinity(spec: PodSpec, nodes: NodeTable) -> BoolArray:
    """Nodes that the pod's node selector and required node affinity admit. A term with a validation error admits
    none."""
    admitted = np.ones(len(nodes), dtype=np.bool_)
    for requirement in from_labels(spec.node_selector).requirements:
        admitted &= nodes.matching(requirement)
    node_affinity = spec.affinity.node_affinity if spec.affinity else None
    required = node_affinity.required_during_scheduling_ignored_during_execution if node_affinity else None
    if required is not None:
        one_term = np.zeros(len(nodes), dtype=np.bool_)
        for term in from_node_selector(required).terms:
            one_term |= _matching_term(term, nodes)
        admitted &= one_term
    return admitted


def _matching_term(term: NodeTerm, nodes: NodeTable) -> BoolArray:
    if term.error is not None:
        return np.zeros(len(nodes), dtype=np.bool_)
    matching = np.ones(len(nodes), dtype=np.bool_)
    for requirement in term.labels:
        matching &= nodes.matching(requirement)
    for requirement in term.fields:
        matching &= _matching_field(requirement, nodes)
    return matching


def _matching_field(requirement: Requirement, nodes: NodeTable) -> BoolArray:
    """The name is the only field that nodes have here; any other reads as empty."""
    if requirement.key != NODE_NAME_FIELD:
        return np.full(len(nodes), requirement.matches(""), dtype=np.bool_)
    named = nodes.named(requirement.values[0])
    return named if requirement.operator == "In" else ~named


# -- pods on every row -------------------------------------------------------------------------------------------------


class RowCounts:
    """Counts of pods in one namespace, without those being deleted. A selector of everything counts none."""

    def __init__(self, nodes: NodeTable, namespace: str) -> None:
        self._nodes = nodes.whole
        self._namespaces = frozenset({namespace})
        self._known: dict[Selector, IntArray] = {}

    def of(self, selector: Selector) -> IntArray:
        """(n_rows,) of the whole table."""
        known = self._known.get(selector)
        if known is None:
            known = self._known[selector] = self._count(selector)
        return known

    def _count(self, selector: Selector) -> IntArray:
        if selector.is_everything:
            return np.zeros(len(self._nodes), dtype=np.int64)
        pods = self._nodes.pods
        return pods.counts(pods.classes(selector, self._namespaces), terminating=False)


# -- pods that are added and removed -----------------------------------------------------------------------------------


_MOST_KEPT = 1000
"""Where every pod has labels of its own, nothing is found again: then it must at least not pile up."""


class CountedPods:
    """Pods of one namespace, as the constraints of a pod to be placed there see them."""

    __slots__ = ("_by_label_class", "_constraints", "_namespace")

    def __init__(self, namespace: str, constraints: Sequence[SpreadConstraint]) -> None:
        self._namespace = namespace
        self._constraints = constraints
        self._by_label_class: dict[int, tuple[int, ...]] = {}

    def by(self, pod: PodInfo) -> tuple[int, ...]:
        """The numbers of the constraints that count the pod."""
        known = self._by_label_class
        found = known.get(pod.signature.label_class)
        if found is None:
            if len(known) >= _MOST_KEPT:
                known.clear()
            found = known[pod.signature.label_class] = self._find(pod)
        return () if found and pod.pod.is_terminating else found

    def _find(self, pod: PodInfo) -> tuple[int, ...]:
        if pod.namespace != self._namespace:
            return ()
        return tuple(
            number
            for number, constraint in enumerate(self._constraints)
            if not constraint.selector.is_everything and constraint.selector.matches(pod.labels)
        )
