"""What servers of ours allow of connections: how many, how long, and how much is said about it in a log.

`BoundedSite` takes the place of aiohttp's `TCPSite` in every server. `limits` decides which connection has to go, and
`repeats` joins log lines that say the same.
"""

from __future__ import annotations

from kubesched.k8s.connections.limits import ConnectionLimits
from kubesched.k8s.connections.log_lines import LogLine
from kubesched.k8s.connections.repeats import JoinRepeats
from kubesched.k8s.connections.site import BoundedSite

__all__ = ["BoundedSite", "ConnectionLimits", "JoinRepeats", "LogLine"]
