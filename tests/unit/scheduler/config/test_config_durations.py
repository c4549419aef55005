"""Durations are read and printed as Go does it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.scheduler.config import Duration, DurationError

SECOND = 10**9


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        pytest.param("0", 0, id="a bare zero needs no unit"),
        pytest.param("-0", 0, id="nor does one with a sign"),
        pytest.param("15s", 15 * SECOND, id="seconds"),
        pytest.param("1m0s", 60 * SECOND, id="minutes and seconds"),
        pytest.param("1h15m30.5s", 4530 * SECOND + SECOND // 2, id="a fraction"),
        pytest.param(".5h", 1800 * SECOND, id="a fraction without a whole"),
        pytest.param("1.s", SECOND, id="a whole without a fraction"),
        pytest.param("-2m", -120 * SECOND, id="a negative span"),
        pytest.param("+5ms", 5 * 10**6, id="a plus sign"),
        pytest.param("3us", 3000, id="microseconds in ASCII"),
        pytest.param("3µs", 3000, id="microseconds with the micro sign"),
        pytest.param("3μs", 3000, id="microseconds with the Greek letter"),
        pytest.param("1ns1ns", 2, id="a unit twice"),
        pytest.param("-9223372036854775808ns", -(2**63), id="the longest negative span"),
    ],
)
def test_spans_are_read_as_go_reads_them(text: str, nanoseconds: int) -> None:
    assert Duration.parse(text) == Duration(nanoseconds)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", 'time: invalid duration ""', id="nothing"),
        pytest.param("-", 'time: invalid duration "-"', id="only a sign"),
        pytest.param("s", 'time: invalid duration "s"', id="only a unit"),
        pytest.param(".s", 'time: invalid duration ".s"', id="a dot without digits"),
        pytest.param("15", 'time: missing unit in duration "15"', id="no unit"),
        pytest.param("1d", 'time: unknown unit "d" in duration "1d"', id="days"),
        pytest.param("1 s", 'time: unknown unit " s" in duration "1 s"', id="a blank"),
        pytest.param("9223372036854775808ns", 'time: invalid duration "9223372036854775808ns"', id="too long"),
    ],
)
def test_what_go_refuses_is_refused_with_its_words(text: str, message: str) -> None:
    with pytest.raises(DurationError) as caught:
        Duration.parse(text)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        pytest.param(0, "0s", id="nothing"),
        pytest.param(1, "1ns", id="nanoseconds"),
        pytest.param(1100, "1.1µs", id="microseconds"),
        pytest.param(2_200_000, "2.2ms", id="milliseconds"),
        pytest.param(1_005_000_000, "1.005s", id="a fraction with leading zeros"),
        pytest.param(60 * SECOND, "1m0s", id="a minute"),
        pytest.param(600 * SECOND, "10m0s", id="ten minutes"),
        pytest.param(3600 * SECOND, "1h0m0s", id="an hour"),
        pytest.param(-90 * SECOND, "-1m30s", id="a negative span"),
        pytest.param(2**63 - 1, "2562047h47m16.854775807s", id="the longest span"),
    ],
)
def test_spans_are_printed_as_go_prints_them(nanoseconds: int, text: str) -> None:
    assert str(Duration(nanoseconds)) == text


@given(st.integers(-(2**63), 2**63 - 1))
def test_what_is_printed_reads_back(nanoseconds: int) -> None:
    assert Duration.parse(str(Duration(nanoseconds))) == Duration(nanoseconds)


def test_seconds_are_what_a_clock_would_count() -> None:
    assert Duration.parse("1m0.25s").seconds == 60.25
