"""Sets the logs up: one handler for everything, in the format and with the verbosity of the flags, and no secret in it.

    I1116 02:25:14.123456   12345 file.py:12] "Message" pod="ns/name" node="n"
    {"ts":1700000000000.1,"caller":"app/run.py:12","msg":"…","v":0,…}

In klog's text, our own lines are structured: the message is quoted, then come the fields, an error first; lines of
other libraries are written as they are. In JSON, `ts` is in milliseconds, and errors have `err` and no `v`.

V-levels are klog's, for all files (`-v`) or for some (`--vmodule`). A line says its level by `extra={"v": n}`; without,
an INFO line is V(0) and a DEBUG line V(4). Warnings and errors are always written.

Nothing that could be used to log in somewhere is ever written. Two nets. By name: a field called like a secret
(`token`, `password`, `client-key-data` …) loses its value. By looks: text that contains an Authorization header, a
bearer token, a JSON web token, a private key, a secret field of a kubeconfig or a password in an address loses that
part. Bytes are never shown, only counted. Code that logs must not rely on it: secrets do not belong into messages in
the first place.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import PurePath
from typing import TextIO

import msgspec

from kubesched.k8s.connections.log_lines import JoinRepeats

OURS = "kubesched"
DEBUG_V = 4


class LogSettingsError(ValueError):
    """A logging flag has a value that it cannot have."""


class Verbosity:
    """A filter for a log handler, which also spares our loggers the lines that nobody wants."""

    def __init__(self, level: int = 0, vmodule: str | Sequence[tuple[str, int]] = "") -> None:
        self._modules = _parse_vmodule(vmodule) if isinstance(vmodule, str) else list(vmodule)
        self._of_file: dict[str, int] = {}
        self.set_level(level)

    @property
    def level(self) -> int:
        return self._level

    def set_level(self, level: int) -> None:
        """May be called at any time."""
        if level < 0:
            raise LogSettingsError(f"-v: {level} is not a verbosity: must not be negative")
        self._level = level
        highest = max([level, *(level for _, level in self._modules)])
        logging.getLogger(OURS).setLevel(logging.DEBUG if highest >= DEBUG_V else logging.INFO)

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno >= logging.WARNING:
            return True
        v = v_of(record)
        return v <= self._level or (bool(self._modules) and v <= self._level_of(record.pathname))

    def _level_of(self, path: str) -> int:
        level = self._of_file.get(path)
        if level is None:
            level = self._of_file[path] = level_of(path, 0, self._modules)
        return level


def level_of(path: str, verbosity: int, modules: Sequence[tuple[str, int]]) -> int:
    """Up to which V lines of this file are written."""
    return max(verbosity, next((level for pattern, level in modules if _matches(path, pattern)), 0))


def v_of(record: logging.LogRecord) -> int:
    v = getattr(record, "v", None)
    if isinstance(v, int):
        return v
    return 0 if record.levelno >= logging.INFO else DEBUG_V


def _parse_vmodule(text: str) -> list[tuple[str, int]]:
    modules = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        pattern, _, level = part.partition("=")
        if not pattern or not level.isdecimal():
            raise LogSettingsError(f"--vmodule: {part!r} is not pattern=N")
        modules.append((pattern, int(level)))
    return modules


def _matches(path: str, pattern: str) -> bool:
    """A pattern with a slash is for the path, any other for the file's name; both without `.py`."""
    bare = PurePath(path).with_suffix("")
    if "/" in pattern:
        return fnmatchcase(bare.as_posix(), pattern) or fnmatchcase(bare.as_posix(), f"*/{pattern}")
    return fnmatchcase(bare.name, pattern)


REDACTED = "REDACTED"

SECRET_NAMES = frozenset(
    {
        "accesstoken",
        "apikey",
        "authorization",
        "bearertoken",
        "clientkey",
        "clientkeydata",
        "clientsecret",
        "cookie",
        "idtoken",
        "keydata",
        "passwd",
        "password",
        "privatekey",
        "proxyauthorization",
        "refreshtoken",
        "secret",
        "setcookie",
        "token",
    }
)

_SUSPICIOUS = re.compile(
    r"authorization|bearer|token|passw|secret|private key|key[-_]?data|eyJ|LS0tLS1CRUdJTi|api[-_]?key|cookie|://[^/\s]*@",
    re.IGNORECASE,
)
_VALUE = r"""("(?:[^"\\]|\\.)*"|'[^']*'|[^\s,;&}"']+)"""
_NETS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL), REDACTED),
    (re.compile(r"LS0tLS1CRUdJTi[A-Za-z0-9+/=]*"), REDACTED),
    (re.compile(r"eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?"), REDACTED),
    (
        re.compile(
            r"""(authorization["']?\s*[:=]\s*["']?\s*)(?:(?:bearer|basic|negotiate|digest)\s+)?[^\s"',}]+""",
            re.IGNORECASE,
        ),
        rf"\1{REDACTED}",
    ),
    (re.compile(r"\b(bearer\s+)[A-Za-z0-9._~+/=-]{16,}", re.IGNORECASE), rf"\1{REDACTED}"),
    (
        re.compile(
            r"""((?:client[-_]?key[-_]?data|client[-_]?secret|passw(?:or)?d|api[-_]?key|(?:set-)?cookie)["']?\s*[:=]\s*)"""
            + _VALUE,
            re.IGNORECASE,
        ),
        rf"\1{REDACTED}",
    ),
    (
        # "token: no such file" is prose, "token: abcdefgh1" is a token.
        re.compile(
            r"""(token["']?\s*[:=]\s*)("[^"]+"|'[^']+'|(?=[^\s,;&}]*[\d_.-])[^\s,;&}/"']{6,}|(?<==)[^\s,;&}"']+)""",
            re.IGNORECASE,
        ),
        rf"\1{REDACTED}",
    ),
    (re.compile(r"://[^/\s@]+@"), f"://{REDACTED}@"),
)


def redact(text: str) -> str:
    """The text without what looks like a secret."""
    if not _SUSPICIOUS.search(text):
        return text
    for pattern, replacement in _NETS:
        text = pattern.sub(replacement, text)
    return text


def safe_value(name: str, value: object) -> object:
    """A field's value as it may be written: plain data (text, numbers, lists, maps) without secrets."""
    if _bare(name) in SECRET_NAMES:
        return REDACTED
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return f"<{len(value)} bytes>"
    if isinstance(value, Mapping):
        return {str(key): safe_value(str(key), inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [safe_value("", inner) for inner in value]
    return redact(str(value))


def _bare(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")


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
