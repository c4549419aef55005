"""Strings: the functions on them, format(), and patterns of RE2's syntax."""

from __future__ import annotations

import pytest

from kubesched.k8s import cel
from kubesched.k8s.cel.errors import CelAbort
from kubesched.k8s.cel.library import strings
from kubesched.k8s.cel.steps import CostMeter

DEVICE = cel.DeviceView.of("gpu.example.com")


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("'abc'.contains('b') && 'abc'.startsWith('ab') && 'abc'.endsWith('bc')", id="parts"),
        pytest.param("'abc'.charAt(1) == 'b' && 'abc'.charAt(3) == ''", id="characters by position"),
        pytest.param("'abcb'.indexOf('b') == 1 && 'abcb'.indexOf('b', 2) == 3 && 'a'.indexOf('b') == -1", id="indexOf"),
        pytest.param("'abcb'.lastIndexOf('b') == 3 && 'abcb'.lastIndexOf('b', 2) == 1", id="lastIndexOf"),
        pytest.param("'a'.indexOf('') == 0 && 'ab'.lastIndexOf('') == 2", id="the empty string is everywhere"),
        pytest.param("'ÀB'.lowerAscii() == 'Àb' && 'àb'.upperAscii() == 'àB'", id="case of ASCII letters only"),
        pytest.param("'aaa'.replace('a', 'b') == 'bbb' && 'aaa'.replace('a', 'b', 2) == 'bba'", id="replace"),
        pytest.param("'ab'.replace('', '-') == '-a-b-' && 'ab'.replace('a', 'b', 0) == 'ab'", id="replace nothing"),
        pytest.param("'a,b,c'.split(',') == ['a', 'b', 'c'] && 'a,b,c'.split(',', 2) == ['a', 'b,c']", id="split"),
        pytest.param(
            "'ab'.split('') == ['a', 'b'] && 'a,b'.split(',', 0) == []", id="split into characters or nothing"
        ),
        pytest.param("'abcd'.substring(1) == 'bcd' && 'abcd'.substring(1, 3) == 'bc'", id="substring"),
        pytest.param("' \\u2003a\\n'.trim() == 'a'", id="trim takes Unicode's white space"),
        pytest.param("['a', 'b'].join() == 'ab' && ['a', 'b'].join('-') == 'a-b'", id="join"),
        pytest.param("strings.quote('a\"\\n\\\\') == '\"a\\\\\"\\\\n\\\\\\\\\"'", id="quote"),
    ],
)
def test_functions_on_strings(expression: str) -> None:
    assert cel.compile(expression).evaluate(DEVICE) is True


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        pytest.param("'ab'.charAt(3) == ''", "index out of range: 3", id="character beyond the end"),
        pytest.param("'ab'.substring(3) == ''", "index out of range: 3", id="substring beyond the end"),
        pytest.param(
            "'ab'.substring(2, 1) == ''", "invalid substring range. start: 2, end: 1", id="substring that ends first"
        ),
        pytest.param("'ab'.indexOf('a', -1) == 0", "index out of range: -1", id="search before the start"),
        pytest.param("[dyn('a'), dyn(1)].join() == ''", "join: invalid input: 1", id="join of a number"),
    ],
)
def test_positions_out_of_range_are_errors(expression: str, message: str) -> None:
    with pytest.raises(cel.CelEvaluationError) as failed:
        cel.compile(expression).evaluate(DEVICE)
    assert str(failed.value) == message


