"""Generated expressions: the same answers as Python's, metered or not, and no crash on any text."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.k8s import cel
from kubesched.k8s.cel.compiler import Compiler
from kubesched.k8s.cel.errors import SourceText
from kubesched.k8s.cel.program import check
from kubesched.k8s.cel.steps import FIRST_LOCAL_SLOT, UNSET, CostMeter

DEVICE = cel.DeviceView.of("d", {"a": 1})
LIMIT = 2**63


@dataclass(frozen=True)
class Sample:
    """An expression and what it must give: a value, or None for an error."""

    text: str
    value: int | bool | None


def _truncated(left: int, right: int) -> int:
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _apply(sign: str, left: int, right: int) -> int | None:
    if sign in "/%" and right == 0:
        return None
    results: dict[str, Callable[[], int]] = {
        "+": lambda: left + right,
        "-": lambda: left - right,
        "*": lambda: left * right,
        "/": lambda: _truncated(left, right),
        "%": lambda: left - right * _truncated(left, right),
    }
    result = results[sign]()
    return result if -LIMIT <= result < LIMIT else None


@st.composite
def integers(draw: st.DrawFn, depth: int = 3) -> Sample:
    if depth == 0 or draw(st.booleans()):
        number = draw(st.integers(-5, 5) | st.integers(-LIMIT, LIMIT - 1))
        return Sample(f"({number})" if draw(st.booleans()) else f"dyn({number})", number)
    sign = draw(st.sampled_from("+-*/%"))
    left, right = draw(integers(depth - 1)), draw(integers(depth - 1))
    text = f"({left.text} {sign} {right.text})"
    if left.value is None or right.value is None:
        return Sample(text, None)
    return Sample(text, _apply(sign, left.value, right.value))


@st.composite
def conditions(draw: st.DrawFn, depth: int = 3) -> Sample:
    if depth == 0 and draw(st.booleans()):
        return draw(st.sampled_from([Sample("true", True), Sample("false", False), Sample("[1][2] == 3", None)]))
    if depth == 0:
        sign = draw(st.sampled_from(sorted(_RELATIONS)))
        left, right = draw(integers(1)), draw(integers(1))
        text = f"{left.text} {sign} {right.text}"
        if left.value is None or right.value is None:
            return Sample(text, None)
        return Sample(text, _RELATIONS[sign](left.value, right.value))
    left, right = draw(conditions(depth - 1)), draw(conditions(depth - 1))
    sign = draw(st.sampled_from(["&&", "||", "!"]))
    if sign == "!":
        return Sample(f"!({left.text})", None if left.value is None else not left.value)
    return Sample(f"({left.text}) {sign} ({right.text})", _junction({left.value, right.value}, sign == "||"))


def _junction(values: set[int | bool | None], deciding: bool) -> bool | None:
    if deciding in values:
        return deciding
    return None if None in values else not deciding


_RELATIONS: dict[str, Callable[[int, int], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


def _answer(text: str) -> bool | None:
    try:
        return cel.compile(text).evaluate(DEVICE)
    except cel.CelEvaluationError:
        return None


def _answer_metered(text: str) -> bool | None:
    """What a program gives that counts its cost and evaluates nothing beforehand."""
    compiler = Compiler(is_metered=True)
    run = compiler.compile(check(SourceText(text), list_type_attributes=False)).run
    try:
        return bool(run([DEVICE, CostMeter(), *[UNSET] * (compiler.n_slots - FIRST_LOCAL_SLOT)]))
    except cel.CelEvaluationError:
        return None


@given(integers())
@settings(deadline=None)
def test_arithmetic_is_pythons_with_overflow(sample: Sample) -> None:
    expected = None if sample.value is None else True
    assert _answer(f"{sample.text} == ({sample.value or 0})") is expected


@given(conditions())
@settings(deadline=None, max_examples=40)
def test_logic_absorbs_errors_whatever_the_order(sample: Sample) -> None:
    assert _answer(sample.text) is sample.value


@given(conditions(2), st.lists(st.integers(-3, 3), max_size=4))
@settings(deadline=None, max_examples=25)
def test_counting_the_cost_changes_no_answer(sample: Sample, elements: list[int]) -> None:
    text = f"{elements}.exists(x, x > 0 && ({sample.text})) || {elements}.map(x, x * 2).all(x, i, x == i * 0)"
    assert _answer_metered(text) is _answer(text)


@given(st.text(alphabet=st.sampled_from("ab1.\"'()[]{}?:!&|=<>+-*/%, \n\\xu`é"), max_size=20))
@settings(deadline=None)
def test_any_text_compiles_or_is_refused(text: str) -> None:
    try:
        program = cel.compile(text)
    except cel.CelCompileError:
        return
    _answer(program.expression)
