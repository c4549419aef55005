"""Compiled node selectors asked of the whole table at once.

`kubesched.k8s.model.selectors` asks the same of one node. Next: `required`, `preferred`.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from kubesched.framework import NodeTable
from kubesched.framework.verdicts import BoolArray
from kubesched.k8s.model.selectors import NODE_NAME_FIELD, CompiledNodeSelector, NodeTerm, Requirement


def selected_nodes(selector: CompiledNodeSelector, nodes: NodeTable) -> BoolArray:
    """(n_nodes,) where at least one term matches."""
    mask = np.zeros(len(nodes), dtype=np.bool_)
    for term in selector.terms:
        mask |= term_nodes(term, nodes)
    return mask


def term_nodes(term: NodeTerm, nodes: NodeTable) -> BoolArray:
    """(n_nodes,) where everything in the term holds; nowhere if it has a validation error in it."""
    if term.error is not None:
        return np.zeros(len(nodes), dtype=np.bool_)
    mask = labelled_nodes(term.labels, nodes)
    for requirement in term.fields:
        mask &= _field_nodes(requirement, nodes)
    return mask


def labelled_nodes(requirements: Iterable[Requirement], nodes: NodeTable) -> BoolArray:
    """(n_nodes,) where all of these requirements on labels hold."""
    mask = np.ones(len(nodes), dtype=np.bool_)
    for requirement in requirements:
        mask &= nodes.matching(requirement)
    return mask


def _field_nodes(requirement: Requirement, nodes: NodeTable) -> BoolArray:
    """The name is the only field there is; any other is empty on every node."""
    if requirement.key != NODE_NAME_FIELD:
        return np.full(len(nodes), requirement.matches(""))
    named = nodes.named(requirement.values[0])
    return named if requirement.operator == "In" else ~named
