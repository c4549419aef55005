"""Says whether files changed since it was last asked. Looks at their status only, which costs microseconds."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

_Status = tuple[int, int, int] | None


class FileWatch:
    def __init__(self, files: Sequence[Path]) -> None:
        self.files = tuple(files)
        self._seen = self._look()

    def has_changed(self) -> bool:
        seen = self._look()
        changed = seen != self._seen
        self._seen = seen
        return changed

    def _look(self) -> list[_Status]:
        return [_status(file) for file in self.files]


def _status(file: Path) -> _Status:
    """None if it is not there (any more)."""
    try:
        found = os.stat(file)  # noqa: PTH116 - follows links, as mounted Secrets are swapped by moving one
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
