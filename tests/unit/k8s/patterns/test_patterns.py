"""Patterns answer as Go's regexp does, with google-re2 and without, and never take longer than is promised."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.k8s.patterns import Pattern, PatternError, PatternWorkError, compile_pattern
from kubesched.k8s.patterns import pattern as automaton_module
from kubesched.k8s.patterns import pattern as pattern_module
from kubesched.k8s.patterns.pattern import Automaton
from kubesched.k8s.patterns.syntax import MAX_INSTRUCTIONS, parse_pattern

_GO_ANSWERS = json.loads((Path(__file__).parent / "go_answers.json").read_text())
"""Pattern, text, and what Go 1.26's FindAllString found in it, or its words where the pattern is refused."""


def _both(pattern: str) -> list[Pattern]:
    program = parse_pattern(pattern)
    return [Pattern(program, is_native=True), Pattern(program, is_native=False)]


def test_answers_and_refusals_are_those_of_go() -> None:
    for pattern, text, answer in _GO_ANSWERS:
        if isinstance(answer, str):
            with pytest.raises(PatternError) as refused:
                parse_pattern(pattern)
            assert str(refused.value) == answer, pattern
            continue
        for compiled in _both(pattern):
            assert compiled.find_all(text) == answer, (pattern, text)
            assert compiled.is_found_in(text) == bool(answer), (pattern, text)
            assert compiled.find(text) == (answer[0] if answer else None), (pattern, text)


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        pytest.param("(a", "missing closing ): `(a`", id="group left open"),
        pytest.param("a)", "unexpected ): `a)`", id="group never opened"),
        pytest.param("[a", "missing closing ]: `[a`", id="class left open"),
        pytest.param("[b-a]", "invalid character class range: `b-a`", id="range backwards"),
        pytest.param("[[:foo:]]", "invalid character class range: `[:foo:]`", id="class unknown"),
        pytest.param("*a", "missing argument to repetition operator: `*`", id="repetition of nothing"),
        pytest.param("a**", "invalid nested repetition operator: `**`", id="repetition of a repetition"),
        pytest.param("a{1001}", "invalid repeat count: `{1001}`", id="count too large"),
        pytest.param("a{" + "9" * 5000 + "}", "invalid repeat count: `{" + "9" * 5000 + "}`", id="absurd count"),
        pytest.param("a{2,1}", "invalid repeat count: `{2,1}`", id="counts backwards"),
        pytest.param("(?=a)", "invalid or unsupported Perl syntax: `(?=`", id="lookahead"),
        pytest.param("(?P=a)", "invalid or unsupported Perl syntax: `(?P`", id="backreference by name"),
        pytest.param(r"(a)\1", r"invalid escape sequence: `\1`", id="backreference by number"),
        pytest.param(r"\C", r"invalid escape sequence: `\C`", id="a byte"),
        pytest.param("a\\", "trailing backslash at end of expression: ``", id="escape of nothing"),
        pytest.param("((a{100}){10}){2}", "invalid repeat count: `{2}`", id="counts that multiply to too much"),
    ],
)
def test_what_re2_has_not_is_refused(pattern: str, message: str) -> None:
    with pytest.raises(PatternError) as refused:
        compile_pattern(pattern)
    assert str(refused.value) == f"error parsing regexp: {message}"


@pytest.mark.parametrize(
    "pattern",
    [
        pytest.param("(abcdefghijklmnopqrstuvwxyz|b){1000}", id="counts"),
        pytest.param("ab" * MAX_INSTRUCTIONS, id="letters"),
        pytest.param("()" * 30_000, id="nothing, often"),
        pytest.param("|".join("ab" for _ in range(MAX_INSTRUCTIONS)), id="alternatives"),
    ],
)
def test_a_pattern_that_is_too_large_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError, match=r"^error parsing regexp: expression too large: "):
        compile_pattern(pattern)


def test_nesting_as_deep_as_go_allows_needs_no_stack() -> None:
    for compiled in _both("(" * 999 + "a" + ")*" * 999):
        assert compiled.find_all("aab") == ["aa", ""]
    with pytest.raises(PatternError, match="expression nests too deeply"):
        parse_pattern("(" * 1001 + "a" + ")" * 1001)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        pytest.param("^(a+)+$", "a" * 5000 + "!", id="nested loops"),
        pytest.param("(a|aa)+$", "a" * 5000 + "!", id="overlapping alternatives"),
        pytest.param("((a{0,30}){0,30})b", "a" * 2000, id="nested counts"),
        pytest.param("(x+x+)+y", "x" * 5000, id="loops side by side"),
        pytest.param("(.*)*" * 20 + "b", "a" * 2000, id="many loops"),
    ],
)
def test_what_a_backtracking_engine_never_ends_is_answered(pattern: str, text: str) -> None:
    for compiled in _both(pattern):
        assert not compiled.is_found_in(text)


