"""Quantities: what a text stands for, how it is printed, and what is refused."""

from __future__ import annotations

import pytest

from kubesched.k8s.model.quantity import MAX_INT64, Notation, Quantity, QuantityError, from_int, from_milli, parse

WRONG_FORMAT = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
WRONG_NUMBER = "unable to parse numeric part of quantity"
WRONG_SUFFIX = "unable to parse quantity's suffix"


@pytest.mark.parametrize(
    ("text", "value", "milli", "printed"),
    [
        pytest.param("0", 0, 0, "0", id="zero"),
        pytest.param("100m", 1, 100, "100m", id="a tenth of a cpu"),
        pytest.param("1.5", 2, 1500, "1500m", id="a fraction becomes thousandths"),
        pytest.param(".5", 1, 500, "500m", id="no digit before the point"),
        pytest.param("5.", 5, 5000, "5.", id="no digit after the point"),
        pytest.param("2000m", 2, 2000, "2", id="thousandths become units"),
        pytest.param("1024Ki", 2**20, 2**20 * 1000, "1Mi", id="the largest binary suffix that loses nothing"),
        pytest.param("1.5Gi", 3 * 2**29, 3 * 2**29 * 1000, "1536Mi", id="a fraction of a binary unit"),
        pytest.param("512Ki", 2**19, 2**19 * 1000, "512Ki", id="binary below the next unit"),
        pytest.param("1000Ki", 1024000, 1024000000, "1000Ki", id="not a multiple of 1024"),
        pytest.param("0.5Ki", 512, 512000, "512", id="below 1024 a binary quantity prints as decimal"),
        pytest.param("0.0001Ki", 1, 103, "102400u", id="below one a binary quantity turns decimal"),
        pytest.param("1e3", 1000, 1000000, "1e3", id="exponent"),
        pytest.param("10e2", 1000, 1000000, "1e3", id="exponents go in threes"),
        pytest.param("1E+3", 1000, 1000000, "1E+3", id="an exponent in threes stays as written"),
        pytest.param("1500e-3", 2, 1500, "1500e-3", id="negative exponent"),
        pytest.param("1E", 10**18, MAX_INT64, "1E", id="E alone is exa"),
        pytest.param("1G", 10**9, 10**12, "1G", id="giga"),
        pytest.param("1000000k", 10**9, 10**12, "1G", id="thousands move into the suffix"),
        pytest.param("-2Ki", -2048, -2048000, "-2Ki", id="negative"),
        pytest.param("-1.5", -2, -1500, "-1500m", id="rounded away from zero"),
        pytest.param("+5", 5, 5000, "+5", id="a plus sign is kept"),
        pytest.param("0.1n", 1, 1, "1n", id="less than a nano-unit is one nano-unit"),
        pytest.param("1.500", 2, 1500, "1.500", id="a fraction in threes stays as written"),
        pytest.param("16Ei", MAX_INT64, MAX_INT64, "9223372036854775807", id="binary beyond int64 is capped"),
        pytest.param("100E", MAX_INT64, MAX_INT64, "100E", id="decimal beyond int64 leaves capped"),
        pytest.param("m", 0, 0, "0", id="a suffix without a number is zero"),
        pytest.param(" 1 ", 1, 1000, "1", id="blanks around it"),
        pytest.param(3, 3, 3000, "3", id="a number in YAML"),
        pytest.param(0.25, 1, 250, "250m", id="a fraction in YAML"),
        pytest.param(1e-7, 1, 1, "100e-9", id="a tiny fraction in YAML"),
    ],
)
def test_a_text_stands_for_a_value_and_is_printed_canonically(
    text: str | int | float, value: int, milli: int, printed: str
) -> None:
    found = parse(text)
    assert (found.value, found.milli_value, str(found)) == (value, milli, printed)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("", WRONG_FORMAT, id="nothing"),
        pytest.param("1.1.M", WRONG_FORMAT, id="two points"),
        pytest.param("1+1.0M", WRONG_FORMAT, id="a sum"),
        pytest.param("aoeu", WRONG_FORMAT, id="no number"),
        pytest.param("1 Gi", WRONG_FORMAT, id="a blank inside"),
        pytest.param("٣", WRONG_FORMAT, id="digits of another script"),
        pytest.param("0.1mi", WRONG_SUFFIX, id="unknown suffix"),
        pytest.param("1i", WRONG_SUFFIX, id="half a suffix"),
        pytest.param("-3.01e-", WRONG_SUFFIX, id="an exponent without digits"),
        pytest.param("+-1", WRONG_SUFFIX, id="two signs"),
        pytest.param("1e99999999999999999999", WRONG_SUFFIX, id="an exponent beyond int64"),
        pytest.param("Ei", WRONG_NUMBER, id="a large suffix without a number"),
        pytest.param("9" * 5000, WRONG_NUMBER, id="absurdly long"),
    ],
)
def test_what_is_no_quantity_is_refused_with_a_reason(text: str, problem: str) -> None:
    with pytest.raises(QuantityError) as caught:
        parse(text)
    assert str(caught.value) == problem


def test_equality_and_order_look_at_the_value_alone() -> None:
    assert parse("1Ki") == parse("1024") == parse("1.024k")
    assert hash(parse("1Ki")) == hash(parse("1024"))
    assert parse("999m") < parse("1") <= parse("1.0") < parse("1Ki")
    assert parse("2") > parse("1999m") >= parse("1999m")
    assert parse("1") != "1"


def test_a_sum_takes_the_notation_of_the_first_that_is_not_zero() -> None:
    assert str(parse("1Gi") + parse("1G")) == "2073741824"
    assert str(parse("0") + parse("2Mi")) == "2Mi"
    assert str(parse("1Mi") - parse("1Mi") + parse("3k")) == "3k"


def test_a_quantity_is_true_unless_it_is_zero() -> None:
    assert not parse("0Gi")
    assert parse("1n")


def test_quantities_from_integers() -> None:
    assert str(from_milli(1500)) == "1500m"
    assert str(from_int(2**30, Notation.BINARY_SI)) == "1Gi"
    assert Quantity(1).is_whole is False
