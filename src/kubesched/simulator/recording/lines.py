"""The format: gzip of JSON lines. The first is a header, the next ones are the objects there were, then what happened.

    {"apiVersion":"kubesched.dev/v1alpha1","kind":"Recording","segment":1,"startedS":1763467200.0,"kinds":["Pod",…]}
    {"t":0,"e":"A","k":"Node","n":"node-1","o":{…}}             there is an object, or it was added
    {"t":0,"e":"S"}                                             that was all there was when the recording began
    {"t":1.2,"e":"B","k":"Pod","n":"shop/web-1","o":{"node":"node-1","scheduler":"default-scheduler",…}}
    {"t":1.2,"e":"M","k":"Pod","n":"shop/web-1","o":{…}}        it changed: a JSON merge patch
    {"t":9.5,"e":"D","k":"Pod","n":"shop/web-1","v":"4711"}     it is gone, since this version
    {"t":30.1,"e":"G","k":"Pod","o":{"fromS":12.0,"why":"…"}}   changes between then and now may be missing

`t` is in seconds since the segment began. A long recording is several files, each whole in itself: `day.jsonl.gz`,
`day-0002.jsonl.gz` and so on. Bindings come before the change that they are seen by.

Recordings are written line by line: an object in full when it is new, and afterwards what changed of it. A change of
which nothing is recorded but the object's version is left out. What was written is on its way to the disk with every
`flush`, so that a process that is killed loses what came after the last one, and the file can be read.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import msgspec

from kubesched.k8s.errors import KubeschedError
from kubesched.k8s.model.manifests import CLUSTER_KINDS
from kubesched.k8s.model.merge_patch import merge_patch
from kubesched.k8s.model.meta import KubeObject

API_VERSION = "kubesched.dev/v1alpha1"
KIND = "Recording"

ADDED, CHANGED, DELETED, BOUND, GAP, SYNCED = "A", "M", "D", "B", "G", "S"

STRUCTS: dict[str, type[KubeObject]] = {kind: struct for (_, kind), struct in CLUSTER_KINDS.items()}
"""The kinds that a recording may hold, by name."""

_NUMBERED = re.compile(r"(?P<stem>.+)-(?P<number>\d{4,})$")
_SUFFIX = ".jsonl.gz"
_CHUNK = 1 << 16


class RecordingError(KubeschedError, ValueError):
    """A file is not a recording, or is damaged; says which and where."""


class Header(msgspec.Struct, frozen=True, rename="camel"):
    """The first line of a segment."""

    api_version: str
    kind: str
    segment: int = 1
    started_s: float = 0.0
    """Seconds since the epoch."""
    kinds: tuple[str, ...] = ()
    anonymised: bool = False
    source: str = ""
    """What made it, if it is not `kubesched record`."""
    gap_from_s: float | None = None
    """Nobody recorded between then (seconds since the epoch) and the start of this segment."""

    def __post_init__(self) -> None:
        if self.api_version != API_VERSION or self.kind != KIND:
            raise ValueError(f"not a recording: apiVersion {API_VERSION} and kind {KIND} are expected")


class Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """All others."""

    t: float
    e: str
    k: str = ""
    n: str = ""
    o: dict[str, Any] | None = None
    v: str = ""
    """The resourceVersion of a deletion; others have theirs in the object."""


class BindingSeen(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What a binding's line says beside the pod."""

    node: str
    uid: str = ""
    scheduler: str = ""
    resource_version: str = ""


# -- files -------------------------------------------------------------------------------------------------------------


def segment_path(first: Path, number: int) -> Path:
    """`day.jsonl.gz`, `day-0002.jsonl.gz` …"""
    if number == 1:
        return first
    stem, suffix = _parts(first)
    return first.with_name(f"{stem}-{number:04d}{suffix}")


def segments_of(first: Path) -> list[Path]:
    """The files of the recording that begins with this one, in their order. A later one stands for itself and those
    after it."""
    base, start = numbered(first)
    _, suffix = _parts(first)
    around = ((*numbered(path), path) for path in first.parent.glob(f"*{suffix}"))
    later = sorted((number, path) for stem, number, path in around if stem == base and number > start)
    return [first, *(path for _, path in later)]


def numbered(path: Path) -> tuple[str, int]:
    """The name that the files of a recording share, and which of them this is."""
    stem, suffix = _parts(path)
    found = _NUMBERED.match(stem)
    if found and path.with_name(f"{found['stem']}{suffix}").exists():
        return found["stem"], int(found["number"])
    return stem, 1


def _parts(path: Path) -> tuple[str, str]:
    name = path.name
    if name.endswith(_SUFFIX):
        return name.removesuffix(_SUFFIX), _SUFFIX
    return path.stem, path.suffix


def unpacked(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The text of a gzip file, of several in a row, or as far as one was written that was cut off; a file that is not
    packed at all comes as it is."""
    unpack: Any = None
    is_packed: bool | None = None
    for chunk in chunks:
        if is_packed is None:
            is_packed = chunk[:2] == b"\x1f\x8b"
        if not is_packed:
            yield chunk
            continue
        rest = chunk
        while rest:
            if unpack is None:
                unpack = zlib.decompressobj(wbits=31)
            yield unpack.decompress(rest)
            rest = unpack.unused_data
            if unpack.eof:
                unpack = None


def chunks_of(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                yield chunk
    except OSError as problem:
        raise RecordingError(f"{path}: {problem.strerror or problem}") from None


def whole_lines(texts: Iterable[bytes]) -> Iterator[bytes]:
    """Lines that end with a newline; what was being written when the file was cut off is left out."""
    rest = b""
    for text in texts:
        lines = (rest + text).split(b"\n")
        rest = lines.pop()
        yield from lines


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
        try:
            write_whole(self._file, data)
        except OSError as problem:
            if not self.n_bytes:
                self.path.unlink(missing_ok=True)
            raise RecordingError(f"{self.path}: {problem.strerror or problem}") from None
        self.n_bytes += len(data)

    def _add(self, line: Line) -> None:
        self._lines.append(_encode(line))

    def _t(self, now_s: float) -> float:
        return round(now_s - self._started_s, _MILLISECONDS)


def write_whole(file: IO[bytes], data: bytes) -> None:
    """An unbuffered file takes as much as fits on the disk, and says how much that was."""
    left = memoryview(data)
    while left:
        left = left[file.write(left) :]


def next_number(path: Path) -> int:
    """Of the file that continues the recording that begins with this one; 1 if there is none."""
    return numbered(segments_of(path)[-1])[1] + 1 if path.exists() else 1


def _is_version_only(patch: Body) -> bool:
    return patch.keys() == {"metadata"} and patch["metadata"].keys() <= {"resourceVersion", "generation"}
