"""The terms of pods on nodes, found by a label that a pod must have for a term to speak of it.

A cluster may hold thousands of different terms, few of which speak of any one pod. Nearly all of them ask for a label
with a certain value, so that looking up the pod's own labels finds the few that may. The index is kept from cycle to
cycle and follows the groups of pods that come and go; it makes answers faster and never changes one.

Next: `filtering` and `scoring`, which ask it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from kubesched.framework.nodes import AffinityGroup
from kubesched.framework.pod_info import AffinityTerm, PodAffinityTerms, PodInfo
from kubesched.k8s.model.selectors import Labels

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
        """Every term that speaks of the pod, with the group it belongs to and its weight."""
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
