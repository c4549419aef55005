"""Required terms: the pod's affinity, its anti-affinity, and the anti-affinity of existing pods.

A pod whose affinity terms match no existing pod may go anywhere if they match the pod itself: it is the first of its
group.

Next: `scoring` for the preferred terms.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from kubesched.framework.caching import PodChange
from kubesched.framework.nodes import MISSING, NodeTable
from kubesched.framework.pod_info import PodAffinityTerms, PodInfo
from kubesched.framework.verdicts import BoolArray, Verdicts
from kubesched.k8s.model.selectors import Labels
from kubesched.scheduler.plugins.inter_pod_affinity.terms import (
    ByClass,
    ScopedTerm,
    ScopeTerms,
    TermIndex,
    TopologyCounts,
    WeightedTerm,
    all_match,
)

REASON_AFFINITY = "node(s) didn't match pod affinity rules"
REASON_ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
REASON_EXISTING_ANTI_AFFINITY = "node(s) didn't satisfy existing pods anti-affinity rules"


def required_anti_terms(terms: PodAffinityTerms) -> Iterator[WeightedTerm]:
    """What `AffinityFilterState` wants indexed."""
    for term in terms.required_anti:
        yield term, 1


class AffinityFilterState:
    """What PreFilter found out: by topology, how many pods the pod's terms match, or have terms that match it."""

    def __init__(
        self,
        pod: PodInfo,
        nodes: NodeTable,
        scope: ScopeTerms,
        namespace_labels: Labels,
        anti_terms: TermIndex,
    ) -> None:
        self._pod = pod
        self._namespace_labels = namespace_labels
        self._toward = scope(pod.affinity.required)
        self._away = scope(pod.affinity.required_anti)
        self._is_own_kind = all_match(self._toward, pod)
        self._wanted = _count_wanted(self._toward, nodes)
        self._unwanted = _count_unwanted(self._away, nodes)
        self._unwelcoming = _count_unwelcoming(pod, nodes, namespace_labels, anti_terms)
        self._concerns: ByClass[tuple[TopologyCounts, str]] = ByClass(self._concerns_of)

    @property
    def is_idle(self) -> bool:
        """Whether every node will do, so that there is nothing to filter."""
        return not self._toward and not self._away and self._unwelcoming.n_pods == 0

    @property
    def finds_matching_pods(self) -> bool:
        """Whether there are pods that the pod wants to be near, anywhere."""
        return self._wanted.n_pods > 0

    def follow(self, changes: Iterable[PodChange]) -> bool:
        """Pods came and went. False if there was nothing to filter and now there is, or the other way round: what has
        nothing to filter is left out, and does not hear of nominated pods either."""
        was_idle = self.is_idle
        concerns = self._concerns.of
        for row, pod, added in changes:
            if concerns(pod):
                self.change(pod, row, 1 if added else -1)
        return self.is_idle == was_idle

    def change(self, pod: PodInfo, row: int, by: int) -> None:
        """A pod comes to a row, or leaves it."""
        for counts, key in self._concerns.of(pod):
            counts.change(key, row, by)

    def verdicts(self, nodes: NodeTable) -> Verdicts:
        """A node's reason is the first of the three that applies."""
        lonely = self._lonely(nodes) if self._toward else None
        repelled = _beside(self._unwanted.with_any(nodes), lonely)
        repelling = _beside(_beside(self._unwelcoming.with_any(nodes), lonely), repelled)
        findings = (
            (REASON_AFFINITY, lonely),
            (REASON_ANTI_AFFINITY, repelled),
            (REASON_EXISTING_ANTI_AFFINITY, repelling),
        )
        return Verdicts.combine(
            (reason, mask, reason is REASON_AFFINITY) for reason, mask in findings if mask is not None
        )

    def _concerns_of(self, pod: PodInfo) -> Iterator[tuple[TopologyCounts, str]]:
        """What is counted differently once the pod is on a row, and in which topology."""
        for term in pod.affinity.required_anti:
            if term.matches(self._pod.namespace, self._pod.labels, self._namespace_labels):
                yield self._unwelcoming, term.topology_key
        if all_match(self._toward, pod):
            for wanted in self._toward:
                yield self._wanted, wanted.topology_key
        for unwanted in self._away:
            if unwanted.matches(pod):
                yield self._unwanted, unwanted.topology_key

    def _lonely(self, nodes: NodeTable) -> BoolArray:
        """Nodes without a topology label that a term names, or without the pods that the pod wants to be near."""
        is_first_of_series = self._is_own_kind and self._wanted.n_pods == 0
        rejected: BoolArray | None = None
        for key in {term.topology_key for term in self._toward}:
            here = nodes.label(key).codes == MISSING if is_first_of_series else self._wanted.without_any(key, nodes)
            rejected = here if rejected is None else rejected | here
        assert rejected is not None
        return rejected


def _count_wanted(terms: Sequence[ScopedTerm], nodes: NodeTable) -> TopologyCounts:
    """Pods that all terms match: one that only some of them match does not count."""
    counts = TopologyCounts(nodes)
    if terms:
        pods = nodes.pods
        classes = np.logical_and.reduce([pods.classes(term.selector, term.namespaces) for term in terms])
        by_row = pods.counts(classes)
        for term in terms:
            counts.add_counts(term.topology_key, by_row)
    return counts


def _count_unwanted(terms: Sequence[ScopedTerm], nodes: NodeTable) -> TopologyCounts:
    """Pods that at least one term matches, each in the topology of that term."""
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


def _beside(mask: BoolArray | None, earlier: BoolArray | None) -> BoolArray | None:
    """The nodes of the mask that have no earlier reason."""
    return mask if mask is None or earlier is None else mask & ~earlier
