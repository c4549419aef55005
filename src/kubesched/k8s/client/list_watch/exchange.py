"""What is asked of the server in lists and watches, and its answers as typed objects.

Asked: the parameters, the part of the client that is needed, and when. Time and chance are handed in, so that tests
need not wait: a clock, a sleep, a dice. `RetryBackoff` is client-go's for reflectors: from 0.8 s doubling to 30 s, each
stretched by up to as much again, and from the beginning after two minutes without need.

Answered: whole lists in one decode, watch events line by line. One object that cannot be read must not stop all others:
it is handed on as `Unread`, with what is known of it. It is named once in the log, counted, and remembered until it can
be read or is gone; `kubesched.k8s.model.partial_reading` says what it counts as meanwhile.

Next: `reflector`, which asks the server.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from random import Random
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from kubesched.k8s.client.errors import ApiError
from kubesched.k8s.client.list_watch import log_lines
from kubesched.k8s.client.requester import Requester
from kubesched.k8s.client.transport import Answer, api_error
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.manifests import collector_paused
from kubesched.k8s.model.meta import KubeObject, ObjectMeta
from kubesched.k8s.model.partial_reading import (
    GARBLED,
    UNREADABLE,
    PartialReading,
    StandIn,
    first_bad_amount,
    garbled,
    read_partly,
    stand_in_for,
    tree_of,
)

PAGE_SIZE = 500
LIST_TIMEOUT_S = 60.0
SHORTEST_WATCH_S = 300
"""A watch lasts between this and twice as long, so that the watches of many clients do not end together."""

FROM_CACHE = "0"
CONSISTENT = ""


class ListWatchApi(Requester, Protocol):
    """`RestClient`, as far as it is used here."""

    def stream(self, path: str, params: Mapping[str, str]) -> AbstractAsyncContextManager[AsyncIterator[bytes]]: ...


@dataclass(frozen=True, slots=True)
class ListOptions:
    """Which objects of a kind are of interest. `namespace` limits to one."""

    field_selector: str = ""
    label_selector: str = ""
    namespace: str | None = None

    def params(self) -> dict[str, str]:
        asked = {"fieldSelector": self.field_selector, "labelSelector": self.label_selector}
        return {name: value for name, value in asked.items() if value}


def list_params(options: ListOptions, version: str, page_size: int, continue_token: str = "") -> dict[str, str]:
    """A page, or from a known version on (which the server has in its cache) the whole."""
    params = options.params()
    if continue_token:
        return {**params, "limit": str(page_size), "continue": continue_token}
    if page_size and version in (FROM_CACHE, CONSISTENT):
        params["limit"] = str(page_size)
    if version:
        params["resourceVersion"] = version
    return params


def watch_params(options: ListOptions, version: str, dice: Random) -> dict[str, str]:
    return {
        **options.params(),
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": version,
        "timeoutSeconds": str(int(SHORTEST_WATCH_S * (1.0 + dice.random()))),
    }


def streamed_list_params(options: ListOptions, version: str, dice: Random) -> dict[str, str]:
    """A watch that first tells everything there is."""
    asked = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
    params = {**watch_params(options, version, dice), **asked}
    if not version:
        del params["resourceVersion"]
    return params


FIRST_S = 0.8
LONGEST_S = 30.0
RESET_AFTER_S = 120.0


@dataclass(frozen=True, slots=True)
class Pace:
    now_s: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    dice: random.Random = field(default_factory=random.Random)


class AnswerSignal:
    """Who waits because a server does not answer goes on as soon as it has answered another."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def answered(self) -> None:
        self._event.set()
        self._event.clear()  # for those who come to wait later, nothing has happened

    async def or_after(self, pause: Awaitable[object]) -> None:
        waiting = {asyncio.ensure_future(pause), asyncio.ensure_future(self._event.wait())}
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waiting:
                one.cancel()


