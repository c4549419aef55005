"""How much memory this process holds, and how much it ever held."""

from __future__ import annotations

import sys
from pathlib import Path

_STATM = Path("/proc/self/statm")


def peak_mb() -> float:
    """The most since the process began, in MB of 10⁶ bytes; 0 where the system does not tell."""
    try:
        import resource
    except ImportError:
        return 0.0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6


def current_mb() -> float:
    """What it holds now; 0 where the system does not tell."""
    try:
        import resource

        pages = int(_STATM.read_text().split()[1])
    except (ImportError, OSError):
        return 0.0
    return pages * resource.getpagesize() / 1e6
