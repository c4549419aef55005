"""Log lines as things: each is declared once, with its words, its level and when it is written.

The reference page of the logs is made from these declarations, so that it shows what the code writes and nothing else.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line that may be written. `fields` are the names of what goes with it, in their order."""

    message: str
    fields: str
    when: str
    v: int = 0
    severity: int = logging.INFO
    is_ours: bool = False
    """kube-scheduler has no such line."""

    def write(self, log: logging.Logger, /, **fields: object) -> None:
        extra = {"v": self.v, "fields": fields, "apart": fields.get("pod", "")}
        log.log(self.severity, self.message, extra=extra, stacklevel=2)


def info(message: str, v: int, fields: str, when: str, *, is_ours: bool = False) -> LogLine:
    """A line that `-v` asks for."""
    return LogLine(message, fields, when, v, is_ours=is_ours)


def error(message: str, fields: str, when: str, *, is_ours: bool = False) -> LogLine:
    """A line that is always written."""
    return LogLine(message, fields, when, severity=logging.ERROR, is_ours=is_ours)
