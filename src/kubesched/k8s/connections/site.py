"""Listens for an aiohttp server, within limits: no connection is silent forever, and none locks others out.

Connections are accepted here rather than by asyncio, which has no say in their number, waits a minute for a handshake,
and repeats itself without end when there are no file descriptors left. How many there may be, how long each may be
silent, and which has to go when there are too many are pure rules: the time is handed in. Headers become text that can
be shown, stored and sent on, whatever bytes came.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import resource
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from aiohttp import web
from multidict import CIMultiDict, CIMultiDictProxy


def plain_text(value: str) -> str:
    """What is no UTF-8 becomes U+FFFD, as Go writes it into JSON."""
    return value if value.isascii() else value.encode(errors="surrogateescape").decode(errors="replace")


def plain_headers(headers: CIMultiDictProxy[str]) -> CIMultiDictProxy[str]:
    if all(value.isascii() for value in headers.values()):
        return headers
    return CIMultiDictProxy(CIMultiDict((name, plain_text(value)) for name, value in headers.items()))


_FOR_OTHERS = 96
"""File descriptors that a process needs besides connections: its database, its logs, what it asks others."""

_FEWEST = 16


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """The defaults are those of kube-apiserver where it has any."""

    total: int = 4096
    share_of_peer: float = 0.75
    """One peer may have so much of all; everybody on this machine is one peer."""
    handshake_s: float = 10.0
    first_request_s: float = 32.0
    """From the connection, or its handshake, to the end of its first request's header."""
    body_s: float = 60.0
    """From the header to the end of the body."""
    idle_s: float = 90.0
    """Between requests, the header of the next one included."""

    @property
    def of_peer(self) -> int:
        return max(int(self.total * self.share_of_peer), 1)

    def within_files(self) -> ConnectionLimits:
        """As many as the process may open files, less what it needs itself."""
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft == resource.RLIM_INFINITY:
            return self
        return replace(self, total=max(min(self.total, soft - _FOR_OTHERS), _FEWEST))


@dataclass(eq=False, slots=True)
class ConnectionState:
    """What is known of one connection."""

    peer: str
    since_s: float
    """When it came; later, when its last request ended."""
    has_asked: bool = False
    is_busy: bool = False
    """Whether a request is being answered: a watch is, for as long as it lasts."""
    awaits_body: bool = False
    busy_since_s: float = 0.0

    def begin(self, now_s: float) -> None:
        self.has_asked = self.is_busy = True
        self.busy_since_s = now_s

    def end(self, now_s: float) -> None:
        self.is_busy = self.awaits_body = False
        self.since_s = now_s

    def is_overdue(self, limits: ConnectionLimits, now_s: float) -> bool:
        if self.is_busy:
            return self.awaits_body and now_s - self.busy_since_s > limits.body_s
        return now_s - self.since_s > (limits.idle_s if self.has_asked else limits.first_request_s)


def who_must_go(
    connections: Sequence[ConnectionState], newcomer: ConnectionState, limits: ConnectionLimits
) -> ConnectionState | None:
    """Which connection to close so that the newcomer may stay; itself if all others are busy. None if there is room.

    Who never asked anything goes first, then who has been idle for longest. A peer with too many pays for itself.
    """
    of_peer = [one for one in connections if one.peer == newcomer.peer]
    if len(of_peer) >= limits.of_peer:
        return _least_worth(of_peer) or newcomer
    if len(connections) >= limits.total:
        return _least_worth(connections) or newcomer
    return None


def _least_worth(connections: Iterable[ConnectionState]) -> ConnectionState | None:
    idle = (one for one in connections if not one.is_busy)
    return min(idle, key=lambda one: (one.has_asked, one.since_s), default=None)


_log = logging.getLogger("kubesched.connections")

_SWEEP_EVERY_S = 1.0
_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_GO_ON_AFTER_S = 0.2
_BACKLOG = 128


