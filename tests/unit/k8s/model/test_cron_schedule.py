"""When cron schedules come due."""

from __future__ import annotations

import pytest

from kubesched.k8s.model.cron_schedule import CronError, CronSchedule
from kubesched.k8s.model.times import parse_instant, print_instant


@pytest.mark.parametrize(
    ("schedule", "after", "expected"),
    [
        pytest.param("* * * * *", "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z", id="every minute"),
        pytest.param("*/15 * * * *", "2026-01-01T00:14:59Z", "2026-01-01T00:15:00Z", id="every quarter"),
        pytest.param("5/20 * * * *", "2026-01-01T00:06:00Z", "2026-01-01T00:25:00Z", id="every 20 minutes from 5 on"),
        pytest.param("0 9-17/4 * * *", "2026-01-01T09:00:00Z", "2026-01-01T13:00:00Z", id="a range with a step"),
        pytest.param("0 0 1,15 * ?", "2026-01-02T00:00:00Z", "2026-01-15T00:00:00Z", id="a list of days"),
        pytest.param("30 6 * * mon-fri", "2026-01-02T07:00:00Z", "2026-01-05T06:30:00Z", id="days by name"),
        pytest.param("0 0 13 * FRI", "2026-01-01T00:00:01Z", "2026-01-02T00:00:00Z", id="either day is enough"),
        pytest.param("0 0 29 feb *", "2026-01-01T00:00:00Z", "2028-02-29T00:00:00Z", id="a leap day"),
        pytest.param("@daily", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", id="a word"),
        pytest.param("@weekly", "2026-01-01T00:00:00Z", "2026-01-04T00:00:00Z", id="on Sunday"),
    ],
)
def test_the_next_time(schedule: str, after: str, expected: str) -> None:
    found = CronSchedule.parse(schedule).next_after(parse_instant(after))
    assert found is not None
    assert print_instant(found) == expected


def test_a_day_that_never_comes() -> None:
    assert CronSchedule.parse("0 0 31 2 *").next_after(0.0) is None


def test_the_last_time_in_a_span() -> None:
    schedule = CronSchedule.parse("0 * * * *")
    start_s = parse_instant("2026-01-01T00:00:00Z")
    assert schedule.last_between(start_s, start_s) is None
    assert schedule.last_between(start_s, start_s + 3600) == start_s + 3600
    assert schedule.last_between(start_s, start_s + 3 * 3600 + 1) == start_s + 3 * 3600


def test_a_time_zone_moves_the_time_and_skips_what_its_clocks_skip() -> None:
    try:
        schedule = CronSchedule.parse("30 2 * * *", "Europe/Berlin")
    except CronError:
        pytest.skip("no time zones are installed here")
    found = schedule.next_after(parse_instant("2026-03-28T12:00:00Z"))
    assert found is not None
    assert print_instant(found) == "2026-03-30T00:30:00Z"  # 02:30 does not exist on the 29th


@pytest.mark.parametrize(
    ("schedule", "zone", "message"),
    [
        pytest.param("* * * *", "UTC", "expected exactly 5 fields, found 4", id="a field is missing"),
        pytest.param("60 * * * *", "UTC", r"end of range \(60\) above maximum \(59\): 60", id="too large"),
        pytest.param("* * 0 * *", "UTC", r"beginning of range \(0\) below minimum \(1\): 0", id="too small"),
        pytest.param("* * * * 7", "UTC", r"end of range \(7\) above maximum \(6\): 7", id="Sunday is 0"),
        pytest.param(
            "9-5 * * * *", "UTC", r"beginning of range \(9\) beyond end of range \(5\): 9-5", id="a range backwards"
        ),
        pytest.param("*/0 * * * *", "UTC", r"step of range should be a positive number: \*/0", id="a step of nothing"),
        pytest.param(
            "x * * * *",
            "UTC",
            'failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax',
            id="not a number",
        ),
        pytest.param("@every 5m", "UTC", "unrecognized descriptor: @every 5m", id="an interval"),
        pytest.param("@daily", "Mars/Olympus", 'unknown time zone "Mars/Olympus"', id="no such zone"),
    ],
)
def test_mistakes_are_named(schedule: str, zone: str, message: str) -> None:
    with pytest.raises(CronError, match=message):
        CronSchedule.parse(schedule, zone)
