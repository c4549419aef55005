"""What outlives a cycle and is shared by all profiles: what is published, who holds what, what nodes are offered,
and the outcomes of searches that nothing has changed since.

Next: `allocator`, which answers one pod's questions with it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kubesched.framework.handle import Objects
from kubesched.framework.nodes import CodeArray
from kubesched.scheduler.plugins.dynamic_resources.claim_book import ClaimBook
from kubesched.scheduler.plugins.dynamic_resources.inventory import Inventory
from kubesched.scheduler.plugins.dynamic_resources.offers import OfferBook
from kubesched.scheduler.plugins.dynamic_resources.outcomes import Outcome

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
            grown = np.full(max(n_codes, 2 * len(self._by_code)), -1, dtype=np.int32)
            grown[: len(self._by_code)] = self._by_code
            self._by_code = grown
        return self._by_code[codes]

    def put(self, code: int, outcome: Outcome) -> None:
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

    def refresh(self, objects: Objects) -> None:
        self.book.refresh(objects.resource_claims)
        self.offers.update(self.inventory.refresh(objects.resource_slices))

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
