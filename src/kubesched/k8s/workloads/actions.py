"""What a controller wants done: objects to create, to replace, to delete, how many at a time, and their names.

Nothing here does it. A workload of two billion replicas must not stop all others. As Kubernetes' controllers do, one
look makes 500 pods at most, and the next look comes after everybody else had a turn. And where many pods of a workload
already wait for a node, more of them would not help: the next ones come when some have one.

Names and uids that an API server would draw at random are drawn from a seed. A name depends on the seed, on its prefix
and on how many were drawn for that prefix, and on nothing else: an unrelated workload more or less leaves all other
names as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Protocol

from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import KubeObject


@dataclass(frozen=True, slots=True)
class CreateObject:
    item: KubeObject


@dataclass(frozen=True, slots=True)
class UpdateObject:
    """The object is to be as it is here."""

    item: KubeObject


@dataclass(frozen=True, slots=True)
class DeleteObject:
    """Gracefully, if it is a pod that runs."""

    item: KubeObject


Action = CreateObject | UpdateObject | DeleteObject


@dataclass(slots=True)
class Plan:
    """What a controller wants now, in this order, and when it wants to look again although nothing changed."""

    actions: list[Action] = field(default_factory=list)
    again_at_s: float | None = None
    is_cut: bool = False
    """There is more to do than one look may: look again when others had their turn."""
    held_back: str = ""
    """Why pods that are missing are not made now."""
    n_held_back: int = 0
    """How many they are."""

    def create(self, item: KubeObject) -> None:
        self.actions.append(CreateObject(item))

    def update(self, item: KubeObject) -> None:
        self.actions.append(UpdateObject(item))

    def delete(self, item: KubeObject) -> None:
        self.actions.append(DeleteObject(item))

    def look_again(self, at_s: float) -> None:
        self.again_at_s = at_s if self.again_at_s is None else min(self.again_at_s, at_s)


BURST = 500
MOST_WAITING = 10_000


@dataclass(frozen=True, slots=True)
class Bursts:
    """`most` in one look, and not more than `most_waiting` without a node (None: no matter how many)."""

    most: int = BURST
    most_waiting: int | None = None

    def cut(self, plan: Plan, n_missing: int, active: Sequence[Pod]) -> int:
        """How many of the missing pods to make now; the plan records if that is not all."""
        allowed = min(n_missing, self.most)
        if self.most_waiting is not None and n_missing > 0:
            n_waiting = sum(1 for pod in active if not pod.spec.node_name)
            room = max(0, self.most_waiting - n_waiting)
            if room < allowed:
                plan.n_held_back = n_missing - room
                plan.held_back = (
                    f"{n_waiting} of its pods wait for a node: {plan.n_held_back} more are created when some have one"
                )
                return room
        plan.is_cut = plan.is_cut or allowed < n_missing
        return allowed


UNPACED = Bursts()
"""In bursts, with no regard to how many wait."""
PACED = Bursts(most_waiting=MOST_WAITING)


SAFE_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
"""Kubernetes' letters for generated names: they form no words."""

_SUFFIX_LENGTH = 5
_LONGEST_PREFIX = 63 - _SUFFIX_LENGTH


class NameSource(Protocol):
    def name(self, prefix: str) -> str:
        """The prefix and a suffix of five letters; never the same twice."""
        ...

    def uid(self, what: str) -> str:
        """An identity for an object of this description; never the same twice."""
        ...


class SeededNames:
    """Draws from a seed. Remembers what was drawn, so that nothing comes twice."""

    def __init__(self, seed: int) -> None:
        self._seed = str(seed).encode()
        self._n_drawn: dict[str, int] = {}
        """By prefix; and by description, where more than one uid was drawn for it."""
        self._given: set[str] = set()

    def name(self, prefix: str) -> str:
        prefix = prefix[:_LONGEST_PREFIX]
        n_drawn = self._n_drawn.get(prefix, 0)
        while True:
            n_drawn += 1
            name = prefix + _letters(self._draw(prefix, n_drawn), _SUFFIX_LENGTH)
            if name not in self._given:
                self._n_drawn[prefix] = n_drawn
                self._given.add(name)
                return name

    def uid(self, what: str) -> str:
        what = f"uid {what}"
        n_drawn = self._n_drawn.get(what, 0)
        while True:
            n_drawn += 1
            digits = f"{self._draw(what, n_drawn):032x}"
            uid = f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"
            if uid not in self._given:
                if n_drawn > 1:
                    self._n_drawn[what] = n_drawn
                self._given.add(uid)
                return uid

    def _draw(self, what: str, n_drawn: int) -> int:
        return int.from_bytes(blake2b(b"%b\0%b\0%d" % (self._seed, what.encode(), n_drawn), digest_size=16).digest())


def safe_hash(data: bytes) -> str:
    """A short name for a content, of the form of Kubernetes' template hashes (FNV-1a in safe letters)."""
    found = 0x811C9DC5
    for byte in data:
        found = (found ^ byte) * 0x01000193 & 0xFFFFFFFF
    return "".join(SAFE_LETTERS[ord(digit) % len(SAFE_LETTERS)] for digit in str(found))


def _letters(number: int, length: int) -> str:
    text = ""
    for _ in range(length):
        number, rest = divmod(number, len(SAFE_LETTERS))
        text += SAFE_LETTERS[rest]
    return text
