"""What inter-pod affinity knows in a cycle: in which topology there are pods that matter, and how that follows trials.

Until 1.17 it remembered which pods stand behind a topology value, later how many terms. When a pod came back in a
trial, the former took every anti-affinity term as met once one was.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from kubesched.framework.pod_info import AffinityTerm, PodInfo

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
