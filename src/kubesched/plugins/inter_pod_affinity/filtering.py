"""Required terms, from three sides: whom the pod must be near, whom it must not be near, and who must not be near it.

A pod that nobody it wants to be near exists for yet may go anywhere if it is itself such a pod: the first of a series.

Next: `scoring` for the preferred terms.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from kubesched.framework.nodes import MISSING, NodeTable
from kubesched.framework.pod_info import PodAffinityTerms, PodInfo
from kubesched.framework.verdicts import BoolArray, Verdicts
from kubesched.model.core import Namespace
from kubesched.model.selectors import Labels
from kubesched.plugins.inter_pod_affinity.term_index import TermIndex, WeightedTerm
from kubesched.plugins.inter_pod_affinity.terms import ScopedTerm, scoped, speak_all_of
from kubesched.plugins.inter_pod_affinity.topology import TopologyCounts

REASON_AFFINITY = "node(s) didn't match pod affinity rules"
REASON_ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
REASON_EXISTING_ANTI_AFFINITY = "node(s) didn't satisfy existing pods anti-affinity rules"


def required_anti_terms(terms: PodAffinityTerms) -> Iterator[WeightedTerm]:
    """What `AffinityFilterState` wants indexed."""
    for term in terms.required_anti:
        yield term, 1


class AffinityFilterState:
    """What PreFilter found out: by topology, how many pods the pod's terms speak of, or have terms against it."""

    def __init__(
        self,
        pod: PodInfo,
        nodes: NodeTable,
        namespaces: Mapping[str, Namespace],
        namespace_labels: Labels,
        anti_terms: TermIndex,
    ) -> None:
        self._pod = pod
        self._namespace_labels = namespace_labels
        self._toward = scoped(pod.affinity.required, namespaces)
        self._away = scoped(pod.affinity.required_anti, namespaces)
        self._is_own_kind = speak_all_of(self._toward, pod)
        self._wanted = _count_wanted(self._toward, nodes)
        self._unwanted = _count_unwanted(self._away, nodes)
        self._unwelcoming = _count_unwelcoming(pod, nodes, namespace_labels, anti_terms)

    @property
    def is_idle(self) -> bool:
        """Whether every node will do, so that there is nothing to filter."""
        return not self._toward and not self._away and self._unwelcoming.n_pods == 0

    def change(self, pod: PodInfo, row: int, by: int) -> None:
        """A pod comes to a row, or leaves it."""
        for term in pod.affinity.required_anti:
            if term.matches(self._pod.namespace, self._pod.labels, self._namespace_labels):
                self._unwelcoming.change(term.topology_key, row, by)
        if speak_all_of(self._toward, pod):
            for wanted in self._toward:
                self._wanted.change(wanted.topology_key, row, by)
        for unwanted in self._away:
            if unwanted.speaks_of(pod):
                self._unwanted.change(unwanted.topology_key, row, by)

    def verdicts(self, nodes: NodeTable) -> Verdicts:
        """A node's reason is the first of the three that applies."""
        lonely = self._lonely(nodes)
        repelled = _occupied(self._unwanted, nodes) & ~lonely
        repelling = _occupied(self._unwelcoming, nodes) & ~lonely & ~repelled
        return Verdicts.combine(
            [
                (REASON_AFFINITY, lonely, True),
                (REASON_ANTI_AFFINITY, repelled, False),
                (REASON_EXISTING_ANTI_AFFINITY, repelling, False),
            ]
        )

    def _lonely(self, nodes: NodeTable) -> BoolArray:
        """Nodes without a topology label that a term names, or without the pods that the pod wants to be near."""
        rejected = np.zeros(len(nodes), dtype=np.bool_)
        is_first_of_series = self._is_own_kind and self._wanted.n_pods == 0
        for term in self._toward:
            rejected |= nodes.label(term.topology_key).codes == MISSING
            if not is_first_of_series:
                rejected |= self._wanted.at(term.topology_key, nodes) <= 0
        return rejected


def _count_wanted(terms: Sequence[ScopedTerm], nodes: NodeTable) -> TopologyCounts:
    """Pods that all terms speak of: one that only some of them speak of is no company."""
    counts = TopologyCounts(nodes)
    if terms:
        pods = nodes.pods
        classes = np.logical_and.reduce([pods.classes(term.selector, term.namespaces) for term in terms])
        by_row = pods.counts(classes)
        for term in terms:
            counts.add_counts(term.topology_key, by_row)
    return counts


def _count_unwanted(terms: Sequence[ScopedTerm], nodes: NodeTable) -> TopologyCounts:
    """Pods that at least one term speaks of, each in the topology of that term."""
    counts = TopologyCounts(nodes)
    pods = nodes.pods
    for term in terms:
        counts.add_counts(term.topology_key, pods.counts(pods.classes(term.selector, term.namespaces)))
    return counts


def _count_unwelcoming(
    pod: PodInfo, nodes: NodeTable, namespace_labels: Labels, anti_terms: TermIndex
) -> TopologyCounts:
    """Pods that must not have this one near them."""
    counts = TopologyCounts(nodes)
    anti_terms.follow(nodes.pods.affinity_groups(required_anti_only=True))
    for group, term, _ in anti_terms.about(pod, namespace_labels):
        counts.add_pods(term.topology_key, group.rows)
    return counts


def _occupied(counts: TopologyCounts, nodes: NodeTable) -> BoolArray:
    """Nodes in a topology where something was counted."""
    mask = np.zeros(len(nodes), dtype=np.bool_)
    for key in counts:
        mask |= counts.at(key, nodes) > 0
    return mask
