"""A connection that carries many requests at once (HTTP/2, RFC 9113), as far as requests to an API server need it.

What is asked for in one go leaves in one write, and answers that come together are read together: next to a connection
for each request under way, that saves both sides most of their system calls and all but one of the TLS handshakes.

The guarantee of `errors` is kept: what the server says it has not looked at (a stream that it refused, or one beyond
the last that a GOAWAY names) is `was_refused`; of anything else that gets no whole answer, nobody knows what became.
What is malformed ends the connection. A connection on which a request timed out takes no new ones.

Answers have no flow control worth the name: they are held whole, so their windows are as large as can be. Bodies of
requests wait for the server's windows.

Next: `http2_transport`, which opens connections; `header_blocks`.
"""

from __future__ import annotations

import asyncio
import struct
import zlib
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from math import inf

from kubesched.k8s.client.header_blocks import TABLE_SIZE, HeaderWriter, MalformedHeaders, read_headers, read_status
from kubesched.k8s.client.http1_connection import NoAnswer, why_lost
from kubesched.k8s.client.target import Headers
from kubesched.k8s.client.transport import Answer

_DATA, _HEADERS, _RST_STREAM, _SETTINGS, _PUSH_PROMISE = 0, 1, 3, 4, 5
_PING, _GOAWAY, _WINDOW_UPDATE, _CONTINUATION = 6, 7, 8, 9
_END_STREAM, _ACK, _END_HEADERS, _PADDED, _PRIORITY = 1, 1, 4, 8, 32
_NO_ERROR, _REFUSED_STREAM, _CANCEL = 0, 7, 8
_TABLE_SIZE_SETTING, _ENABLE_PUSH, _MAX_STREAMS, _INITIAL_WINDOW = 1, 2, 3, 4
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_HEAD = struct.Struct(">HBBBI")
_SETTING = struct.Struct(">HI")
_WORD = struct.Struct(">I")
_LARGEST_WINDOW = (1 << 31) - 1
_FIRST_WINDOW = 65_535
_REFILL = 1 << 20
_LARGEST_FRAME = 16_384
_LARGEST_BLOCK = 64 * 1024
_LAST_ID = (1 << 31) - 1
_USUAL_MAX_STREAMS = 100
_CLOCK_STEP_S = 0.001


class _Malformed(Exception):  # noqa: N818 - it is what came that is malformed
    """What came is not HTTP/2."""


def _frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    length = len(payload)
    return _HEAD.pack(length >> 8, length & 255, kind, flags, stream) + payload


Tell = Callable[[Answer | NoAnswer], None]


class RequestUnderWay:
    """Until its answer is whole. Whoever made it is told, once, while the bytes are read in which the answer ended."""

    __slots__ = (
        "headers",
        "number",
        "parts",
        "reads_headers",
        "status",
        "tell",
        "timeout_s",
        "unsent",
        "until_s",
        "window",
    )

    def __init__(self, number: int, tell: Tell, window: int, *, reads_headers: bool) -> None:
        self.number = number
        self.tell: Tell | None = tell
        self.window = window
        self.reads_headers = reads_headers
        """Even those of an answer that all is well."""
        self.unsent = b""
        self.status = 0
        self.headers: dict[str, str] = {}
        self.parts: list[bytes] = []
        self.timeout_s = inf
        self.until_s = inf


