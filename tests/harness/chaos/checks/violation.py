"""Something that must always hold does not."""

from __future__ import annotations


class Violation(Exception):  # noqa: N818  not an error of this program: what it looks for
    """`invariant` is which one, in words; two failures of one invariant count as the same when a trace is shrunk."""

    def __init__(self, invariant: str, message: str) -> None:
        super().__init__(f"{invariant}: {message}")
        self.invariant = invariant
        self.message = message
