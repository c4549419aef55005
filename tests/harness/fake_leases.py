"""One Lease behind a bad network: a requester per copy, with delays on the way and answers that get lost.

Obeys the API server's rules for the Lease: resourceVersions, conflicts on old ones, 404 and 409. Times are those of the
running event loop, so it belongs with `virtual_asyncio`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from kubesched.k8s.client.errors import AnswerLost, ApiError, Unreachable


@dataclass(frozen=True, slots=True)
class Trip:
    """What happens to one request: how long it travels each way, and whether it or its answer gets lost."""

    there_s: float = 0.0
    back_s: float = 0.0
    is_lost_there: bool = False
    is_lost_back: bool = False


@dataclass
class LeaseStore:
    """The server's side."""

    lease: dict[str, Any] | None = None
    n_writes: int = 0
    log: list[tuple[float, str]] = field(default_factory=list)
    """When which holder was written."""

    def do(self, method: str, body: bytes | None) -> bytes:
        match method:
            case "GET":
                return self._answer()
            case "POST":
                if self.lease is not None:
                    raise ApiError(409, "AlreadyExists", "leases already exists")
                return self._store(msgspec.json.decode(body or b"{}"))
            case "PUT":
                new = msgspec.json.decode(body or b"{}")
                self._answer()
                assert self.lease is not None
                if new["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
                    raise ApiError(409, "Conflict", "the object has been modified")
                return self._store(new)
        raise ApiError(405, "MethodNotAllowed")

    def delete(self) -> None:
        self.lease = None

    @property
    def spec(self) -> dict[str, Any]:
        return self.lease["spec"] if self.lease else {}

    def _answer(self) -> bytes:
        if self.lease is None:
            raise ApiError(404, "NotFound", "leases not found")
        return msgspec.json.encode(self.lease)

    def _store(self, new: dict[str, Any]) -> bytes:
        self.n_writes += 1
        new["metadata"]["resourceVersion"] = str(self.n_writes)
        new["metadata"].setdefault("uid", "lease-uid")
        self.lease = new
        self.log.append((asyncio.get_running_loop().time(), new["spec"].get("holderIdentity", "")))
        return msgspec.json.encode(new)


class LeaseRequester:
    """One copy's way to the store. A request that was given up by its sender still arrives."""

    def __init__(self, store: LeaseStore, trip: Callable[[], Trip] = Trip) -> None:
        self.store = store
        self.trip = trip
        self._under_way: set[asyncio.Task[bytes]] = set()

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        timeout_s: float | None = None,
        gzip: bool = False,
    ) -> bytes:
        trip = self.trip()
        if trip.is_lost_there:
            raise Unreachable("connection refused")
        arrival = asyncio.create_task(self._arrive(trip, method, body))
        self._under_way.add(arrival)
        arrival.add_done_callback(self._arrived)
        try:
            async with asyncio.timeout(timeout_s):
                answer = await asyncio.shield(arrival)
                await asyncio.sleep(trip.back_s)
        except TimeoutError:
            raise AnswerLost("timeout") from None
        if trip.is_lost_back:
            raise AnswerLost("connection reset")
        return answer

    async def settle(self) -> None:
        """Waits for the requests that nobody waits for any more."""
        await asyncio.gather(*self._under_way, return_exceptions=True)

    async def _arrive(self, trip: Trip, method: str, body: bytes | None) -> bytes:
        await asyncio.sleep(trip.there_s)
        return self.store.do(method, body)

    def _arrived(self, arrival: asyncio.Task[bytes]) -> None:
        self._under_way.discard(arrival)
        if not arrival.cancelled():
            arrival.exception()  # seen, also when the sender gave up
