"""Questions to the API server about others: asked by POST, answered at once, and safe to repeat, as nothing is stored.

Repeated, with growing pauses, while the server is overloaded or broken; not when it cannot be reached. Answers are good
for a while; those that were long not used go first when there are too many.

Next: `authentication`, `filters`.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from kubesched.k8s.client.errors import AnswerLost, ApiError, ClientConfigError, Unreachable

TIMEOUT_S = 10.0
"""For a question with all its repetitions."""
_PAUSES_S = (0.5, 0.75, 1.125, 1.7)

Sleep = Callable[[float], Awaitable[None]]


class ReviewError(Exception):
    """The API server gave no answer that could be used."""


class ReviewClient(Protocol):
    """As much of `RestClient` as is needed here."""

    async def request(
        self, method: str, path: str, *, body: bytes | None = None, timeout_s: float | None = None
    ) -> bytes: ...


async def review(client: ReviewClient, path: str, question: dict[str, Any], sleep: Sleep = asyncio.sleep) -> Any:
    """The `status` of the answer, as a dictionary. Raises `ReviewError`."""
    try:
        async with asyncio.timeout(TIMEOUT_S):
            body = await _asked(client, path, msgspec.json.encode(question), sleep)
    except TimeoutError:
        raise ReviewError(f"no answer to {path} within {TIMEOUT_S:g}s") from None
    except (ApiError, Unreachable, AnswerLost, ClientConfigError) as problem:
        raise ReviewError(str(problem)) from problem
    try:
        answer = msgspec.json.decode(body)
    except msgspec.DecodeError as problem:
        raise ReviewError(f"the answer to {path} cannot be read: {problem}") from None
    status = answer.get("status") if isinstance(answer, dict) else None
    return status if isinstance(status, dict) else {}


async def _asked(client: ReviewClient, path: str, body: bytes, sleep: Sleep) -> bytes:
    for pause_s in _PAUSES_S:
        try:
            return await client.request("POST", path, body=body, timeout_s=TIMEOUT_S)
        except ApiError as problem:
            if problem.status not in (429, 500, 504):
                raise
        except AnswerLost:
            pass
        await sleep(pause_s)
    return await client.request("POST", path, body=body, timeout_s=TIMEOUT_S)


Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class ExpiringCache(Generic[Key, Value]):
    """`clock` gives seconds that only ever grow."""

    def __init__(self, clock: Callable[[], float], most: int) -> None:
        self._clock = clock
        self._most = most
        self._entries: OrderedDict[Key, tuple[float, Value]] = OrderedDict()

    def get(self, key: Key) -> Value | None:
        entry = self._entries.get(key)
        if entry is None:
            return None
        if entry[0] <= self._clock():
            del self._entries[key]
            return None
        self._entries.move_to_end(key)
        return entry[1]

    def put(self, key: Key, value: Value, for_s: float) -> None:
        if for_s <= 0:
            return
        self._entries[key] = (self._clock() + for_s, value)
        self._entries.move_to_end(key)
        if len(self._entries) > self._most:
            self._entries.popitem(last=False)

    def __len__(self) -> int:
        return len(self._entries)
