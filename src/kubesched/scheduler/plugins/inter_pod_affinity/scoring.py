"""Preferred terms, the pod's own and those of existing pods: the weights of all that match, summed by topology.

Required affinity of existing pods counts as well, with `hardPodAffinityWeight`. A score may be negative; `normalize`
stretches the range that occurs over 0 to 100.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from kubesched.framework.caching import PodChange
from kubesched.framework.nodes import NodeTable
from kubesched.framework.pod_info import PodAffinityTerms, PodInfo
from kubesched.framework.results import MAX_NODE_SCORE, Scores
from kubesched.k8s.model.selectors import Labels
from kubesched.scheduler.plugins.inter_pod_affinity.terms import (
    ByClass,
    ScopeTerms,
    TermIndex,
    TopologyCounts,
    WeightedTerm,
)


def scoring_terms(terms: PodAffinityTerms, hard_weight: int) -> Iterator[WeightedTerm]:
    """What `AffinityScoreState` wants indexed."""
    if hard_weight > 0:
        for term in terms.required:
            yield term, hard_weight
    for term in terms.preferred:
        yield term, term.weight
    for term in terms.preferred_anti:
        yield term, -term.weight


class AffinityScoreState:
    """What PreScore found out: the score of every topology."""

    def __init__(
        self,
        pod: PodInfo,
        nodes: NodeTable,
        scope: ScopeTerms,
        namespace_labels: Labels,
        terms: TermIndex,
    ) -> None:
        self._pod = pod
        self._namespace_labels = namespace_labels
        self._own = (
            *((term, term.weight) for term in scope(pod.affinity.preferred)),
            *((term, -term.weight) for term in scope(pod.affinity.preferred_anti)),
        )
        self._terms_of_others = terms.terms_of
        self._weights = TopologyCounts(nodes)
        self._add_own_terms(nodes)
        self._add_terms_of_others(nodes, terms)
        self._concerns: ByClass[tuple[str, int]] = ByClass(self._concerns_of)

    @property
    def is_idle(self) -> bool:
        """Whether no term matched any pod, so that there is nothing to score."""
        return self._weights.n_pods == 0

    def follow(self, changes: Iterable[PodChange]) -> bool:
        """Pods came and went. False if there was nothing to say, and now there is."""
        followed = True
        concerns = self._concerns.of
        for row, pod, added in changes:
            if concerns(pod):
                followed = self.change(pod, row, 1 if added else -1) and followed
        return followed

    def change(self, pod: PodInfo, row: int, by: int) -> bool:
        """A pod comes to a row, or leaves it. False if there was nothing to score, and now there is."""
        concerns = self._concerns.of(pod)
        was_idle = bool(concerns) and self.is_idle
        for key, weight in concerns:
            self._weights.change(key, row, by, weight)
        return not was_idle or self.is_idle

    def scores(self, nodes: NodeTable) -> Scores:
        total: Scores | None = None
        for key in self._weights:
            weights = self._weights.at(key, nodes)
            total = weights if total is None else total + weights
        return np.zeros(len(nodes), dtype=np.int64) if total is None else total

    def _add_own_terms(self, nodes: NodeTable) -> None:
        """What the pod itself prefers."""
        pods = nodes.pods
        for term, weight in self._own:
            counts = pods.counts(pods.classes(term.selector, term.namespaces))
            self._weights.add_counts(term.topology_key, counts, weight)

    def _add_terms_of_others(self, nodes: NodeTable, terms: TermIndex) -> None:
        """What existing pods prefer, or require, by terms that match this pod."""
        terms.follow(nodes.pods.affinity_groups())
        for group, term, weight in terms.about(self._pod, self._namespace_labels):
            self._weights.add_pods(term.topology_key, group.rows, weight)

    def _concerns_of(self, pod: PodInfo) -> Iterator[tuple[str, int]]:
        """In which topologies the score changes once the pod is on a row, and by how much."""
        for own, weight in self._own:
            if own.matches(pod):
                yield own.topology_key, weight
        for term, weight in self._terms_of_others(pod.affinity):
            if term.matches(self._pod.namespace, self._pod.labels, self._namespace_labels):
                yield term.topology_key, weight


def normalize(scores: Scores) -> Scores:
    """From the lowest score at 0 to the highest at 100; all 0 where they are equal."""
    lowest, highest = int(scores.min()), int(scores.max())
    if highest == lowest:
        return np.zeros_like(scores)
    shares = (scores - lowest) / float(highest - lowest)
    shares *= float(MAX_NODE_SCORE)
    return shares.astype(np.int64)
