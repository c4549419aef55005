"""Durations and timestamps as text: Go's `1h30m`, and RFC 3339.

Next: `times` takes timestamps apart.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from kubesched.k8s.cel.errors import CelEvaluationError
from kubesched.k8s.cel.values.scalars import MAX_INT, NANOS_PER_SECOND, CelTimestamp

_EPOCH_DAY = datetime(1970, 1, 1).toordinal()
_SECONDS_PER_DAY = 86400

_UNIT_NANOS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_DURATION_PART = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^0-9.]+)")
_TIMESTAMP = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{1,2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]+))?(?:Z|([+-])([0-9]{2}):([0-9]{2}))"
)


def parse_duration(text: str) -> int | None:
    """The nanoseconds of a text such as `-1h30.5m`, None if it is none or too long."""
    sign = -1 if text.startswith("-") else 1
    rest = text[1:] if text[:1] in ("+", "-") else text
    if rest == "0":
        return 0
    if not rest:
        return None
    total = 0
    while rest:
        part = _DURATION_PART.match(rest)
        nanos = _duration_part(part) if part is not None else None
        if part is None or nanos is None:
            return None
        total += nanos
        rest = rest[part.end() :]
    if total > MAX_INT + (sign < 0):
        return None
    return sign * total


def _duration_part(part: re.Match[str]) -> int | None:
    whole, fraction, unit = part.groups()
    nanos = _UNIT_NANOS.get(unit)
    if nanos is None or not (whole or fraction):
        return None
    value = int(whole or "0") * nanos
    if fraction:
        digits = fraction[:18]
        value += int(float(int(digits)) * (nanos / 10 ** len(digits)))
    return value


def parse_timestamp(text: str) -> tuple[int, int] | None:
    """Nanoseconds since 1970 and the offset from UTC in seconds, None if the text is no timestamp."""
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
    offset = _utc_offset(*match.groups()[7:])
    if offset is None or not (1 <= month <= 12 and hour < 24 and minute < 60 and second < 60):
        return None
    if not 1 <= day <= _days_in_month(year, month):
        return None
    seconds = _days_since_epoch(year, month, day) * _SECONDS_PER_DAY + hour * 3600 + minute * 60 + second - offset
    nanos = int((match.group(7) or "")[:9].ljust(9, "0"))
    return seconds * NANOS_PER_SECOND + nanos, offset


def _utc_offset(sign: str | None, hours: str | None, minutes: str | None) -> int | None:
    if sign is None or hours is None or minutes is None:
        return 0
    if int(hours) > 24 or int(minutes) > 60:
        return None
    seconds = int(hours) * 3600 + int(minutes) * 60
    return -seconds if sign == "-" else seconds


def _days_in_month(year: int, month: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


def _days_since_epoch(year: int, month: int, day: int) -> int:
    """Year 0 exists in the text and is out of range as a value: Python's calendar starts a year later."""
    shifted = datetime(year or 400, month, day).toordinal() - _EPOCH_DAY
    return shifted - (0 if year else 146097)


def local_time(timestamp: CelTimestamp, utc_offset_s: int) -> tuple[datetime, int]:
    """The wall clock at an offset from UTC, and the nanoseconds within the second."""
    seconds, nanos = divmod(timestamp.nanos, NANOS_PER_SECOND)
    try:
        return datetime(1970, 1, 1) + timedelta(seconds=seconds + utc_offset_s), nanos
    except OverflowError:
        raise CelEvaluationError("timestamp overflow") from None


def write_timestamp(timestamp: CelTimestamp) -> str:
    """RFC 3339, with as many decimals as needed and in the offset it was written with."""
    moment, nanos = local_time(timestamp, timestamp.utc_offset_s)
    fraction = f".{nanos:09d}".rstrip("0") if nanos else ""
    return f"{moment.isoformat()}{fraction}{_write_offset(timestamp.utc_offset_s)}"


def _write_offset(seconds: int) -> str:
    if seconds == 0:
        return "Z"
    minutes = abs(seconds) // 60
    return f"{'-' if seconds < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}"
