"""Spans of time as people read them: `45s`, `5m30s`, `2h`, `3d4h`."""

from __future__ import annotations

_UNITS = (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))


def readable_span(seconds: float) -> str:
    """The two largest units; below a minute with what is left of a second."""
    if seconds < 60:
        return f"{round(seconds, 3):g}s"
    whole = round(seconds)
    parts: list[tuple[int, str]] = []
    for letter, size in _UNITS:
        amount, whole = divmod(whole, size)
        if amount or parts:
            parts.append((amount, letter))
    return "".join(f"{amount}{letter}" for amount, letter in parts[:2] if amount)
