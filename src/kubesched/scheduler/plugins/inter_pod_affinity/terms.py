"""Pod affinity terms: which pods they match, an index of the terms of existing pods, and counts by topology.

Namespace selectors of the incoming pod are resolved against the namespaces that exist. One that an unlabelled namespace
would match (`NotIn`, `DoesNotExist`, or an empty one) matches every namespace, as in kube-scheduler. Terms of existing
pods need none of this: they are matched against one pod, whose namespace is known. A cluster may hold thousands of
those, few of which match any one pod; `TermIndex` finds the few by the pod's labels.

`TopologyCounts` has an array for each topology key, indexed by the code of the label's value: what is counted on a row
counts for all nodes with that value. Filter counts pods this way, Score adds up weights. Both follow pods that are
added and removed; what such a pod changes depends on its labels and terms only, and is worked out once (`ByClass`).

Next: `filtering`, `scoring`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from kubesched.framework.nodes import MISSING, AffinityGroup, CodeArray, Column, IntArray, NodeTable, RowArray
from kubesched.framework.pod_info import AffinityTerm, PodAffinityTerms, PodInfo
from kubesched.framework.verdicts import BoolArray
from kubesched.k8s.model.core import Namespace
from kubesched.k8s.model.selectors import Labels, Selector

# -- terms of the incoming pod -----------------------------------------------------------------------------------------


UNLABELLED: Labels = {}


@dataclass(frozen=True, slots=True)
class ScopedTerm:
    """A term with its namespaces known by name; None stands for all of them."""

    topology_key: str
    selector: Selector
    namespaces: frozenset[str] | None
    weight: int

    def matches(self, pod: PodInfo) -> bool:
        in_scope = self.namespaces is None or pod.namespace in self.namespaces
        return in_scope and self.selector.matches(pod.labels)


ScopeTerms = Callable[[Iterable[AffinityTerm]], tuple[ScopedTerm, ...]]
"""Finds out by name which namespaces terms are about."""


def matches_unlabelled(selector: Selector) -> bool:
    return selector.matches(UNLABELLED)


def scoped(
    terms: Iterable[AffinityTerm],
    namespaces: Mapping[str, Namespace],
    matches_all: Callable[[Selector], bool] = matches_unlabelled,
) -> tuple[ScopedTerm, ...]:
    """`matches_all` says which namespace selectors stand for every namespace."""

    def namespaces_of(term: AffinityTerm) -> frozenset[str] | None:
        return _namespaces_of(term, namespaces, matches_all)

    return tuple(ScopedTerm(term.topology_key, term.selector, namespaces_of(term), term.weight) for term in terms)


def _namespaces_of(
    term: AffinityTerm, namespaces: Mapping[str, Namespace], matches_all: Callable[[Selector], bool]
) -> frozenset[str] | None:
    selector = term.namespace_selector
    if selector.nothing:
        return term.namespaces
    if matches_all(selector):
        return None
    return term.namespaces | {name for name, namespace in namespaces.items() if selector.matches(namespace.labels)}


def all_match(terms: Sequence[ScopedTerm], pod: PodInfo) -> bool:
    """Whether there are terms, and every one of them matches the pod."""
    return bool(terms) and all(term.matches(pod) for term in terms)


# -- Terms that cannot be parsed -----------------------------------------------------------------------------------


def errors_in(pod: PodInfo) -> str | None:
    """What is wrong with a pod's terms, by the first validation error of every list; None if nothing is."""
    found = pod.affinity.errors
    if not found:
        return None
    return found[0] if len(found) == 1 else f"[{', '.join(found)}]"


# -- terms of existing pods --------------------------------------------------------------------------------------------


WeightedTerm = tuple[AffinityTerm, int]

_Place = tuple[str, str] | None
"""A label's key and value; None for terms that ask for no certain value."""


class TermIndex:
    """Terms of groups of pods, with a weight each; which terms of a group count is up to `terms_of`."""

    def __init__(self, terms_of: Callable[[PodAffinityTerms], Iterable[WeightedTerm]]) -> None:
        self.terms_of = terms_of
        self._groups: Sequence[AffinityGroup] = ()
        self._places: dict[AffinityGroup, set[_Place]] = {}
        self._terms: dict[_Place, dict[AffinityGroup, list[WeightedTerm]]] = {}

    def follow(self, groups: Sequence[AffinityGroup]) -> None:
        """Takes over the groups that there are now."""
        if groups == self._groups:
            return
        self._groups = groups
        current = set(groups)
        for group in [known for known in self._places if known not in current]:
            self._remove(group)
        for group in groups:
            if group not in self._places:
                self._add(group)

    def about(self, pod: PodInfo, namespace_labels: Labels) -> Iterator[tuple[AffinityGroup, AffinityTerm, int]]:
        """Every term that matches the pod, with the group it belongs to and its weight."""
        namespace, labels = pod.namespace, pod.labels
        for place in (None, *labels.items()):
            for group, terms in self._terms.get(place, {}).items():
                for term, weight in terms:
                    if term.matches(namespace, labels, namespace_labels):
                        yield group, term, weight

    def _add(self, group: AffinityGroup) -> None:
        places = self._places[group] = set()
        for term, weight in self.terms_of(group.terms):
            for place in self._places_for(term):
                self._terms.setdefault(place, {}).setdefault(group, []).append((term, weight))
                places.add(place)

    def _remove(self, group: AffinityGroup) -> None:
        for place in self._places.pop(group):
            del self._terms[place][group]
            if not self._terms[place]:
                del self._terms[place]

    def _places_for(self, term: AffinityTerm) -> set[_Place]:
        """One place for each value of a label that the term asks for: of the label by which least was found so far."""
        if term.selector.nothing:
            return set()
        asked = [r for r in term.selector.requirements if r.operator == "In"]
        choices: list[set[_Place]] = [{(r.key, value) for value in r.values} for r in asked]
        return min(choices, key=self._n_groups_at, default={None})

    def _n_groups_at(self, places: Iterable[_Place]) -> int:
        return sum(len(self._terms.get(place, ())) for place in places)


