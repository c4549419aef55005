"""Macros: loops with one and two variables, local variables, optionals, and how they treat errors."""

from __future__ import annotations

import pytest

from kubesched.k8s import cel

DEVICE = cel.DeviceView.of("d", {"text": "a", "number": 7, "yes": True})


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("[1, 2].all(x, x > 0) && ![1, 2].all(x, x > 1) && [].all(x, x > 0)", id="all"),
        pytest.param("[1, 2].exists(x, x > 1) && ![1].exists(x, x > 1) && ![].exists(x, x > 0)", id="exists"),
        pytest.param("[1, 2].exists_one(x, x > 1) && ![2, 3].exists_one(x, x > 1)", id="exists_one"),
        pytest.param("[1, 2].existsOne(x, x > 1)", id="existsOne is the same"),
        pytest.param("[1, 2].map(x, x * 2) == [2, 4]", id="map"),
        pytest.param("[1, 2, 3].map(x, x > 1, x * 2) == [4, 6]", id="map with a predicate"),
        pytest.param("[1, 2, 3].filter(x, x != 2) == [1, 3]", id="filter"),
        pytest.param("{'a': 1}.all(k, k == 'a') && {'a': 1}.map(k, k) == ['a']", id="a map gives its keys"),
        pytest.param("[[1, 2], [3]].exists(x, x.all(y, y > 2))", id="loops in loops"),
        pytest.param("[1, 2].all(x, [3, 4].all(x, x > 2) && x < 3)", id="an inner variable hides an outer one"),
        pytest.param("['a', 'b'].all(i, v, i < 2 && v >= 'a')", id="two variables are index and element"),
        pytest.param("{'a': 1}.exists(k, v, k == 'a' && v == 1)", id="two variables are key and value"),
        pytest.param("[1, 1].existsOne(i, v, i == 1 && v == 1)", id="existsOne with two variables"),
        pytest.param("[5, 6].transformList(i, v, i + v) == [5, 7]", id="transformList"),
        pytest.param("[5, 6].transformList(i, v, i > 0, v) == [6]", id="transformList with a predicate"),
        pytest.param("{'a': 1}.transformMap(k, v, v + 1) == {'a': 2}", id="transformMap"),
        pytest.param("{'a': 1, 'b': 2}.transformMap(k, v, v > 1, v) == {'b': 2}", id="transformMap with a predicate"),
        pytest.param("{'a': 1}.transformMapEntry(k, v, {v: k}) == {1: 'a'}", id="transformMapEntry"),
        pytest.param("cel.bind(x, 1 + 1, x * x) == 4", id="a local variable"),
        pytest.param("cel.bind(x, 1, cel.bind(y, x + 1, x + y)) == 3", id="local variables in local variables"),
        pytest.param("cel.bind(x, 1 / 0, true)", id="a local variable that nobody asks for is not computed"),
        pytest.param("[1, 2].map(x, cel.bind(y, x * 2, y + y)) == [4, 8]", id="a local variable anew in every round"),
        pytest.param("[3, 1, 2].sortBy(x, -x) == [3, 2, 1]", id="sortBy"),
        pytest.param("optional.of(2).optMap(x, x * 2).value() == 4", id="optMap of a value"),
        pytest.param("!optional.none().optMap(x, x * 2).hasValue()", id="optMap of none"),
        pytest.param("{'a': {'b': 1}}.?a.optFlatMap(x, x.?b).value() == 1", id="optFlatMap"),
        pytest.param("device.attributes.exists_one(x, x == 'd')", id="the domains of a device"),
        pytest.param("device.attributes['d'].all(k, v, k != 'text' || v == 'a')", id="the attributes of a domain"),
    ],
)
def test_macros_give_what_their_expansions_give(expression: str) -> None:
    assert cel.compile(expression).evaluate(DEVICE) is True


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param("[0, 1].exists(x, 1 / x == 1)", True, id="exists absorbs an error before what it seeks"),
        pytest.param("[1, 0].exists(x, 1 / x == 1)", True, id="exists stops at what it seeks"),
        pytest.param("[0, 1].all(x, 1 / x == 2)", False, id="all absorbs an error before what it excludes"),
        pytest.param("[0, 2].exists(i, x, 1 / x == 0)", True, id="so with two variables"),
    ],
)
def test_quantifiers_absorb_errors(expression: str, expected: bool) -> None:
    assert cel.compile(expression).evaluate(DEVICE) is expected


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        pytest.param("[0, 1].all(x, 1 / x == 1)", "division by zero", id="all with an error and else true"),
        pytest.param("[0, 2].exists(x, 1 / x == 1)", "division by zero", id="exists with an error and else false"),
        pytest.param("[0, 1].exists_one(x, 1 / x == 1)", "division by zero", id="exists_one absorbs nothing"),
        pytest.param("[1, 0].map(x, 1 / x) == [1]", "division by zero", id="map absorbs nothing"),
        pytest.param("[0, 9].filter(x, [5][x] / x == 1) == []", "index out of bounds: 9", id="filter: the last error"),
        pytest.param(
            "['a', 'a'].transformMapEntry(i, v, {v: i}) == {}",
            "insert failed: key a already exists",
            id="transformMapEntry with a key twice",
        ),
        pytest.param(
            "[1].exists(x, device.attributes['d'].number)", "no such overload", id="predicate that is no bool"
        ),
        pytest.param(
            "[1].filter(x, device.attributes['d'].number) == []", "no such overload", id="filter that is no bool"
        ),
        pytest.param("dyn(1).exists(x, true)", "got 'types.Int', expected iterable type", id="loop over a number"),
        pytest.param(
            "dyn('a').all(i, v, true)",
            "unsupported comprehension range type: types.String",
            id="loop with two variables over a string",
        ),
        pytest.param("cel.bind(x, 1 / 0, x == 1)", "division by zero", id="a local variable that is asked for"),
        pytest.param("dyn(1).optMap(x, x).hasValue()", "no such overload: hasValue(int)", id="optMap of no optional"),
    ],
)
def test_errors_that_macros_do_not_absorb_remain(expression: str, message: str) -> None:
    with pytest.raises(cel.CelEvaluationError) as failed:
        cel.compile(expression).evaluate(DEVICE)
    assert str(failed.value) == message


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("optional.of(1).hasValue() && !optional.none().hasValue()", id="having a value"),
        pytest.param("!optional.ofNonZeroValue(0).hasValue() && optional.ofNonZeroValue(1).hasValue()", id="non-zero"),
        pytest.param(
            "!optional.ofNonZeroValue('').hasValue() && !optional.ofNonZeroValue(null).hasValue()", id="empty"
        ),
        pytest.param("optional.of(1).value() == 1 && optional.of(1) == optional.of(1)", id="values and equality"),
        pytest.param("optional.none() == optional.none() && optional.none() != optional.of(1)", id="none equals none"),
        pytest.param("optional.none().or(optional.of(2)).orValue(3) == 2", id="the first that has a value"),
        pytest.param("optional.of(1).orValue(1 / 0) == 1", id="the alternative is not computed without need"),
        pytest.param("{'a': 1}.?a.orValue(0) == 1 && {'a': 1}.?b.orValue(0) == 0", id="optional fields"),
        pytest.param("{'a': 1}[?'b'].orValue(0) == 0 && [1][?1].orValue(0) == 0", id="optional indexes"),
        pytest.param("{'a': {'b': 1}}.?a.b.orValue(0) == 1", id="after an optional part all parts are optional"),
        pytest.param("!dyn({'a': 1}).?x.b.c[0].hasValue()", id="a missing part makes the rest missing"),
        pytest.param("has({'a': {'b': 1}}.?a.b) && !has({'a': {}}.?a.b)", id="presence through an optional"),
        pytest.param("[1, ?optional.none(), ?optional.of(2)] == [1, 2]", id="optional elements"),
        pytest.param("{?'a': optional.of(1), ?'b': optional.none()} == {'a': 1}", id="optional entries"),
        pytest.param("[1, 2].first().value() == 1 && [1, 2].last().value() == 2", id="first and last"),
        pytest.param("![].first().hasValue() && ![].last().hasValue()", id="first and last of nothing"),
        pytest.param("optional.unwrap([optional.of(1), optional.none()]) == [1]", id="unwrapping a list"),
        pytest.param("[optional.of(1), optional.none()].unwrapOpt() == [1]", id="unwrapping as a method"),
    ],
)
def test_optionals_have_a_value_or_none(expression: str) -> None:
    assert cel.compile(expression).evaluate(DEVICE) is True


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        pytest.param("optional.none().value() == 1", "optional.none() dereference", id="the value of none"),
        pytest.param(
            "[?dyn(1)] == [1]",
            "cannot initialize optional list element from non-optional value 1",
            id="an optional element that is none",
        ),
        pytest.param(
            "{?'a': dyn(1)} == {}",
            "cannot initialize optional entry 'a' from non-optional value 1",
            id="an optional entry that is none",
        ),
        pytest.param(
            "optional.unwrap([dyn(optional.of(1)), dyn(2)]) == [1]",
            "value 2 is not optional",
            id="unwrapping what is not wrapped",
        ),
        pytest.param(
            "optional.unwrap([dyn(1)]) == [1]",
            "no such overload: optional.unwrap(list)",
            id="unwrapping a list of others",
        ),
    ],
)
def test_optionals_that_are_none_are_errors(expression: str, message: str) -> None:
    with pytest.raises(cel.CelEvaluationError) as failed:
        cel.compile(expression).evaluate(DEVICE)
    assert str(failed.value) == message
