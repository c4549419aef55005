"""What can go wrong between us and an API server, told apart by what the caller may do next.

`ApiError`: the server answered, and its answer is no. `Unreachable`: the request surely did not reach the server, so
it may be repeated. `AnswerLost`: it may have reached the server, so a write may or may not have happened.
`NotSent`: it was not sent, for it would have come too late.
`ClientConfigError`: we do not know which server to talk to, or how to log in. No text here ever holds a secret.

Next: `transport` (a server's refusal becomes an `ApiError`, and what to do when a server cannot be reached).
"""

from __future__ import annotations

from typing import NamedTuple

from kubesched.k8s.errors import KubeschedError


class StatusCause(NamedTuple):
    """One entry of a Status' `details.causes`: why, in which field."""

    reason: str = ""
    message: str = ""
    field: str = ""


class ApiError(KubeschedError):
    """The server refused. `reason` is Kubernetes' word for it ("NotFound", "Conflict", "Expired", …) or ""."""

    def __init__(
        self,
        status: int,
        reason: str = "",
        message: str = "",
        *,
        retry_after_s: float | None = None,
        causes: tuple[StatusCause, ...] = (),
    ) -> None:
        super().__init__(status, reason, message)
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after_s = retry_after_s
        self.causes = causes

    def __str__(self) -> str:
        name = f"{self.status} {self.reason}".rstrip()
        return f"{self.message} ({name})" if self.message else name

    @property
    def is_not_found(self) -> bool:
        return self.status == 404

    @property
    def is_conflict(self) -> bool:
        """The object changed since it was read (409); also true for `is_already_exists`."""
        return self.status == 409

    @property
    def is_already_exists(self) -> bool:
        return self.reason == "AlreadyExists"

    @property
    def is_gone(self) -> bool:
        """The resourceVersion or continue token is too old: list again."""
        return self.status == 410 or self.reason in ("Expired", "Gone")

    @property
    def is_forbidden(self) -> bool:
        return self.status == 403

    @property
    def is_unauthorized(self) -> bool:
        return self.status == 401

    @property
    def is_too_many(self) -> bool:
        return self.status == 429


class Unreachable(Exception):  # noqa: N818 - it names the state of the server; the contract with callers is this word
    """The request surely did not reach the server (refused, unknown name, TLS failure); says what to check."""


class AnswerLost(Exception):  # noqa: N818 - as above: what was lost is the answer, the write may have happened
    """The request may have reached the server but no whole answer came (timeout, reset)."""


class NotSent(Exception):  # noqa: N818 - nothing went wrong: the request was not sent, on purpose
    """The caller's time was over before the request could be sent (see `left_s` of `RestClient.request`)."""


class ClientConfigError(KubeschedError):
    """A kubeconfig or the in-cluster configuration cannot be used; names the file, the entry and the field."""


REQUEST_FAILURES = (ApiError, Unreachable, AnswerLost)
"""What becomes of a request that failed: who wanted it may try again later."""
