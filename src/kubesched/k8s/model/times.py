"""Instants as manifests write them (RFC 3339), as seconds since the epoch."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache


class InstantError(ValueError):
    """A text is not an RFC 3339 instant."""


@lru_cache(maxsize=65536)
def parse_instant(text: str) -> float:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InstantError(f"not an RFC 3339 time: {text!r}") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment.timestamp()


def print_instant(at_s: float) -> str:
    """The instant to the second, as the API server prints it."""
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
