"""What all writes have in common: the time that they carry, and how a refusal is told to the loop."""

from __future__ import annotations

from datetime import UTC, datetime

from kubesched.framework.effects import Failed
from kubesched.k8s.client.errors import AnswerLost, ApiError, Unreachable

LOOK_AGAIN_S = (0.2, 0.5, 1.0, 2.0)
"""After so long the server has surely ended a request whose connection broke."""


def utc_now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def failed(problem: ApiError | Unreachable | AnswerLost) -> Failed:
    if isinstance(problem, ApiError):
        return Failed(problem.message or str(problem), is_gone=problem.is_not_found)
    return Failed(str(problem))
