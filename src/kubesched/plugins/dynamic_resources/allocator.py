"""Answers for whole tables of nodes: can these claims be allocated there?

Next: `filtering`, which turns the answers into verdicts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from kubesched.framework.nodes import IntArray, NodeTable
from kubesched.model.resource import AllocationResult, DeviceClass, ResourceClaim
from kubesched.plugins.dynamic_resources import allocation
from kubesched.plugins.dynamic_resources.offers import NodeOffer
from kubesched.plugins.dynamic_resources.outcomes import (
    Abandoned,
    AllocationError,
    Broken,
    Found,
    NotFound,
    Outcome,
    SearchAbandonedError,
)
from kubesched.plugins.dynamic_resources.search import Search
from kubesched.plugins.dynamic_resources.shared_devices import SharedDevices
from kubesched.plugins.dynamic_resources.wants import Order, read_claim

_STEPS_PER_SECOND = 100_000
"""The configured time limit of a search is counted in steps: a decision does not depend on how fast a machine is."""


class Allocator:
    """For the claims of one pod, in one cycle."""

    def __init__(self, shared: SharedDevices, classes: Mapping[str, DeviceClass], filter_timeout_s: float) -> None:
        self._shared = shared
        self._classes = classes
        self._max_steps = int(filter_timeout_s * _STEPS_PER_SECOND) or None

    def order(self, claims: Sequence[ResourceClaim]) -> Order:
        return Order(tuple(read_claim(claim, self._classes) for claim in claims))

    def answers(self, order: Order, nodes: NodeTable) -> tuple[list[Outcome], IntArray]:
        """Outcomes (more than there are nodes, perhaps), and (n_nodes,) the number of each node's own."""
        problem = self._shared.inventory.problem
        if problem is not None:
            return [Broken(f"gather pool information: {problem}")], np.zeros(len(nodes), dtype=np.int64)
        table = self._shared.table(order.fingerprint)
        codes = self._shared.offers.codes(nodes)
        numbers = table.numbers(codes, self._shared.offers.n_codes)
        failures: dict[int, Outcome] = {}
        for code in np.unique(codes[numbers < 0]).tolist():
            outcome = self._search(order, code)
            if isinstance(outcome, Found | NotFound):
                table.put(code, outcome)
            else:
                failures[code] = outcome
        own = table.numbers(codes, self._shared.offers.n_codes).astype(np.int64)
        if not failures:
            return table.outcomes, own
        outcomes = list(table.outcomes)
        for code, outcome in failures.items():
            own[codes == code] = len(outcomes)
            outcomes.append(outcome)
        return outcomes, own

    def offer(self, node: NodeTable) -> NodeOffer:
        """What the one node of this table is offered."""
        return self._shared.offers.offer(node)

    def spell_out(self, found: Found, order: Order, node: NodeTable) -> tuple[AllocationResult, ...]:
        """The results for the one node of this table, which must be one of those that the outcome is for."""
        return allocation.spell_out(found, order.claims, self.offer(node), node.names[0])

    def _search(self, order: Order, code: int) -> Outcome:
        offer = self._shared.offers.examples[code]
        try:
            outcome: Found | NotFound = Search(order.claims, offer, self._max_steps).run()
            if isinstance(outcome, Found):
                allocation.check(outcome, order.claims, offer)
        except AllocationError as error:
            return Broken(error.message, error.device, error.rest)
        except SearchAbandonedError:
            return Abandoned()
        return outcome
