"""What a pod would like of a node: weighted terms, each of which adds its weight where it matches.

Unlike a required term, a preferred one with a validation error in it ends the cycle with an error. The API server lets
some through (a text under `Gt`, a value that no label can have), so this does happen.

Next: `plugin`, which scores by it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kubesched.framework import NodeTable
from kubesched.framework.scores import Scores
from kubesched.k8s.model import core, selectors
from kubesched.k8s.model.selectors import NodeTerm, SelectorError
from kubesched.scheduler.config.errors import ErrorList
from kubesched.scheduler.config.validation_affinity import validate_node_affinity
from kubesched.scheduler.plugins.node_affinity.matching import term_nodes

_FIELD = ".preferredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True, slots=True)
class PreferredNodeAffinity:
    terms: tuple[tuple[NodeTerm, int], ...] = ()

    def on_table(self, nodes: NodeTable) -> Scores:
        """(n_nodes,) the sum of the weights of the terms that match."""
        scores: Scores = np.zeros(len(nodes), dtype=np.int64)
        for term, weight in self.terms:
            scores[term_nodes(term, nodes)] += weight
        return scores

    def on_node(self, node: core.Node) -> int:
        return sum(weight for term, weight in self.terms if term.matches(node.labels, node.name))


def preferred_terms_of(spec: core.PodSpec) -> tuple[core.PreferredSchedulingTerm, ...] | None:
    """The pod's preferred terms; None, as against none at all, when it says nothing about them."""
    affinity = spec.affinity
    if affinity is None or affinity.node_affinity is None:
        return None
    return affinity.node_affinity.preferred_during_scheduling_ignored_during_execution


def preferred_node_affinity(spec: core.PodSpec) -> PreferredNodeAffinity:
    """Raises SelectorError, with all validation errors in Kubernetes' words, where a term cannot be understood."""
    terms = preferred_terms_of(spec) or ()
    errors = ErrorList()
    validate_node_affinity(core.NodeAffinity(preferred_during_scheduling_ignored_during_execution=terms), "", errors)
    if errors:
        # Kubernetes counts from the list of terms here, not from the affinity that holds it.
        problems = [f"{error.path.removeprefix(_FIELD)}: {error.message}" for error in errors]
        raise SelectorError(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")
    return PreferredNodeAffinity(selectors.compile_preferred_terms(terms))
