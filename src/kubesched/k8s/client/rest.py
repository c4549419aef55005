"""Requests to one API server: rate limited, timed, repeated only where that is safe, with typed errors.

`request` is one request and its whole answer; `stream` is a watch, line by line. A 401 is answered with renewed
credentials once.

Reads (GET) may be repeated after anything that passes: overload, a server error, no connection, a lost answer. Writes
only when the server said that it did not do them: 429, or a 5xx with Retry-After; a write whose answer was lost, never.
The pause grows by doubling and is drawn at random below its bound, so that many clients do not come back together; the
server's Retry-After is obeyed, and when it asks for more patience than `max_retry_after_s`, the error is handed to the
caller instead.

Next: `transport` (what carries requests), `errors`.
"""

from __future__ import annotations

import asyncio
import logging
import platform
import random
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from math import inf
from types import TracebackType
from typing import Self
from urllib.parse import quote, urlencode

from kubesched.k8s.client.errors import AnswerLost, ApiError, ClientConfigError, NotSent, Unreachable
from kubesched.k8s.client.http1_transport import Http1Transport
from kubesched.k8s.client.http2_transport import Http2Transport
from kubesched.k8s.client.target import Headers, ServerTarget
from kubesched.k8s.client.transport import MAX_CONNECTIONS, Answer, ByteStream, StreamTransport, api_error


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


class LineSplitter:
    """Feed chunks, get whole lines without their newline. What follows the last newline waits for the next chunk."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def feed(self, chunk: bytes) -> list[bytes]:
        lines = chunk.split(b"\n")
        rest = lines.pop()
        if lines and self._parts:
            self._parts.append(lines[0])
            lines[0] = b"".join(self._parts)
            self._parts.clear()
        if rest:
            self._parts.append(rest)
        return [line for line in lines if line]

    @property
    def has_rest(self) -> bool:
        """A line has begun and has not ended."""
        return bool(self._parts)


Clock = Callable[[], float]
Sleep = Callable[[float], Awaitable[object]]


class RateLimiter:
    """`await limiter.wait()` returns when the request may go out."""

    def __init__(self, qps: float, burst: int, *, clock: Clock = time.monotonic, sleep: Sleep = asyncio.sleep) -> None:
        self._gap_s = 1.0 / qps if qps > 0 else 0.0
        self._ahead_s = self._gap_s * max(burst - 1, 0)
        self._clock = clock
        self._sleep = sleep
        self._next_s = float("-inf")

    def passes(self) -> bool:
        """Whether a request may go out at once; then it counts as gone."""
        if self._gap_s:
            now_s = self._clock()
            at_s = max(self._next_s, now_s)
            if at_s - self._ahead_s > now_s:
                return False
            self._next_s = at_s + self._gap_s
        return True

    async def wait(self) -> None:
        if not self._gap_s:
            return
        now_s = self._clock()
        at_s = max(self._next_s, now_s)
        self._next_s = at_s + self._gap_s
        delay_s = at_s - self._ahead_s - now_s
        if delay_s <= 0:
            return
        try:
            await self._sleep(delay_s)
        except BaseException:
            self._next_s -= self._gap_s  # who gave up waiting leaves the place to those who come after
            raise


REQUEST_TIMEOUT_S = 30.0
STREAM_TIMEOUT_S = 3600.0
STREAM_MARGIN_S = 30.0
"""How much longer than a watch's own `timeoutSeconds` we wait for the server to end it."""

_LOGIN_KEPT_S = 1.0
"""So long nobody is asked how to log in: credentials are renewed earlier than that before they expire."""

_NO_STATUS = "<error>"
_PATH_SAFE = "/:@!$&'()*+,;=~"
_log = logging.getLogger("kubesched.k8s.client.rest")


@dataclass(frozen=True, slots=True)
class Again:
    """The server did not do what it was asked for; it may be asked again after a pause, and by `request`, which logs in
    anew where that is what is missing."""

    pause_s: float


Begun = Callable[[], None]
"""To call off a request that was begun."""
Tell = Callable[[bytes | ApiError | AnswerLost | Again], None]
"""What became of a request that was begun."""


