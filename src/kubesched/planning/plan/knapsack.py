"""The most valuable pods that one node can hold: exact, in whole numbers, without a solver.

Branch and bound. Pods are tried in the order of their value for what they take, where `weights` make one amount of all
resources. That one amount also gives the bound: whatever fits on the node fits in it, so no branch whose bound is too
low can hold a better answer. Any weights are valid; good ones make it fast.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BestPattern:
    pattern: tuple[int, ...]
    """(n_classes,)"""
    value: int
    """Of the pattern."""
    most: int
    """No pattern is worth more. Equal to `value` unless the search was cut, or asked to be near enough."""


def best_pattern(
    values: Sequence[int],
    requests: Sequence[Sequence[int]],
    capacity: Sequence[int],
    most: Sequence[int],
    weights: Sequence[int],
    *,
    most_steps: int = 20_000,
    slack: int = 0,
) -> BestPattern:
    """`most` has for each class how many pods may be there at all. Branches that could gain at most `slack` are not
    looked at. After `most_steps`, what is left counts with its bound."""
    n = len(values)
    used = [c for c in range(n) if most[c] > 0 and values[c] > 0]
    sizes = {c: sum(w * a for w, a in zip(weights, requests[c], strict=True)) for c in used}
    order = sorted(used, key=lambda c: (sizes[c] > 0, -values[c] / sizes[c] if sizes[c] else 0.0, c))
    search = _Search(
        [values[c] for c in order],
        [[(r, a) for r, a in enumerate(requests[c]) if a > 0] for c in order],
        [sizes[c] for c in order],
        [most[c] for c in order],
        list(capacity),
        most_steps,
        slack,
    )
    search.run(sum(w * a for w, a in zip(weights, capacity, strict=True)))
    pattern = [0] * n
    for c, x in zip(order, search.best, strict=True):
        pattern[c] = x
    return BestPattern(tuple(pattern), search.best_value, max(search.best_value, search.skipped))


class _Search:
    __slots__ = (
        "_capacity",
        "_most",
        "_needs",
        "_sizes",
        "_slack",
        "_steps",
        "_values",
        "best",
        "best_value",
        "skipped",
    )

    def __init__(
        self,
        values: list[int],
        needs: list[list[tuple[int, int]]],
        sizes: list[int],
        most: list[int],
        capacity: list[int],
        most_steps: int,
        slack: int,
    ) -> None:
        self._values = values
        self._needs = needs
        self._sizes = sizes
        self._most = most
        self._capacity = capacity
        self._steps = most_steps
        self._slack = slack
        self.best = [0] * len(values)
        self.best_value = 0
        self.skipped = 0
        """The highest bound of a branch that was not looked at."""

    def run(self, room: int) -> None:
        self._descend(0, 0, room, [0] * len(self._values))

    def bound(self, k: int, room: int) -> int:
        """No more value than this comes from the classes from `k` on, in so much room; rounded up."""
        total = 0
        for value, size, most in zip(self._values[k:], self._sizes[k:], self._most[k:], strict=True):
            whole = size * most
            if whole <= room:
                total += value * most
                room -= whole
            else:
                return total - (-value * room // size)
        return total

    def _descend(self, k: int, value: int, room: int, chosen: list[int]) -> None:
        if value > self.best_value:
            self.best_value = value
            self.best = chosen.copy()
        if k == len(self._values):
            return
        capacity, needs, size, worth = self._capacity, self._needs[k], self._sizes[k], self._values[k]
        x = self._most[k]
        for r, a in needs:
            x = min(x, capacity[r] // a)
        for r, a in needs:
            capacity[r] -= x * a
        while True:
            reach = value + x * worth + self.bound(k + 1, room - x * size)
            if reach <= self.best_value + self._slack or self._steps <= 0:
                self.skipped = max(self.skipped, reach)
                if self._steps > 0:
                    break  # fewer of this class reach no further
            else:
                self._steps -= 1
                chosen[k] = x
                self._descend(k + 1, value + x * worth, room - x * size, chosen)
            if x == 0:
                break
            x -= 1
            for r, a in needs:
                capacity[r] += a
        chosen[k] = 0
        for r, a in needs:
            capacity[r] += x * a
