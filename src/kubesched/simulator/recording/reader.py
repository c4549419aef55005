"""Reads recordings: typed objects and bindings, in the order in which they were seen, over all files of a recording.

Where one file follows another, what the second one begins with is compared with what was known at the end of the first:
only what differs happens. So it does not matter whether the recorder went on, was restarted, or was away for a while.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from kubesched.k8s.model.merge_patch import merged
from kubesched.k8s.model.meta import KubeObject
from kubesched.simulator.recording.lines import (
    ADDED,
    BOUND,
    CHANGED,
    DELETED,
    GAP,
    STRUCTS,
    SYNCED,
    BindingSeen,
    Header,
    Line,
    RecordingError,
    chunks_of,
    segments_of,
    unpacked,
    whole_lines,
)

_decode_header = msgspec.json.Decoder(Header).decode
_decode_line = msgspec.json.Decoder(Line).decode


@dataclass(frozen=True, slots=True)
class ObjectSeen:
    """An object is new, or now like this. Times are seconds since the epoch."""

    at_s: float
    item: KubeObject
    is_initial: bool = False
    """It was there when the recording began."""


@dataclass(frozen=True, slots=True)
class ObjectGone:
    at_s: float
    item: KubeObject
    """As it was last."""


@dataclass(frozen=True, slots=True)
class BoundSeen:
    """A pod got its node. The change of the pod itself comes next."""

    at_s: float
    pod: str
    seen: BindingSeen


@dataclass(frozen=True, slots=True)
class GapSeen:
    """Between `from_s` and `at_s`, changes may be missing; of one kind, or of all."""

    at_s: float
    from_s: float
    kind: str
    why: str


@dataclass(frozen=True, slots=True)
class Synced:
    """All that there was when the recording began has come."""

    at_s: float


Recorded = ObjectSeen | ObjectGone | BoundSeen | GapSeen | Synced


@dataclass(slots=True)
class _Known:
    body: dict[str, Any]
    item: KubeObject


class RecordingReader:
    """One recording. `header` is that of the first file; iterate over it once."""

    def __init__(self, path: Path) -> None:
        """Raises RecordingError if the first file is not a recording."""
        self.path = path
        self.header, _ = _opened(path)
        self._known: dict[tuple[str, str], _Known] = {}

    def __iter__(self) -> Iterator[Recorded]:
        for index, path in enumerate(segments_of(self.path)):
            yield from self._segment(path, is_first=index == 0)

    def _segment(self, path: Path, *, is_first: bool) -> Iterator[Recorded]:
        header, lines = _opened(path)
        if header.gap_from_s is not None:
            yield GapSeen(header.started_s, header.gap_from_s, "", "nothing was recorded")
        there: set[tuple[str, str]] | None = set()
        """What the file begins with; None once it has begun."""
        for number, line in lines:
            try:
                if there is not None and line.e == SYNCED:
                    yield from self._begun(header.started_s, None if is_first else there)
                    there = None
                    continue
                if there is not None and line.e == ADDED:
                    there.add((line.k, line.n))
                    if self._knows(line):
                        continue
                event = self._event(line, header.started_s, is_initial=there is not None and is_first)
            except (KeyError, TypeError, ValueError) as problem:
                raise RecordingError(f"{path}: line {number}: {_plain(problem)}") from None
            if event is not None:
                yield event

    def _begun(self, at_s: float, there: set[tuple[str, str]] | None) -> Iterator[Recorded]:
        """What was there before, and is not at the beginning of the next file, is gone."""
        if there is not None:
            for key in [key for key in self._known if key not in there]:
                yield ObjectGone(at_s, self._known.pop(key).item)
        yield Synced(at_s)

    def _knows(self, line: Line) -> bool:
        known = self._known.get((line.k, line.n))
        return known is not None and known.body == line.o

    def _event(self, line: Line, started_s: float, *, is_initial: bool) -> Recorded | None:
        key, at_s = (line.k, line.n), started_s + line.t
        match line.e:
            case e if e in (ADDED, CHANGED):
                body = line.o or {}
                if e == CHANGED:
                    body = merged(self._known[key].body, body)
                struct = STRUCTS.get(line.k)
                if struct is None:
                    return None  # a kind of a later version
                item = msgspec.convert(body, struct)
                self._known[key] = _Known(body, item)
                return ObjectSeen(at_s, item, is_initial)
            case e if e == DELETED:
                known = self._known.pop(key, None)
                return None if known is None else ObjectGone(at_s, _with_version(known.item, line.v))
            case e if e == BOUND:
                return BoundSeen(at_s, line.n, msgspec.convert(line.o, BindingSeen))
            case e if e == GAP:
                said = line.o or {}
                return GapSeen(at_s, started_s + float(said["fromS"]), line.k, str(said.get("why", "")))
            case _:
                return None


def _opened(path: Path) -> tuple[Header, Iterator[tuple[int, Line]]]:
    """The header, and the lines after it with their numbers."""
    texts = enumerate(whole_lines(unpacked(chunks_of(path))), start=1)
    try:
        _, first = next(texts)
        header = _decode_header(first)
    except StopIteration:
        raise RecordingError(f"{path}: not a recording: it has no header") from None
    except (msgspec.DecodeError, zlib.error) as problem:
        raise RecordingError(f"{path}: not a recording: {problem}") from None
    return header, _lines(path, texts)


def _lines(path: Path, texts: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, Line]]:
    number = 1
    try:
        for number, text in texts:
            yield number, _decode_line(text)
    except (msgspec.DecodeError, zlib.error) as problem:
        raise RecordingError(f"{path}: line {number}: {problem}") from None


def _with_version(item: KubeObject, version: str) -> KubeObject:
    return replace(item, metadata=replace(item.metadata, resource_version=version)) if version else item


def _plain(problem: Exception) -> str:
    if isinstance(problem, KeyError):
        kind, name = problem.args[0]
        return f"a change of {kind} {name}, which is not there"
    return str(problem)
