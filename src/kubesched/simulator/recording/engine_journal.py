"""The journal of a scheduling loop: everything that it was told, so that it can be run again and does the same.

Facts, answers, ticks and attempts, each with its time; and a checksum of the effects that came of them. The loop reads
no clock and draws no random number of its own, so that is all there is to it. Gzip of JSON lines:

    {"apiVersion":"kubesched.dev/v1alpha1","kind":"EngineJournal","seed":7,"configuration":"…"}
    ["p",12.5,"Pod",0,{…}]              put
    ["r",13.0,"Pod",0,{…}]              remove
    ["t",13.1]  ["s",13.1]              tick; one attempt
    ["e",13.1,"",2,3735928559]          two effects were taken
    ["a",13.2,"Done",41,{}]             the answer to effect 41
    ["q",0,"",0,["allow","Gate","",["uid"]]]   what a plugin asked for by itself, such as to let a pod go on

What no plugin of ours reads of an object is left out: values of the environment, and annotations that mean nothing to a
scheduler.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from kubesched.framework.effects import Done, Effect, Failed, Withheld, Written
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.partial_reading import UnreadPod
from kubesched.k8s.model.resource import ResourceClaim
from kubesched.scheduler.engine.handle import PluginRequest
from kubesched.scheduler.engine.loop import Scheduler
from kubesched.scheduler.plugins.dynamic_resources.effects import ClaimConflict
from kubesched.simulator.recording.lines import API_VERSION, STRUCTS, RecordingError, chunks_of, unpacked, whole_lines

KIND = "EngineJournal"
PUT, REMOVE, TICK, ATTEMPT, EFFECTS, ANSWER, REQUEST = "p", "r", "t", "s", "e", "a", "q"

_FACTS: dict[str, type[KubeObject]] = {**STRUCTS, UnreadPod.__name__: UnreadPod}
_ANSWERS: dict[str, Any] = {
    one.__name__: one for one in (Done, Failed, Withheld, Written, ClaimConflict, ResourceClaim, bytes)
}
_NOTHING = msgspec.Raw(b"null")


class JournalHeader(msgspec.Struct, frozen=True, rename="camel"):
    """What the loop was built from."""

    api_version: str
    kind: str
    configuration: str
    """A KubeSchedulerConfiguration as YAML."""
    seed: int = 0
    started_s: float = 0.0
    """Seconds since the epoch."""
    clock_s: float = 0.0
    """The time of the journal's own clock then."""
    keeps_classes: bool = True
    max_unschedulable_s: float = 300.0
    answer_base_s: float = 120.0
    answer_each_s: float = 0.0
    emulate: str = ""
    """The version whose configuration this is, if it is an older one."""
    gates: dict[str, bool] = {}
    """The feature gates of that version."""

    def __post_init__(self) -> None:
        if self.api_version != API_VERSION or self.kind != KIND:
            raise ValueError(f"not a journal: apiVersion {API_VERSION} and kind {KIND} are expected")


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """One call of the loop."""

    op: str
    at_s: float
    name: str = ""
    """The kind of the object, or the type of the answer."""
    number: int = 0
    body: msgspec.Raw = _NOTHING


_encode = msgspec.json.Encoder(enc_hook=repr).encode
_decode_header = msgspec.json.Decoder(JournalHeader).decode
_decode_entry = msgspec.json.Decoder(Entry).decode


