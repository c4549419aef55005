"""What is asked of the server: the parameters of lists and watches, the part of the client that is needed, and when.

Time and chance are handed in, so that tests need not wait: a clock, a sleep, a dice. `RetryBackoff` is client-go's for
reflectors: from 0.8 s doubling to 30 s, each stretched by up to as much again, and from the beginning after two minutes
without need.

Next: `reflector`, which sends them.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

from kubesched.k8s.client.requester import Requester

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
