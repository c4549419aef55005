"""InterPodAffinity of old.

The first pod of a group that has affinity to itself may go anywhere, even where the topology label is missing (until
1.18).

In a cycle it knows in which topology there are pods that matter. Until 1.17 it remembered which pods stand behind a
topology value, later how many terms. How the state follows pods in a trial differed, and not always to its advantage:
when a pod came back in a trial, the former took every anti-affinity term as met once one was.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.handle import Handle
from kubesched.framework.nodes import NodeInfo, NodeTable
from kubesched.framework.pod_info import AffinityTerm, PodInfo
from kubesched.framework.results import PreFilterResult, Scores
from kubesched.framework.status import OK, Status
from kubesched.older.config.generations import Generation
from kubesched.older.plugins.rejection import Reason, ReasonedFilter, unresolvable

Pair = tuple[str, str]
Labels = Mapping[str, str]


class TopologyTally:
    """By topology label and value: the pods behind it, or a number."""

    def __init__(self, *, counts: bool) -> None:
        self._counts = counts
        self._numbers: dict[Pair, int] = {}
        self._pods: dict[Pair, set[str]] = {}

    def __bool__(self) -> bool:
        return bool(self._numbers if self._counts else self._pods)

    def any_of(self, pairs: Iterable[Pair]) -> bool:
        if self._counts:
            return any(self._numbers.get(pair, 0) > 0 for pair in pairs)
        return any(pair in self._pods for pair in pairs)

    def change(self, pair: Pair, uid: str, by: int) -> None:
        if not self._counts:
            self._pods.setdefault(pair, set()).add(uid)
            return
        number = self._numbers.get(pair, 0) + by
        if number:
            self._numbers[pair] = number
        else:
            self._numbers.pop(pair, None)

    def drop(self, uid: str) -> None:
        for pair in [pair for pair, uids in self._pods.items() if uid in uids]:
            self._pods[pair].discard(uid)
            if not self._pods[pair]:
                del self._pods[pair]

    def copy(self) -> TopologyTally:
        copied = TopologyTally(counts=self._counts)
        copied._numbers = dict(self._numbers)
        copied._pods = {pair: set(uids) for pair, uids in self._pods.items()}
        return copied


@dataclass(frozen=True, slots=True)
class AffinityState:
    counts: bool
    existing_anti: TopologyTally
    """Where pods run that do not want the new one near."""
    affinity: TopologyTally
    """Where pods run that the new one wants near."""
    anti: TopologyTally
    """Where pods run that the new one does not want near."""

    @classmethod
    def empty(cls, *, counts: bool) -> AffinityState:
        return cls(counts, TopologyTally(counts=counts), TopologyTally(counts=counts), TopologyTally(counts=counts))

    def copy(self) -> AffinityState:
        return replace(
            self, existing_anti=self.existing_anti.copy(), affinity=self.affinity.copy(), anti=self.anti.copy()
        )

    def enter(self, pod: PodInfo, other: PodInfo, labels: Labels, by: int = 1) -> None:
        """Another pod on a node with these labels."""
        self._change_existing(pod, other, other.affinity.required_anti, labels, by)
        self._change_affinity(pod, other, labels, by)
        for term in pod.affinity.required_anti:
            if matches(term, other):
                _change(self.anti, (term,), other, labels, by)

    def follow_added(self, pod: PodInfo, added: PodInfo, labels: Labels, *, defaults_to_ours: bool) -> None:
        if self.counts:
            self._follow(pod, added, labels, 1, defaults_to_ours)
            return
        self._change_existing(pod, added, added.affinity.required_anti, labels, 1)
        if not added.spec.node_name:
            return
        self._change_affinity(pod, added, labels, 1)
        if any(matches(term, added) for term in pod.affinity.required_anti):
            _change(self.anti, pod.affinity.required_anti, added, labels, 1)

    def follow_removed(self, pod: PodInfo, removed: PodInfo, labels: Labels, *, defaults_to_ours: bool) -> None:
        if self.counts:
            self._follow(pod, removed, labels, -1, defaults_to_ours)
            return
        for tally in (self.existing_anti, self.affinity, self.anti):
            tally.drop(removed.uid)

    def _follow(self, pod: PodInfo, other: PodInfo, labels: Labels, by: int, defaults_to_ours: bool) -> None:
        if not defaults_to_ours:
            self.enter(pod, other, labels, by)
            return
        terms = tuple(_in_namespace_of(pod, other, term) for term in other.affinity.required_anti)
        self._change_existing(pod, other, terms, labels, by)
        if not other.spec.node_name:
            return
        self._change_affinity(pod, other, labels, by)
        for term in pod.affinity.required_anti:
            if matches(term, other):
                _change(self.anti, (term,), other, labels, by)

    def _change_existing(
        self, pod: PodInfo, other: PodInfo, terms: Sequence[AffinityTerm], labels: Labels, by: int
    ) -> None:
        for term in terms:
            if matches(term, pod):
                _change(self.existing_anti, (term,), other, labels, by)

    def _change_affinity(self, pod: PodInfo, other: PodInfo, labels: Labels, by: int) -> None:
        if matches_all(pod.affinity.required, other):
            _change(self.affinity, pod.affinity.required, other, labels, by)


def matches(term: AffinityTerm, pod: PodInfo) -> bool:
    return term.matches(pod.namespace, pod.labels, {})


def matches_all(terms: Sequence[AffinityTerm], pod: PodInfo) -> bool:
    return bool(terms) and all(matches(term, pod) for term in terms)


def _change(tally: TopologyTally, terms: Iterable[AffinityTerm], other: PodInfo, labels: Labels, by: int) -> None:
    for term in terms:
        value = labels.get(term.topology_key)
        if value is not None:
            tally.change((term.topology_key, value), other.uid, by)


def _in_namespace_of(pod: PodInfo, other: PodInfo, term: AffinityTerm) -> AffinityTerm:
    """A term that means the other pod's own namespace, read as if it meant this pod's."""
    means_its_own = term.namespaces == frozenset({other.namespace})
    return replace(term, namespaces=frozenset({pod.namespace})) if means_its_own else term


EITHER = Reason("node(s) didn't match pod affinity/anti-affinity")
AFFINITY = unresolvable("node(s) didn't match pod affinity rules")
ANTI_AFFINITY = Reason("node(s) didn't match pod anti-affinity rules")
EXISTING = Reason("node(s) didn't satisfy existing pods anti-affinity rules")


@dataclass(frozen=True, slots=True)
class AffinityScores:
    """Points by topology label and value."""

    points: Mapping[tuple[str, str], int]


class OlderInterPodAffinity(ReasonedFilter):
    def __init__(self, name: str, args: Mapping[str, Any], handle: Handle, generation: Generation) -> None:
        super().__init__(name, args, handle, generation)
        weight = args.get("hardPodAffinityWeight")
        self._hard_weight = 1 if weight is None else int(weight)

    # -- filter --------------------------------------------------------------------------------------------------------

    def pre_filter(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> PreFilterResult:
        state = AffinityState.empty(counts=not self.generation.affinity_by_pod)
        has_rules = bool(pod.affinity)
        for position in range(len(nodes)):
            node = nodes.at(position)
            for other in node.pods:
                if has_rules or other.affinity:
                    state.enter(pod, other, node.node.labels)
        cycle.put(state)
        return PreFilterResult()

    def add_pod(self, cycle: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo) -> Status:
        state = cycle.get(AffinityState).copy()
        state.follow_added(pod, added, node.node.labels, defaults_to_ours=self.generation.affinity_mixes_namespaces)
        cycle.put(state)
        return OK

    def remove_pod(self, cycle: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo) -> Status:
        state = cycle.get(AffinityState).copy()
        state.follow_removed(pod, removed, node.node.labels, defaults_to_ours=self.generation.affinity_mixes_namespaces)
        cycle.put(state)
        return OK

    def reasons(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> Sequence[Reason]:
        state = cycle.get(AffinityState)
        labels = node.node.labels
        is_first = self.generation.affinity_before_others
        if not is_first and state.existing_anti.any_of(labels.items()):
            return (EITHER, EXISTING)
        if not self._has_company(state, pod, labels):
            return (EITHER, AFFINITY)
        if state.anti.any_of(_pairs(pod.affinity.required_anti, labels)):
            return (EITHER, ANTI_AFFINITY)
        if is_first and state.existing_anti.any_of(labels.items()):
            return (EITHER, EXISTING)
        return ()

    def _has_company(self, state: AffinityState, pod: PodInfo, labels: Mapping[str, str]) -> bool:
        terms = pod.affinity.required
        if not terms:
            return True
        pairs = _pairs(terms, labels)
        if len(pairs) == len(terms):
            if all(state.affinity.any_of([pair]) for pair in pairs):
                return True
        elif self.generation.affinity_before_others:
            return False
        return not state.affinity and matches_all(terms, pod)

    # -- score ---------------------------------------------------------------------------------------------------------

    def pre_score(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> Status:
        points: dict[tuple[str, str], int] = {}
        has_rules = bool(pod.affinity)
        whole = nodes.whole
        for position in range(len(whole)):
            node = whole.at(position)
            for other in node.pods:
                if has_rules or other.affinity:
                    self._add_points(points, pod, other, node.node.labels)
        cycle.put(AffinityScores(points))
        return OK

    def _add_points(
        self, points: dict[tuple[str, str], int], pod: PodInfo, other: PodInfo, labels: Mapping[str, str]
    ) -> None:
        ours, theirs = pod.affinity, other.affinity
        hard = self._hard_weight if self._hard_weight > 0 else 0
        found = [(term, term.weight) for term in ours.preferred if matches(term, other)]
        found += [(term, -term.weight) for term in ours.preferred_anti if matches(term, other)]
        found += [(term, hard) for term in theirs.required if matches(term, pod)]
        found += [(term, term.weight) for term in theirs.preferred if matches(term, pod)]
        found += [(term, -term.weight) for term in theirs.preferred_anti if matches(term, pod)]
        for term, weight in found:
            value = labels.get(term.topology_key)
            if value is not None:
                pair = term.topology_key, value
                points[pair] = points.get(pair, 0) + weight

    def score(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> Scores:
        raw = np.array([self._points_of(cycle, nodes.at(at)) for at in range(len(nodes))], dtype=np.int64)
        return self._stretched(raw) if self.generation.has_predicates else raw

    def normalize_score(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable, scores: Scores) -> Scores:
        return scores if self.generation.has_predicates else self._stretched(scores)

    def _points_of(self, cycle: CycleState, node: NodeInfo) -> int:
        points = cycle.get(AffinityScores).points
        return sum(points.get(pair, 0) for pair in node.node.labels.items())

    def _stretched(self, scores: Scores) -> Scores:
        """Between the lowest and the highest, 0 always being between them."""
        highest, lowest = max(0, int(scores.max(initial=0))), min(0, int(scores.min(initial=0)))
        if highest == lowest:
            return np.zeros_like(scores)
        top = float(self.generation.highest_score)
        found = [int(top * ((score - lowest) / (highest - lowest))) for score in scores.tolist()]
        return np.array(found, dtype=np.int64)


def _pairs(terms: Sequence[AffinityTerm], labels: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(term.topology_key, labels[term.topology_key]) for term in terms if term.topology_key in labels]
