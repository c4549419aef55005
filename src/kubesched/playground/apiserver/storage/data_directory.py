"""The directory in which a server keeps its cluster: made if missing, one server at a time, and only of a form we know.

What is wrong with it is a `DataDirectoryError` that names it. Read ``sqlite.py`` for what lies in it.
"""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import IO

FORMAT = "1"
"""Changes when a server could not read what an older one wrote."""

_FORMAT_FILE = "format"
_LOCK_FILE = "lock"
_CLUSTER_FILE = "cluster"
"""The number of the cluster whose database belongs here, once there is one."""

WHAT_TO_DO = "restore it from a backup, or delete the directory to start a new cluster"


class DataDirectoryError(OSError):
    """The directory cannot be used; says why in one line."""


class DataDirectory:
    """Held until ``close``."""

    def __init__(self, path: Path) -> None:
        """Raises DataDirectoryError."""
        self.path = path
        self._lock: IO[str] | None = None
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._take()
            self._check_format()
        except FileExistsError:
            raise DataDirectoryError(f"{path}: not a directory") from None
        except DataDirectoryError:
            self.close()
            raise
        except (OSError, UnicodeDecodeError) as problem:
            self.close()
            raise DataDirectoryError(f"{path}: {getattr(problem, 'strerror', None) or problem}") from None

    @property
    def objects(self) -> Path:
        return self.path / "objects.sqlite"

    @property
    def cluster(self) -> int | None:
        """The cluster that lives here; None as long as there is none. Raises DataDirectoryError."""
        file = self.path / _CLUSTER_FILE
        try:
            return int(file.read_text()) if file.exists() else None
        except (OSError, ValueError):
            raise DataDirectoryError(f"{file}: is broken: {WHAT_TO_DO}") from None

    def check_objects(self) -> None:
        """Raises DataDirectoryError if a cluster lives here whose objects are gone."""
        if self.cluster is None:
            return
        if not self.objects.exists():
            raise DataDirectoryError(f"{self.objects}: is missing, with all objects of this cluster: {WHAT_TO_DO}")
        if self.objects.stat().st_size == 0:
            raise DataDirectoryError(f"{self.objects}: is empty, all objects of this cluster are gone: {WHAT_TO_DO}")

    def note_cluster(self, cluster: int) -> None:
        """From now on, no other database is taken for this cluster's."""
        if self.cluster is None:
            beside = self.path / f".{_CLUSTER_FILE}"
            beside.write_text(f"{cluster}\n")
            beside.replace(self.path / _CLUSTER_FILE)

    def close(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _take(self) -> None:
        """The lock goes with the process: one that is killed leaves nothing behind."""
        self._lock = (self.path / _LOCK_FILE).open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DataDirectoryError(f"{self.path}: another API server is using it") from None

    def _check_format(self) -> None:
        file = self.path / _FORMAT_FILE
        found = file.read_text().strip() if file.exists() else ""
        if not found:  # also when a server was killed between making the file and writing it
            file.write_text(f"{FORMAT}\n")
        elif found != FORMAT:
            raise DataDirectoryError(
                f"{self.path}: written by another version of kubesched (format {found[:20]}, this one reads {FORMAT});"
                " use another directory, or that version"
            )
