"""Log lines as things: each is declared once, with its words, its level, what goes with it and when it is written.

The reference page of the logs is made from these declarations, so that it shows what the code writes and nothing else.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
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
