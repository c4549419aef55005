"""What must hold of a node: every label of the pod's node selector, and one term of its required node affinity.

Next: `plugin`, which filters by it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kubesched.framework import NodeTable
from kubesched.framework.verdicts import BoolArray
from kubesched.k8s.model import selectors
from kubesched.k8s.model.core import Node, NodeSelector, NodeSelectorTerm, PodSpec
from kubesched.k8s.model.selectors import NODE_NAME_FIELD, CompiledNodeSelector, Selector
from kubesched.scheduler.plugins.node_affinity.matching import labelled_nodes, selected_nodes


@dataclass(frozen=True, slots=True)
class RequiredNodeAffinity:
    """Compiled once a cycle. `affinity` is None for a pod that has only a node selector."""

    labels: Selector
    affinity: CompiledNodeSelector | None

    def on_table(self, nodes: NodeTable) -> BoolArray:
        """(n_nodes,) which nodes the pod may go to."""
        if len(nodes) == 1:  # dry runs ask about one node, often; columns pay only for many
            return np.array([self.on_node(nodes.at(0).node)])
        mask = labelled_nodes(self.labels.requirements, nodes)
        return mask if self.affinity is None else mask & selected_nodes(self.affinity, nodes)

    def on_node(self, node: Node) -> bool:
        return self.labels.matches(node.labels) and (self.affinity is None or self.affinity.matches(node))

    def is_doubtful_on(self, node: Node) -> bool:
        """Whether the node is out, but only as far as terms that nobody can read let us know."""
        if self.affinity is None or not self.labels.matches(node.labels):
            return False
        return bool(self.affinity.errors) and not self.affinity.matches(node)


def node_selector_of(spec: PodSpec) -> NodeSelector | None:
    """The pod's required node affinity, if it has one."""
    affinity = spec.affinity
    if affinity is None or affinity.node_affinity is None:
        return None
    return affinity.node_affinity.required_during_scheduling_ignored_during_execution


def required_node_affinity(spec: PodSpec) -> RequiredNodeAffinity:
    selector = node_selector_of(spec)
    return RequiredNodeAffinity(
        labels=selectors.from_labels(spec.node_selector),
        affinity=None if selector is None else selectors.from_node_selector(selector),
    )


def named_nodes(selector: NodeSelector) -> frozenset[str] | None:
    """The only nodes that the selector can match, by their names; None when one of its terms names none."""
    names: frozenset[str] = frozenset()
    for term in selector.node_selector_terms:
        of_term = _named_by(term)
        if of_term is None:
            return None
        names |= of_term
    return names if selector.node_selector_terms else None


def _named_by(term: NodeSelectorTerm) -> frozenset[str] | None:
    """Names that all of the term's fields agree on; None when it does not speak of names."""
    lists = [
        frozenset(field.values or ())
        for field in term.match_fields or ()
        if field.key == NODE_NAME_FIELD and field.operator == "In"
    ]
    return frozenset.intersection(*lists) if lists else None
