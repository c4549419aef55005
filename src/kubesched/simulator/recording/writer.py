"""Writes recordings, line by line: an object in full when it is new, and afterwards what changed of it.

A change of which nothing is recorded but the object's version is left out. What was written is on its way to the disk
with every `flush`, so that a process that is killed loses what came after the last one, and the file can be read.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

import msgspec

from kubesched.k8s.model.merge_patch import merge_patch
from kubesched.simulator.recording.lines import (
    ADDED,
    API_VERSION,
    BOUND,
    CHANGED,
    DELETED,
    GAP,
    KIND,
    SYNCED,
    BindingSeen,
    Header,
    Line,
    numbered,
    segment_path,
    segments_of,
)

Body = dict[str, Any]

_MILLISECONDS = 3
_encode = msgspec.json.Encoder().encode


class RecordingWriter:
    """One recording. Times are seconds since the epoch."""

    def __init__(
        self,
        path: Path,
        kinds: Iterable[str],
        started_s: float,
        *,
        anonymised: bool = False,
        source: str = "",
        rotate_s: float | None = None,
        first_number: int = 1,
        gap_from_s: float | None = None,
    ) -> None:
        """With `rotate_s`, a new file is begun that often. `first_number` continues a recording that is there."""
        self._path = path
        self._kinds = tuple(kinds)
        self._anonymised = anonymised
        self._source = source
        self._rotate_s = rotate_s
        self._number = first_number
        self._known: dict[tuple[str, str], Body] = {}
        """By kind and key, each object as it was last written."""
        self._lines: list[bytes] = []
        self._is_synced = False
        self.n_bindings = 0
        self.n_bytes = 0
        """Of all files that this writer wrote."""
        self._open(started_s, gap_from_s)

    @property
    def path(self) -> Path:
        """The file that is being written."""
        return segment_path(self._path, self._number)

    # -- what happens --------------------------------------------------------------------------------------------------

    def put(self, kind: str, key: str, body: Body, now_s: float) -> None:
        """An object is new, or now like this."""
        before = self._known.get((kind, key))
        if before is None:
            self._known[kind, key] = body
            self._add(Line(self._t(now_s), ADDED, kind, key, body))
            return
        patch = merge_patch(before, body)
        if patch and not _is_version_only(patch):
            self._known[kind, key] = body
            self._add(Line(self._t(now_s), CHANGED, kind, key, patch))

    def remove(self, kind: str, key: str, now_s: float, version: str = "") -> None:
        """`version` is that of its deletion."""
        if self._known.pop((kind, key), None) is not None:
            self._add(Line(self._t(now_s), DELETED, kind, key, v=version))

    def binding(self, pod: str, seen: BindingSeen, now_s: float) -> None:
        """To be told before the change of the pod that it was seen by."""
        self.n_bindings += 1
        self._add(Line(self._t(now_s), BOUND, "Pod", pod, msgspec.to_builtins(seen)))

    def gap(self, kind: str, from_s: float, now_s: float, why: str) -> None:
        """Changes of this kind may be missing."""
        self._add(Line(self._t(now_s), GAP, kind, o={"fromS": self._t(from_s), "why": why}))

    def synced(self, now_s: float) -> None:
        """All that there was when the recording began has been put."""
        self._is_synced = True
        self._add(Line(self._t(now_s), SYNCED))

    # -- files ---------------------------------------------------------------------------------------------------------

    def flush(self, now_s: float) -> None:
        """Everything so far can be read from the file; begins a new one when it is time for it."""
        self._write_out(zlib.Z_SYNC_FLUSH)
        if self._rotate_s is not None and self._is_synced and now_s - self._started_s >= self._rotate_s:
            self._write_out(zlib.Z_FINISH)
            self._file.close()
            self._number += 1
            self._open(now_s, None)
            for (kind, key), body in self._known.items():
                self._add(Line(0.0, ADDED, kind, key, body))
            self.synced(now_s)
            self._write_out(zlib.Z_SYNC_FLUSH)

    def close(self) -> None:
        self._write_out(zlib.Z_FINISH)
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()

    def _open(self, started_s: float, gap_from_s: float | None) -> None:
        self._started_s = started_s
        # What runs in a cluster is its owner's business.
        number = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        self._file: IO[bytes] = os.fdopen(number, "wb", buffering=0)
        self._pack = zlib.compressobj(level=6, wbits=31)
        header = Header(
            API_VERSION,
            KIND,
            segment=self._number,
            started_s=started_s,
            kinds=self._kinds,
            anonymised=self._anonymised,
            source=self._source,
            gap_from_s=gap_from_s,
        )
        # The names first: whoever opens the file should see what it is.
        self._lines.append(
            _encode({"apiVersion": header.api_version, "kind": header.kind} | msgspec.to_builtins(header))
        )

    def _write_out(self, mode: int) -> None:
        if not self._lines and mode != zlib.Z_FINISH:
            return
        text = b"".join(line + b"\n" for line in self._lines)
        self._lines.clear()
        data = self._pack.compress(text) + self._pack.flush(mode)
        self.n_bytes += len(data)
        self._file.write(data)

    def _add(self, line: Line) -> None:
        self._lines.append(_encode(line))

    def _t(self, now_s: float) -> float:
        return round(now_s - self._started_s, _MILLISECONDS)


def next_number(path: Path) -> int:
    """Of the file that continues the recording that begins with this one; 1 if there is none."""
    return numbered(segments_of(path)[-1])[1] + 1 if path.exists() else 1


def _is_version_only(patch: Body) -> bool:
    return patch.keys() == {"metadata"} and patch["metadata"].keys() <= {"resourceVersion", "generation"}
