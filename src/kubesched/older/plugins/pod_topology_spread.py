"""PodTopologySpread of 1.17 to 1.19: constraints without refinements, and scores that changed with every version."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.nodes import NodeInfo, NodeTable
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.results import PreFilterResult, Scores
from kubesched.framework.status import OK, Status
from kubesched.k8s.model.selectors import Selector, from_label_selector
from kubesched.older.plugins.node_checks import fits_selector_and_affinity
from kubesched.older.plugins.rejection import Reason, ReasonedFilter, unresolvable
from kubesched.older.plugins.selector_spread import joined_selector

HOSTNAME = "kubernetes.io/hostname"
NOT_MET = Reason("node(s) didn't match pod topology spread constraints")
NO_LABEL = unresolvable("node(s) didn't match pod topology spread constraints (missing required label)")
_NO_MINIMUM = 2**31 - 1

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class SpreadRule:
    max_skew: int
    key: str
    selector: Selector


@dataclass(frozen=True, slots=True)
class HardSpread:
    rules: tuple[SpreadRule, ...]
    counts: Mapping[Pair, int]

    def fewest(self, key: str) -> int:
        return min((count for (known, _), count in self.counts.items() if known == key), default=_NO_MINIMUM)


@dataclass(frozen=True, slots=True)
class SoftSpread:
    rules: tuple[SpreadRule, ...]
    counts: Mapping[Pair, int]
    ignored: frozenset[str]
    """Nodes that lack one of the labels."""
    weights: tuple[float, ...] = ()


class OlderPodTopologySpread(ReasonedFilter):
    # -- filter --------------------------------------------------------------------------------------------------------

    def pre_filter(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> PreFilterResult:
        rules = self._rules(pod, "DoNotSchedule")
        counts: dict[Pair, int] = {}
        if rules:
            every = [nodes.at(position) for position in range(len(nodes))]
            counted = [node for node in every if self._is_counted(pod, node, rules)]
            for node in counted:
                for rule in rules:
                    counts[rule.key, node.node.labels[rule.key]] = 0
            for node in every if self.generation.spread_by_domain_size else counted:
                for pair, rule in self._pairs(node, rules):
                    if pair in counts:
                        counts[pair] += self._n_matching(pod, node, rule)
        cycle.put(HardSpread(rules, counts))
        return PreFilterResult()

    def add_pod(self, cycle: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo) -> Status:
        self._follow(cycle, pod, added, node, 1)
        return OK

    def remove_pod(self, cycle: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo) -> Status:
        self._follow(cycle, pod, removed, node, -1)
        return OK

    def reasons(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> Sequence[Reason]:
        state = cycle.get(HardSpread)
        if not state.counts and self.generation.spread_needs_counted_nodes:
            return ()
        for rule in state.rules:
            value = node.node.labels.get(rule.key)
            if value is None:
                return (NO_LABEL if self.generation.spread_by_domain_size else NOT_MET,)
            here = state.counts.get((rule.key, value), 0) + rule.selector.matches(pod.labels)
            if here - state.fewest(rule.key) > rule.max_skew:
                return (NOT_MET,)
        return ()

    def _follow(self, cycle: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo, by: int) -> None:
        state = cycle.get(HardSpread)
        if other.namespace != pod.namespace or not _has_labels(node, state.rules):
            return
        counts = dict(state.counts)
        for pair, rule in self._pairs(node, state.rules):
            is_known = pair in counts or not self.generation.spread_by_domain_size
            if is_known and rule.selector.matches(other.labels):
                counts[pair] = counts.get(pair, 0) + by
        cycle.put(replace(state, counts=counts))

    # -- score ---------------------------------------------------------------------------------------------------------

    def pre_score(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> Status:
        rules = self._rules(pod, "ScheduleAnyway")
        feasible = [nodes.at(position) for position in range(len(nodes))]
        ignored = frozenset(node.name for node in feasible if rules and not _has_labels(node, rules))
        counts = {pair: 0 for node in feasible if node.name not in ignored for pair, _ in self._pairs(node, rules)}
        if self.generation.spread_by_domain_size:
            counts = {pair: 0 for pair in counts if pair[0] != HOSTNAME}
        weights = tuple(self._weight(rule, counts, len(feasible) - len(ignored)) for rule in rules)
        whole = nodes.whole
        for position in range(len(whole) if rules else 0):
            node = whole.at(position)
            if self._is_counted(pod, node, rules):
                for pair, rule in self._pairs(node, rules):
                    if pair in counts:
                        counts[pair] += self._n_matching_for_score(pod, node, rule)
        cycle.put(SoftSpread(rules, counts, ignored, weights))
        return OK

    def _weight(self, rule: SpreadRule, counts: Mapping[Pair, int], n_nodes: int) -> float:
        n_domains = n_nodes if rule.key == HOSTNAME else sum(key == rule.key for key, _ in counts)
        return math.log(n_domains + 2)

    def score_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        state = cycle.get(SoftSpread)
        if node.name in state.ignored:
            return 0
        pairs = self._pairs(node, state.rules)
        if not self.generation.spread_by_domain_size:
            return sum(state.counts[pair] for pair, _ in pairs)
        total = 0.0
        for (pair, rule), weight in zip(pairs, state.weights, strict=True):
            count = self._n_matching_for_score(pod, node, rule) if rule.key == HOSTNAME else state.counts[pair]
            total += float(count) * weight + float(rule.max_skew - 1)
        return int(total)

    def normalize_score(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable, scores: Scores) -> Scores:
        state = cycle.get(SoftSpread)
        counted = np.array([name not in state.ignored for name in nodes.names], dtype=np.bool_)
        by_version = self._flipped_by_most if self.generation.spread_by_domain_size else self._flipped_by_total
        return np.array(by_version(state, scores.tolist(), counted.tolist()), dtype=np.int64)

    def _flipped_by_most(self, _state: SoftSpread, scores: list[int], counted: list[bool]) -> list[int]:
        of_counted = [score for score, counts in zip(scores, counted, strict=True) if counts]
        highest, lowest = max(of_counted, default=0), min(of_counted, default=0)
        top = self.generation.highest_score
        return [
            0 if not counts else top if highest == 0 else top * (highest + lowest - score) // highest
            for score, counts in zip(scores, counted, strict=True)
        ]

    def _flipped_by_total(self, state: SoftSpread, scores: list[int], counted: list[bool]) -> list[int]:
        """A pod without soft constraints is indifferent."""
        of_counted = [score for score, counts in zip(scores, counted, strict=True) if counts]
        if not state.rules or not of_counted:
            return [0] * len(scores)
        total = sum(of_counted)
        span = total - min(of_counted)
        top = self.generation.highest_score
        if span == 0:
            return [top] * len(scores)
        return [
            int(float(top) * ((total - score) / span)) if counts else 0
            for score, counts in zip(scores, counted, strict=True)
        ]

    # -- both ----------------------------------------------------------------------------------------------------------

    def _rules(self, pod: PodInfo, action: str) -> tuple[SpreadRule, ...]:
        own = pod.spec.topology_spread_constraints
        if own:
            return tuple(
                SpreadRule(rule.max_skew, rule.topology_key, from_label_selector(rule.label_selector))
                for rule in own
                if rule.when_unsatisfiable == action
            )
        defaults = [c for c in self.args.get("defaultConstraints") or () if c.get("whenUnsatisfiable") == action]
        if not defaults:
            return ()
        selector = joined_selector(pod.pod, self.handle.objects)
        if not selector.requirements:
            return ()
        return tuple(SpreadRule(int(c["maxSkew"]), c["topologyKey"], selector) for c in defaults)

    def _is_counted(self, pod: PodInfo, node: NodeInfo, rules: tuple[SpreadRule, ...]) -> bool:
        return _has_labels(node, rules) and fits_selector_and_affinity(pod.spec, node.node)

    def _pairs(self, node: NodeInfo, rules: tuple[SpreadRule, ...]) -> list[tuple[Pair, SpreadRule]]:
        labels = node.node.labels
        return [((rule.key, labels[rule.key]), rule) for rule in rules if rule.key in labels]

    def _n_matching(self, pod: PodInfo, node: NodeInfo, rule: SpreadRule) -> int:
        counts_leaving = self.generation.spread_counts_terminating
        return sum(
            other.namespace == pod.namespace
            and (counts_leaving or not other.pod.is_terminating)
            and rule.selector.matches(other.labels)
            for other in node.pods
        )

    def _n_matching_for_score(self, pod: PodInfo, node: NodeInfo, rule: SpreadRule) -> int:
        if self.generation.spread_scores_all_namespaces:
            return sum(rule.selector.matches(other.labels) for other in node.pods)
        return self._n_matching(pod, node, rule)


def _has_labels(node: NodeInfo, rules: tuple[SpreadRule, ...]) -> bool:
    return all(rule.key in node.node.labels for rule in rules)
