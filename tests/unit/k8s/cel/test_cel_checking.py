"""The static check: what does not fit is refused before any device is seen, in cel-go's words."""

from __future__ import annotations

import pytest

from kubesched.k8s import cel


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        pytest.param(
            "device.driver == 1",
            "1:15: found no matching overload for '_==_' applied to '(string, int)'",
            id="string compared with a number",
        ),
        pytest.param(
            "1 == 1.0",
            "1:3: found no matching overload for '_==_' applied to '(int, double)'",
            id="int equal to double",
        ),
        pytest.param(
            "'a'.lowerAscii(1) == 'a'",
            "1:15: found no matching overload for 'lowerAscii' applied to 'string.(int)'",
            id="argument too many",
        ),
        pytest.param(
            "device.capacity['a'].b > 1",
            "1:24: found no matching overload for '_>_' applied to '(kubernetes.Quantity, int)'",
            id="quantity compared with a number",
        ),
        pytest.param("x == 1", "1:1: undeclared reference to 'x' (in container '')", id="unknown variable"),
        pytest.param("f(1)", "1:2: undeclared reference to 'f' (in container '')", id="unknown function"),
        pytest.param(
            "math.greatest(1, 2) == 2",
            "1:14: undeclared reference to 'greatest' (in container '')",
            id="library not there",
        ),
        pytest.param("device.model == 'a'", "1:7: undefined field 'model'", id="unknown field of the device"),
        pytest.param("1.a == 1", "1:2: type 'int' does not support field selection", id="field of a number"),
        pytest.param("1 && true", "1:1: expected type 'bool' but found 'int'", id="number as a condition"),
        pytest.param("[1].all(x, x)", "1:12: expected type 'bool' but found 'int'", id="number as a predicate"),
        pytest.param(
            "1.all(x, true)",
            "1:1: expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)",
            id="loop over a number",
        ),
        pytest.param(
            "device.attributes['a'].b.all(x, true)",
            "1:23: expression of type 'any' cannot be range of a comprehension (must be list, map, or dynamic)",
            id="loop over an attribute without list attributes",
        ),
        pytest.param("[1, 'a'] == []", "1:5: expected type 'int' but found 'string'", id="list of mixed types"),
        pytest.param("{1: 2, 'a': 2} == {}", "1:8: expected type 'int' but found 'string'", id="map of mixed keys"),
        pytest.param(
            "[?1] == [1]", "1:3: expected type 'optional_type(int)' but found 'int'", id="optional element of none"
        ),
        pytest.param("Foo{a: 1} == 1", "1:4: undeclared reference to 'Foo' (in container '')", id="message of no type"),
        pytest.param("int{} == 1", "1:4: 'int' is not a message type", id="message of a type that is none"),
        pytest.param("has(device)", "1:5: invalid argument to has() macro", id="presence of no field"),
        pytest.param("[1].all(1, true)", "1:9: argument must be a simple name", id="number as a variable"),
        pytest.param("[1].map(a.b, 1) == []", "1:10: argument is not an identifier", id="field as a variable"),
        pytest.param("[1].all(i, i, true)", "1:12: duplicate variable name: i", id="one name for index and element"),
        pytest.param(
            "[1].all(__result__, true)",
            "1:9: iteration variable overwrites accumulator variable",
            id="the accumulator's name as a variable",
        ),
        pytest.param("duration('x') == duration('1s')", "1:10: invalid duration argument", id="broken duration"),
        pytest.param("timestamp('x') == timestamp(0)", "1:11: invalid timestamp argument", id="broken timestamp"),
        pytest.param("'a'.matches('(')", "1:13: invalid matches argument", id="broken pattern"),
        pytest.param(
            "'%d'.format(['a']) == ''",
            "1:14: error during formatting: decimal clause can only be used on integers, was given string",
            id="format clause of another type",
        ),
        pytest.param(
            "'%s'.format(['a', 1]) == ''",
            "1:12: too many arguments supplied to string.format (expected 1, got 2)",
            id="format argument too many",
        ),
        pytest.param("'%s %s'.format(['a']) == ''", "1:15: index 1 out of range", id="format argument missing"),
    ],
)
def test_what_does_not_fit_is_a_compile_error(expression: str, message: str) -> None:
    with pytest.raises(cel.CelCompileError) as refused:
        cel.compile(expression)
    assert f"ERROR: <input>:{message}" in str(refused.value)


@pytest.mark.parametrize(
    ("expression", "output"),
    [
        pytest.param("1", "int", id="a number"),
        pytest.param("device.driver", "string", id="a string"),
        pytest.param("dyn(true)", "dyn", id="a value of any type made from another"),
        pytest.param("[1]", "list(int)", id="a list"),
        pytest.param("null", "null_type", id="null"),
        pytest.param("optional.of(true)", "optional_type(bool)", id="an optional"),
        pytest.param("timestamp(0)", "google.protobuf.Timestamp", id="a timestamp"),
        pytest.param("int", "type(int)", id="a type"),
    ],
)
def test_a_selector_evaluates_to_bool_or_to_an_attribute(expression: str, output: str) -> None:
    with pytest.raises(cel.CelCompileError) as refused:
        cel.compile(expression)
    assert str(refused.value) == f"must evaluate to bool or the unknown type, not {output}"


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        pytest.param("int('a') == 1", "type conversion error from 'string' to 'int'", id="a literal that is no number"),
        pytest.param("false && uint(-1) == 1u", "unsigned integer overflow", id="even where it would not be evaluated"),
        pytest.param("'a'.find('[') == ''", "error parsing regexp: missing closing ]: `[`", id="a broken pattern"),
    ],
)
def test_literals_are_converted_before_the_first_device(expression: str, message: str) -> None:
    with pytest.raises(cel.CelCompileError) as refused:
        cel.compile(expression)
    assert str(refused.value) == f"program instantiation failed: {message}"


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("1 < 1.5 && 1u < 2 && 2.0 > 1u", id="order across numbers"),
        pytest.param("dyn(1) == 1.0 && dyn(1u) == 1", id="equality across numbers that are dyn"),
        pytest.param("'%s %d'.format(['a', 1]) == 'a 1'", id="mixed types as format arguments"),
        pytest.param("{'a': optional.none()}.a == optional.of(1)", id="an empty optional of unknown type"),
        pytest.param("[] == [1] || {} == {'a': 1}", id="empty aggregates of unknown type"),
        pytest.param("type(1) == int && type(type(1)) == type", id="types are values"),
        pytest.param("type(ip('::1')) == net.IP", id="types with dots in their names"),
        pytest.param("device.attributes['a'].b || true", id="an attribute as a condition"),
        pytest.param("true ? device.attributes['a'].b : false", id="an attribute as the result"),
        pytest.param("cel.bind(device, [1], device[0] == 1)", id="a local variable hides the device"),
    ],
)
def test_what_fits_compiles(expression: str) -> None:
    assert cel.compile(expression).expression == expression
