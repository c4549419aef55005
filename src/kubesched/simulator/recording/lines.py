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
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from kubesched.k8s.errors import KubeschedError
from kubesched.k8s.model.manifests import CLUSTER_KINDS
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