@pytest.mark.parametrize(
    ("call", "text"),
    [
        pytest.param("'%s and %s'.format(['a', 1])", "a and 1", id="strings"),
        pytest.param("'%%%s%%'.format(['a'])", "%a%", id="percent signs"),
        pytest.param("'%d %d'.format([-5, 5u])", "-5 5", id="integers"),
        pytest.param("'%.3f'.format([1.2345])", "1.234", id="fixed point"),
        pytest.param("'%f'.format([1234567.5])", "1,234,567.500000", id="fixed point with thousands"),
        pytest.param("'%e'.format([1052.032911275])", "1.052033\u202f×\u202f10⁰³", id="scientific"),
        pytest.param("'%b %b %b'.format([5, -5, true])", "101 -101 1", id="binary"),
        pytest.param("'%x %X %x %x'.format([30, 30, 'Hi', b'\\xff'])", "1e 1E 4869 ff", id="hexadecimal"),
        pytest.param("'%o'.format([11])", "13", id="octal"),
        pytest.param("'%s'.format([2.71])", "2.71", id="doubles"),
        pytest.param("'%s'.format([0.000000002])", "2e-09", id="small doubles"),
        pytest.param("'%s %s'.format([true, null])", "true null", id="bools and null"),
        pytest.param("'%s'.format([[1, 'a', 2.5, [null]]])", '[1, "a", 2.500000, [null]]', id="lists"),
        pytest.param("'%s'.format([{'b': 1, 'a': b'x'}])", '{"a":b"x", "b":1}', id="maps in the order of their keys"),
        pytest.param("'%s %s'.format([duration('1h'), type(1)])", "3600s int", id="durations and types"),
        pytest.param("'%s'.format([[timestamp(0)]])", '[timestamp("1970-01-01T00:00:00Z")]', id="timestamps in lists"),
        pytest.param("'%f %f'.format(['NaN', '-Infinity'])", "NaN -∞", id="what is no number"),
    ],
)
def test_format_writes_its_arguments(call: str, text: str) -> None:
    assert cel.compile(f"{call} == {text!r}").evaluate(DEVICE) is True


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        pytest.param(
            "'%d'.format([dyn('a')]) == ''",
            "error during formatting: decimal clause can only be used on integers, was given string",
            id="argument of another type",
        ),
        pytest.param("dyn('%s').format([]) == ''", "index 0 out of range", id="argument missing"),
        pytest.param("dyn('%').format([1]) == ''", "unexpected end of string", id="clause missing"),
        pytest.param(
            "dyn('%a').format([1]) == ''",
            'could not parse formatting clause: unrecognized formatting clause "a"',
            id="clause unknown",
        ),
        pytest.param(
            "dyn('%.3').format([1]) == ''",
            "could not parse formatting clause: error while parsing precision: "
            "could not find end of precision specifier",
            id="precision without a clause",
        ),
    ],
)
def test_format_refuses_what_does_not_fit(expression: str, message: str) -> None:
    with pytest.raises(cel.CelEvaluationError) as failed:
        cel.compile(expression).evaluate(DEVICE)
    assert str(failed.value) == message


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("device.driver.matches('^gpu\\\\.')", id="anchored at the start"),
        pytest.param("matches(device.driver, 'example')", id="anywhere"),
        pytest.param("!'a\\n'.matches('a$')", id="a dollar is the very end"),
        pytest.param("'a\\nb'.matches('(?m)a$') && 'a\\nb'.matches('(?s)a.b') && !'a\\nb'.matches('a.b')", id="flags"),
        pytest.param("'ABC'.matches('(?i)abc') && !'ABC'.matches('a(?i)bc') && 'aBC'.matches('a(?i)bc')", id="case"),
        pytest.param(
            "!'٣'.matches(r'\\d') && !'é'.matches(r'\\w') && !'é'.matches(r'\\b')", id="classes know ASCII only"
        ),
        pytest.param(
            "'é'.matches(r'\\pL') && 'Σ'.matches(r'\\p{Greek}') && !'a'.matches(r'\\P{L}')", id="Unicode classes"
        ),
        pytest.param("'a1'.matches('^[[:alpha:]][[:digit:]]$') && '-'.matches('[[:^alnum:]]')", id="POSIX classes"),
        pytest.param("'a.b'.matches(r'^\\Qa.b\\E$') && !'axb'.matches(r'^\\Qa.b\\E$')", id="quoted text"),
        pytest.param("'abc 123'.find('[0-9]+') == '123' && 'abc'.find('x') == ''", id="find"),
        pytest.param("'ab'.find('a|ab') == 'a' && 'aab'.find('(?U)a+') == 'a'", id="find prefers as Perl does"),
        pytest.param("'1a2'.findAll('[0-9]') == ['1', '2'] && '1a2'.findAll('[0-9]', 1) == ['1']", id="findAll"),
        pytest.param(
            "'123 ab'.findAll('[0-9]*') == ['123', '', '', '']", id="empty matches next to others do not count"
        ),
        pytest.param(
            "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'.find('(a|aa)+$').size() == 40", id="hard on backtracking"
        ),
        pytest.param("!'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'.matches('(a*)*b')", id="hopeless for backtracking"),
    ],
)
def test_patterns_match_as_in_re2(expression: str) -> None:
    assert cel.compile(expression).evaluate(DEVICE) is True