class Http2Connection(asyncio.Protocol):
    """`send` a request, or `ask` and await its answer; `end` what was sent, whatever came. `can_take` is the question
    before."""

    def __init__(self, loop: asyncio.AbstractEventLoop, epoch: int, authority: str) -> None:
        self._loop = loop
        self._authority = authority
        self.epoch = epoch
        self.idle_since_s = loop.time()
        self.ready: asyncio.Future[bool] = loop.create_future()
        """Whether the server speaks HTTP/2; fails with `OSError` if the connection ends before that is known."""
        self.closed: asyncio.Future[None] = loop.create_future()
        self._transport: asyncio.Transport | None = None
        self._takes_more = True
        self._writer = HeaderWriter(TABLE_SIZE)
        self._exchanges: dict[int, RequestUnderWay] = {}
        self._next = 1
        self._max_streams = _USUAL_MAX_STREAMS
        self._window = self._stream_window = _FIRST_WINDOW
        self._blocked: OrderedDict[int, RequestUnderWay] = OrderedDict()
        """By number, exchanges whose body waits for a window."""
        self._out: list[bytes] = []
        self._received = b""
        self._block: tuple[int, int, bytes] | None = None
        """Stream, flags and begin of a header block that goes on."""
        self._n_read = 0
        self._has_answered = False
        self._timer: asyncio.TimerHandle | None = None
        """For the request whose time is up first."""

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    @property
    def is_idle(self) -> bool:
        return not self._exchanges

    def can_take(self) -> bool:
        return self._takes_more and len(self._exchanges) < self._max_streams and self.is_open

    def retire(self) -> None:
        """It takes nothing new, and goes once all is answered."""
        self._takes_more = False
        if not self._exchanges:
            self.close()

    async def ask(self, method: str, path: str, headers: Headers, body: bytes | None, timeout_s: float) -> Answer:
        """Raises `NoAnswer`."""
        answer: asyncio.Future[Answer] = self._loop.create_future()
        exchange = self.send(method, path, headers, body, timeout_s, partial(_settle, answer))
        try:
            return await answer
        finally:
            self.end(exchange)

    def send(
        self, method: str, path: str, headers: Headers, body: bytes | None, timeout_s: float, tell: Tell
    ) -> RequestUnderWay:
        number, self._next = self._next, self._next + 2
        if self._next > _LAST_ID:
            self._takes_more = False
        reads_headers = ("Accept-Encoding", "gzip") in headers
        exchange = RequestUnderWay(number, tell, self._stream_window, reads_headers=reads_headers)
        self._exchanges[number] = exchange
        exchange.timeout_s = timeout_s
        exchange.until_s = until_s = self._loop.time() + timeout_s
        if self._timer is None or until_s < self._timer.when():
            self._wait_until(until_s)
        block = self._writer.request(method, self._authority, path, headers, None if body is None else len(body))
        last = _END_STREAM if not body else 0
        if len(block) <= _LARGEST_FRAME:
            self._write(_frame(_HEADERS, _END_HEADERS | last, number, block))
        else:
            self._write_in_parts(number, last, block)
        if body:
            exchange.unsent = body
            self._send_body(exchange)
        return exchange

    def end(self, exchange: RequestUnderWay) -> None:
        """Nobody waits for its answer any more."""
        exchange.tell = None
        if self._exchanges.pop(exchange.number, None) is not None:
            self._blocked.pop(exchange.number, None)
            self._write(_frame(_RST_STREAM, 0, exchange.number, _WORD.pack(_CANCEL)))
        if not self._exchanges:
            self.idle_since_s = self._loop.time()
            if not self._takes_more:
                self._flush()
                self.close()

    def close(self) -> None:
        """At once; requests under way fail."""
        self._break("the connection was closed")

    # -- writing -------------------------------------------------------------------------------------------------------

    def _write(self, data: bytes) -> None:
        """With all else that is written before the event loop comes round again."""
        if not self._out:
            self._loop.call_soon(self._flush)
        self._out.append(data)

    def _flush(self) -> None:
        if self._out and self._transport is not None and self.is_open:
            self._transport.write(b"".join(self._out))
        self._out.clear()

    def _write_in_parts(self, number: int, last: int, block: bytes) -> None:
        parts = [block[at : at + _LARGEST_FRAME] for at in range(0, len(block), _LARGEST_FRAME)]
        for index, part in enumerate(parts):
            ends = _END_HEADERS if index == len(parts) - 1 else 0
            kind, flags = (_CONTINUATION, ends) if index else (_HEADERS, ends | last)
            self._write(_frame(kind, flags, number, part))

    def _send_body(self, exchange: RequestUnderWay) -> None:
        """As much as the windows let through."""
        body = exchange.unsent
        while body:
            size = min(len(body), self._window, exchange.window, _LARGEST_FRAME)
            if size <= 0:
                self._blocked[exchange.number] = exchange
                break
            self._window -= size
            exchange.window -= size
            part, body = body[:size], body[size:]
            self._write(_frame(_DATA, 0 if body else _END_STREAM, exchange.number, part))
        else:
            self._blocked.pop(exchange.number, None)
        exchange.unsent = body

    def _send_blocked(self) -> None:
        for exchange in list(self._blocked.values()):
            if self._window <= 0:
                return
            self._send_body(exchange)

    # -- the connection's calls ----------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        tls = transport.get_extra_info("ssl_object")
        if tls is not None and tls.selected_alpn_protocol() != "h2":
            self.ready.set_result(False)
            self.close()
            return
        settings = ((_TABLE_SIZE_SETTING, 0), (_ENABLE_PUSH, 0), (_INITIAL_WINDOW, _LARGEST_WINDOW))
        told = _frame(_SETTINGS, 0, 0, b"".join(_SETTING.pack(*one) for one in settings))
        wide = _frame(_WINDOW_UPDATE, 0, 0, _WORD.pack(_LARGEST_WINDOW - _FIRST_WINDOW))
        transport.write(_PREFACE + told + wide)

    def data_received(self, data: bytes) -> None:
        if self._received:
            data = self._received + data
        try:
            at = self._read_frames(data)
        except (_Malformed, MalformedHeaders) as malformed:
            self._break(str(malformed))
            return
        self._received = data[at:]

    def eof_received(self) -> None:
        self._lost(None)

    def connection_lost(self, failure: Exception | None) -> None:
        self._lost(failure)
        if not self.closed.done():
            self.closed.set_result(None)

    # -- frames --------------------------------------------------------------------------------------------------------

    def _read_frames(self, data: bytes) -> int:
        """Up to where they were read."""
        at, end = 0, len(data)
        while end - at >= 9:
            high, low, kind, flags, stream = _HEAD.unpack_from(data, at)
            length = high << 8 | low
            if length > _LARGEST_FRAME:
                raise _Malformed("a frame is too long, or the answer is not HTTP/2")
            start, stop = at + 9, at + 9 + length
            if stop > end:
                break
            self._take(kind, flags, stream & _LAST_ID, data[start:stop])
            at = stop
        return at

    def _take(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if self._block is not None and (kind != _CONTINUATION or stream != self._block[0]):
            raise _Malformed("a header block is interrupted")
        if kind == _HEADERS:
            payload = _unpadded(flags, payload)
            if flags & _PRIORITY:
                payload = payload[5:]
            self._block_came(stream, flags, payload)
        elif kind == _DATA:
            self._data_came(stream, flags, payload)
        elif kind == _CONTINUATION:
            if self._block is None:
                raise _Malformed("a header block goes on that has not begun")
            _, first_flags, begin = self._block
            self._block_came(stream, first_flags | flags & _END_HEADERS, begin + payload)
        elif kind == _SETTINGS:
            if not flags & _ACK:
                self._settings_came(payload)
        elif kind == _WINDOW_UPDATE:
            self._window_came(stream, _word(payload))
        elif kind == _RST_STREAM:
            self._reset(stream, _word(payload))
        elif kind == _PING:
            if not flags & _ACK:
                self._write(_frame(_PING, _ACK, 0, payload))
        elif kind == _GOAWAY:
            self._go_away(_word(payload) & _LAST_ID)
        elif kind == _PUSH_PROMISE:
            raise _Malformed("the server pushes what nobody asked for")

    def _block_came(self, stream: int, flags: int, block: bytes) -> None:
        if len(block) > _LARGEST_BLOCK:
            raise _Malformed("the head of the answer is too long")
        if not flags & _END_HEADERS:
            self._block = stream, flags, block
            return
        self._block = None
        exchange = self._exchanges.get(stream)
        if exchange is None:
            return
        if exchange.status == 0:  # what comes after the body is of no interest
            status = read_status(block)
            if status < 200:
                return
            exchange.status = status
            if status >= 300 or exchange.reads_headers:
                exchange.headers = read_headers(block)
        if flags & _END_STREAM:
            self._finish(exchange)

    def _data_came(self, stream: int, flags: int, payload: bytes) -> None:
        self._n_read += len(payload)
        if self._n_read >= _REFILL:
            self._write(_frame(_WINDOW_UPDATE, 0, 0, _WORD.pack(self._n_read)))
            self._n_read = 0
        exchange = self._exchanges.get(stream)
        if exchange is None:
            return
        if exchange.status == 0:
            raise _Malformed("the body of an answer comes before its head")
        exchange.parts.append(_unpadded(flags, payload))
        if flags & _END_STREAM:
            self._finish(exchange)

    def _settings_came(self, payload: bytes) -> None:
        if len(payload) % _SETTING.size:
            raise _Malformed("settings end in the middle")
        settings = dict(_SETTING.iter_unpack(payload))
        self._max_streams = settings.get(_MAX_STREAMS, self._max_streams)
        if _INITIAL_WINDOW in settings:
            wider = settings[_INITIAL_WINDOW] - self._stream_window
            self._stream_window += wider
            for exchange in self._exchanges.values():
                exchange.window += wider
            self._send_blocked()
        if not self.ready.done():
            self._writer = HeaderWriter(settings.get(_TABLE_SIZE_SETTING, TABLE_SIZE))
            self.ready.set_result(True)
        elif settings.get(_TABLE_SIZE_SETTING, TABLE_SIZE) < TABLE_SIZE:
            self._takes_more = False  # what is under way knows nothing of a smaller table
        self._write(_frame(_SETTINGS, _ACK, 0))

    def _window_came(self, stream: int, more: int) -> None:
        if stream == 0:
            self._window += more
            self._send_blocked()
        elif (exchange := self._exchanges.get(stream)) is not None:
            exchange.window += more
            if exchange.unsent:
                self._send_body(exchange)

    def _reset(self, stream: int, code: int) -> None:
        exchange = self._exchanges.pop(stream, None)
        if exchange is not None:
            self._blocked.pop(stream, None)
            self._fail(
                exchange, f"the server ended the request (HTTP/2 error {code})", was_refused=code == _REFUSED_STREAM
            )

    def _go_away(self, last: int) -> None:
        self._takes_more = False
        for number in [number for number in self._exchanges if number > last]:
            self._reset(number, _REFUSED_STREAM)
        if not self._exchanges:
            self.close()

    # -- ends ----------------------------------------------------------------------------------------------------------

    def _finish(self, exchange: RequestUnderWay) -> None:
        del self._exchanges[exchange.number]
        if self._blocked.pop(exchange.number, None) is not None:  # answered before it had read all: it need not
            self._write(_frame(_RST_STREAM, 0, exchange.number, _WORD.pack(_NO_ERROR)))
        self._has_answered = True
        parts = exchange.parts
        body = parts[0] if len(parts) == 1 else b"".join(parts)
        if exchange.headers.get("content-encoding", "").lower() == "gzip":
            try:
                body = zlib.decompress(body, wbits=31)
            except zlib.error:
                self._fail(exchange, "the gzip body is damaged")
                return
        self._tell(exchange, Answer(exchange.status, exchange.headers, body))

    def _wait_until(self, until_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(until_s, self._look_at_time)

    def _look_at_time(self) -> None:
        """One timer for all: most requests are answered long before, and it need not be set for each."""
        self._timer = None
        now_s = self._loop.time() + _CLOCK_STEP_S
        for exchange in [exchange for exchange in self._exchanges.values() if exchange.until_s <= now_s]:
            exchange.until_s = inf
            self._takes_more = False
            self._fail(exchange, f"timeout after {exchange.timeout_s:g} s")
        next_s = min((exchange.until_s for exchange in self._exchanges.values()), default=inf)
        if next_s < inf:
            self._wait_until(next_s)

    def _lost(self, failure: Exception | None) -> None:
        why, was_refused = why_lost(failure, self._has_answered)
        self._break(why, was_refused=was_refused)

    def _break(self, why: str, *, was_refused: bool = False) -> None:
        self._takes_more = False
        if not self.ready.done():
            self.ready.set_exception(ConnectionError(why))
        exchanges, self._exchanges = self._exchanges, {}
        self._blocked.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for exchange in exchanges.values():
            self._fail(exchange, why, was_refused=was_refused)
        if self._transport is not None:
            self._transport.abort()

    def _fail(self, exchange: RequestUnderWay, why: str, *, was_refused: bool = False) -> None:
        self._tell(exchange, NoAnswer(why, was_refused=was_refused))

    def _tell(self, exchange: RequestUnderWay, outcome: Answer | NoAnswer) -> None:
        """What is raised there must not cost the others that share the connection."""
        tell, exchange.tell = exchange.tell, None
        if tell is None:
            return
        try:
            tell(outcome)
        except Exception as problem:  # noqa: BLE001  as in a callback of the event loop
            self._loop.call_exception_handler({"message": "taking an answer failed", "exception": problem})


def _settle(answer: asyncio.Future[Answer], outcome: Answer | NoAnswer) -> None:
    if answer.done():
        return
    if isinstance(outcome, Answer):
        answer.set_result(outcome)
    else:
        answer.set_exception(outcome)


def _unpadded(flags: int, payload: bytes) -> bytes:
    if not flags & _PADDED:
        return payload
    if not payload or payload[0] >= len(payload):
        raise _Malformed("a frame is padded beyond its end")
    return payload[1 : len(payload) - payload[0]]


def _word(payload: bytes) -> int:
    if len(payload) < 4:
        raise _Malformed("a frame is too short")
    word: int = _WORD.unpack_from(payload)[0]
    return word