# -- counts by topology ------------------------------------------------------------------------------------------------


class TopologyCounts:
    """Numbers by topology key and value. Only keys that something was added for have an array."""

    __slots__ = ("_by_key", "_codes", "_nodes", "_occupied", "n_pods")

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes.whole
        self._by_key: dict[str, IntArray] = {}
        self._codes: dict[str, CodeArray] = {}
        self._occupied: BoolArray | None = None
        """By row of the whole table: what `with_any` says; None if that has to be looked up."""
        self.n_pods = 0
        """How many pods have been added, once per key, that stand on a row with the label."""

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_key)

    def add_pods(self, key: str, rows: RowArray, weight: int = 1) -> None:
        """Pods by the row of each; a row may occur several times."""
        column = self._nodes.label(key)
        codes = column.codes.take(rows)
        codes = codes[codes != MISSING]
        if len(codes):
            self._array(key, column)[:-1] += weight * np.bincount(codes, minlength=len(column.values))
            self.n_pods += len(codes)

    def add_counts(self, key: str, counts: IntArray, weight: int = 1) -> None:
        """Pods by how many every row of the whole table holds."""
        column = self._nodes.label(key)
        rows = np.flatnonzero((counts > 0) & (column.codes != MISSING))
        if len(rows):
            n_values = len(column.values)
            by_value = np.bincount(column.codes[rows], weights=counts[rows], minlength=n_values).astype(np.int64)
            self._array(key, column)[:-1] += weight * by_value
            self.n_pods += int(by_value.sum())

    def change(self, key: str, row: int, by: int, weight: int = 1) -> None:
        """One pod comes to a row (+1), or leaves it (-1)."""
        codes = self._codes.get(key)
        if codes is None:
            codes = self._codes[key] = self._nodes.label(key).codes
        code = codes[row]
        if code != MISSING:
            array = self._by_key.get(key)
            if array is None:
                array = self._array(key, self._nodes.label(key))
            before = array.item(code)
            array[code] = after = before + weight * by
            self.n_pods += by
            if self._occupied is not None and (before > 0) != (after > 0):
                if len(self._by_key) == 1:
                    change = np.logical_or if after > 0 else np.greater  # of truth values: true and not
                    change(self._occupied, codes == code, out=self._occupied)
                else:
                    self._occupied = None  # what one key says of a row, another may say, too

    def at(self, key: str, nodes: NodeTable) -> IntArray:
        """(n_nodes,) the number of each node's topology; 0 for nodes without the label."""
        found = self._by_key.get(key)
        return np.zeros(len(nodes), dtype=np.int64) if found is None else found.take(nodes.label(key).codes)

    def without_any(self, key: str, nodes: NodeTable) -> BoolArray:
        """(n_nodes,) nodes in a topology where nothing was counted, or in none."""
        found = self._by_key.get(key)
        if found is None:
            return np.ones(len(nodes), dtype=np.bool_)
        empty = found <= 0
        return empty.take(nodes.label(key).codes)

    def with_any(self, nodes: NodeTable) -> BoolArray | None:
        """(n_nodes,) nodes in a topology where something was counted; None if there are no such nodes."""
        if self.n_pods == 0:
            return None
        occupied = self._occupied
        if occupied is None:
            occupied = np.zeros(len(self._nodes), dtype=np.bool_)
            for key, found in self._by_key.items():
                occupied |= (found > 0).take(self._nodes.label(key).codes)
            self._occupied = occupied
        return occupied.copy() if nodes.whole is nodes else occupied.take(nodes.rows)

    def _array(self, key: str, column: Column[str]) -> IntArray:
        """One entry more than there are values: the code `MISSING` finds it, and it stays 0."""
        found = self._by_key.get(key)
        if found is None:
            found = self._by_key[key] = np.zeros(len(column.values) + 1, dtype=np.int64)
        return found


# -- pods that are added and removed -----------------------------------------------------------------------------------


Concern = TypeVar("Concern")

_MOST_KEPT = 1000
"""Where every pod has labels of its own, nothing is found again: then it must at least not pile up."""


class ByClass(Generic[Concern]):
    """Remembers the answers of `find`."""

    __slots__ = ("_find", "_known")

    def __init__(self, find: Callable[[PodInfo], Iterable[Concern]]) -> None:
        self._find = find
        self._known: dict[tuple[int, int], tuple[Concern, ...]] = {}

    def of(self, pod: PodInfo) -> tuple[Concern, ...]:
        signature = pod.signature
        key = (signature.label_class, signature.affinity_class)
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _MOST_KEPT:
                self._known.clear()
            found = self._known[key] = tuple(self._find(pod))
        return found
