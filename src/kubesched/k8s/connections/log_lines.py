"""Log lines as things, declared once each with words, level and fields; and lines that say the same, joined.

The reference page of the logs is made from these declarations, so that it shows what the code writes and nothing else.
Of lines that repeat, the first are written, what follows is counted, and the count is written later: what a stranger
can cause as often as he likes must not fill a disk.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LogLine:
    """`v` counts for lines of level INFO; warnings and errors are always written. `when` is for the reference."""

    message: str
    v: int
    pairs: tuple[str, ...]
    when: str
    level: int = logging.INFO
    is_ours: bool = False
    """kube-scheduler has no such line."""
    log: str = "kubesched.scheduler"
    """The logger's name."""

    def write(self, *values: object, apart: str = "", exc_info: bool = False) -> None:
        """The values of the pairs, in their order. Lines with different `apart` do not count as repeats."""
        log = logging.getLogger(self.log)
        if log.isEnabledFor(self.level):
            self._write(log, dict(zip(self.pairs, values, strict=True)), apart, exc_info)

    def write_with(self, fields: Mapping[str, object], *, apart: str = "", stacklevel: int = 0) -> None:
        """The same for a line whose pairs are not always all there. `stacklevel`: so many callers further up stands who
        wrote it."""
        log = logging.getLogger(self.log)
        if log.isEnabledFor(self.level):
            self._write(log, fields, apart, exc_info=False, stacklevel=stacklevel)

    def _write(
        self, log: logging.Logger, fields: Mapping[str, object], apart: str, exc_info: bool, stacklevel: int = 0
    ) -> None:
        extra = {"fields": fields, "v": self.v, "apart": apart}
        log.log(self.level, self.message, extra=extra, exc_info=exc_info or None, stacklevel=3 + stacklevel)


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