class RetryBackoff:
    """How long to wait before the next attempt."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._next_s = FIRST_S
        self._last_at_s = pace.now_s()

    def delay_s(self) -> float:
        now_s = self._pace.now_s()
        if now_s - self._last_at_s > RESET_AFTER_S:
            self._next_s = FIRST_S
        self._last_at_s = now_s
        this_s, self._next_s = self._next_s, min(self._next_s * 2, LONGEST_S)
        return this_s * (1.0 + self._pace.dice.random())

    async def wait(self, at_least_s: float = 0.0) -> None:
        await self._pace.sleep(max(self.delay_s(), at_least_s))

    async def wait_for(self, signal: AnswerSignal) -> None:
        """Not for longer than until the signal."""
        await signal.or_after(self._pace.sleep(self.delay_s()))


K = TypeVar("K", bound=KubeObject)

NAMELESS = "metadata: name and namespace are required"

_NAMING = ("name", "namespace", "uid", "resourceVersion")


class ListMeta(msgspec.Struct, gc=False, frozen=True):
    resource_version: str = msgspec.field(default="", name="resourceVersion")
    continue_token: str = msgspec.field(default="", name="continue")


@dataclass(slots=True)
class Unread(Generic[K]):
    """An object that does not decode, or one of its kind that has no name. `change` is that of its watch event;
    `where` tells which it is if its name cannot be read."""

    kind: type[K]
    tree: Any
    where: str
    change: str = "ADDED"
    is_nameless: bool = False

    @property
    def metadata(self) -> ObjectMeta:
        """As far as it can be read."""
        found = self.tree.get("metadata") if isinstance(self.tree, dict) else None
        known = found if isinstance(found, dict) else {}
        name, namespace, uid, version = (_text(known.get(part)) for part in _NAMING)
        return ObjectMeta(name, namespace, uid, version)

    @property
    def has_metadata(self) -> bool:
        return isinstance(self.tree, dict) and isinstance(self.tree.get("metadata"), dict)

    def key(self, *, is_namespaced: bool) -> str:
        """`namespace/name`, or the name of what has no namespace; empty if that cannot be read."""
        metadata = self.metadata
        if not is_namespaced:
            return metadata.name
        return f"{metadata.namespace}/{metadata.name}" if metadata.namespace and metadata.name else ""

    def take_name_of(self, known: KubeObject) -> None:
        """Its uid tells that it is this one."""
        self.tree["metadata"] |= {"name": known.name, "namespace": known.namespace}
        self.is_nameless = True

    def read(self, last_known: KubeObject | None = None, stand_in: StandIn = stand_in_for) -> PartialReading[K]:
        """What the object counts as, and what is wrong with it. With nothing wrong, it is the object itself."""
        is_same = last_known is not None and self.metadata.uid in ("", last_known.metadata.uid)
        reading = read_partly(self.tree, self.kind, last_known if is_same else None)
        if self.is_nameless:
            reading.problems.insert(0, NAMELESS)
        if reading.item is not None and reading.problems:
            reading.item = stand_in(reading.item, reading.problems)
        return reading

    @property
    def annotations(self) -> dict[str, Any]:
        found = self.tree.get("metadata") if isinstance(self.tree, dict) else None
        annotations = found.get("annotations") if isinstance(found, dict) else None
        return annotations if isinstance(annotations, dict) else {}


@dataclass(slots=True)
class Listing(Generic[K]):
    """What a list says, or a page of it. `unread` exist but could not be decoded."""

    items: list[K] = field(default_factory=list)
    version: str = ""
    continue_token: str = ""
    unread: list[Unread[K]] = field(default_factory=list)


class WatchEvent(msgspec.Struct, Generic[K], gc=False):
    type: str
    object: K


class _ListPage(msgspec.Struct, Generic[K], gc=False):
    items: list[K] | None = None
    metadata: ListMeta = ListMeta()


class _RawPage(msgspec.Struct, gc=False):
    items: list[msgspec.Raw] | None = None
    metadata: ListMeta = ListMeta()


class _PlainPage(msgspec.Struct, gc=False):
    items: list[Any] | None = None
    metadata: ListMeta = ListMeta()


_decode_raw_page = msgspec.json.Decoder(_RawPage).decode


class KindDecoder(Generic[K]):
    """For one kind."""

    def __init__(self, kind: type[K]) -> None:
        self.kind = kind
        self._checks_amounts = kind is not Pod  # whose amounts are read as soon as it is seen, and often the same
        self._decode_page: Callable[[bytes], _ListPage[K]] = msgspec.json.Decoder(_ListPage[kind]).decode  # type: ignore[valid-type]
        self._decode_event: Callable[[bytes], WatchEvent[K]] = msgspec.json.Decoder(WatchEvent[kind]).decode  # type: ignore[valid-type]
        self._decode_item: Callable[[msgspec.Raw], K] = msgspec.json.Decoder(kind).decode

    def page(self, body: bytes) -> Listing[K]:
        """A list, or a page of it. Raises msgspec.DecodeError if it is no list at all."""
        with collector_paused():
            try:
                page = self._decode_page(body)
            except UNREADABLE:
                return self._readable_part(body)
        items = page.items or []
        if all(map(self._is_whole, items)):
            return Listing(items, page.metadata.resource_version, page.metadata.continue_token)
        return self._readable_part(body)

    def event(self, line: bytes) -> WatchEvent[K] | Unread[K]:
        """A line of a watch. Raises `ApiError` for an ERROR event, msgspec.DecodeError for what is no JSON."""
        try:
            event = self._decode_event(line)
        except UNREADABLE:
            return self._unusual_event(line)
        if event.type == "ERROR" or not self._is_whole(event.object):
            return self._unusual_event(line)
        return event

    def _is_whole(self, item: K) -> bool:
        """Whether what decoded has a name, and amounts that are amounts."""
        return item.metadata.name != "" and not (self._checks_amounts and first_bad_amount(item) is not None)

    def _readable_part(self, body: bytes) -> Listing[K]:
        try:
            raw: _RawPage | _PlainPage = _decode_raw_page(body)
        except UNREADABLE:
            raw = msgspec.convert(tree_of(body), _PlainPage)
        listing: Listing[K] = Listing([], raw.metadata.resource_version, raw.metadata.continue_token)
        for index, part in enumerate(raw.items or ()):
            item = self._item(part)
            if item is not None:
                listing.items.append(item)
            else:
                tree = tree_of(part) if isinstance(part, msgspec.Raw) else part
                listing.unread.append(Unread(self.kind, tree, f"items[{index}]"))
        return listing

    def _item(self, part: Any) -> K | None:
        """`None` if it cannot be read in full."""
        try:
            if isinstance(part, msgspec.Raw):
                item = self._decode_item(part)
            elif garbled(part):
                return None
            else:
                item = msgspec.convert(part, self.kind)
        except UNREADABLE:
            return None
        return item if self._is_whole(item) else None

    def _unusual_event(self, line: bytes) -> Unread[K]:
        tree = tree_of(line)
        change = _text(tree.get("type")) if isinstance(tree, dict) else ""
        if change == "ERROR":
            raise _error_in(tree.get("object"))
        item = tree.get("object") if isinstance(tree, dict) else tree
        return Unread(self.kind, item, "a watch event", change)


def _text(value: Any) -> str:
    return value if isinstance(value, str) and GARBLED not in value else ""


def _error_in(status: Any) -> ApiError:
    code = status.get("code") if isinstance(status, dict) else None
    known = code if isinstance(code, int) and 100 <= code <= 599 else 500
    return api_error(Answer(known, {}, msgspec.json.encode(status)))


MOST_TOLD = 3
"""So many fields of one object are named in its line."""


class SetAside:
    """Of all kinds. Keys are `namespace/name`, or where in an answer it was if that is not known."""

    def __init__(self) -> None:
        self.totals: Counter[str] = Counter()
        """How often an object was set aside, by kind."""
        self.n_noted = 0
        """How often anything was noted, said before or not."""
        self._now: dict[str, dict[str, str]] = {}

    def note(self, kind: str, key: str, problems: Sequence[str], counts_as: str) -> None:
        """One line, unless the same was said of it before."""
        self.n_noted += 1
        told = "; ".join(problems[:MOST_TOLD])
        if len(problems) > MOST_TOLD:
            told += f"; and {len(problems) - MOST_TOLD} more"
        known = self._now.setdefault(kind, {})
        if known.get(key) == told:
            return
        known[key] = told
        self.totals[kind] += 1
        log_lines.SET_ASIDE.write(kind, key, told, counts_as)

    def of(self, kind: str) -> Mapping[str, str]:
        """What is wrong with those that are set aside now, by key."""
        return self._now.get(kind, {})

    def forget(self, kind: str, key: str) -> None:
        """It can be read now, or is gone."""
        self._now.get(kind, {}).pop(key, None)

    def keep_only(self, kind: str, keys: Collection[str]) -> None:
        """After a list: those that it does not have are gone."""
        known = self._now.get(kind)
        if known:
            self._now[kind] = {key: problem for key, problem in known.items() if key in keys}

    def counts(self) -> dict[str, int]:
        """How many are set aside now, by kind."""
        return {kind: len(known) for kind, known in self._now.items()}
