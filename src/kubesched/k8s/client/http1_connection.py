"""One connection of our own HTTP/1.1 client: one request at a time, its answer or why there is none; or a watch.

Keeps the guarantee of `errors`: a failure before the first byte was written is `Unreachable` (the pool sees to that, by
never lending a dead connection); after it, `AnswerLost`.

Answers are read out of bytes, however they were cut: bodies with Content-Length, chunked bodies, bodies that last until
the connection ends, and answers without a body (1xx, 204, 304). Anything malformed raises `MalformedAnswer`; sizes of
heads and of chunk lines are bounded.

A watch has a connection of its own: the body of its answer is read while it comes. What was received before the
connection broke is read first. When nobody reads, no more is taken from the network than `_MOST_UNREAD` and what is on
its way.

Next: `http1_transport`, whose pool lends connections.
"""

from __future__ import annotations

import asyncio
import re
import ssl
import zlib
from collections.abc import Callable

from kubesched.k8s.client.errors import AnswerLost
from kubesched.k8s.client.transport import Answer

_MOST_DIGITS = 16
_MAX_HEAD = 64 * 1024
_MAX_LINE = 1024
# All that is read of a head: how the body is framed, and when to come back. Reading the rest would double the cost.
_KNOWN_HEADER = re.compile(
    rb"\r\n(content-length|transfer-encoding|content-encoding|connection|retry-after):([^\r\n]*)", re.IGNORECASE
)


class MalformedAnswer(Exception):  # noqa: N818 - it is the answer that is malformed
    """The bytes are not an HTTP/1.1 answer."""


def read_at_once(data: bytes) -> Answer | None:
    """The answer, when `data` is a whole one of the plainest kind, as most are: counted, and the connection stays."""
    end = data.find(b"\r\n\r\n")
    if end < 0 or not data.startswith(b"HTTP/1.1 2"):
        return None
    found = _KNOWN_HEADER.findall(data, 0, end)
    if len(found) != 1 or found[0][0].lower() != b"content-length":
        return None
    status, length = data[9:12], found[0][1].strip()
    if not (status.isdigit() and _is_number(length.decode("latin-1")) and int(length) == len(data) - end - 4 > 0):
        return None
    return Answer(int(status), {}, data[end + 4 :])


def _is_number(length: str) -> bool:
    return length.isascii() and length.isdigit() and len(length) <= _MOST_DIGITS


def _chunk_size(line: bytes) -> int:
    digits = line if line.isalnum() else line.partition(b";")[0].strip()
    if not digits.isalnum():
        raise MalformedAnswer("a chunk without a size")
    try:
        return int(digits, 16)
    except ValueError:
        raise MalformedAnswer("a chunk without a size") from None


