"""Joins log lines that say the same: the first is written, what follows is counted, and the count is written later.

What a stranger can cause as often as he likes must not fill a disk.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

_WINDOW_S = 10.0
_MOST_KINDS = 200
_ALLOWED = 5
"""So many lines of a kind are written in a window before the others are counted."""


_Words = tuple[str, int, object, object]


@dataclass(slots=True)
class _Kind:
    began_s: float
    written: int = 1
    held_back: int = 0


class JoinRepeats(logging.Filter):
    """For warnings and errors; a line is of a kind with others from the same place with the same words, unless it was
    said to be another (`extra={"apart": …}`): the same refusal of two kinds of objects is two things to know."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._kinds: dict[_Words, _Kind] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING:
            return True
        now_s = self._clock()
        key = (record.name, record.levelno, record.msg, getattr(record, "apart", ""))
        kind = self._kinds.get(key)
        if kind is None:
            self._remember(key, now_s)
            return True
        if now_s - kind.began_s < _WINDOW_S:
            if kind.written < _ALLOWED:
                kind.written += 1
                return True
            kind.held_back += 1
            return False
        if kind.held_back:
            record.msg = f"{record.getMessage()} (repeated {kind.held_back} times)"
            record.args = None
        self._kinds[key] = _Kind(now_s)
        return True

    def _remember(self, key: _Words, now_s: float) -> None:
        if len(self._kinds) >= _MOST_KINDS:
            for old in [known for known, kind in self._kinds.items() if now_s - kind.began_s >= _WINDOW_S]:
                del self._kinds[old]
        if len(self._kinds) >= _MOST_KINDS:
            self._kinds.clear()
        self._kinds[key] = _Kind(now_s)
