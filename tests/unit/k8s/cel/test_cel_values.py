"""Conversions, times, lists and sets."""

from __future__ import annotations

import pytest

from kubesched.k8s import cel

DEVICE = cel.DeviceView.of("d", {"text": "a", "number": 7})


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("int('-12') == -12 && int(1.9) == 1 && int(-1.9) == -1 && int(3u) == 3", id="to int"),
        pytest.param("int(timestamp(5)) == 5 && int(duration('2ns')) == 2", id="to int from times"),
        pytest.param("uint('12') == 12u && uint(1.9) == 1u && uint(3) == 3u", id="to uint"),
        pytest.param("double('1.5') == 1.5 && double(1) == 1.0 && double('Inf') > 1e308", id="to double"),
        pytest.param("string(1) == '1' && string(1u) == '1' && string(true) == 'true'", id="to string"),
        pytest.param("string(1.0) == '1' && string(1.5e6) == '1.5e+06' && string(-12300.0) == '-12300'", id="doubles"),
        pytest.param("string(b'abc') == 'abc' && bytes('é') == b'\\xc3\\xa9'", id="bytes and strings"),
        pytest.param("bool('true') && bool('t') && !bool('0')", id="to bool"),
        pytest.param(
            "string(duration('1h30m')) == '5400s' && string(duration('2ns')) == '0.000000002s'", id="durations"
        ),
        pytest.param(
            "string(timestamp('2020-01-02T03:04:05.5+02:00')) == '2020-01-02T03:04:05.5+02:00'", id="timestamps"
        ),
        pytest.param(
            "type(1) == int && type('a') == string && type([]) == list && type(null) == null_type", id="types"
        ),
        pytest.param("type(duration('1s')) == google.protobuf.Duration", id="types with dots"),
        pytest.param("dyn([1, 2])[0] == 1", id="dyn"),
    ],
)
def test_conversions(expression: str) -> None:
    assert cel.compile(expression).evaluate(DEVICE) is True


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        pytest.param(
            "int(device.attributes['d'].text) == 1",
            "type conversion error from 'string' to 'int'",
            id="text as a number",
        ),
        pytest.param("int(1e30 + 0.0) == 1", "integer overflow", id="double too large for int"),
        pytest.param("uint(device.attributes['d'].number - 8) == 1u", "unsigned integer overflow", id="below zero"),
        pytest.param(
            "string(b'\\xff' + b'') == ''",
            "invalid UTF-8 in bytes, cannot convert to string",
            id="bytes that are no text",
        ),
        pytest.param(
            "duration(device.attributes['d'].number) == duration('1s')",
            "type conversion error from 'int' to 'google.protobuf.Duration'",
            id="number as a duration",
        ),
        pytest.param(
            "bytes(device.attributes['d'].number) == b''", "no such overload: bytes(int)", id="number as bytes"
        ),
    ],
)
def test_conversions_that_fail(expression: str, message: str) -> None:
    with pytest.raises(cel.CelEvaluationError) as failed:
        cel.compile(expression).evaluate(DEVICE)
    assert str(failed.value) == message


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("duration('1.5h') == duration('90m') && duration('-1s') < duration('0')", id="durations compare"),
        pytest.param("duration('1s') + duration('1ms') == duration('1001ms')", id="durations add up"),
        pytest.param(
            "timestamp('2020-01-01T00:00:00Z') + duration('24h') == timestamp('2020-01-02T00:00:00Z')", id="later"
        ),
        pytest.param(
            "timestamp('2020-01-02T00:00:00Z') - timestamp('2020-01-01T00:00:00Z') == duration('24h')", id="since"
        ),
        pytest.param(
            "timestamp('2020-01-01T02:00:00+02:00') == timestamp('2020-01-01T00:00:00Z')", id="across offsets"
        ),
        pytest.param("timestamp('2023-12-25T01:02:03.456Z').getFullYear() == 2023", id="the year"),
        pytest.param("timestamp('2023-12-25T00:00:00Z').getMonth() == 11", id="months count from 0"),
        pytest.param("timestamp('2023-12-25T00:00:00Z').getDate() == 25", id="dates count from 1"),
        pytest.param("timestamp('2023-12-25T00:00:00Z').getDayOfMonth() == 24", id="days of the month count from 0"),
        pytest.param("timestamp('2023-01-02T00:00:00Z').getDayOfYear() == 1", id="days of the year count from 0"),
        pytest.param("timestamp('2023-12-24T00:00:00Z').getDayOfWeek() == 0", id="Sunday is day 0"),
        pytest.param("timestamp('2023-12-25T01:02:03.456Z').getMilliseconds() == 456", id="the milliseconds"),
        pytest.param("timestamp('2023-12-25T01:02:03Z').getHours('-08:00') == 17", id="in a zone by offset"),
        pytest.param("timestamp('2023-07-01T12:00:00Z').getHours('Europe/Berlin') == 14", id="in a zone by name"),
        pytest.param("duration('3723s').getHours() == 1 && duration('3723s').getMinutes() == 62", id="whole units"),
        pytest.param(
            "duration('-1500ms').getSeconds() == -1 && duration('1.5s').getMilliseconds() == 1500", id="seconds"
        ),
    ],
)
def test_times(expression: str) -> None:
    assert cel.compile(expression).evaluate(DEVICE) is True


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        pytest.param(
            "timestamp(253402300799) + duration('1s') > timestamp(0)", "timestamp overflow", id="after the end"
        ),
        pytest.param(
            "duration('2562047h') + duration('1h') > duration('0')", "integer overflow", id="duration too long"
        ),
        pytest.param("timestamp(0).getHours('Nowhere') == 0", "unknown time zone Nowhere", id="zone unknown"),
        pytest.param(
            "timestamp(0).getHours('x:00') == 0", 'strconv.Atoi: parsing "x": invalid syntax', id="offset that is none"
        ),
    ],
)
def test_times_out_of_range(expression: str, message: str) -> None:
    with pytest.raises(cel.CelEvaluationError) as failed:
        cel.compile(expression).evaluate(DEVICE)
    assert str(failed.value) == message


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("[1, 2].sum() == 3 && [1.5, 1.5].sum() == 3.0 && [].sum() == 0", id="sums"),
        pytest.param("[3, 1].min() == 1 && ['a', 'b'].max() == 'b'", id="least and greatest"),
        pytest.param("[1, 2, 2].isSorted() && ![2, 1].isSorted()", id="sortedness"),
        pytest.param("[1, 2, 1].indexOf(1) == 0 && [1, 2, 1].lastIndexOf(1) == 2 && [1].indexOf(3) == -1", id="places"),
        pytest.param("[1, 2, 3].slice(1, 3) == [2, 3] && [1].slice(1, 1) == []", id="slices"),
        pytest.param("[[1], [2, 3]].flatten() == [1, 2, 3] && [[[1]]].flatten(2) == dyn([1])", id="flattening"),
        pytest.param("[3, 1, 2].sort() == [1, 2, 3] && ['b', 'a'].sort() == ['a', 'b']", id="sorting"),
        pytest.param("lists.range(3) == [0, 1, 2] && lists.range(0) == []", id="ranges"),
        pytest.param("[1, 2].reverse() == [2, 1] && [1, 2, 1].distinct() == [1, 2]", id="reversing, and each once"),
        pytest.param("sets.contains([1, 2], [2, 2]) && !sets.contains([1], [1, 2])", id="sets that contain sets"),
        pytest.param("sets.equivalent([1, 2, 2], [2, 1]) && !sets.equivalent([1], [1, 2])", id="equivalent sets"),
        pytest.param("sets.intersects([1, 2], [2, 3]) && !sets.intersects([1], [2])", id="sets that intersect"),
    ],
)
def test_lists_and_sets(expression: str) -> None:
    assert cel.compile(expression).evaluate(DEVICE) is True


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        pytest.param("[1].slice(0, 2) == []", "cannot slice(0, 2), list is length 1", id="slice beyond the end"),
        pytest.param(
            "[1].slice(-1, 0) == []", "cannot slice(-1, 0), negative indexes not supported", id="slice before the start"
        ),
        pytest.param(
            "[1].slice(1, 0) == []",
            "cannot slice(1, 0), start index must be less than or equal to end index",
            id="slice backwards",
        ),
        pytest.param(
            "[[1]].flatten(-1) == dyn([])", "level must be non-negative", id="flattening by less than nothing"
        ),
        pytest.param("['a'].slice(1, 1).min() == ''", "min called on empty list", id="least of nothing"),
        pytest.param(
            "[dyn(1), dyn('a')].sort() == []", "list elements must have the same type", id="sorting of mixed types"
        ),
        pytest.param(
            "lists.range(2000000).size() > 0", "operation cancelled: actual cost limit exceeded", id="endless range"
        ),
    ],
)
def test_lists_out_of_range(expression: str, message: str) -> None:
    with pytest.raises(cel.CelEvaluationError) as failed:
        cel.compile(expression).evaluate(DEVICE)
    assert str(failed.value) == message
