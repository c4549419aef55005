"""The seam below `RestClient`: something that carries one request to the server and brings one answer back.

Three carriers exist: `http1_transport` (our own, cheap, direct connections only), `http2_transport` (the same for who
writes much) and `aiohttp_transport` (through proxies). A transport knows nothing of retries, rates or what an answer
means; it raises `Unreachable` and `AnswerLost` as `errors` defines them, and nothing else.

A server's refusal becomes an `ApiError`: Kubernetes' `Status` object where the body is one, else what little there is.
Why a server could not be reached is said in words, with what to check; the page docs/guides/connect.md lists these
messages. A machine that is gone without a word is noticed, although a watch may be silent for minutes.

Next: `http1_transport`, `http2_transport`, `aiohttp_transport`, `errors`.
"""

from __future__ import annotations

import errno
import socket
import ssl
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Protocol

import msgspec

from kubesched.k8s.client.errors import AnswerLost, ApiError, StatusCause, Unreachable
from kubesched.k8s.client.target import Headers, ServerTarget

CONNECT_TIMEOUT_S = 10.0
MAX_CONNECTIONS = 64
IDLE_CONNECTION_S = 20.0
"""Idle connections older than this are not used: load balancers and servers close theirs after 30 s and more, and a
write that meets the close on its way would have to be reported as `AnswerLost`."""


@dataclass(slots=True)
class Answer:
    """What the server said. Header names are in lower case, and only `retry-after` is sure to be there when sent;

    `body` is already unpacked.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes


class Transport(Protocol):
    """Carries requests; `path` includes the query and is already percent-encoded."""

    async def exchange(
        self, method: str, path: str, headers: Headers, body: bytes | None, *, timeout_s: float, epoch: int = 0
    ) -> Answer: ...

    async def close(self) -> None: ...


class ByteStream(Protocol):
    """A 200 answer whose body arrives little by little."""

    async def read(self) -> bytes:
        """The next bytes; b"" at the end. Raises `AnswerLost` when the connection breaks or stays silent too long."""
        ...


class StreamTransport(Transport, Protocol):
    """A transport that can also hold an answer open."""

    def open_stream(
        self, path: str, headers: Headers, *, timeout_s: float, epoch: int = 0
    ) -> AbstractAsyncContextManager[Answer | ByteStream]:
        """A GET whose answer stays open; entering gives the whole `Answer` instead when the status is not 200."""
        ...


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


_OPTIONS = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))


def watch_for_dead_peer(sock: socket.socket | None) -> None:
    """After 30 s of silence the system probes the peer, and breaks the connection a minute after it died."""
    if sock is None:
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _OPTIONS:
        option = getattr(socket, name, None)
        if option is not None:
            sock.setsockopt(socket.IPPROTO_TCP, option, value)


_X509_EXPIRED = 10
_X509_NOT_YET_VALID = 9
_X509_HOST_MISMATCH = (62, 64)


def unreachable(target: ServerTarget, failure: BaseException) -> Unreachable:
    """The error for a connection that could not be made."""
    via = f" through the proxy {without_password(target.proxy)}" if target.proxy else ""
    return Unreachable(f"cannot reach the API server at {target.url}{via}: {_why(target, failure)}")


def without_password(url: str) -> str:
    """The URL as it may be shown."""
    scheme, found, rest = url.partition("://")
    return f"{scheme}{found}{rest.rpartition('@')[2]}"


def answer_lost(target: ServerTarget, method: str, path: str, why: str) -> AnswerLost:
    """The error for a request that was sent and not answered."""
    return AnswerLost(f"no answer from {target.url} to {method} {path.partition('?')[0]}: {why}")


def _why(target: ServerTarget, failure: BaseException) -> str:
    if isinstance(failure, ssl.SSLCertVerificationError):
        return _why_not_trusted(target, failure)
    if isinstance(failure, ssl.SSLError):
        return _why_no_tls(failure)
    if isinstance(failure, TimeoutError):
        return "no connection in time; check that the address is right and that no firewall is in between"
    if isinstance(failure, ConnectionRefusedError) or f"[Errno {errno.ECONNREFUSED}]" in str(failure):
        if target.proxy:
            return "connection refused; check that the proxy runs there, and proxy-url or HTTPS_PROXY"
        return f"connection refused; check that the API server runs there and that {target.source} has the right port"
    if isinstance(failure, socket.gaierror):
        if target.proxy:
            return f"unknown host ({failure.strerror}); check the proxy's name in proxy-url or HTTPS_PROXY"
        return f"unknown host ({failure.strerror}); check the server address in {target.source} and the name server"
    if isinstance(failure, ConnectionError):
        return "the connection was closed while it was being made; check the address and what listens there"
    number = getattr(failure, "errno", None)
    if number in (errno.ENETUNREACH, errno.EHOSTUNREACH):
        return "there is no route to that address; check the network and VPN"
    return f"{failure or type(failure).__name__}"


def _why_not_trusted(target: ServerTarget, failure: ssl.SSLCertVerificationError) -> str:
    code = failure.verify_code
    if code in (_X509_EXPIRED, _X509_NOT_YET_VALID):
        when = "has expired" if code == _X509_EXPIRED else "is not valid yet"
        return f"the server's certificate {when}; check the clocks, and renew the certificate on the server"
    if code in _X509_HOST_MISMATCH:
        return (
            f"the server's certificate is for another name ({failure.verify_message}); check the server address in "
            f"{target.source}, or set tls-server-name"
        )
    return (
        f"the server's certificate is not signed by the expected authority ({failure.verify_message}); check "
        f"certificate-authority in {target.source}, and that the address leads to that cluster"
    )


def _why_no_tls(failure: ssl.SSLError) -> str:
    reason = failure.reason or str(failure)
    if reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"):
        return "the server does not speak TLS on this port; check whether the address should begin with http://"
    if "ALERT" in reason or "alert" in reason:
        return f"the server refused the TLS connection ({reason}); check the client certificate"
    return f"the TLS handshake failed ({reason})"
