"""What all writes have in common: the time that they carry, and how a refusal is told to the loop."""

from __future__ import annotations

from datetime import UTC, datetime

from kubesched.framework.effects import Failed
from kubesched.k8s.client.errors import AnswerLost, ApiError, Unreachable


def utc_now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def failed(problem: ApiError | Unreachable | AnswerLost) -> Failed:
    if isinstance(problem, ApiError):
        return Failed(problem.message or str(problem), is_gone=problem.is_not_found)
    return Failed(str(problem))
