"""The parts of timestamps, in UTC or a given zone, and durations in whole units.

A zone is an IANA name or an offset such as `-08:00`.

Next: `optionals`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from kubesched.k8s.cel.checking.declarations import CelFunction, CelOverload, function, overload
from kubesched.k8s.cel.errors import CelEvaluationError
from kubesched.k8s.cel.library.time_text import local_time
from kubesched.k8s.cel.values.go_text import quote
from kubesched.k8s.cel.values.scalars import CelDuration, CelTimestamp

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