class BoundedSite(web.BaseSite):
    """Use as `TCPSite`."""

    __slots__ = ("_accepting", "_closers", "_host", "_limits", "_of_protocols", "_port", "_reuse_port", "sockets")

    def __init__(
        self,
        runner: web.BaseRunner,
        host: str,
        port: int,
        *,
        ssl_context: ssl.SSLContext | None = None,
        reuse_port: bool = False,
        limits: ConnectionLimits | None = None,
    ) -> None:
        super().__init__(runner, ssl_context=ssl_context)
        self._host = host
        self._port = port
        self._reuse_port = reuse_port
        self._limits = (limits or ConnectionLimits()).within_files()
        self._accepting: list[asyncio.Task[None]] = []
        self._closers: dict[ConnectionState, Callable[[], object]] = {}
        self._of_protocols: dict[object, ConnectionState] = {}
        self.sockets: tuple[socket.socket, ...] = ()

    @property
    def name(self) -> str:
        return f"{'http' if self._ssl_context is None else 'https'}://{self._host}:{self._port}"

    @property
    def n_connections(self) -> int:
        self._forget_closed()
        return len(self._closers)

    async def start(self) -> None:
        """Raises OSError if the address cannot be had."""
        await super().start()
        server = self._runner.server
        assert server is not None
        server.request_handler = self._noting(server.request_handler)
        self.sockets = await _listen(self._host, self._port, self._reuse_port)
        self._server = self  # type: ignore[assignment] # what the runner asks of it is `sockets` and `close`
        names = [f"accepting on {listening.getsockname()}" for listening in self.sockets]
        self._accepting = [
            asyncio.create_task(self._accept(listening), name=name)
            for listening, name in zip(self.sockets, names, strict=True)
        ]
        self._accepting.append(asyncio.create_task(self._sweep(), name="closing silent connections"))

    def close(self) -> None:
        """Accepts no more; connections end with their server."""
        for task in self._accepting:
            task.cancel()
        for listening in self.sockets:
            listening.close()
        self._of_protocols.clear()

    # -- coming ------------------------------------------------------------------------------------------------------

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, address = await loop.sock_accept(listening)
            except OSError as problem:
                if problem.errno in _EXHAUSTED:
                    _log.warning("No connection can be accepted: %s", problem.strerror)
                    self._close_some_idle()
                await asyncio.sleep(_GO_ON_AFTER_S)
                continue
            peer = str(address[0]) if isinstance(address, tuple) else str(address)
            state = ConnectionState(peer, loop.time())
            if self._admits(state):
                connecting = asyncio.create_task(self._connect(connection, state), name=f"connection of {peer}")
                self._closers[state] = connecting.cancel
            else:
                connection.close()

    def _admits(self, newcomer: ConnectionState) -> bool:
        if len(self._closers) >= self._limits.of_peer:
            self._forget_closed()
        leaver = who_must_go(list(self._closers), newcomer, self._limits)
        if leaver is None:
            return True
        _log.warning("Too many connections: closed one of %s", leaver.peer)
        if leaver is newcomer:
            return False
        self._close(leaver)
        return True

    async def _connect(self, connection: socket.socket, state: ConnectionState) -> None:
        loop = asyncio.get_running_loop()
        server = self._runner.server
        handshake = {} if self._ssl_context is None else {"ssl_handshake_timeout": self._limits.handshake_s}
        try:
            assert server is not None
            transport, protocol = await loop.connect_accepted_socket(
                server, connection, ssl=self._ssl_context, **handshake
            )
        except (OSError, ssl.SSLError, asyncio.CancelledError):
            connection.close()
            self._closers.pop(state, None)
            return
        self._closers[state] = transport.abort
        self._of_protocols[protocol] = state

    # -- being there -------------------------------------------------------------------------------------------------

    def _noting(self, handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]) -> Any:
        """The handler, with what is known of its connection kept up to date."""
        clock = asyncio.get_running_loop().time

        async def handle(request: web.BaseRequest) -> web.StreamResponse:
            state = self._of_protocols.get(request.protocol)
            if state is None:
                return await handler(request)
            state.begin(clock())
            body = request.content
            state.awaits_body = not body.is_eof()
            if state.awaits_body:
                body.on_eof(lambda: setattr(state, "awaits_body", False))
            try:
                return await handler(request)
            finally:
                state.end(clock())

        return handle

    # -- going -------------------------------------------------------------------------------------------------------

    async def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(_SWEEP_EVERY_S)
            self._forget_closed()
            now_s = loop.time()
            for state in [one for one in self._closers if one.is_overdue(self._limits, now_s)]:
                self._close(state)

    def _close_some_idle(self) -> None:
        """There are no file descriptors left, for whatever reason: a few of those who ask nothing must go."""
        idle = sorted((one for one in self._closers if not one.is_busy), key=lambda one: (one.has_asked, one.since_s))
        for state in idle[:8]:
            self._close(state)

    def _close(self, state: ConnectionState) -> None:
        close = self._closers.pop(state, None)
        if close is not None:
            close()

    def _forget_closed(self) -> None:
        gone = [protocol for protocol in self._of_protocols if getattr(protocol, "transport", None) is None]
        for protocol in gone:
            self._closers.pop(self._of_protocols.pop(protocol), None)


async def _listen(host: str, port: int, reuse_port: bool) -> tuple[socket.socket, ...]:
    """Sockets on all addresses of the host; with port 0, the same free one for all."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    listening: list[socket.socket] = []
    try:
        for family, kind, protocol, _, address in dict.fromkeys(found):
            one = socket.socket(family, kind, protocol)
            listening.append(one)
            one.setblocking(False)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if reuse_port:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            if family == socket.AF_INET6:
                one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            chosen = port or (listening[0].getsockname()[1] if len(listening) > 1 else 0)
            one.bind((address[0], chosen, *address[2:]))
            one.listen(_BACKLOG)
    except OSError as problem:
        for one in listening:
            with contextlib.suppress(OSError):
                one.close()
        where = f"while attempting to bind on address {(host, port)!r}"
        raise OSError(problem.errno, f"error {where}: {(problem.strerror or str(problem)).lower()}") from None
    return tuple(listening)
