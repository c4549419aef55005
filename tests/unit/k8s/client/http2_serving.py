"""A server that speaks HTTP/2 as far as a test wants it to, and remembers what it was sent."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from kubesched.k8s.client.http2_transport import Http2Transport
from kubesched.k8s.client.target import ServerTarget

DATA, HEADERS, RST, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = 0, 1, 3, 4, 5, 6, 7, 8, 9
OK = b"\x88"
CREATED = b"\x08\x03201"
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
ROOM = struct.pack(">I", 1 << 20)


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes((kind, flags)) + struct.pack(">I", stream) + payload


def answer(stream: int, body: bytes = b"ok", block: bytes = OK) -> bytes:
    return frame(HEADERS, 4, stream, block) + frame(DATA, 1, stream, body)


def setting(number: int, value: int) -> bytes:
    return struct.pack(">HI", number, value)


React = Callable[["Peer", int, bytes], None]
"""(connection, stream, body) -> None, once a request is whole"""


class Server:
    """Remembers connections, requests and frames, and does with each whole request what `react` says."""

    def __init__(self, react: React, settings: bytes = b"") -> None:
        self.react = react
        self.settings = settings
        self.peers: list[Peer] = []
        self.blocks: list[bytes] = []
        self.frames: list[tuple[int, int, int, bytes]] = []

    def resets(self) -> list[bytes]:
        return [payload for kind, _, _, payload in self.frames if kind == RST]


class Peer(asyncio.Protocol):
    """The server's side of a connection."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._buffer = b""
        self._began = False
        self._open: dict[int, tuple[bytes, bytes]] = {}
        server.peers.append(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.transport.write(frame(SETTINGS, 0, 0, self._server.settings))

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not self._began:
            assert self._buffer.startswith(PREFACE)
            self._began, self._buffer = True, self._buffer[len(PREFACE) :]
        while len(self._buffer) >= 9:
            length = int.from_bytes(self._buffer[:3])
            if len(self._buffer) < 9 + length:
                return
            kind, flags, stream = struct.unpack(">BBI", self._buffer[3:9])
            payload, self._buffer = self._buffer[9 : 9 + length], self._buffer[9 + length :]
            self._take(kind, flags, stream, payload)

    def _take(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        self._server.frames.append((kind, flags, stream, payload))
        if kind in (HEADERS, CONTINUATION):
            block, body = self._open.get(stream, (b"", b""))
            self._open[stream] = block + payload, body
        elif kind == DATA:
            block, body = self._open[stream]
            self._open[stream] = block, body + payload
        else:
            return
        ends = {HEADERS: flags & 5 == 5, DATA: flags & 1, CONTINUATION: flags & 4}[kind]
        if ends:
            block, body = self._open.pop(stream)
            self._server.blocks.append(block)
            self._server.react(self, stream, body)

    def write(self, data: bytes) -> None:
        self.transport.write(data)


@asynccontextmanager
async def served(server: Server, path: str = "") -> AsyncIterator[Http2Transport]:
    listening = await asyncio.get_running_loop().create_server(lambda: Peer(server), "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    transport = Http2Transport(ServerTarget(f"http://127.0.0.1:{port}{path}"))
    try:
        yield transport
    finally:
        await transport.close()
        for peer in server.peers:
            peer.transport.abort()
        listening.close()
        await listening.wait_closed()