class AnswerReader:
    """Feed bytes; `feed` and `end` return the answer once it is whole. One reader reads one answer."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._status = 0
        self._headers: dict[str, str] = {}
        self._has_head = False
        self._is_chunked = False
        self._missing = 0
        self._until_end = False
        self._parts: list[bytes] = []
        self._in_trailer = False
        self.keeps_connection = False

    @property
    def has_begun(self) -> bool:
        return self._has_head or bool(self._buffer)

    @property
    def status(self) -> int:
        """0 until the head was read."""
        return self._status if self._has_head else 0

    def take(self) -> bytes:
        """What has come of the body since the last time; it will not be in the answer."""
        parts, self._parts = self._parts, []
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def feed(self, data: bytes) -> Answer | None:
        self._buffer += data
        if not self._has_head and not self._read_head():
            return None
        if self._is_chunked:
            return self._finished() if self._read_chunks() else None
        if self._until_end:
            self._parts.append(bytes(self._buffer))
            self._buffer.clear()
            return None
        return self._read_counted()

    def end(self) -> Answer | None:
        """The connection ended: the answer, when that is how its body ends."""
        return self._finished() if self._has_head and self._until_end else None

    def _read_head(self) -> bool:
        while True:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                if len(self._buffer) > _MAX_HEAD:
                    raise MalformedAnswer("the head of the answer is too long")
                return False
            self._parse_head(bytes(self._buffer[:end]))
            del self._buffer[: end + 4]
            if self._status >= 200:
                self._has_head = True
                return True

    def _parse_head(self, head: bytes) -> None:
        version, status = head[:9], head[9:12]
        if version not in (b"HTTP/1.1 ", b"HTTP/1.0 ") or not (len(status) == 3 and status.isdigit()):
            raise MalformedAnswer("the answer is not HTTP/1.1")
        self._status = int(status)
        found = _KNOWN_HEADER.findall(head)
        headers = {name.decode("ascii").lower(): value.strip().decode("latin-1") for name, value in found}
        self._headers = headers
        self.keeps_connection = version == b"HTTP/1.1 " and "close" not in headers.get("connection", "").lower()
        self._frame_body(headers)

    def _frame_body(self, headers: dict[str, str]) -> None:
        if self._status < 200 or self._status in (204, 304):
            return
        if "transfer-encoding" in headers:
            if headers["transfer-encoding"].lower() != "chunked":
                raise MalformedAnswer("unknown Transfer-Encoding")
            self._is_chunked = True
        elif "content-length" in headers:
            length = headers["content-length"]
            if not _is_number(length):
                raise MalformedAnswer("Content-Length is not a number")
            self._missing = int(length)
        else:
            self._until_end = True
            self.keeps_connection = False

    def _read_counted(self) -> Answer | None:
        if len(self._buffer) < self._missing:
            return None
        if len(self._buffer) > self._missing:
            raise MalformedAnswer("more bytes than Content-Length says")
        self._parts.append(bytes(self._buffer))
        return self._finished()

    def _read_chunks(self) -> bool:
        """True when the last chunk and the trailer were read. The chunks of a watch are small and many, one for each
        event: those that are here are cut out of the bytes as they are."""
        if not self._in_trailer and len(self._buffer) >= self._missing:
            data = bytes(self._buffer)
            at = self._read_whole_chunks(data)
            self._buffer = bytearray(data[at:])
        return self._in_trailer and self._read_trailer()

    def _read_whole_chunks(self, data: bytes) -> int:
        """Up to where they were read; `_missing` is then how long the rest must be at least."""
        at = 0
        while True:
            end = data.find(b"\r\n", at, at + _MAX_LINE)
            if end < 0:
                if len(data) - at >= _MAX_LINE:
                    raise MalformedAnswer("a chunk without a size")
                self._missing = 0
                return at
            size = _chunk_size(data[at:end])
            start, stop = end + 2, end + 2 + size
            if size == 0:
                self._in_trailer = True
                return start
            if len(data) < stop + 2:
                self._missing = stop + 2 - at
                return at
            if data[stop : stop + 2] != b"\r\n":
                raise MalformedAnswer("a chunk does not end where it should")
            self._parts.append(data[start:stop])
            at = stop + 2

    def _read_trailer(self) -> bool:
        while True:
            end = self._buffer.find(b"\r\n")
            if end < 0:
                if len(self._buffer) > _MAX_HEAD:
                    raise MalformedAnswer("the trailer of the answer is too long")
                return False
            del self._buffer[: end + 2]
            if end == 0:
                if self._buffer:
                    raise MalformedAnswer("bytes after the end of the answer")
                return True

    def _finished(self) -> Answer:
        body = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        if self._headers.get("content-encoding", "").lower() == "gzip":
            try:
                body = zlib.decompress(body, wbits=31)
            except zlib.error as failure:
                raise MalformedAnswer("the gzip body is damaged") from failure
        return Answer(self._status, self._headers, body)


class NoAnswer(Exception):  # noqa: N818 - a fact about the exchange; the transport makes an `AnswerLost` of it
    """A request was written and no whole answer came; says why.

    `was_refused`: the server turned the connection down before it read anything, so the request did not count.
    """

    def __init__(self, why: str, *, was_refused: bool = False) -> None:
        super().__init__(why)
        self.was_refused = was_refused


def why_lost(failure: Exception | None, has_answered: bool) -> tuple[str, bool]:
    """Of a connection that ended: why, and whether the server turned it down before it read anything."""
    if isinstance(failure, ssl.SSLError):
        # With TLS 1.3 a server judges the client certificate after the client has begun to write.
        why = f"the server ended the TLS connection ({failure.reason or failure}); check the client certificate"
        return why, not has_answered
    if failure is not None:
        return f"the connection broke ({failure})", False
    middle = " in the middle of the answer" if has_answered else ""
    return f"the server closed the connection{middle}", False


class Http1Connection(asyncio.Protocol):
    """`send` a request, await the answer. `is_open` and `can_be_reused` are the pool's questions."""

    def __init__(self, loop: asyncio.AbstractEventLoop, epoch: int) -> None:
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._reader: AnswerReader | None = None
        self._waiting: asyncio.Future[Answer] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.can_be_reused = True
        self.epoch = epoch
        self.idle_since_s = 0.0
        self.closed: asyncio.Future[None] = loop.create_future()
        self._has_answered = False

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def send(self, request: bytes, timeout_s: float) -> asyncio.Future[Answer]:
        """Writes the request; the future fails with `NoAnswer`. Cancelling it makes the connection useless."""
        assert self._transport is not None and self._waiting is None
        self._reader = None
        self.can_be_reused = False  # until the whole answer is here
        self._waiting = self._loop.create_future()
        self._timer = self._loop.call_later(timeout_s, self._time_is_up, timeout_s)
        self._transport.write(request)
        return self._waiting

    def close(self) -> None:
        """Ends the connection at once; a request under way fails."""
        self.can_be_reused = False
        if self._transport is not None:
            self._transport.abort()
        self._fail("the connection was closed")

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if self._waiting is None:
            self.close()  # unsolicited: whatever it is, it must not be taken for the next response
            return
        reader = self._reader
        if reader is None:
            answer = read_at_once(data)
            if answer is not None:
                self._succeed(answer, keeps_connection=True)
                return
            reader = self._reader = AnswerReader()
        try:
            answer = reader.feed(data)
        except MalformedAnswer as malformed:
            self._fail(str(malformed))
            self.close()
            return
        if answer is not None:
            self._succeed(answer, keeps_connection=reader.keeps_connection)

    def eof_received(self) -> None:
        self._finish_at_end()

    def connection_lost(self, failure: Exception | None) -> None:
        self.can_be_reused = False
        if not self.closed.done():
            self.closed.set_result(None)
        if failure is not None:
            why, was_refused = why_lost(failure, self._has_answered)
            self._fail(why, was_refused=was_refused)
        self._finish_at_end()

    def _finish_at_end(self) -> None:
        self.can_be_reused = False
        if self._waiting is None:
            return
        reader = self._reader or AnswerReader()
        try:
            answer = reader.end()
        except MalformedAnswer as malformed:
            self._fail(str(malformed))
            return
        if answer is not None:
            self._succeed(answer, keeps_connection=False)
        elif reader.has_begun:
            self._fail(why_lost(None, has_answered=True)[0])
        else:
            self._fail("the server closed the connection" + self._hint())

    def _hint(self) -> str:
        is_tls = self._transport is not None and self._transport.get_extra_info("ssl_object") is not None
        return (
            " right after the TLS handshake; check the client certificate" if is_tls and not self._has_answered else ""
        )

    def _succeed(self, answer: Answer, *, keeps_connection: bool) -> None:
        waiting = self._stop_waiting()
        self._has_answered = True
        self.can_be_reused = keeps_connection
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)

    def _fail(self, why: str, *, was_refused: bool = False) -> None:
        waiting = self._stop_waiting()
        if waiting is not None and not waiting.done():
            waiting.set_exception(NoAnswer(why, was_refused=was_refused))

    def _time_is_up(self, timeout_s: float) -> None:
        self._fail(f"timeout after {timeout_s:g} s")
        self.close()

    def _stop_waiting(self) -> asyncio.Future[Answer] | None:
        waiting, self._waiting = self._waiting, None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        return waiting


