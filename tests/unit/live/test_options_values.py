"""Values of flags are read and printed as Go does."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.live.options import flag as kinds
from kubesched.live.options.flag import FlagKind
from kubesched.scheduler.config import Duration


@pytest.mark.parametrize(
    ("kind", "text", "value", "shown"),
    [
        pytest.param(kinds.BOOL, "T", True, "true", id="a bool in short"),
        pytest.param(kinds.BOOL, "0", False, "false", id="a bool as a number"),
        pytest.param(kinds.INT, "-0x10", -16, "-16", id="a hexadecimal number"),
        pytest.param(kinds.INT, "017", 15, "15", id="an octal number"),
        pytest.param(kinds.INT, "0", 0, "0", id="zero"),
        pytest.param(kinds.INT32, "2147483647", 2**31 - 1, "2147483647", id="the largest int32"),
        pytest.param(kinds.FLOAT32, "50.", 50.0, "50", id="a float that is whole"),
        pytest.param(kinds.FLOAT32, "0.5", 0.5, "0.5", id="a float"),
        pytest.param(kinds.DURATION, "1m30s", Duration.of_seconds(90), "1m30s", id="a duration"),
        pytest.param(kinds.IP, " ::1 ", "::1", "::1", id="an address"),
        pytest.param(kinds.IP, "", "0.0.0.0", "0.0.0.0", id="no address means all"),
        pytest.param(kinds.STRINGS, 'a,"b,c"', ("a", "b,c"), "[a,b,c]", id="a list with quotes"),
        pytest.param(kinds.STRINGS, "", (), "[]", id="an empty list"),
        pytest.param(kinds.INT32S, "1,23", (1, 23), "[1,23]", id="a list of numbers"),
        pytest.param(kinds.STRING_MAP, "m,l=a,b", (("m,l", "a,b"),), "[m,l=a,b]", id="a single pair keeps its commas"),
        pytest.param(
            kinds.STRING_MAP, '"m,l=a,b",x=', (("m,l", "a,b"), ("x", "")), "[m,l=a,b,x=]", id="pairs in quotes"
        ),
        pytest.param(kinds.GATES, "kube:A=true", (("kube", "A=true"),), "kube:A=true", id="a gate of a component"),
        pytest.param(kinds.GATES, " A=true ,", (("", "A=true"),), ":A=true", id="a gate"),
        pytest.param(kinds.LEVEL, "10", 10, "10", id="a verbosity"),
        pytest.param(kinds.VMODULE, "cache*=4,,a=0", (("cache*", 4), ("a", 0)), "cache*=4,a=0", id="verbosities"),
        pytest.param(kinds.VERSION, "raw", "raw", "raw", id="the raw version"),
        pytest.param(kinds.VERSION, "1", "true", "true", id="the version"),
    ],
)
def test_a_value_is_read_and_printed(kind: FlagKind, text: str, value: Any, shown: str) -> None:
    assert kind.parse(text) == value
    assert kind.show(value) == shown


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        pytest.param(kinds.BOOL, "yes", 'strconv.ParseBool: parsing "yes": invalid syntax', id="no bool"),
        pytest.param(kinds.INT, "1.5", 'strconv.ParseInt: parsing "1.5": invalid syntax', id="no integer"),
        pytest.param(kinds.INT, " 1", 'strconv.ParseInt: parsing " 1": invalid syntax', id="spaces"),
        pytest.param(
            kinds.INT32, "2147483648", 'strconv.ParseInt: parsing "2147483648": value out of range', id="too large"
        ),
        pytest.param(kinds.FLOAT32, "a", 'strconv.ParseFloat: parsing "a": invalid syntax', id="no float"),
        pytest.param(kinds.FLOAT32, "1e39", 'strconv.ParseFloat: parsing "1e39": value out of range', id="no float32"),
        pytest.param(kinds.DURATION, "1x", 'time: unknown unit "x" in duration "1x"', id="no duration"),
        pytest.param(kinds.IP, "localhost", 'failed to parse IP: "localhost"', id="no address"),
        pytest.param(kinds.LEVEL, "-1", 'strconv.ParseUint: parsing "-1": invalid syntax', id="a verbosity below 0"),
        pytest.param(kinds.VMODULE, "a", '"a" does not have the pattern=N format', id="no verbosity for a pattern"),
        pytest.param(
            kinds.VMODULE,
            "a=x",
            'parsing verbosity in "a=x": strconv.ParseUint: parsing "x": invalid syntax',
            id="a pattern with a wrong verbosity",
        ),
        pytest.param(kinds.STRING_MAP, "a", "a must be formatted as key=value", id="no pair"),
        pytest.param(kinds.STRING_MAP, "a=b,c,d=e", "c must be formatted as key=value", id="no pair among pairs"),
    ],
)
def test_what_is_no_value_is_told_in_the_words_of_go(kind: FlagKind, text: str, message: str) -> None:
    with pytest.raises(ValueError) as error:
        kind.parse(text)
    assert str(error.value) == message


@given(st.sampled_from([kinds.INT, kinds.FLOAT32, kinds.DURATION, kinds.LEVEL, kinds.BOOL, kinds.IP]), st.text())
def test_any_text_is_a_value_or_a_value_error(kind: FlagKind, text: str) -> None:
    try:
        value = kind.parse(text)
    except ValueError:
        return
    assert kind.parse(kind.show(value)) == value
