"""Watches that go on after the server's death from the last version they saw, and remember everything they were told.

A Follower's replayed events must be the list; its versions only rise. Next: `rounds.py` compares.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from harness.apiserver_kills.ledger import LostWriteError
from harness.apiserver_kills.talking import RefusedError, ServerGoneError, TalkingClient, collection

T = TypeVar("T")
_LONG_S = 60.0

Told = tuple[int, str, str]
"""Version, type and name of one event."""


class ExpiredError(Exception):
    """410: the version is forgotten, list again."""


@dataclass(slots=True)
class Follower:
    """One client that lists once and then watches."""

    resource: str
    version: int = 0
    state: dict[str, int] = field(default_factory=dict)
    told: list[Told] = field(default_factory=list)
    n_told: int = 0

    async def begin(self, api: TalkingClient) -> None:
        """The list to start from."""
        content = await api.ask("GET", collection(self.resource))
        self.version = int(content["metadata"]["resourceVersion"])
        self.state = {item["metadata"]["name"]: _version(item) for item in content["items"]}
        self.told.clear()

    async def follow(self, api: TalkingClient, until: int | None = None) -> None:
        """Watches until the event of this version, or until the server is gone."""
        try:
            async for event in api.lines(watch_path(self.resource, self.version)):
                self._take(read_event(event))
                if until is not None and self.version >= until:
                    return
        except ServerGoneError:
            if until is not None:
                raise
            return
        raise LostWriteError(f"a watch of {self.resource} from {self.version} ended by itself")

    def _take(self, told: Told) -> None:
        version, type_, name = told
        if version <= self.version:
            raise LostWriteError(f"{self.resource} {name}: version {version} was told after {self.version}")
        if (type_ == "ADDED") != (name not in self.state):
            raise LostWriteError(f"{self.resource} {name}: {type_} at {version} does not follow what was told before")
        self.version = version
        self.told.append(told)
        self.n_told += 1
        if type_ == "DELETED":
            del self.state[name]
        else:
            self.state[name] = version


def watch_path(resource: str, version: int) -> str:
    return f"{collection(resource)}?watch=true&resourceVersion={version}"


def read_event(event: dict[str, Any]) -> Told:
    """Raises ExpiredError for the event that ends a watch with 410."""
    if event["type"] == "ERROR":
        if event["object"].get("code") == 410:
            raise ExpiredError
        raise LostWriteError(f"a watch was told {event['object']}")
    return _version(event["object"]), event["type"], event["object"]["metadata"]["name"]


def _version(item: dict[str, Any]) -> int:
    return int(item["metadata"]["resourceVersion"])


async def in_time(waiting: Awaitable[T]) -> T:
    """What is not told for long is lost."""
    try:
        async with asyncio.timeout(_LONG_S):
            return await waiting
    except TimeoutError:
        raise LostWriteError("a watch was not told of a write that was acknowledged") from None


async def tell_again(api: TalkingClient, resource: str, version: int, until: int) -> list[Told]:
    """What a new watch from an old version is told, up to a version. Raises ExpiredError."""
    told: list[Told] = []
    try:
        async for event in api.lines(watch_path(resource, version)):
            told.append(read_event(event))
            if told[-1][0] >= until:
                return told
    except RefusedError as refused:
        if refused.code != 410:
            raise
        raise ExpiredError from None
    raise LostWriteError(f"a watch of {resource} from {version} ended by itself")
