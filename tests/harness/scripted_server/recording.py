"""What the scripted server was asked, for tests that count; and waiting for something to become true."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """One request as it came. `verb` is Kubernetes' word for it (`list`, `watch`, `get`, `create`, …)."""

    method: str
    path: str
    verb: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)

    def is_about(self, what: str, path: str) -> bool:
        """Whether this is such a request: `what` is a method (`POST`), a verb (`watch`) or empty for any, and `path`
        occurs in the path."""
        return what in ("", self.method, self.verb) and path in self.path


async def until(condition: Callable[[], object], within_s: float = 10.0) -> None:
    """Give way to others until the condition holds. For tests: it does not wait, it lets run."""
    async with asyncio.timeout(within_s):
        while not condition():
            await asyncio.sleep(0)
