"""Operators: arithmetic with overflow, equality and order across types, and logic that absorbs errors."""

from __future__ import annotations

import pytest

from kubesched.k8s import cel

DEVICE = cel.DeviceView.of("d", {"text": "a", "number": 7, "yes": True, "version": cel.VersionText("1.2.3")})


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("7 / 2 == 3 && -7 / 2 == -3 && 7 / -2 == -3", id="division rounds towards zero"),
        pytest.param("7 % 3 == 1 && -7 % 3 == -1 && 7 % -3 == 1", id="remainders have the sign of the dividend"),
        pytest.param("7u / 2u == 3u && 7u % 4u == 3u && 2u * 3u == 6u && 3u - 2u == 1u", id="unsigned arithmetic"),
        pytest.param("1.0 / 0.0 > 1e308 && -1.0 / 0.0 < -1e308", id="doubles divide by zero"),
        pytest.param("0.0 / 0.0 != 0.0 / 0.0", id="what is no number equals nothing"),
        pytest.param("'a' + 'b' == 'ab' && b'a' + b'b' == b'ab' && [1] + [2] == [1, 2]", id="sums of sequences"),
        pytest.param("-(5) == -5 && -(2.5) == -2.5", id="negation"),
        pytest.param("'a' < 'b' && b'a' < b'b' && false < true && 'é' > 'z'", id="order within types"),
        pytest.param("dyn(9007199254740993) == 9007199254740992.0", id="an int is rounded to compare with a double"),
        pytest.param("18446744073709551615u > 9223372036854775807 && -1 < 0u", id="order of int and uint"),
        pytest.param("dyn(1) != 'a' && dyn(true) != 1 && dyn('1') != 1 && dyn(null) != 0", id="types differ"),
        pytest.param("null == null && [1, 2] != [2, 1] && {'a': 1, 'b': 2} == {'b': 2, 'a': 1}", id="aggregates"),
        pytest.param("dyn([1]) == [1.0] && dyn({1: 2}) == {1u: 2.0}", id="numbers within aggregates"),
        pytest.param("1 in [1, 2] && !(3 in [1, 2]) && 'a' in {'a': 1} && !('b' in {'a': 1})", id="membership"),
        pytest.param("dyn(1.0) in [1, 2] && dyn(1u) in [1, 2] && !(dyn('1') in [1, 2])", id="membership across types"),
        pytest.param("[1, 2, 3][2] == 3 && {'a': 1}['a'] == 1 && {'a': 1}.a == 1", id="elements by index and key"),
        pytest.param("[1, 2][dyn(1.0)] == 2 && {1: 'a'}[dyn(1u)] == 'a'", id="keys across numbers"),
        pytest.param("{true: 'a'}[true] == 'a' && !(dyn(1) in {true: 'a'})", id="true is not 1 as a key"),
        pytest.param("has({'a': 1}.a) && !has({'a': 1}.b)", id="presence in a map"),
        pytest.param("size('é') == 1 && size(b'é') == 2 && [1].size() == 1 && size({}) == 0", id="sizes"),
    ],
)
def test_operators_give_what_the_specification_says(expression: str) -> None:
    assert cel.compile(expression).evaluate(DEVICE) is True


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        pytest.param("9223372036854775807 + 1 > 0", "integer overflow", id="sum too large"),
        pytest.param("-9223372036854775808 / -1 > 0", "integer overflow", id="quotient too large"),
        pytest.param("-(-9223372036854775808) > 0", "integer overflow", id="negation too large"),
        pytest.param("0u - 1u > 0u", "unsigned integer overflow", id="difference below zero"),
        pytest.param("1 / 0 > 0", "division by zero", id="division by zero"),
        pytest.param("1 % 0 > 0", "modulus by zero", id="remainder by zero"),
        pytest.param("0.0 / 0.0 < 1.0", "NaN values cannot be ordered", id="order of what is no number"),
        pytest.param("[1][1] == 1", "index out of bounds: 1", id="index too large"),
        pytest.param("[1][-1] == 1", "index out of bounds: -1", id="index below zero"),
        pytest.param("[1][dyn('a')] == 1", "unsupported index type 'string' in list", id="index that is no number"),
        pytest.param("[1][dyn(0.5)] == 1", "unsupported index value 0.5 in list", id="index that is not whole"),
        pytest.param("{1: 2}[3] == 1", "no such key: 3", id="key that is not there"),
        pytest.param("device.attributes['d'].text.foo == 1", "no such key: foo", id="field of a string"),
        pytest.param("device.attributes['d'].text + 1 == 2", "no such overload", id="sum of string and number"),
        pytest.param("device.attributes['d'].yes + 1 == 2", "no such overload: _+_", id="sum of a bool"),
        pytest.param("device.attributes['d'].text * 2 == 2", "no such overload", id="product of a string"),
        pytest.param("device.attributes['d'].text < 1", "no such overload", id="order of string and number"),
        pytest.param("device.attributes['d'].version < 1", "no such overload: _<_", id="order of a version"),
        pytest.param("-device.attributes['d'].text == 1", "no such overload", id="negation of a string"),
        pytest.param("!device.attributes['d'].number", "no such overload", id="logical negation of a number"),
        pytest.param("device.attributes['d'].number ? true : false", "no such overload", id="number as condition"),
        pytest.param("size(device.attributes['d'].number) == 1", "no such overload: size", id="size of a number"),
        pytest.param("1 in device.attributes['d'].number", "no such overload", id="membership in a number"),
        pytest.param(
            "device.attributes['d'].number.charAt(0) == ''",
            "no such overload: charAt(int, int)",
            id="method of another type",
        ),
        pytest.param("device.attributes['d'].number.startsWith('a')", "no such overload", id="prefix of a number"),
        pytest.param("device.attributes['d'].version == 'a'", "no such overload", id="version equal to a string"),
        pytest.param(
            "device.attributes['d'].version in ['a'] || true",
            "internal error: runtime error: hash of unhashable type cel.Semver",
            id="version in a constant list fails as in Kubernetes, and nothing absorbs it",
        ),
    ],
)
def test_what_has_no_value_is_an_error(expression: str, message: str) -> None:
    with pytest.raises(cel.CelEvaluationError) as failed:
        cel.compile(expression).evaluate(DEVICE)
    assert str(failed.value) == message


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param("1 / 0 > 0 || true", True, id="true on the right of an error"),
        pytest.param("true || 1 / 0 > 0", True, id="true on the left of an error"),
        pytest.param("1 / 0 > 0 && false", False, id="false on the right of an error"),
        pytest.param("false && 1 / 0 > 0", False, id="false on the left of an error"),
        pytest.param("1 / 0 > 0 || false || [1][2] > 0 || true", True, id="true at the end of a chain"),
        pytest.param("1 / 0 > 0 && [1][2] > 0 && false", False, id="false at the end of a chain"),
        pytest.param("device.attributes['d'].number || true", True, id="true absorbs a term that is no bool"),
        pytest.param("device.attributes['d'].number && false", False, id="false absorbs a term that is no bool"),
        pytest.param("device.attributes['d'].version != 'a'", True, id="an error of == makes != true"),
        pytest.param("true ? true : 1 / 0 > 0", True, id="the other branch is not evaluated"),
    ],
)
def test_a_term_that_decides_absorbs_the_errors_of_the_others(expression: str, expected: bool) -> None:
    assert cel.compile(expression).evaluate(DEVICE) is expected


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        pytest.param("1 / 0 > 0 || [1][2] > 0", "division by zero", id="or gives the first error"),
        pytest.param("[1][2] > 0 && 1 / 0 > 0", "index out of bounds: 2", id="and gives the first error"),
        pytest.param("1 / 0 > 0 || false || [1][2] > 0", "division by zero", id="so does a chain"),
        pytest.param("device.attributes['d'].number && true", "no such overload", id="a term that is no bool"),
        pytest.param("true && device.attributes['d'].number", "no such overload", id="a last term that is no bool"),
    ],
)
def test_errors_that_nothing_absorbs_remain(expression: str, message: str) -> None:
    with pytest.raises(cel.CelEvaluationError, match=f"^{message}$"):
        cel.compile(expression).evaluate(DEVICE)
