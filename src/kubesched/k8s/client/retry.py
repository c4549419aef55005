"""When a request may be sent again, and after what pause.

Reads (GET) may be repeated after anything that passes: overload, a server error, no connection, a lost answer. Writes
only when the server said that it did not do them: 429, or a 5xx with Retry-After. The pause grows by doubling and is
drawn at random below its bound, so that many clients do not come back together; the server's Retry-After is obeyed,
and when it asks for more patience than `max_retry_after_s`, the error is handed to the caller instead.

Next: `rest`, which asks after each failure.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from kubesched.k8s.client.errors import AnswerLost, ApiError, Unreachable


@dataclass(frozen=True)
class RetryPolicy:
    """`pause_s` gives the pause before the next attempt, or None when the failure is final."""

    max_attempts: int = 5
    first_pause_s: float = 0.25
    max_pause_s: float = 5.0
    max_retry_after_s: float = 30.0
    draw: Callable[[], float] = random.random

    def pause_s(self, method: str, attempt: int, failure: ApiError | Unreachable | AnswerLost) -> float | None:
        """`attempt` is the number of attempts already made, from 1."""
        if attempt >= self.max_attempts or not _may_repeat(method, failure):
            return None
        bound_s = min(self.first_pause_s * 2.0 ** (attempt - 1), self.max_pause_s)
        pause_s: float = bound_s * (0.5 + 0.5 * self.draw())
        asked_s = failure.retry_after_s if isinstance(failure, ApiError) else None
        if asked_s is None:
            return pause_s
        return max(asked_s, pause_s) if asked_s <= self.max_retry_after_s else None


def _may_repeat(method: str, failure: ApiError | Unreachable | AnswerLost) -> bool:
    is_read = method == "GET"
    if not isinstance(failure, ApiError):
        return is_read
    if failure.is_too_many:
        return True
    if failure.status >= 500:
        return is_read or failure.retry_after_s is not None
    return False
