"""What goes on beside the other operations of a workload: churn, and pods that are deleted one after another.

An activity says when it wants to act next, and acts when the driver calls it. It never waits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Protocol

from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import KubeObject

Make = Callable[[], KubeObject]
Put = Callable[[KubeObject], None]
Delete = Callable[[KubeObject], None]


class Activity(Protocol):
    next_at_s: float
    """`inf` once it is over."""

    def act(self) -> None:
        """Does what is due at `next_at_s`, and sets when it is next."""
        ...


class CreatingChurn:
    """One object of each kind every interval, up to a number of rounds."""

    def __init__(self, makes: Sequence[Make], put: Put, *, now_s: float, interval_s: float, n_rounds: int) -> None:
        self._makes = makes
        self._put = put
        self._interval_s = interval_s
        self._left = n_rounds or inf
        self.next_at_s = now_s + interval_s

    def act(self) -> None:
        for make in self._makes:
            self._put(make())
        self._left -= 1
        self.next_at_s = self.next_at_s + self._interval_s if self._left > 0 else inf


class RecreatingChurn:
    """By turns creates and deletes objects of each kind: as many as `number` stand at most."""

    def __init__(
        self, makes: Sequence[Make], put: Put, delete: Delete, *, now_s: float, interval_s: float, number: int
    ) -> None:
        self._put = put
        self._delete = delete
        self._interval_s = interval_s
        self._turn = 0
        self._slots: list[list[KubeObject | None]] = [[None] * max(number, 1) for _ in makes]
        self._makes = makes
        self.next_at_s = now_s + interval_s

    def act(self) -> None:
        for make, slots in zip(self._makes, self._slots, strict=True):
            slot = self._turn % len(slots)
            standing = slots[slot]
            if standing is None:
                slots[slot] = made = make()
                self._put(made)
            else:
                self._delete(standing)
                slots[slot] = None
        self._turn += 1
        self.next_at_s += self._interval_s


class PacedDeletion:
    """Deletes pods one after another."""

    def __init__(self, pods: Sequence[Pod], delete: Delete, *, now_s: float, interval_s: float) -> None:
        self._pods = list(reversed(pods))
        self._delete = delete
        self._interval_s = interval_s
        self.next_at_s = now_s + interval_s if pods else inf

    def act(self) -> None:
        self._delete(self._pods.pop())
        self.next_at_s = self.next_at_s + self._interval_s if self._pods else inf


class PacedUpdates:
    """Shows changed objects one after another."""

    def __init__(self, count: int, update: Callable[[int], None], *, now_s: float, interval_s: float) -> None:
        self._count = count
        self._done = 0
        self._update = update
        self._interval_s = interval_s
        self.next_at_s = now_s + interval_s if count else inf

    def act(self) -> None:
        self._update(self._done)
        self._done += 1
        self.next_at_s = self.next_at_s + self._interval_s if self._done < self._count else inf
