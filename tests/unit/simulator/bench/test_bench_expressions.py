"""What may stand between the braces of a template."""

from __future__ import annotations

import pytest

from kubesched.simulator.bench.templates import ExpressionError, parse_expression, print_number


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param(".Index", "7", id="the index"),
        pytest.param(" .Count ", "30", id="the count, with spaces around"),
        pytest.param("12", "12", id="a number"),
        pytest.param("1.5", "1.5", id="a broken number"),
        pytest.param("Mod .Index 5", "2", id="a rest"),
        pytest.param("DivideInt .Index 2", "3", id="a division cut to a whole number"),
        pytest.param("DivideFloat .Index 2", "3.5", id="a division that is not"),
        pytest.param("DivideFloat 6 2", "3", id="whole results without a point, as Go prints them"),
        pytest.param("AddInt 1 2 3", "6", id="a sum of many"),
        pytest.param("SubtractInt .Index 10", "-3", id="a difference below zero"),
        pytest.param("MultiplyInt 2 (AddInt .Index 1)", "16", id="one inside another"),
        pytest.param("AddInt (Mod .Index 4) (MultiplyInt 10 (DivideInt .Index 4))", "13", id="several inside one"),
    ],
)
def test_an_expression_has_the_value_that_scheduler_perf_gives_it(text: str, value: str) -> None:
    assert print_number(parse_expression(text)({"Index": 7, "Count": 30})) == value


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("", "{{}}: it ends too early", id="nothing"),
        pytest.param("if .Index", "unknown function 'if'", id="a word of Go's that is not arithmetic"),
        pytest.param("Mod .Index", "Mod does not take 1 arguments", id="too few arguments"),
        pytest.param("Mod 1 2 3", "Mod does not take 3 arguments", id="too many arguments"),
        pytest.param("AddInt 1 (Mod 5 2", "it ends too early", id="an open parenthesis"),
        pytest.param("AddInt 1 Mod 5 2", "unexpected 'Mod'", id="a function where a value belongs"),
        pytest.param("1 2", "unexpected '2'", id="two values"),
        pytest.param(".Index | printf", "not understood at '| printf'", id="a pipe"),
    ],
)
def test_what_is_not_understood_is_refused_with_its_text(text: str, problem: str) -> None:
    with pytest.raises(ExpressionError) as refused:
        parse_expression(text)
    assert problem in str(refused.value)
    assert f"{{{{{text}}}}}" in str(refused.value)


@pytest.mark.parametrize("text", ["Mod 1 0", "DivideInt 1 0", "DivideFloat 1 0"])
def test_a_division_by_zero_has_no_value(text: str) -> None:
    with pytest.raises(ExpressionError, match="division by zero"):
        parse_expression(text)({})


def test_a_field_that_is_not_there_is_named() -> None:
    with pytest.raises(ExpressionError, match=r"unknown field \.Nodes"):
        parse_expression("Mod .Nodes 2")({"Index": 1})
