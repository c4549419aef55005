"""The terms of the pod to be placed: which pods each of them speaks of, and what is wrong with those it cannot read.

Namespace selectors are resolved here, against the namespaces there are. A selector that an unlabelled namespace would
meet (`NotIn`, `DoesNotExist`, or an empty one) stands for every namespace, as in kube-scheduler. Terms of pods that are
already placed need none of this: they are asked about one pod, whose namespace is known.

Next: `topology`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kubesched.framework.pod_info import AffinityTerm, PodInfo
from kubesched.k8s.model.core import (
    Namespace,
)
from kubesched.k8s.model.selectors import Labels, Selector

UNLABELLED: Labels = {}


@dataclass(frozen=True, slots=True)
class ScopedTerm:
    """A term with its namespaces known by name; None stands for all of them."""

    topology_key: str
    selector: Selector
    namespaces: frozenset[str] | None
    weight: int

    def speaks_of(self, pod: PodInfo) -> bool:
        in_scope = self.namespaces is None or pod.namespace in self.namespaces
        return in_scope and self.selector.matches(pod.labels)


def scoped(terms: Iterable[AffinityTerm], namespaces: Mapping[str, Namespace]) -> tuple[ScopedTerm, ...]:
    return tuple(
        ScopedTerm(term.topology_key, term.selector, _namespaces_of(term, namespaces), term.weight) for term in terms
    )


def _namespaces_of(term: AffinityTerm, namespaces: Mapping[str, Namespace]) -> frozenset[str] | None:
    selector = term.namespace_selector
    if selector.nothing:
        return term.namespaces
    if selector.matches(UNLABELLED):
        return None
    return term.namespaces | {name for name, namespace in namespaces.items() if selector.matches(namespace.labels)}


def speak_all_of(terms: Sequence[ScopedTerm], pod: PodInfo) -> bool:
    """Whether there are terms, and the pod is one that every one of them speaks of."""
    return bool(terms) and all(term.speaks_of(pod) for term in terms)


# -- Terms that cannot be understood -----------------------------------------------------------------------------------


def errors_in(pod: PodInfo) -> str | None:
    """What is wrong with a pod's terms, by the first validation error of every list; None if nothing is."""
    found = pod.affinity.mistakes
    if not found:
        return None
    return found[0] if len(found) == 1 else f"[{', '.join(found)}]"