class _Call:
    """Of the loop, by one thread at a time."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.is_on = False

    def __enter__(self) -> None:
        self.lock.acquire()
        self.is_on = True

    def __exit__(self, *_: object) -> None:
        self.is_on = False
        self.lock.release()


class JournalledLoop:
    """A scheduling loop in front of which a journal is kept. `write` gets lines; `recorded_form` makes objects smaller
    before they are written.

    What plugins ask for while the loop calls them follows from what it was told. What they ask for by themselves, from
    threads of their own even, does not: it waits until the loop is done with its call, and is written as one more.
    """

    def __init__(
        self, loop: Scheduler, write: Callable[[bytes], None], recorded_form: Callable[[KubeObject], KubeObject]
    ) -> None:
        self._loop = loop
        self._write = write
        self._recorded_form = recorded_form
        self._call = _Call()
        loop.requests.carry_out = self._carry_out

    def put(self, item: KubeObject, now_s: float) -> None:
        with self._call:
            self._write(_encode((PUT, now_s, type(item).__name__, 0, self._recorded_form(item))))
            self._loop.put(item, now_s)

    def remove(self, item: KubeObject, now_s: float) -> None:
        with self._call:
            self._write(_encode((REMOVE, now_s, type(item).__name__, 0, self._recorded_form(item))))
            self._loop.remove(item, now_s)

    def answer(self, effect_id: int, answer: object, now_s: float) -> None:
        told = self._recorded_form(answer) if isinstance(answer, KubeObject) else answer
        with self._call:
            self._write(_encode((ANSWER, now_s, type(answer).__name__, effect_id, told)))
            self._loop.answer(effect_id, answer, now_s)

    def tick(self, now_s: float) -> None:
        with self._call:
            self._write(_encode((TICK, now_s)))
            self._loop.tick(now_s)

    def schedule_one(self, now_s: float) -> bool:
        with self._call:
            self._write(_encode((ATTEMPT, now_s)))
            return self._loop.schedule_one(now_s)

    def should_send_first(self) -> bool:
        return self._loop.should_send_first()

    @property
    def is_giving_way(self) -> bool:
        return self._loop.is_giving_way

    def take_effects(self) -> list[Effect]:
        effects = self._loop.take_effects()
        if effects:
            self._write(_encode((EFFECTS, 0.0, "", len(effects), checksum(effects))))
        return effects

    def next_deadline_s(self) -> float | None:
        return self._loop.next_deadline_s()

    def _carry_out(self, request: PluginRequest) -> bool:
        with self._call.lock:
            if not self._call.is_on:
                self._write(_encode((REQUEST, 0.0, "", 0, request)))
            return self._loop.requests.do(request)


def checksum(effects: Sequence[Effect]) -> int:
    """The same for the same effects, in any process."""
    found = 0
    for effect in effects:
        action = effect.action
        found = zlib.crc32(_encode((effect.id, type(action).__name__, action)), found)
    return found


# -- reading -----------------------------------------------------------------------------------------------------------


class JournalReader:
    """The files of a journal, in the order of their names; iterate over it once."""

    def __init__(self, directory: Path) -> None:
        """Raises RecordingError if there is no journal."""
        if directory.is_dir():
            self.paths = sorted(directory.glob("engine-*.jsonl.gz"))
        else:
            self.paths = [directory]
        if not self.paths:
            raise RecordingError(f"{directory}: no journal there (engine-*.jsonl.gz)")
        self._texts = self._all_texts()
        try:
            _, _, first = next(self._texts)
            self.header = _decode_header(first)
        except StopIteration:
            raise RecordingError(f"{self.paths[0]}: not a journal: it has no header") from None
        except (msgspec.DecodeError, zlib.error) as problem:
            raise RecordingError(f"{self.paths[0]}: not a journal: {problem}") from None

    def __iter__(self) -> Iterator[Entry]:
        for path, number, text in self._texts:
            try:
                yield _decode_entry(text)
            except msgspec.DecodeError as problem:
                raise RecordingError(f"{path}: line {number}: {problem}") from None

    def _all_texts(self) -> Iterator[tuple[Path, int, bytes]]:
        for path in self.paths:
            try:
                for number, text in enumerate(whole_lines(unpacked(chunks_of(path))), start=1):
                    yield path, number, text
            except zlib.error as problem:
                raise RecordingError(f"{path}: {problem}") from None


def fact_of(entry: Entry) -> KubeObject:
    """The object that was put or removed."""
    struct = _FACTS.get(entry.name)
    if struct is None:
        raise RecordingError(f"a {entry.name} in the journal: a kind of another version")
    return msgspec.json.decode(entry.body, type=struct)


def request_of(entry: Entry) -> PluginRequest:
    """What a plugin asked for."""
    return msgspec.json.decode(entry.body, type=PluginRequest)


def answer_of(entry: Entry) -> object:
    if entry.name == "NoneType":
        return None
    kind = _ANSWERS.get(entry.name)
    if kind is None:
        raise RecordingError(f"an answer {entry.name} in the journal, which this version does not know")
    return msgspec.json.decode(entry.body, type=kind)
