"""For which nodes something is meant: one by name, all, or those that a node selector picks; asked of a whole table.

Next: `published`, whose slices and devices carry such rules.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kubesched.framework.nodes import NodeTable
from kubesched.framework.verdicts import BoolArray
from kubesched.k8s.model import selectors
from kubesched.k8s.model.core import NodeSelector
from kubesched.k8s.model.selectors import NODE_NAME_FIELD, CompiledNodeSelector, NodeTerm, Requirement


def matching_nodes(selector: CompiledNodeSelector, nodes: NodeTable) -> BoolArray:
    """(n_nodes,) the nodes that one term of the selector picks."""
    picked = np.zeros(len(nodes), dtype=np.bool_)
    for term in selector.terms:
        picked |= _matching_term(term, nodes)
    return picked


def _matching_term(term: NodeTerm, nodes: NodeTable) -> BoolArray:
    if term.error is not None:
        return np.zeros(len(nodes), dtype=np.bool_)
    picked = np.ones(len(nodes), dtype=np.bool_)
    for requirement in term.labels:
        picked &= nodes.matching(requirement)
    for requirement in term.fields:
        picked &= _matching_field(requirement, nodes)
    return picked


def _matching_field(requirement: Requirement, nodes: NodeTable) -> BoolArray:
    """Nodes have one field that can be asked for, their name; any other is empty on all of them."""
    if requirement.key != NODE_NAME_FIELD:
        return np.full(len(nodes), requirement.matches(""), dtype=np.bool_)
    named = nodes.named(requirement.values[0])
    return named if requirement.operator == "In" else ~named


@dataclass(frozen=True)
class NodeRule:
    """What is set first counts: a name, then all nodes, then the selector. Nothing set means no node."""

    node_name: str = ""
    all_nodes: bool = False
    selector: CompiledNodeSelector | None = None

    @classmethod
    def of(cls, node_name: str | None, all_nodes: bool | None, selector: NodeSelector | None) -> NodeRule:
        compiled = None if selector is None else selectors.from_node_selector(selector)
        return cls(node_name or "", bool(all_nodes), compiled)

    @property
    def is_set(self) -> bool:
        return bool(self.node_name) or self.all_nodes or self.selector is not None

    @property
    def error(self) -> str | None:
        """Why the selector cannot be understood, if it counts and cannot."""
        if self.node_name or self.all_nodes or self.selector is None or not self.selector.errors:
            return None
        return f"failed to parse node selector: {', '.join(self.selector.errors)}"

    def mask(self, nodes: NodeTable) -> BoolArray:
        """(n_nodes,) the nodes it is meant for."""
        if self.node_name:
            return nodes.named(self.node_name)
        if self.all_nodes:
            return np.ones(len(nodes), dtype=np.bool_)
        if self.selector is not None:
            return matching_nodes(self.selector, nodes)
        return np.zeros(len(nodes), dtype=np.bool_)