def test_a_pattern_that_is_no_literal_fails_when_it_is_used() -> None:
    program = cel.compile("'a'.find(device.driver.substring(0, 1) + '(') == ''")
    with pytest.raises(
        cel.CelEvaluationError, match=r"^Illegal regex: error parsing regexp: missing closing \): `g\(`$"
    ):
        program.evaluate(DEVICE)


def _nested(loops: int, inner: str) -> str:
    """`inner` under as many loops over ten numbers."""
    for depth in range(loops):
        inner = f"[0,1,2,3,4,5,6,7,8,9].all(x{depth}, {inner})"
    return inner


HOSTILE = '!"aaaa".matches("((a{0,30}){0,30})b")'


def test_a_pattern_costs_what_its_program_takes() -> None:
    assert cel.compile(_nested(3, HOSTILE)).evaluate(DEVICE) is True
    with pytest.raises(cel.CelEvaluationError, match=r"^operation cancelled: actual cost limit exceeded$"):
        cel.compile(_nested(5, HOSTILE)).evaluate(DEVICE)


@pytest.mark.parametrize(
    ("expression", "is_metered"),
    [
        pytest.param('"aaaa".matches("a{0,30}b")', False, id="small"),
        pytest.param('"aaaa".matches("((a{0,30}){0,30})b")', True, id="large"),
        pytest.param("device.driver.matches(device.driver)", True, id="not known yet"),
        pytest.param("device.driver.findAll('a{1000}', 2) == []", True, id="large, in findAll"),
    ],
)
def test_programs_with_large_patterns_are_metered(expression: str, is_metered: bool) -> None:
    assert cel.compile(expression).is_metered is is_metered


def test_compiling_a_large_pattern_costs_once_an_evaluation() -> None:
    several = " && ".join(f'!"a".matches("{letter}{{1000}}")' for letter in "bcdef")
    meter = CostMeter()
    for _ in range(3):
        for letter in "bcdef":
            meter.meet_pattern(f"{letter}{{1000}}")
    assert meter.spent == 5 * 1000
    assert cel.compile(several).evaluate(DEVICE) is True


def test_the_patterns_of_an_expression_are_bounded_together() -> None:
    many = " && ".join(f'!"a".matches("(abcdefgh{number}){{1000}}")' for number in range(10))
    with pytest.raises(cel.CelCompileError, match=r"program instantiation failed: .*expression too large"):
        cel.compile(many)


def test_a_search_that_takes_too_much_work_ends_the_evaluation() -> None:
    with pytest.raises(CelAbort, match=r"^operation cancelled: actual cost limit exceeded$"):
        strings.matches("ab" * 200_000, "(a|b)*a(a|b){500}c")
    with pytest.raises(CelAbort, match=r"^operation cancelled: actual cost limit exceeded$"):
        strings.find_all("ab" * 200_000, "(a|b)*a(a|b){500}c")
