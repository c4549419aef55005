"""Which lines are written: V-levels as klog has them, for all files (`-v`) or for some (`--vmodule`).

A line says its level by `extra={"v": n}`; without, an INFO line is V(0) and a DEBUG line V(4). Warnings and errors are
always written.

Next: `setup`.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import PurePath

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