class RestClient:
    """One API server, one identity. `limiter`, `retries` and `sleep` are for tests; `transport` for other carriers."""

    def __init__(
        self,
        target: ServerTarget,
        *,
        qps: float = 50,
        burst: int = 100,
        timeout_s: float = REQUEST_TIMEOUT_S,
        user_agent: str = "",
        retries: RetryPolicy | None = None,
        limiter: RateLimiter | None = None,
        sleep: Sleep = asyncio.sleep,
        transport: StreamTransport | None = None,
        writes_much: bool = False,
    ) -> None:
        """With `writes_much`, requests share connections, where the server can do that."""
        self.target = target
        self._timeout_s = timeout_s
        self._limiter = limiter or RateLimiter(qps, burst)
        self._retries = retries or RetryPolicy()
        self._sleep = sleep
        self._transport = transport or _carrier(target, writes_much=writes_much)
        self._shared = self._transport if isinstance(self._transport, Http2Transport) else None
        self._login: tuple[Headers, int, float] = ((), 0, -inf)
        """The last login, of which epoch, and since when it is known to be the right one."""
        self._turns = asyncio.Semaphore(MAX_CONNECTIONS)
        """Who has to wait for a connection waits here, for as long as it takes: that is no sign of trouble."""
        self._standing: Headers = (("User-Agent", user_agent or _user_agent()), ("Accept", "application/json"))
        self._composed: dict[tuple[str, bool], tuple[Headers, Headers]] = {}
        self.n_answers: Counter[tuple[str, str]] = Counter()
        """How many requests came to what: by status (`<error>` without one) and method."""

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        timeout_s: float | None = None,
        gzip: bool = False,
        left_s: Callable[[], float] | None = None,
    ) -> bytes:
        """The answer's body. Raises `ApiError`, `Unreachable`, `AnswerLost`, and `ClientConfigError` from logging in.

        `timeout_s` is for one attempt, without the waiting for a free connection and for the rate limit. `left_s` is
        asked right before each attempt for how long it may take; with no time left nothing is sent, and `NotSent`
        raised.
        """
        where = _with_query(path, params)
        headers_for = (content_type if body is not None else "", gzip)
        attempt = 0
        while True:
            attempt += 1
            try:
                async with self._turns:
                    await self._limiter.wait()
                    limit_s = timeout_s or self._timeout_s
                    if left_s is not None and (limit_s := min(limit_s, left_s())) <= 0:
                        raise NotSent
                    answer = await self._exchange(method, where, headers_for, body, limit_s)
                self.n_answers[str(answer.status), method] += 1
                if answer.status < 300:
                    return answer.body
                failure: ApiError | Unreachable | AnswerLost = api_error(answer)
            except (Unreachable, AnswerLost) as lost:
                self.n_answers[_NO_STATUS, method] += 1
                failure = lost
            pause_s = self._retries.pause_s(method, attempt, failure)
            if pause_s is None:
                raise self._explained(failure)
            _log_retry(method, path, failure, pause_s)
            await self._sleep(pause_s)

    def begin(
        self, method: str, path: str, body: bytes, content_type: str, tell: Tell, left_s: Callable[[], float]
    ) -> Begun | None:
        """The same for a write that can leave at once, over a connection that it shares: no task has to run for it.

        None, and nothing is sent, if anything has to be waited for first; then `request` does it all. Otherwise `tell`
        is called once, later, unless it is called off.
        """
        shared, (login, epoch, known_s) = self._shared, self._login
        if shared is None or time.monotonic() - known_s > _LOGIN_KEPT_S:
            return None
        limit_s = min(self._timeout_s, left_s())
        if limit_s <= 0 or epoch != self.target.credentials.connection_epoch or not shared.is_ready(epoch):
            return None
        if not self._limiter.passes():
            return None
        headers = self._compose(login, (content_type, False))
        told = partial(self._told, method, path, tell)
        return shared.begin(method, _with_query(path, None), headers, body, timeout_s=limit_s, epoch=epoch, tell=told)

    def _told(self, method: str, path: str, tell: Tell, outcome: Answer | Unreachable | AnswerLost) -> None:
        if not isinstance(outcome, Answer):
            self.n_answers[_NO_STATUS, method] += 1
            tell(outcome if isinstance(outcome, AnswerLost) else Again(0.0))
            return
        self.n_answers[str(outcome.status), method] += 1
        if outcome.status < 300:
            tell(outcome.body)
            return
        refusal = api_error(outcome)
        pause_s = 0.0 if refusal.is_unauthorized else self._retries.pause_s(method, 1, refusal)
        if pause_s is None:
            tell(refusal)
            return
        _log_retry(method, path, refusal, pause_s)
        tell(Again(pause_s))

    async def _exchange(
        self, method: str, where: str, headers_for: tuple[str, bool], body: bytes | None, timeout_s: float
    ) -> Answer:
        """One attempt, and one more with renewed credentials when the first was answered 401."""
        credentials = self.target.credentials
        login = await credentials.headers()
        epoch = credentials.connection_epoch
        self._login = login, epoch, time.monotonic()
        headers = self._compose(login, headers_for)
        answer = await self._transport.exchange(method, where, headers, body, timeout_s=timeout_s, epoch=epoch)
        if answer.status != 401 or not await credentials.renew(login, epoch):
            return answer
        headers = self._compose(await credentials.headers(), headers_for)
        return await self._transport.exchange(
            method, where, headers, body, timeout_s=timeout_s, epoch=credentials.connection_epoch
        )

    @asynccontextmanager
    async def stream(self, path: str, params: Mapping[str, str]) -> AsyncIterator[AsyncIterator[bytes]]:
        """A watch: whole lines without their newline, until the server ends it. Not repeated: the caller relists.

        Entering raises `ApiError` when the answer is not 200, and `Unreachable` or `AnswerLost` as `request` does.
        While reading, `AnswerLost` says that the connection broke or stayed silent for longer than it may.
        """
        timeout_s = float(params.get("timeoutSeconds") or STREAM_TIMEOUT_S) + STREAM_MARGIN_S
        where = _with_query(path, params)
        for may_renew in (True, False):
            await self._limiter.wait()
            credentials = self.target.credentials
            login = await credentials.headers()
            epoch = credentials.connection_epoch
            headers = self._compose(login, ("", False))
            async with self._transport.open_stream(where, headers, timeout_s=timeout_s, epoch=epoch) as opened:
                if not isinstance(opened, Answer):
                    self.n_answers["200", "GET"] += 1
                    async with aclosing(_lines(opened)) as lines:
                        yield lines
                    return
            if not (may_renew and opened.status == 401 and await credentials.renew(login, epoch)):
                raise self._explained(api_error(opened))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes all connections and gives back what the credentials hold."""
        await self._transport.close()
        await self.target.credentials.close()

    def _compose(self, login: Headers, headers_for: tuple[str, bool]) -> Headers:
        """All headers of a request: the same tuple as long as the login stays the same, so transports can cache."""
        known = self._composed.get(headers_for)
        if known is not None and known[0] is login:
            return known[1]
        content_type, gzip = headers_for
        headers = (*self._standing, ("Accept-Encoding", "gzip" if gzip else "identity"), *login)
        if content_type:
            headers = (*headers, ("Content-Type", content_type))
        for name, value in headers:
            if "\r" in value or "\n" in value or "\0" in value:
                raise ClientConfigError(f"{self.target.source}: the value for the header {name} has a line break in it")
        self._composed[headers_for] = (login, headers)
        return headers

    def _explained(self, failure: ApiError | Unreachable | AnswerLost) -> ApiError | Unreachable | AnswerLost:
        """A 401 with what to do about it."""
        if isinstance(failure, ApiError) and failure.is_unauthorized:
            target = self.target
            failure.message = (
                f"{target.url} does not accept the credentials of {target.source}: {failure.message}; "
                f"{target.credentials.advice()}"
            )
        return failure


def _carrier(target: ServerTarget, *, writes_much: bool) -> StreamTransport:
    """aiohttp takes a tenth of a second to be imported: only who has a proxy needs it."""
    if not target.proxy:
        return Http2Transport(target) if writes_much and target.is_tls else Http1Transport(target)
    from kubesched.k8s.client.aiohttp_transport import AiohttpTransport

    return AiohttpTransport(target)


async def _lines(opened: ByteStream) -> AsyncGenerator[bytes, None]:
    splitter = LineSplitter()
    while chunk := await opened.read():
        for line in splitter.feed(chunk):
            yield line
    if splitter.has_rest:
        raise AnswerLost("the server ended the watch in the middle of a line")


def _user_agent() -> str:
    try:
        version = metadata.version("kubesched")
    except metadata.PackageNotFoundError:  # run from a source tree
        version = "unknown"
    return f"kubesched/{version} ({platform.system().lower()}/{platform.machine()})"


def _with_query(path: str, params: Mapping[str, str] | None) -> str:
    where = quote(path, safe=_PATH_SAFE)
    return f"{where}?{urlencode(params)}" if params else where


def _log_retry(method: str, path: str, failure: Exception, pause_s: float) -> None:
    _log.info(
        "Repeating a request to the API server",
        extra={
            "fields": {"verb": method, "path": path, "err": str(failure), "pauseSeconds": round(pause_s, 3)},
            "v": 2,
        },
    )
