"""What servers of ours allow of connections: how many, how long, and how much is said about it in a log.

`BoundedSite` takes the place of aiohttp's `TCPSite` in every server, and decides which connection has to go.
`JoinRepeats` joins log lines that say the same.
"""

from __future__ import annotations

from kubesched.k8s.connections.log_lines import JoinRepeats, LogLine
from kubesched.k8s.connections.site import BoundedSite, ConnectionLimits

__all__ = ["BoundedSite", "ConnectionLimits", "JoinRepeats", "LogLine"]