@pytest.mark.parametrize("is_native", [True, False])
def test_more_work_than_is_allowed_is_refused_before_it_is_done(is_native: bool) -> None:
    compiled = Pattern(parse_pattern("(a|b)*a(a|b){500}c"), is_native=is_native)
    with pytest.raises(PatternWorkError):
        compiled.is_found_in("ab" * 100_000)
    with pytest.raises(PatternWorkError):
        compiled.find_all("ab" * 100_000)


@pytest.mark.parametrize("is_native", [True, False])
def test_searching_again_behind_each_match_is_bounded_too(is_native: bool) -> None:
    """Each search looks through the rest of the text for a `b` that never comes."""
    compiled = Pattern(parse_pattern("a.*b|a"), is_native=is_native)
    assert compiled.find_all("a" * 50) == ["a"] * 50
    with pytest.raises(PatternWorkError):
        compiled.find_all("a" * 100_000)


def test_what_the_automaton_remembers_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(automaton_module, "_MAX_REMEMBERED", 100)
    compiled = Pattern(parse_pattern("(a|b)*a(a|b){12}c|[^ab]x"), is_native=False)
    text = "".join("ab"[n * n % 7 % 2] for n in range(3000)) + "".join(map(chr, range(200, 1200)))
    assert not compiled.is_found_in(text)
    assert compiled._own._remembered <= 200
    assert compiled.is_found_in(text + "a" * 13 + "c")


def test_the_cache_is_bounded_in_number_and_size() -> None:
    cache = pattern_module._PatternCache()
    for number in range(400):
        cache.get(f"a{number}")
    assert len(cache._patterns) == 256
    for number in range(300):
        cache.get(f"(a{number % 10}){{1,1000}}" + "b" * (number // 10))
    assert cache._n_instructions <= 200_000
    assert cache._n_instructions == sum(one.n_instructions for one in cache._patterns.values())


def test_a_lone_surrogate_is_a_character_like_others() -> None:
    for compiled in _both("^.$"):
        assert compiled.is_found_in("\ud800")


PIECES = st.sampled_from(
    ["a", "b", "é", ".", "[ab]", "[^a]", "^", "$", r"\b", r"\B", r"\w", r"\pL", "(?i)K", "(?s)", "(?m)", "(?U)", ""]
)
COUNTS = st.sampled_from(["*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{0}", "{0,3}?", "{2,}"])


def _grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return (
        st.builds("{}{}".format, inner, inner)
        | st.builds("(?:{}|{})".format, inner, inner)
        | st.builds("({}){}".format, inner, COUNTS)
    )


PATTERNS = st.recursive(PIECES, _grown, max_leaves=8)
TEXTS = st.text("abéK\u212ak_ \n", max_size=10)


@given(PATTERNS, TEXTS)
@settings(deadline=None)
def test_google_re2_and_our_automaton_give_the_same_answers(pattern: str, text: str) -> None:
    native, own = _both(pattern)
    assert native.is_found_in(text) == own.is_found_in(text)
    assert native.find_all(text) == own.find_all(text)
    assert native.find_all(text, 2) == native.find_all(text)[:2]


def _without_empty_rounds(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Sequences, alternatives, and repetitions of what is never empty: of the empty, Perl and RE2 differ."""
    repeated = st.builds("(?:[ab]{}){}".format, inner, st.sampled_from(["*", "+", "?", "*?", "+?", "{2}", "{1,2}"]))
    return st.builds("{}{}".format, inner, inner) | st.builds("(?:{}|{})".format, inner, inner) | repeated


_PYTHON_TOO = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", "^", "$", r"\b", "(?i:A)"])


def _span_in_python(pattern: str, text: str) -> tuple[int, int] | None:
    match = re.search(pattern.replace("$", r"\Z"), text)
    return match.span() if match is not None else None


@given(st.recursive(_PYTHON_TOO, _without_empty_rounds, max_leaves=5), st.text("ab", max_size=6))
@settings(deadline=None)
def test_our_automaton_finds_what_python_finds(pattern: str, text: str) -> None:
    assert Automaton(parse_pattern(pattern).code).find_span(text)[0] == _span_in_python(pattern, text)


def test_the_comparison_finds_an_automaton_that_forgets_greed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: alternatives followed in the wrong order."""
    close = Automaton._close

    def reversed_close(self: Automaton, threads: list[tuple[int, int]], before: str, char: str) -> object:
        return close(self, threads[::-1], before, char)

    monkeypatch.setattr(Automaton, "_close", reversed_close)
    with pytest.raises(AssertionError):
        test_our_automaton_finds_what_python_finds()


@given(st.text("ab()[]{}?*+|\\^$.-:,1<>PimsUQEpLxdé", max_size=25), TEXTS)
@settings(deadline=None)
def test_any_text_is_a_pattern_or_is_refused(pattern: str, text: str) -> None:
    try:
        native, own = _both(pattern)
    except PatternError as error:
        assert str(error).startswith("error parsing regexp: ")
        return
    assert native.find_all(text) == own.find_all(text)
