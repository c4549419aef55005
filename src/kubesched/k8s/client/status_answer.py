"""A server's refusal as an `ApiError`: Kubernetes' `Status` object where the body is one, else what little there is.

Next: `errors`.
"""

from __future__ import annotations

from http import HTTPStatus

import msgspec

from kubesched.k8s.client.errors import ApiError, StatusCause
from kubesched.k8s.client.transport import Answer

_MAX_TEXT = 300
_REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    409: "Conflict",
    410: "Gone",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


class _Cause(msgspec.Struct):
    reason: str = ""
    message: str = ""
    field: str = ""


class _Details(msgspec.Struct, rename="camel"):
    causes: list[_Cause] | None = None
    retry_after_seconds: float = 0


class _Status(msgspec.Struct):
    kind: str = ""
    reason: str = ""
    message: str = ""
    details: _Details | None = None


_DECODER = msgspec.json.Decoder(_Status)


def api_error(answer: Answer) -> ApiError:
    """The error for an answer whose status is not 2xx."""
    status = _decode(answer.body)
    retry_after_s = _retry_after_s(answer.headers.get("retry-after"))
    if status is None:
        message = _plain_text(answer.body) or _phrase(answer.status)
        return ApiError(answer.status, _REASONS.get(answer.status, ""), message, retry_after_s=retry_after_s)
    details = status.details or _Details()
    if retry_after_s is None and details.retry_after_seconds > 0:
        retry_after_s = details.retry_after_seconds
    return ApiError(
        answer.status,
        status.reason or _REASONS.get(answer.status, ""),
        status.message or _phrase(answer.status),
        retry_after_s=retry_after_s,
        causes=tuple(StatusCause(c.reason, c.message, c.field) for c in details.causes or ()),
    )


def _decode(body: bytes) -> _Status | None:
    try:
        status = _DECODER.decode(body)
    except (msgspec.DecodeError, msgspec.ValidationError):
        return None
    return status if status.kind == "Status" else None


def _retry_after_s(header: str | None) -> float | None:
    """Seconds only; the other form, a date, is not used by API servers and depends on two clocks agreeing."""
    try:
        seconds = float(header) if header is not None else -1.0
    except ValueError:
        return None
    return seconds if 0 <= seconds < float("inf") else None


def _plain_text(body: bytes) -> str:
    text = " ".join(body[: 4 * _MAX_TEXT].decode("utf-8", "replace").split())
    return text if len(text) <= _MAX_TEXT else text[:_MAX_TEXT] + "…"


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "the server answered without saying why"
