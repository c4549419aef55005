"""Notices when the machine at the other end is gone without a word: a watch may be silent for minutes.

Next: `aiohttp_transport` and `http1.pool`, which call it for each connection.
"""

from __future__ import annotations

import socket

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
