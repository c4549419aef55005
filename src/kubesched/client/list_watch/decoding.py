"""Answers of an API server into typed objects: whole lists in one decode, watch events line by line.

One object that cannot be read must not stop all others: it is passed over (what was known of it stays), and logged
with its name and the field.

Next: `reflector`, which asks the server.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar, cast

import msgspec

from kubesched.client.errors import ApiError
from kubesched.client.status_answer import api_error
from kubesched.client.transport import Answer
from kubesched.model.collector import collector_paused
from kubesched.model.meta import KubeObject, KubeStruct, ObjectMeta

K = TypeVar("K", bound=KubeObject)
_log = logging.getLogger("kubesched.client.list_watch")

UNREADABLE = "UNREADABLE"
"""The type of a watch event whose object could not be decoded; of the object there is only the metadata."""


class ListMeta(msgspec.Struct, gc=False, frozen=True):
    resource_version: str = msgspec.field(default="", name="resourceVersion")
    continue_token: str = msgspec.field(default="", name="continue")


@dataclass(slots=True)
class Listing(Generic[K]):
    """What a list says, or a page of it. `unreadable` are the keys of what exists but could not be decoded."""

    items: list[K] = field(default_factory=list)
    version: str = ""
    continue_token: str = ""
    unreadable: list[str] = field(default_factory=list)


class WatchEvent(msgspec.Struct, Generic[K], gc=False):
    type: str
    object: K


class _ListPage(msgspec.Struct, Generic[K], gc=False):
    items: list[K] | None = None
    metadata: ListMeta = ListMeta()


class _RawPage(msgspec.Struct, gc=False):
    items: list[msgspec.Raw] | None = None
    metadata: ListMeta = ListMeta()


class _RawEvent(msgspec.Struct, gc=False):
    type: str
    object: msgspec.Raw


class _StatusCode(msgspec.Struct, gc=False):
    code: int = 0


class _MetadataOnly(KubeStruct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()


_decode_raw_page = msgspec.json.Decoder(_RawPage).decode
_decode_raw_event = msgspec.json.Decoder(_RawEvent).decode
_decode_metadata = msgspec.json.Decoder(_MetadataOnly).decode


class KindDecoder(Generic[K]):
    """For one kind."""

    def __init__(self, kind: type[K]) -> None:
        self._kind = kind.__name__
        self._decode_page: Callable[[bytes], _ListPage[K]] = msgspec.json.Decoder(_ListPage[kind]).decode  # type: ignore[valid-type]
        self._decode_event: Callable[[bytes], WatchEvent[K]] = msgspec.json.Decoder(WatchEvent[kind]).decode  # type: ignore[valid-type]
        self._decode_item: Callable[[msgspec.Raw], K] = msgspec.json.Decoder(kind).decode

    def page(self, body: bytes) -> Listing[K]:
        """A list, or a page of it. Raises msgspec.DecodeError if it is no list at all."""
        with collector_paused():
            try:
                page = self._decode_page(body)
            except msgspec.ValidationError:
                return self._readable_part(body)
        return Listing(page.items or [], page.metadata.resource_version, page.metadata.continue_token)

    def event(self, line: bytes) -> WatchEvent[K]:
        """A line of a watch. Raises `ApiError` for an ERROR event."""
        try:
            event = self._decode_event(line)
        except msgspec.ValidationError as problem:
            return self._unusual_event(line, problem)
        return self._unusual_event(line, None) if event.type == "ERROR" else event

    def _readable_part(self, body: bytes) -> Listing[K]:
        raw = _decode_raw_page(body)
        listing: Listing[K] = Listing([], raw.metadata.resource_version, raw.metadata.continue_token)
        for part in raw.items or ():
            try:
                listing.items.append(self._decode_item(part))
            except msgspec.ValidationError as problem:
                bare = KubeObject(metadata=_decode_metadata(part).metadata)
                listing.unreadable.append(bare.key)
                self._log_unreadable(bare, problem)
        return listing

    def _unusual_event(self, line: bytes, problem: msgspec.ValidationError | None) -> WatchEvent[K]:
        raw = _decode_raw_event(line)
        if raw.type == "ERROR" or problem is None:
            raise _error_in(raw)
        bare = KubeObject(metadata=_decode_metadata(raw.object).metadata)
        if raw.type == "BOOKMARK":  # an object without content: of a pod, without the containers it must have
            return WatchEvent(raw.type, cast("K", bare))
        self._log_unreadable(bare, problem)
        return WatchEvent(UNREADABLE, cast("K", bare))

    def _log_unreadable(self, bare: KubeObject, problem: msgspec.ValidationError) -> None:
        fields = {"kind": self._kind, "object": bare.key, "err": str(problem)}
        _log.error("An object cannot be read and is passed over", extra={"fields": fields})


def _error_in(raw: _RawEvent) -> ApiError:
    body = bytes(raw.object)
    try:
        code = msgspec.json.decode(body, type=_StatusCode).code
    except msgspec.ValidationError:
        code = 0
    return api_error(Answer(code or 500, {}, body))