_MOST_UNREAD = 4 * 1024 * 1024


class Http1Stream(asyncio.Protocol):
    """Implements `ByteStream`. `opened` is None once a 200 began to be answered, else the whole answer; it fails with
    `NoAnswer`. `lost` makes the error of a stream that broke."""

    def __init__(self, loop: asyncio.AbstractEventLoop, lost: Callable[[str], AnswerLost]) -> None:
        self._loop = loop
        self._lost = lost
        self._reader = AnswerReader()
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.opened: asyncio.Future[Answer | None] = loop.create_future()
        self._unread: list[bytes] = []
        self._n_unread = 0
        self._is_paused = False
        self._has_ended = False
        self._why_lost = ""
        self._news: asyncio.Future[None] | None = None

    def begin(self, request: bytes, timeout_s: float) -> None:
        assert self._transport is not None
        self._timer = self._loop.call_later(timeout_s, self._break, f"timeout after {timeout_s:g} s")
        self._transport.write(request)

    def close(self) -> None:
        """Nobody reads it any more."""
        self.opened.cancel()
        if self._timer is not None:
            self._timer.cancel()
        if self._transport is not None:
            self._transport.abort()

    async def read(self) -> bytes:
        while not self._unread:
            if self._why_lost:
                raise self._lost(self._why_lost)
            if self._has_ended:
                return b""
            self._news = self._loop.create_future()
            await self._news
        data = self._unread[0] if len(self._unread) == 1 else b"".join(self._unread)
        self._unread.clear()
        self._n_unread = 0
        if self._is_paused and self._transport is not None:
            self._is_paused = False
            self._transport.resume_reading()
        return data

    # -- the connection's calls ----------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        try:
            answer = self._reader.feed(data)
        except MalformedAnswer as malformed:
            self._break(str(malformed))
            return
        self._came(answer)

    def eof_received(self) -> None:
        self._finish(None)

    def connection_lost(self, failure: Exception | None) -> None:
        self._finish(failure)

    # ------------------------------------------------------------------------------------------------------------------

    def _came(self, answer: Answer | None) -> None:
        if self._reader.status != 200:
            if answer is not None and not self.opened.done():
                self.opened.set_result(answer)
            return
        if not self.opened.done():
            self.opened.set_result(None)
        body = self._reader.take() if answer is None else answer.body
        if body:
            self._unread.append(body)
            self._n_unread += len(body)
            if self._n_unread > _MOST_UNREAD and not self._is_paused and self._transport is not None:
                self._is_paused = True
                self._transport.pause_reading()
        self._has_ended = answer is not None
        self._tell()

    def _finish(self, failure: Exception | None) -> None:
        """The connection ended; that may be how the body ends."""
        if self._has_ended or self._why_lost:
            return
        try:
            answer = None if failure is not None else self._reader.end()
        except MalformedAnswer as malformed:
            self._break(str(malformed))
            return
        if answer is not None:
            self._came(answer)
            return
        why, was_refused = why_lost(failure, self._reader.has_begun)
        self._break(why, was_refused=was_refused)

    def _break(self, why: str, *, was_refused: bool = False) -> None:
        self._why_lost = why
        if not self.opened.done():
            self.opened.set_exception(NoAnswer(why, was_refused=was_refused))
        self._tell()
        self.close()

    def _tell(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)
