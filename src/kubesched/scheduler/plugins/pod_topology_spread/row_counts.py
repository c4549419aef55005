"""How many pods a selector picks on every row: asked once per selector and cycle, by filter and score alike."""

from __future__ import annotations

import numpy as np

from kubesched.framework.nodes import IntArray, NodeTable
from kubesched.k8s.model.selectors import Selector


class RowCounts:
    """Counts of pods in one namespace, without those being deleted. A selector of everything counts none."""

    def __init__(self, nodes: NodeTable, namespace: str) -> None:
        self._nodes = nodes.whole
        self._namespaces = frozenset({namespace})
        self._known: dict[Selector, IntArray] = {}

    def of(self, selector: Selector) -> IntArray:
        """(n_rows,) of the whole table."""
        known = self._known.get(selector)
        if known is None:
            known = self._known[selector] = self._count(selector)
        return known

    def _count(self, selector: Selector) -> IntArray:
        if selector.is_everything:
            return np.zeros(len(self._nodes), dtype=np.int64)
        pods = self._nodes.pods
        return pods.counts(pods.classes(selector, self._namespaces), terminating=False)
