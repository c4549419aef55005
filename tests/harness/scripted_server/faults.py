"""What goes wrong on the scripted server, and what it was asked: refusals, faults on request, recorded requests.

Refusals are Kubernetes' `Status` objects, by the exception that carries them. The next call that matches a fault is
refused, dropped, delayed or held, before or after it was done. `until` waits for something to become true.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    409: "Conflict",
    410: "Expired",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


class RefusalError(Exception):
    """A request ends with this status code, reason and message."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        reason: str = "",
        retry_after_s: float | None = None,
        causes: tuple[dict[str, str], ...] = (),
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.reason = reason or REASONS.get(status, "Unknown")
        self.retry_after_s = retry_after_s
        self.causes = causes

    def body(self) -> dict[str, Any]:
        """The `Status` object."""
        details: dict[str, Any] = {}
        if self.causes:
            details["causes"] = list(self.causes)
        if self.retry_after_s is not None:
            details["retryAfterSeconds"] = int(self.retry_after_s)
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.status,
            **({"details": details} if details else {}),
        }

    def headers(self) -> dict[str, str]:
        return {} if self.retry_after_s is None else {"Retry-After": f"{self.retry_after_s:g}"}


def not_found(resource: str, name: str) -> RefusalError:
    return RefusalError(404, f'{resource} "{name}" not found')


def conflict(resource: str, name: str, problem: str) -> RefusalError:
    return RefusalError(409, f'Operation cannot be fulfilled on {resource} "{name}": {problem}')


def already_exists(resource: str, name: str) -> RefusalError:
    return RefusalError(409, f'{resource} "{name}" already exists', reason="AlreadyExists")


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
