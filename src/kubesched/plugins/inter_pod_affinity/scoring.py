"""Preferred terms, the pod's own and those of the pods around it: the weights of all that match, summed by topology.

Required affinity of pods around it counts as well, with a weight of its own: who must be near such a pod is glad of one
more. A score may be negative; `normalize` stretches the range that occurs over 0 to 100.

Next: `hints` for when a rejected pod deserves another try.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from kubesched.framework.nodes import NodeTable
from kubesched.framework.pod_info import PodAffinityTerms, PodInfo
from kubesched.framework.scores import MAX_NODE_SCORE, Scores
from kubesched.model.core import Namespace
from kubesched.model.selectors import Labels
from kubesched.plugins.inter_pod_affinity.term_index import TermIndex, WeightedTerm
from kubesched.plugins.inter_pod_affinity.terms import ScopedTerm, scoped
from kubesched.plugins.inter_pod_affinity.topology import TopologyCounts


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

    def __init__(self, nodes: NodeTable) -> None:
        self._weights = TopologyCounts(nodes)
        self._nodes = nodes

    @property
    def is_idle(self) -> bool:
        """Whether no term matched any pod, so that there is nothing to score."""
        return self._weights.n_pods == 0

    def add_own_terms(self, terms: PodAffinityTerms, namespaces: Mapping[str, Namespace]) -> None:
        """What the pod itself prefers."""
        self._add_own(scoped(terms.preferred, namespaces), +1)
        self._add_own(scoped(terms.preferred_anti, namespaces), -1)

    def add_terms_of_others(self, pod: PodInfo, namespace_labels: Labels, terms: TermIndex) -> None:
        """What pods on nodes prefer, or require, as far as this pod is one they speak of."""
        terms.follow(self._nodes.pods.affinity_groups())
        for group, term, weight in terms.about(pod, namespace_labels):
            self._weights.add_pods(term.topology_key, group.rows, weight)

    def scores(self, nodes: NodeTable) -> Scores:
        total: Scores = np.zeros(len(nodes), dtype=np.int64)
        for key in self._weights:
            total += self._weights.at(key, nodes)
        return total

    def _add_own(self, terms: Sequence[ScopedTerm], sign: int) -> None:
        pods = self._nodes.pods
        for term in terms:
            counts = pods.counts(pods.classes(term.selector, term.namespaces))
            self._weights.add_counts(term.topology_key, counts, sign * term.weight)


def normalize(scores: Scores) -> Scores:
    """From the lowest score at 0 to the highest at 100; all 0 where they are equal."""
    lowest, highest = int(scores.min()), int(scores.max())
    if highest == lowest:
        return np.zeros_like(scores)
    return (float(MAX_NODE_SCORE) * ((scores - lowest) / float(highest - lowest))).astype(np.int64)
