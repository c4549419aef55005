"""Where a scheduler's plugins come from, kept so that they can be read again when their files change.

Next: `assembly` for what is read; `kubesched.scheduler.reload` for what becomes of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kubesched.scheduler.config import KubeSchedulerConfiguration
from kubesched.scheduler.plugin_loading.assembly import Assembly, assemble, plugin_files

Stamp = tuple[int, int, int]


@dataclass(frozen=True)
class PluginSource:
    """A configuration, before plugins are switched on in it, and the files of those that are to be."""

    config: KubeSchedulerConfiguration
    source: str = ""
    """The configuration's file."""
    files: Sequence[str | Path] = ()

    def paths(self) -> list[Path]:
        """All files that plugins are read from."""
        return [*map(Path, self.files), *plugin_files(self.config, self.source)]

    def read(self) -> Assembly:
        """Raises `ConfigError`."""
        return assemble(self.config, self.source, files=self.files)


class WatchedFiles:
    """Sees by their stamps which files changed since it looked last."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._stamps = {path: _stamp(path) for path in paths}

    def changed(self) -> list[Path]:
        now = {path: _stamp(path) for path in self._stamps}
        found = [path for path, stamp in now.items() if stamp != self._stamps[path]]
        self._stamps = now
        return found


def _stamp(path: Path) -> Stamp | None:
    """None where there is no such file, as for a moment while an editor saves it."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
