"""Faults on request: the next call that matches is refused, dropped, delayed or held, before or after it was done."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from harness.scripted_server.answers import RefusalError
from harness.scripted_server.recording import RecordedRequest


class DroppedError(Exception):
    """The connection shall be closed without an answer."""


@dataclass(slots=True)
class Fault:
    """What happens to the next `times` requests of this method or verb with this in their path.

    `status` refuses; `drop` cuts the connection; `delay_s` and `hold` keep the caller waiting and then go on as usual.
    With `after`, the request is first carried out: so a write can succeed and its answer be lost. Without it, a caller
    who hangs up while he is kept waiting has asked for nothing.
    """

    what: str = ""
    path: str = ""
    status: int = 0
    reason: str = ""
    message: str = ""
    retry_after_s: float | None = None
    causes: tuple[dict[str, str], ...] = ()
    drop: bool = False
    after: bool = False
    delay_s: float = 0.0
    hold: bool = False
    times: int = 1
    hits: int = 0
    released: asyncio.Event = field(default_factory=asyncio.Event)

    def release(self) -> None:
        """Let those go on whom `hold` holds."""
        self.released.set()

    async def strike(self) -> None:
        if self.hold:
            await self.released.wait()
        if self.delay_s:
            await asyncio.sleep(self.delay_s)
        if self.drop:
            raise DroppedError
        if self.status:
            message = self.message or f"scripted fault {self.status}"
            raise RefusalError(
                self.status, message, reason=self.reason, retry_after_s=self.retry_after_s, causes=self.causes
            )


class FaultPlan:
    """The faults still to come, in the order in which they were asked for; each request meets the first that fits."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []
        self.rule: Callable[[RecordedRequest], Fault | None] | None = None
        """Asked for every request that no planned fault fits: for faults drawn at random."""

    def add(self, fault: Fault) -> Fault:
        self._faults.append(fault)
        return fault

    def clear(self) -> None:
        for fault in self._faults:
            fault.release()
        self._faults.clear()
        self.rule = None

    def next_for(self, request: RecordedRequest) -> Fault | None:
        for fault in self._faults:
            if request.is_about(fault.what, fault.path):
                fault.hits += 1
                if fault.hits >= fault.times:
                    self._faults.remove(fault)
                return fault
        return self.rule(request) if self.rule else None
