"""Sets the logs up: one handler for everything, in the format and with the verbosity of the flags.

Next: `verbosity`, `text_format`, `json_format`, `redaction`.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from typing import TextIO

from kubesched.k8s.connections import JoinRepeats
from kubesched.live.logs.json_format import KlogJsonFormatter
from kubesched.live.logs.text_format import KlogTextFormatter
from kubesched.live.logs.verbosity import LogSettingsError, Verbosity

FORMATS = ("text", "json")


class GuardedHandler(logging.StreamHandler[TextIO]):
    """Writes lines; one that cannot be written is told by its place only, never by what it would have said."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the standard library's name
        kind = sys.exc_info()[0]
        text = f"a log line of {record.filename}:{record.lineno} was not written: {kind.__name__ if kind else '?'}\n"
        try:
            sys.stderr.write(text)
        except OSError:
            return  # standard error is gone, too: there is nobody left to tell


def configure_logs(
    verbosity: int = 0,
    logging_format: str = "text",
    stream: TextIO | None = None,
    vmodule: str | Sequence[tuple[str, int]] = "",
) -> Verbosity:
    """Replaces what an earlier call set up. What is given back can change the level while the program runs.

    `vmodule` is as the flag has it (`pattern=N,…`) or already taken apart.
    """
    if logging_format not in FORMATS:
        raise LogSettingsError(f"--logging-format: {logging_format!r} is not one of {', '.join(FORMATS)}")
    if logging_format != "text" and vmodule:
        raise LogSettingsError("--vmodule: Only supported for text log format")
    chosen = Verbosity(verbosity, vmodule)
    handler = GuardedHandler(stream or sys.stderr)
    handler.setFormatter(KlogTextFormatter() if logging_format == "text" else KlogJsonFormatter())
    handler.addFilter(chosen)
    handler.addFilter(JoinRepeats())
    root = logging.getLogger()
    for earlier in [known for known in root.handlers if isinstance(known, GuardedHandler)]:
        root.removeHandler(earlier)
    root.addHandler(handler)
    return chosen
