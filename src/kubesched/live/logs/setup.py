"""Sets the logs up: one handler for everything, in the format and with the verbosity of the flags.

    I1116 02:25:14.123456   12345 file.py:12] "Message" pod="ns/name" node="n"
    {"ts":1700000000000.1,"caller":"app/run.py:12","msg":"…","v":0,…}

In klog's text, our own lines are structured: the message is quoted, then come the fields, an error first; lines of
other libraries are written as they are. In JSON, `ts` is in milliseconds, and errors have `err` and no `v`.

Next: `verbosity`, and `redaction`, through which all of it goes.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from typing import TextIO

import msgspec

from kubesched.k8s.connections import JoinRepeats
from kubesched.live.logs.redaction import redact, safe_value
from kubesched.live.logs.verbosity import OURS, LogSettingsError, Verbosity, v_of

_SEVERITIES = ((logging.CRITICAL, "F"), (logging.ERROR, "E"), (logging.WARNING, "W"))
_ESCAPES = {ord('"'): '\\"', ord("\\"): "\\\\", **{code: f"\\x{code:02x}" for code in (*range(32), 127)}}
_ESCAPES |= {ord(char): f"\\{letter}" for char, letter in zip("\a\b\f\n\r\t\v", "abfnrtv", strict=True)}


class KlogTextFormatter(logging.Formatter):
    """`local_time` and `pid` are handed in by tests."""

    def __init__(
        self, *, local_time: Callable[[float], time.struct_time] = time.localtime, pid: int | None = None
    ) -> None:
        super().__init__()
        self._local_time = local_time
        self._pid = f"{os.getpid() if pid is None else pid:>7}"
        self._second = (-1, "")

    def format(self, record: logging.LogRecord) -> str:
        message = redact(record.getMessage())
        if not is_structured(record):
            trace = f"\n{redact(self.formatException(record.exc_info))}" if record.exc_info else ""
            return f"{self._header(record)}{message}{trace}"
        fields = fields_of(record, self)
        return f"{self._header(record)}{quote(message)}{''.join(_pair(*item) for item in fields.items())}"

    def _header(self, record: logging.LogRecord) -> str:
        severity = next((letter for level, letter in _SEVERITIES if record.levelno >= level), "I")
        second = int(record.created)
        if self._second[0] != second:
            self._second = (second, time.strftime("%m%d %H:%M:%S", self._local_time(second)))
        micros = int((record.created - second) * 1e6)
        return f"{severity}{self._second[1]}.{micros:06d} {self._pid} {record.filename}:{record.lineno}] "


def is_structured(record: logging.LogRecord) -> bool:
    """A line of ours, but for those that say by `is_plain` that they are text as it is."""
    is_ours = record.name == OURS or record.name.startswith(f"{OURS}.")
    return is_ours and not getattr(record, "is_plain", False)


def fields_of(record: logging.LogRecord, formatter: logging.Formatter) -> dict[str, object]:
    """What goes with the message, without secrets; an exception becomes `err` and `stack`."""
    given = getattr(record, "fields", None)
    fields: dict[str, object] = dict(given) if isinstance(given, Mapping) else {}
    if record.exc_info and record.exc_info[1] is not None:
        fields.setdefault("err", record.exc_info[1])
        fields["stack"] = formatter.formatException(record.exc_info)
    if "err" in fields and record.levelno >= logging.WARNING:
        fields = {"err": fields["err"], **fields}
    return {name: safe_value(name, value) for name, value in fields.items()}


def quote(text: str) -> str:
    """As Go quotes."""
    return f'"{text.translate(_ESCAPES)}"'


def _pair(name: str, value: object) -> str:
    if isinstance(value, str):
        if "\n" in value:
            lines = "".join(f"\t{line}\n" for line in value.splitlines())
            return f" {name}=<\n{lines} >"
        return f" {name}={quote(value)}"
    return f" {name}={msgspec.json.encode(value).decode()}"


class KlogJsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "ts": round(record.created * 1000, 3),
            "caller": f"{'/'.join(PurePath(record.pathname).parts[-2:])}:{record.lineno}",
            "msg": redact(record.getMessage()),
        }
        if record.levelno < logging.ERROR:
            line["v"] = v_of(record)
        for name, value in fields_of(record, self).items():
            line[f"{name}_" if name in line else name] = value
        return msgspec.json.encode(line).decode()


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
