"""Durations and timestamps: as text (Go's `1h30m`, and RFC 3339), in whole units, and in parts.

The parts of a timestamp are those in UTC or a given zone, which is an IANA name or an offset such as `-08:00`.

Next: `standard` converts text to times.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from kubesched.k8s.cel.errors import CelEvaluationError
from kubesched.k8s.cel.kinds import CelFunction, CelOverload, function, overload
from kubesched.k8s.cel.values import MAX_INT, NANOS_PER_SECOND, CelDuration, CelTimestamp, quote

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


_Part = Callable[[datetime, int], int]

_PARTS: dict[str, tuple[str, _Part]] = {
    "getFullYear": ("year", lambda moment, _: moment.year),
    "getMonth": ("month", lambda moment, _: moment.month - 1),
    "getDayOfYear": ("day_of_year", lambda moment, _: moment.timetuple().tm_yday - 1),
    "getDayOfMonth": ("day_of_month", lambda moment, _: moment.day - 1),
    "getDate": ("day_of_month_1_based", lambda moment, _: moment.day),
    "getDayOfWeek": ("day_of_week", lambda moment, _: moment.isoweekday() % 7),
    "getHours": ("hours", lambda moment, _: moment.hour),
    "getMinutes": ("minutes", lambda moment, _: moment.minute),
    "getSeconds": ("seconds", lambda moment, _: moment.second),
    "getMilliseconds": ("milliseconds", lambda _, nanos: nanos // 1_000_000),
}
_DURATION_UNITS = {
    "getHours": 3600 * 10**9,
    "getMinutes": 60 * 10**9,
    "getSeconds": 10**9,
    "getMilliseconds": 10**6,
}


def utc_offset(zone: str, timestamp: CelTimestamp) -> int:
    """Seconds east of UTC in a zone at an instant."""
    if ":" not in zone:
        return _named_offset(zone, timestamp)
    hours_text, _, minutes_text = zone.partition(":")
    hours, minutes = _number(hours_text), _number(minutes_text)
    return (hours * 60 + (-minutes if zone.startswith("-") else minutes)) * 60


def _named_offset(zone: str, timestamp: CelTimestamp) -> int:
    if zone in ("", "UTC"):
        return 0
    try:
        offset = datetime.fromtimestamp(timestamp.seconds, UTC).astimezone(ZoneInfo(zone)).utcoffset()
    except (ZoneInfoNotFoundError, ValueError, OSError, OverflowError):
        raise CelEvaluationError(f"unknown time zone {zone}") from None
    return int(offset.total_seconds()) if offset is not None else 0


def _number(text: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        raise CelEvaluationError(f"strconv.Atoi: parsing {quote(text)}: invalid syntax")
    return int(text)


def _overloads(name: str, identity: str, part: _Part) -> tuple[CelOverload, ...]:
    def in_utc(timestamp: CelTimestamp) -> int:
        return part(*local_time(timestamp, 0))

    def in_zone(timestamp: CelTimestamp, zone: str) -> int:
        return part(*local_time(timestamp, utc_offset(zone, timestamp)))

    found = (
        overload(f"timestamp_to_{identity}", "timestamp.() -> int", in_utc),
        overload(f"timestamp_to_{identity}_with_tz", "timestamp.(string) -> int", in_zone),
    )
    unit = _DURATION_UNITS.get(name)
    if unit is None:
        return found
    return (*found, overload(f"duration_to_{identity}", "duration.() -> int", _whole_units(unit)))


def _whole_units(unit: int) -> Callable[[CelDuration], int]:
    def whole(duration: CelDuration) -> int:
        magnitude = abs(duration.nanos) // unit
        return -magnitude if duration.nanos < 0 else magnitude

    return whole


FUNCTIONS: tuple[CelFunction, ...] = tuple(
    function(name, *_overloads(name, identity, part)) for name, (identity, part) in _PARTS.items()
)
