"""Reading expressions: literals, precedence, and what is said of text that is none."""

from __future__ import annotations

import pytest

from kubesched.k8s import cel

DEVICE = cel.DeviceView.of("gpu.example.com")
OPERAND = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
)


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("1 + 2 * 3 == 7", id="products bind tighter than sums"),
        pytest.param("10 - 4 - 3 == 3", id="subtraction groups to the left"),
        pytest.param("true || false && false", id="and binds tighter than or"),
        pytest.param("false ? false : true ? true : false", id="conditionals nest to the right"),
        pytest.param("1 < 2 == true", id="relations group to the left"),
        pytest.param("!!true && !false", id="negations in pairs cancel"),
        pytest.param("--3 == 3 && -(-3) == 3 && 5--3 == 8", id="minus signs in pairs cancel"),
        pytest.param("-9223372036854775808 < 0", id="the smallest integer is a literal"),
        pytest.param("0xFF == 255 && 0xffu == 255u", id="hexadecimal integers"),
        pytest.param("1e3 == 1000.0 && .5 == 0.5 && 1.5e-1 == 0.15", id="doubles with exponents"),
        pytest.param("'a' + \"b\" == '''ab'''", id="all quotes make the same string"),
        pytest.param('"""a\n"b" """ == "a\\n\\"b\\" "', id="three quotes span lines and hold quotes"),
        pytest.param(r"r'\d' == '\\d' && R'''\x''' == '\\x'", id="raw strings keep backslashes"),
        pytest.param(r"'\x41\u0042\U00000043\104\t' == 'ABCD\t'", id="escapes by number"),
        pytest.param(
            r"b'\xff\377a' == b'\377\xffa' && size(b'é') == 2", id="bytes are escaped bytewise and else UTF-8"
        ),
        pytest.param("[1, 2,] == [1, 2] && {'a': 1,} == {'a': 1}", id="a comma may come last"),
        pytest.param("true // and so on", id="a comment runs to the end of the line"),
        pytest.param("  \n\ttrue\r\n", id="blanks count for nothing"),
        pytest.param(".device.driver == 'gpu.example.com'", id="a leading dot means the outermost name"),
    ],
)
def test_expressions_mean_what_the_grammar_says(expression: str) -> None:
    assert cel.compile(expression).evaluate(DEVICE) is True


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        pytest.param("1 +", f"1:4: Syntax error: mismatched input '<EOF>' expecting {OPERAND}", id="operand missing"),
        pytest.param("* 2", f"1:1: Syntax error: extraneous input '*' expecting {OPERAND}", id="operator too many"),
        pytest.param("1 2", "1:3: Syntax error: extraneous input '2' expecting <EOF>", id="two expressions"),
        pytest.param("f(){}", "1:4: Syntax error: mismatched input '{' expecting <EOF>", id="braces after a call"),
        pytest.param("(1", "1:3: Syntax error: mismatched input '<EOF>' expecting ')'", id="parenthesis left open"),
        pytest.param("[1 2]", "1:4: Syntax error: extraneous input '2' expecting {']', ','}", id="comma missing"),
        pytest.param("{1}", "1:3: Syntax error: mismatched input '}' expecting ':'", id="value of an entry missing"),
        pytest.param('{}."a"', "1:4: Syntax error: no viable alternative at input '.\"a\"'", id="string as a field"),
        pytest.param(
            "{}.true", "1:4: Syntax error: mismatched input 'true' expecting IDENTIFIER", id="keyword as field"
        ),
        pytest.param("1 + $", "1:5: Syntax error: token recognition error at: '$'", id="character that is no token"),
        pytest.param("a | b", "1:3: Syntax error: token recognition error at: '| '", id="half an operator"),
        pytest.param(r'"\xFh"', "1:1: Syntax error: token recognition error at: '\"\\xFh'", id="broken escape"),
        pytest.param("while", "1:1: reserved identifier: while", id="reserved word"),
        pytest.param("9223372036854775808", "1:1: invalid int literal", id="integer too large"),
        pytest.param("18446744073709551616u", "1:1: invalid uint literal", id="unsigned integer too large"),
        pytest.param("1e999", "1:1: invalid double literal", id="double too large"),
        pytest.param(r"'\ud800'", "1:1: invalid unicode code point", id="half a surrogate pair"),
        pytest.param(r"b'\u0041'", "1:1: unable to unescape string", id="code point in bytes"),
        pytest.param("{}.`a-b`", "1:4: unsupported syntax: '`'", id="quoted field names are off in Kubernetes"),
        pytest.param("(" * 300, "-1:0: expression recursion limit exceeded: 250", id="nested too deeply"),
        pytest.param("+".join("1" * 400), "-1:0: max recursion depth exceeded", id="chained too far"),
    ],
)
def test_text_that_is_no_expression_is_refused(expression: str, message: str) -> None:
    with pytest.raises(cel.CelCompileError) as refused:
        cel.compile(expression)
    assert str(refused.value).startswith("compilation failed: ")
    assert f"ERROR: <input>:{message}" in str(refused.value)


def test_a_message_shows_the_line_and_marks_the_place() -> None:
    with pytest.raises(cel.CelCompileError) as refused:
        cel.compile("true &&\n\tdevice.driver == 'é' + 1")
    assert str(refused.value) == (
        "compilation failed: ERROR: <input>:2:23: found no matching overload for '_+_' applied to '(string, int)'\n"
        " |  device.driver == 'é' + 1\n"
        " | ...................．..^"
    )


def test_all_faults_are_told_in_the_order_of_the_text() -> None:
    with pytest.raises(cel.CelCompileError) as refused:
        cel.compile("[1].map(var, var) == [as]")
    assert [line for line in str(refused.value).splitlines() if "ERROR" in line] == [
        "compilation failed: ERROR: <input>:1:9: reserved identifier: var",
        "ERROR: <input>:1:9: argument is not an identifier",
        "ERROR: <input>:1:14: reserved identifier: var",
        "ERROR: <input>:1:23: reserved identifier: as",
    ]
