"""Answers that are good for a while. Keys that were long not used go first when it is full."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class ExpiringCache(Generic[Key, Value]):
    """`clock` gives seconds that only ever grow."""

    def __init__(self, clock: Callable[[], float], most: int) -> None:
        self._clock = clock
        self._most = most
        self._entries: OrderedDict[Key, tuple[float, Value]] = OrderedDict()

    def get(self, key: Key) -> Value | None:
        entry = self._entries.get(key)
        if entry is None:
            return None
        if entry[0] <= self._clock():
            del self._entries[key]
            return None
        self._entries.move_to_end(key)
        return entry[1]

    def put(self, key: Key, value: Value, for_s: float) -> None:
        if for_s <= 0:
            return
        self._entries[key] = (self._clock() + for_s, value)
        self._entries.move_to_end(key)
        if len(self._entries) > self._most:
            self._entries.popitem(last=False)

    def __len__(self) -> int:
        return len(self._entries)
