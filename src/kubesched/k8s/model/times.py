"""Instants as manifests write them (RFC 3339), and spans of time as Go writes them: `15s`, `1m0s`, `1.5h`, `250ms`.

Instants become seconds since the epoch. `Duration.parse` takes whatever Go's parser takes, and `str()` gives what Go
would print, so a manifest keeps its exact words.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from kubesched.k8s.errors import KubeschedError


class InstantError(KubeschedError, ValueError):
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


def instant_s(given: str | float | datetime) -> float:
    """Seconds since the epoch of a text, a `datetime` (in UTC, if it does not say), or such seconds."""
    if isinstance(given, datetime):
        return (given if given.tzinfo else given.replace(tzinfo=UTC)).timestamp()
    if isinstance(given, str):
        return parse_instant(given)
    return _number(given, "a time", InstantError)


def print_instant(at_s: float) -> str:
    """The instant to the second, as the API server prints it."""
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


_NANOSECONDS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,  # the micro sign
    "μs": 10**3,  # the Greek letter, which looks the same
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_PART = re.compile(r"(?P<whole>[0-9]*)(?P<fraction>\.[0-9]*)?(?P<unit>[^0-9.]*)")
_LONGEST = 2**63 - 1

_MOST_DIGITS = 100


class DurationError(KubeschedError, ValueError):
    """A text is not a span of time."""


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A span of time, to the nanosecond."""

    nanoseconds: int

    @classmethod
    def of_seconds(cls, seconds: int) -> Duration:
        return cls(seconds * 10**9)

    @classmethod
    def parse(cls, text: str) -> Duration:
        sign = -1 if text.startswith("-") else 1
        rest = text[1:] if text[:1] in ("+", "-") else text
        if rest == "0":
            return cls(0)
        if not rest:
            raise DurationError(f'time: invalid duration "{text}"')
        total = 0
        position = 0
        while position < len(rest):
            part = _PART.match(rest, position)
            assert part is not None  # every piece of the pattern may be empty
            total += _part_nanoseconds(part, text)
            position = part.end()
        # Go holds a span in an int64, which has room for one more below zero than above.
        if total > _LONGEST + (sign < 0):
            raise DurationError(f'time: invalid duration "{text}"')
        return cls(sign * total)

    @property
    def seconds(self) -> float:
        return self.nanoseconds / 10**9

    def __str__(self) -> str:
        sign = "-" if self.nanoseconds < 0 else ""
        span = abs(self.nanoseconds)
        if span == 0:
            return "0s"
        for unit in ("ns", "µs", "ms"):
            if span < 1000 * _NANOSECONDS[unit]:
                return f"{sign}{_decimal(span, _NANOSECONDS[unit])}{unit}"
        minutes, rest = divmod(span, _NANOSECONDS["m"])
        text = f"{_decimal(rest, _NANOSECONDS['s'])}s"
        if minutes:
            hours, minutes = divmod(minutes, 60)
            text = f"{hours}h{minutes}m{text}" if hours else f"{minutes}m{text}"
        return sign + text


Span = str | float | timedelta
"""A duration as people give it: `"1h30m"`, seconds, or a `timedelta`."""


def span_s(given: Span) -> float:
    """The seconds of a duration."""
    if isinstance(given, timedelta):
        return given.total_seconds()
    if isinstance(given, str):
        try:
            return Duration.parse(given.strip()).seconds
        except DurationError:
            raise DurationError(f"{given!r} is not a duration such as 90s, 24h or 1h30m") from None
    return _number(given, "a duration", DurationError)


def _number(given: object, what: str, error: type[ValueError]) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or not math.isfinite(given):
        raise error(f"{given!r} is not {what}")
    return float(given)


def _part_nanoseconds(part: re.Match[str], text: str) -> int:
    """One number with its unit, such as `1.5h`."""
    whole, fraction, unit = part["whole"], (part["fraction"] or "")[1:], part["unit"]
    if not whole and not fraction:
        raise DurationError(f'time: invalid duration "{text}"')
    if not unit:
        raise DurationError(f'time: missing unit in duration "{text}"')
    if unit not in _NANOSECONDS:
        raise DurationError(f'time: unknown unit "{unit}" in duration "{text}"')
    if len(part[0]) > _MOST_DIGITS:  # longer than any span that Go can hold, or more exact
        raise DurationError(f'time: invalid duration "{text[:_MOST_DIGITS]}…"')
    size = _NANOSECONDS[unit]
    scale: int = 10 ** len(fraction)
    return int(whole or 0) * size + int(fraction or 0) * size // scale


def _decimal(amount: int, unit: int) -> str:
    """`amount / unit` without trailing zeros; exact, as units are powers of ten."""
    whole, rest = divmod(amount, unit)
    digits = str(rest).zfill(len(str(unit)) - 1).rstrip("0")
    return f"{whole}.{digits}" if digits else str(whole)
