"""Ages as kubectl shows them: how long ago something was, in one or two units."""

from __future__ import annotations

import time
from typing import Any

from kubesched.k8s.model.times import parse_instant
from kubesched.playground.apiserver.served_resource import Object

_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86_400, 365 * 86_400


def age_of(obj: Object) -> str:
    """Since the object's creation."""
    return since(obj.get("metadata", {}).get("creationTimestamp"))


def since(timestamp: Any) -> str:
    return human(time.time() - parse_instant(timestamp)) if timestamp else "<unknown>"


def human(for_s: float) -> str:
    """A duration as Kubernetes prints it: exact while short, ever coarser as it grows."""
    seconds = int(for_s)
    if seconds < -1:
        return "<invalid>"
    if seconds < 2 * _MINUTE:
        return f"{max(seconds, 0)}s"
    if seconds < 10 * _MINUTE:
        return _two(seconds // _MINUTE, "m", seconds % _MINUTE, "s")
    if seconds < 3 * _HOUR:
        return f"{seconds // _MINUTE}m"
    if seconds < 8 * _HOUR:
        return _two(seconds // _HOUR, "h", seconds // _MINUTE % 60, "m")
    if seconds < 2 * _DAY:
        return f"{seconds // _HOUR}h"
    if seconds < 8 * _DAY:
        return _two(seconds // _DAY, "d", seconds // _HOUR % 24, "h")
    if seconds < 2 * _YEAR:
        return f"{seconds // _DAY}d"
    if seconds < 8 * _YEAR:
        return _two(seconds // _YEAR, "y", seconds // _DAY % 365, "d")
    return f"{seconds // _YEAR}y"


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"
