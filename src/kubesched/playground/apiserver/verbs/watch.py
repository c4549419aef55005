"""Watch: a collection's changes as a stream of lines, each encoded once and shared by all who watch.

Guarantees no gap: events come in order of their versions, from exactly the version asked for, or the watch ends with
410 Expired. An object that leaves the selection is told as DELETED, one that enters it as ADDED. ``http/resources.py``
sends what ``batches`` yields.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass

import msgspec

from kubesched.playground.apiserver.errors import StatusError, expired
from kubesched.playground.apiserver.storage.store import CompactedError, ObjectKey, Stored, StoredChange
from kubesched.playground.apiserver.verbs.read import Selection, selection, version_of
from kubesched.playground.apiserver.verbs.request import (
    Api,
    Query,
    Target,
    decode_stored,
    integer,
    options_error,
    single,
    truth,
)

BOOKMARK_EVERY_S = 60.0
_INITIAL_CHUNK = 500
_EMPTY_KINDS: dict[str, dict[str, object]] = {"Pod": {"spec": {"containers": None}, "status": {}}}
"""What Go writes for an object without content, where that is more than its metadata."""
INITIAL_EVENTS_END = "k8s.io/initial-events-end"


@dataclass(frozen=True, slots=True)
class EventEncoding:
    """How a watcher wants objects: ``variant`` names the encoding, ``encode`` makes an object of it (without type and
    braces).
    """

    variant: tuple[str, ...]
    encode: Callable[[Stored], bytes]


@dataclass(frozen=True, slots=True)
class WatchRequest:
    """A watch that passed all checks."""

    target: Target
    chosen: Selection
    version: int
    is_from_now: bool
    sends_initial: bool
    ends_initial: bool
    bookmarks: bool
    timeout_s: float


def watch_request(query: Query, target: Target, default_timeout_s: float) -> WatchRequest:
    """Reads and checks the options."""
    initial = truth(query, "sendInitialEvents")
    match = single(query, "resourceVersionMatch")
    _check_options(initial, match)
    version = version_of(query)
    bookmarks = bool(truth(query, "allowWatchBookmarks"))
    timeout = integer(query, "timeoutSeconds") or 0
    return WatchRequest(
        target=target,
        chosen=selection(query, target),
        version=version,
        is_from_now=initial is False and version == 0,
        sends_initial=bool(initial) or (initial is None and version == 0),
        ends_initial=bool(initial) and bookmarks,
        bookmarks=bookmarks,
        timeout_s=float(timeout) if timeout > 0 else default_timeout_s,
    )


def _check_options(initial: bool | None, match: str) -> None:
    name, causes = "resourceVersionMatch", []
    if initial is not None and match != "NotOlderThan":
        message = "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        causes.append(("FieldValueForbidden", name, message))
        if match:
            message = f'Unsupported value: "{match}": supported values: "NotOlderThan"'
            causes.append(("FieldValueNotSupported", name, message))
    elif initial is None and match:
        message = "Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        causes.append(("FieldValueForbidden", name, message))
    if causes:
        raise options_error("ListOptions", causes)


async def batches(
    api: Api, request: WatchRequest, encoding: EventEncoding, stopping: asyncio.Event
) -> AsyncGenerator[bytes, None]:
    """Lines to send, many at a time; ends with the timeout, an ERROR line or the server."""
    store = api.store
    deadline = asyncio.get_running_loop().time() + request.timeout_s
    starts_now = request.sends_initial or request.is_from_now
    revision = store.revision if starts_now else request.version
    initial = _selected(api, request) if request.sends_initial else []
    try:
        position = store.history(request.target.resource.storage_key).position_after(revision)
    except CompactedError as error:
        yield error_line(expired(f"too old resource version: {request.version} ({error.oldest})"))
        return
    await store.settle()  # after reading: what was read is durable before it is told
    for at in range(0, len(initial), _INITIAL_CHUNK):
        chunk = initial[at : at + _INITIAL_CHUNK]
        yield b"".join(_framed("ADDED", encoding.encode(stored)) for stored in chunk)
    if request.ends_initial:
        yield _bookmark(request, revision, encoding, {INITIAL_EVENTS_END: "true"})
    async for lines in _live(api, request, encoding, revision, position, deadline, stopping):
        yield lines


async def _live(
    api: Api,
    request: WatchRequest,
    encoding: EventEncoding,
    revision: int,
    position: int,
    deadline: float,
    stopping: asyncio.Event,
) -> AsyncGenerator[bytes, None]:
    """What comes after the revision; ``position`` is where to look for it in the history."""
    store, clock = api.store, asyncio.get_running_loop().time
    history = store.history(request.target.resource.storage_key)
    next_bookmark = clock() + BOOKMARK_EVERY_S
    while (left := deadline - clock()) > 0 and not stopping.is_set():
        if not await history.wait_beyond(position, min(left, max(next_bookmark - clock(), 0.0))):
            if clock() >= next_bookmark:
                next_bookmark = clock() + BOOKMARK_EVERY_S
                if request.bookmarks and store.published >= revision:
                    yield _bookmark(request, store.published, encoding, None)
            continue
        try:
            changes = history.read(position)
        except CompactedError as error:
            yield error_line(expired(f"too old resource version: {revision} ({error.oldest})"))
            return
        lines = _lines(changes, revision, history.shared, position, request, encoding)
        position += len(changes)
        revision = max(revision, changes[-1].revision)
        if lines:
            yield lines


def _selected(api: Api, request: WatchRequest) -> list[Stored]:
    """The current objects that the watch begins with."""
    target = request.target
    objects = api.store.list(target.resource.storage_key, target.namespace)
    return [stored for stored in objects if request.chosen.matches(stored)]


def _lines(
    changes: Sequence[StoredChange],
    revision: int,
    shared: dict[tuple[object, ...], bytes],
    position: int,
    request: WatchRequest,
    encoding: EventEncoding,
) -> bytes:
    """All that is newer than the revision; who watches everything in the same form gets the same bytes."""
    is_shared = request.chosen.is_everything and bool(encoding.variant) and changes[0].revision > revision
    key = (position, request.target.namespace, encoding.variant)
    lines = shared.get(key) if is_shared else None
    if lines is None:
        lines = b"".join([_line(change, request, encoding) for change in changes if change.revision > revision])
        if is_shared:
            shared[key] = lines
    return lines


def _line(change: StoredChange, request: WatchRequest, encoding: EventEncoding) -> bytes:
    """The line for this watcher, or nothing when the change does not concern it."""
    if request.target.namespace and change.now.key.namespace != request.target.namespace:
        return b""
    type_ = _type_seen(change, request.chosen)
    if type_ == "":
        return b""
    variant = (type_, *encoding.variant)
    line = change.lines.get(variant)
    if line is None:
        shown = change.now
        if type_ == "DELETED" and change.type != "DELETED":
            shown = _left_selection(change)
        line = change.lines[variant] = _framed(type_, encoding.encode(shown))
    return line


def _type_seen(change: StoredChange, chosen: Selection) -> str:
    if chosen.is_everything:
        return change.type
    was = change.before is not None and chosen.matches(change.before)
    is_ = change.type != "DELETED" and chosen.matches(change.now)
    if was and is_:
        return "MODIFIED"
    return "ADDED" if is_ else "DELETED" if was else ""


def _left_selection(change: StoredChange) -> Stored:
    """The last state that was selected, at the version of the change."""
    assert change.before is not None
    obj = decode_stored(change.before)
    obj["metadata"]["resourceVersion"] = str(change.revision)
    return Stored(change.before.key, change.revision, msgspec.json.encode(obj), {}, {})


def _framed(type_: str, obj: bytes) -> bytes:
    return b'{"type":"' + type_.encode() + b'","object":' + obj + b"}\n"


def _bookmark(
    request: WatchRequest, revision: int, encoding: EventEncoding, annotations: dict[str, str] | None
) -> bytes:
    metadata: dict[str, object] = {"resourceVersion": str(revision)}
    if annotations:
        metadata["annotations"] = annotations
    obj = {"metadata": metadata, **_EMPTY_KINDS.get(request.target.resource.kind, {})}
    key = ObjectKey("", "")
    return _framed("BOOKMARK", encoding.encode(Stored(key, revision, msgspec.json.encode(obj), {}, {})))


def error_line(error: StatusError) -> bytes:
    """How a watch that has begun tells an error."""
    return _framed("ERROR", msgspec.json.encode(error.status()))
