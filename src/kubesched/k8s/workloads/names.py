"""Names and uids that an API server would draw at random, drawn from a seed.

A name depends on the seed, on its prefix and on how many were drawn for that prefix, and on nothing else: an unrelated
workload more or less leaves all other names as they are.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Protocol

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
