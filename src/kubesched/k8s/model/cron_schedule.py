"""When a cron schedule comes due: five fields, names of months and days, steps, and the words `@daily` and so on.

Minute, hour, day of month, month, day of week. If both days are restricted, one of them is enough. A time that a
change of clocks leaves out does not come. What cannot be read is refused in the words of the parser that Kubernetes
uses.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from kubesched.k8s.errors import KubeschedError

_WORDS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_MOST_DIGITS = 18
"""As many fit into Go's int, whatever they are."""
_MOST_SHOWN = 100
_LONGEST_SEARCH = timedelta(days=5 * 366)


class CronError(KubeschedError, ValueError):
    """A schedule or a time zone cannot be understood."""


@dataclass(frozen=True, slots=True)
class _FieldRange:
    low: int
    high: int
    names: tuple[str, ...] = ()


_FIELDS = (
    _FieldRange(0, 59),
    _FieldRange(0, 23),
    _FieldRange(1, 31),
    _FieldRange(1, 12, _MONTHS),
    _FieldRange(0, 6, _WEEKDAYS),
)


@dataclass(frozen=True, slots=True)
class CronSchedule:
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either_day: bool
    """Both kinds of day are restricted, so one is enough."""
    zone: tzinfo

    @staticmethod
    @lru_cache(maxsize=1024)
    def parse(text: str, zone_name: str = "UTC") -> CronSchedule:
        """Raises CronError."""
        try:
            fields, sets = _parse_fields(text.strip())
        except CronError as problem:
            raise CronError(f'schedule "{_shortened(text)}": {_shortened(str(problem))}') from None
        return CronSchedule(
            minutes=tuple(sorted(sets[0])),
            hours=tuple(sorted(sets[1])),
            days=frozenset(sets[2]),
            months=frozenset(sets[3]),
            weekdays=frozenset(sets[4]),
            either_day=not _is_open(fields[2]) and not _is_open(fields[4]),
            zone=_zone(zone_name),
        )

    def next_after(self, at_s: float) -> float | None:
        """The first time later than this; None if there is none within five years."""
        return next(self._times_after(at_s), None)

    def last_between(self, after_s: float, until_s: float) -> float | None:
        """The last time in the span, its end included."""
        found = None
        for at_s in self._times_after(after_s):
            if at_s > until_s:
                break
            found = at_s
        return found

    def _times_after(self, at_s: float) -> Iterator[float]:
        start = datetime.fromtimestamp(at_s, self.zone)
        day = start.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
        end = day + _LONGEST_SEARCH
        while day < end:
            if self._is_due_on(day):
                for hour in self.hours:
                    for minute in self.minutes:
                        found_s = self._instant(day.replace(hour=hour, minute=minute))
                        if found_s is not None and found_s > at_s:
                            yield found_s
            day += timedelta(days=1)

    def _is_due_on(self, day: datetime) -> bool:
        if day.month not in self.months:
            return False
        by_day, by_weekday = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return by_day or by_weekday if self.either_day else by_day and by_weekday

    def _instant(self, local: datetime) -> float | None:
        """None for a time that the zone's clocks skip."""
        moment = local.replace(tzinfo=self.zone)
        back = moment.astimezone(UTC).astimezone(self.zone)
        return moment.timestamp() if back.replace(tzinfo=None) == local else None


def _zone(name: str) -> tzinfo:
    if name == "UTC":
        return UTC  # also where no time zones are installed
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise CronError(f'unknown time zone "{name}"') from None


def _is_open(field: str) -> bool:
    return field.startswith(("*", "?"))


def schedule_problem(text: str) -> str:
    """What is wrong with a schedule, "" if nothing is. An interval is none that we keep to, and none that is wrong."""
    try:
        if not re.fullmatch(r"@every \S+", text):
            _parse_fields(text)
    except CronError as problem:
        return str(problem)
    return ""


def _parse_fields(text: str) -> tuple[list[str], list[set[int]]]:
    if text.startswith("@") and text not in _WORDS:
        raise CronError(f"unrecognized descriptor: {text}")
    fields = _WORDS.get(text, text).split()
    if len(fields) != len(_FIELDS):
        raise CronError(f"expected exactly {len(_FIELDS)} fields, found {len(fields)}: [{' '.join(fields)}]")
    return fields, [_parse_field(field, known) for field, known in zip(fields, _FIELDS, strict=True)]


def _parse_field(field: str, known: _FieldRange) -> set[int]:
    found: set[int] = set()
    for part in field.split(","):
        span, has_step, step_text = part.partition("/")
        step = _number(step_text) if has_step else 1
        if step == 0:
            raise CronError(f"step of range should be a positive number: {part}")
        low, high = _span(span, part, known, has_step=bool(has_step))
        if low < known.low:
            raise CronError(f"beginning of range ({low}) below minimum ({known.low}): {part}")
        if high > known.high:
            raise CronError(f"end of range ({high}) above maximum ({known.high}): {part}")
        if low > high:
            raise CronError(f"beginning of range ({low}) beyond end of range ({high}): {part}")
        found.update(range(low, high + 1, step))
    return found


def _span(span: str, part: str, known: _FieldRange, *, has_step: bool) -> tuple[int, int]:
    if span in ("*", "?"):
        return known.low, known.high
    names = known.names
    bounds = [
        known.low + names.index(text.lower()) if text.lower() in names else _number(text) for text in span.split("-")
    ]
    if len(bounds) > 2:
        raise CronError(f"too many hyphens: {part}")
    return bounds[0], known.high if has_step and len(bounds) == 1 else bounds[-1]


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        why = "invalid syntax"
    elif len(text) > _MOST_DIGITS:
        why = "value out of range"
    else:
        return int(text)
    raise CronError(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": {why}')


def _shortened(text: str) -> str:
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"
