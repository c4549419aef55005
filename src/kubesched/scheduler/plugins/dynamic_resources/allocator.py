"""Can these claims be allocated on these nodes? Answered for a whole table, from devices that all profiles share.

`SharedDevices` outlives a cycle: what is published, what is allocated, what each node is offered, and the outcomes of
searches that nothing has changed since. An `Allocator` answers for the claims of one pod in one cycle, and searches
once for all nodes that are offered the same.

Next: `search`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from kubesched.framework.handle import Objects
from kubesched.framework.nodes import CodeArray, IntArray, NodeTable
from kubesched.k8s.model.resource import AllocationResult, DeviceClass, ResourceClaim
from kubesched.scheduler.cluster.journal import ChangeLog
from kubesched.scheduler.plugins.dynamic_resources import outcomes
from kubesched.scheduler.plugins.dynamic_resources.claim_book import ClaimBook
from kubesched.scheduler.plugins.dynamic_resources.offers import Inventory, NodeOffer, OfferBook
from kubesched.scheduler.plugins.dynamic_resources.outcomes import (
    Abandoned,
    AllocationError,
    Broken,
    Found,
    NotFound,
    Outcome,
    SearchAbandonedError,
    SearchBudget,
)
from kubesched.scheduler.plugins.dynamic_resources.requests import Order, read_claim
from kubesched.scheduler.plugins.dynamic_resources.search import Search

_MAX_REMEMBERED = 64
"""So many different orders are remembered."""


class OutcomeTable:
    """What came of searches for the same in different offers. Equal outcomes are kept once."""

    def __init__(self) -> None:
        self.outcomes: list[Outcome] = []
        """Only ever grows."""
        self._numbers: dict[Outcome, int] = {}
        self._by_code: NDArray[np.int32] = np.full(0, -1, dtype=np.int32)

    def numbers(self, codes: CodeArray, n_codes: int) -> NDArray[np.int32]:
        """(len(codes),) the number of each code's outcome; -1 where it is not known."""
        if len(self._by_code) < n_codes:
            self._grow(n_codes)
        return self._by_code[codes]

    def _grow(self, n_codes: int) -> None:
        grown = np.full(max(n_codes, 2 * len(self._by_code)), -1, dtype=np.int32)
        grown[: len(self._by_code)] = self._by_code
        self._by_code = grown

    def find(self, code: int) -> Outcome | None:
        """The code's outcome, if it is known."""
        number = self._by_code.item(code) if code < len(self._by_code) else -1
        return None if number < 0 else self.outcomes[number]

    def put(self, code: int, outcome: Outcome) -> None:
        if code >= len(self._by_code):
            self._grow(code + 1)
        number = self._numbers.setdefault(outcome, len(self.outcomes))
        if number == len(self.outcomes):
            self.outcomes.append(outcome)
        self._by_code[code] = number


class SharedDevices:
    """The devices of a cluster. `refresh` before asking."""

    def __init__(self) -> None:
        self.book = ClaimBook()
        self.inventory = Inventory()
        self.offers = OfferBook(self.inventory, self.book.ledger)
        self._tables: dict[bytes, OutcomeTable] = {}
        self._generation = 0
        self.changed: ChangeLog[str] = ChangeLog()
        """The nodes that are offered something else."""
        self.n_offers_to_all = 0
        """How often all nodes may have been offered something else."""

    def refresh(self, objects: Objects) -> None:
        self.book.refresh(objects.resource_claims)
        names = self.offers.update(self.inventory.refresh(objects.resource_slices))
        if names is None:
            self.n_offers_to_all += 1
        else:
            for name in names:
                self.changed.append(name)

    def table(self, fingerprint: bytes) -> OutcomeTable:
        """What is known of searches for the same."""
        if self._generation != self.offers.generation:
            self._tables.clear()
            self._generation = self.offers.generation
        table = self._tables.pop(fingerprint, None) or OutcomeTable()
        self._tables[fingerprint] = table  # as the last one used
        if len(self._tables) > _MAX_REMEMBERED:
            del self._tables[next(iter(self._tables))]
        return table


_UNITS_PER_SECOND = 200_000
"""The configured time limit is counted in units of work, so few that all other pods hardly notice."""

_SMALL_SEARCH = 1_000
"""Units up to which a search is always made, so that large clusters need no larger budget."""


class Allocator:
    """For the claims of one pod, in one cycle.

    All its searches share one budget. Who uses it up gets an error, as with kube-scheduler's timeout, and only he.
    """

    def __init__(self, shared: SharedDevices, classes: Mapping[str, DeviceClass], filter_timeout_s: float) -> None:
        self._shared = shared
        self._classes = classes
        self._limit = int(filter_timeout_s * _UNITS_PER_SECOND) or None
        self._left = self._limit or 0

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
            outcome, is_lasting = self._search(order, code)
            if is_lasting:
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

    def answer_on(self, order: Order, nodes: NodeTable, row: int) -> Outcome:
        """The same for one row of the whole table, where nothing is wrong with what is published."""
        table, code = self._shared.table(order.fingerprint), self._shared.offers.code_at(nodes, row)
        outcome = table.find(code)
        if outcome is None:
            outcome, is_lasting = self._search(order, code)
            if is_lasting:
                table.put(code, outcome)
        return outcome

    def offer(self, node: NodeTable) -> NodeOffer:
        """What the one node of this table is offered."""
        return self._shared.offers.offer(node)

    def spell_out(self, found: Found, order: Order, node: NodeTable) -> tuple[AllocationResult, ...]:
        """The results for the one node of this table, which must be one of those that the outcome is for."""
        return outcomes.spell_out(found, order.claims, self.offer(node), node.names[0])

    def _search(self, order: Order, code: int) -> tuple[Outcome, bool]:
        """The outcome, and whether it would be the same another time."""
        offer = self._shared.offers.examples[code]
        budget = SearchBudget(None if self._limit is None else max(self._left, _SMALL_SEARCH))
        is_whole = self._left == self._limit
        try:
            outcome: Found | NotFound = Search(order.claims, offer, budget).run()
            if isinstance(outcome, Found):
                outcomes.check_allocation(outcome, order.claims, offer)
        except AllocationError as error:
            return Broken(error.message, error.device, error.rest), False
        except SearchAbandonedError:
            return Abandoned(), is_whole and not budget.has_learnt
        finally:
            self._left -= max(budget.spent - _SMALL_SEARCH, 0)
        return outcome, True
