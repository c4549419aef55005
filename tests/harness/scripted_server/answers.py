"""What the scripted server says when it refuses: Kubernetes' `Status` objects, by the exception that carries them."""

from __future__ import annotations

from typing import Any

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
