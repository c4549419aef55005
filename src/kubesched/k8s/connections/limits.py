"""How many connections there may be, how long each may be silent, and which has to go when there are too many.

Pure rules: the time is handed in. `site` has the sockets.
"""

from __future__ import annotations

import resource
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

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
