"""Selectors on devices: what they see of a device, what it costs, and what is remembered."""

from __future__ import annotations

import pytest

from kubesched.k8s import cel
from kubesched.k8s.model import quantity

DRIVER = "dra.example.com"
DEVICE = cel.DeviceView.of(
    DRIVER,
    {
        "bool": True,
        "int": 1,
        "string": "fish",
        "version": cel.VersionText("1.0.0"),
        "other.example.com/name": "bird",
    },
    {"memory": quantity.parse("1Mi"), "other.example.com/slots": quantity.parse("2")},
)
LIST_DEVICE = cel.DeviceView.of(
    DRIVER,
    {"names": ("fish", "bird"), "name": "fish", "versions": (cel.VersionText("1.0.0"), cel.VersionText("2.0.0"))},
)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param("true", True, id="every device"),
        pytest.param("false", False, id="no device"),
        pytest.param(f'device.driver == "{DRIVER}"', True, id="by driver"),
        pytest.param(f'device.attributes["{DRIVER}"].bool', True, id="by an attribute that is a bool"),
        pytest.param(f'device.attributes["{DRIVER}"]["bool"]', True, id="by an attribute between brackets"),
        pytest.param(f'device.attributes["{DRIVER}"].int > 0', True, id="by a number"),
        pytest.param(f'device.attributes["{DRIVER}"].string == "fish"', True, id="by a string"),
        pytest.param(f'device.attributes["{DRIVER}"].version.isGreaterThan(semver("0.0.1"))', True, id="by a version"),
        pytest.param(f'device.capacity["{DRIVER}"].memory.isGreaterThan(quantity("1Ki"))', True, id="by a capacity"),
        pytest.param('device.attributes["other.example.com"].name == "bird"', True, id="by a name with a domain"),
        pytest.param('device.capacity["other.example.com"].slots == quantity("2")', True, id="capacity with a domain"),
        pytest.param('"no-such-domain" in device.attributes', False, id="a domain that is not there"),
        pytest.param(f'"{DRIVER}" in device.attributes', True, id="a domain that is there"),
        pytest.param(
            'has(device.attributes["no-such-domain"].name)', False, id="presence in a domain that is not there"
        ),
        pytest.param("has(device.attributes.anything)", True, id="every domain has a map"),
        pytest.param('device.attributes["no-such-domain"] == {}', True, id="which is empty"),
        pytest.param('device.attributes[?"no-such-domain"].hasValue()', True, id="and never missing"),
        pytest.param('device.attributes["no-such-domain"].?name.orValue("x") == "x"', True, id="optional attributes"),
        pytest.param(f'"string" in device.attributes["{DRIVER}"]', True, id="an attribute that is there"),
        pytest.param(f'!("x" in device.capacity["{DRIVER}"]) || false', True, id="a capacity that is not there"),
        pytest.param(
            f'cel.bind(dra, device.attributes["{DRIVER}"], dra.bool && dra.int == 1)', True, id="with cel.bind"
        ),
        pytest.param("device.attributes.size() == 2 && device.capacity.size() == 2", True, id="counting domains"),
        pytest.param("device.allowMultipleAllocations == false", True, id="not shared unless it says so"),
        pytest.param(
            f'device.attributes["{DRIVER}"].string.includes("fish")', True, id="a single value includes itself"
        ),
        pytest.param(f'device.attributes["{DRIVER}"].string.includes(1)', False, id="and nothing of another type"),
        pytest.param("dyn(device).driver == device.driver && has(device.driver)", True, id="the device as a value"),
    ],
)
def test_selectors_see_attributes_and_capacities(expression: str, expected: bool) -> None:
    assert cel.compile(expression).evaluate(DEVICE) is expected


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        pytest.param(f'device.attributes["{DRIVER}"].model == "a"', "no such key: model", id="attribute missing"),
        pytest.param('device.attributes["x"].model == "a"', "no such key: model", id="domain missing"),
        pytest.param('device.attributes["x"]["model"] == "a"', "no such key: model", id="missing between brackets"),
        pytest.param('device.capacity["x"].m.isGreaterThan(quantity("0"))', "no such key: m", id="capacity missing"),
        pytest.param(
            f'device.attributes["{DRIVER}"].string',
            "CEL result of type string could not be converted to bool: "
            "unsupported native conversion from string to 'bool'",
            id="result that is a string",
        ),
        pytest.param(
            f'device.attributes["{DRIVER}"].version',
            "CEL result of type kubernetes.Semver could not be converted to bool: "
            "type conversion error from 'Semver' to 'bool'",
            id="result that is a version",
        ),
    ],
)
def test_what_a_device_lacks_is_an_error(expression: str, message: str) -> None:
    with pytest.raises(cel.CelEvaluationError) as failed:
        cel.compile(expression).evaluate(DEVICE)
    assert str(failed.value) == message


def test_a_device_may_be_shared() -> None:
    shared = cel.DeviceView.of(DRIVER, allow_multiple_allocations=True)
    assert cel.compile("device.allowMultipleAllocations").evaluate(shared) is True


@pytest.mark.parametrize(
    ("value", "message"),
    [
        pytest.param(None, "attribute a: unsupported attribute value", id="nothing"),
        pytest.param(
            cel.VersionText("1.0"),
            "attribute a: parse semantic version: No Major.Minor.Patch elements found",
            id="no version",
        ),
    ],
)
def test_an_attribute_without_a_usable_value_is_an_error(value: cel.AttributeValue | None, message: str) -> None:
    with pytest.raises(cel.CelEvaluationError) as failed:
        cel.DeviceView.of(DRIVER, {"a": value})
    assert str(failed.value) == message


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param("names.size() == 2", True, id="size"),
        pytest.param("names.exists(x, x == 'bird')", True, id="loops"),
        pytest.param("names.includes('bird')", True, id="includes in a list"),
        pytest.param("names.includes('cat')", False, id="includes what is not there"),
        pytest.param("name.includes('fish')", True, id="includes in a single value"),
        pytest.param("versions.all(x, x.isGreaterThan(semver('0.0.1')))", True, id="versions"),
    ],
)
def test_attributes_may_be_lists_if_the_gate_is_open(expression: str, expected: bool) -> None:
    program = cel.compile(f"device.attributes['{DRIVER}'].{expression}", list_type_attributes=True)
    assert program.evaluate(LIST_DEVICE) is expected


def test_a_device_with_list_attributes_is_refused_if_the_gate_is_closed() -> None:
    with pytest.raises(cel.CelEvaluationError, match=r"^attribute names: unsupported attribute value$"):
        cel.compile("true").evaluate(LIST_DEVICE)


def test_includes_refuses_lists_that_no_device_may_have() -> None:
    device = cel.DeviceView.of(DRIVER, {"a": tuple(f"value-{i}" for i in range(49))})
    program = cel.compile(f"device.attributes['{DRIVER}'].a.includes('x')", list_type_attributes=True)
    with pytest.raises(cel.CelEvaluationError) as failed:
        program.evaluate(device)
    assert str(failed.value) == "'includes' function cannot be applied to lists longer than 48 values"


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param(
            "{0}.all(a, {0}.all(b, {0}.all(c, {0}.all(d, {1}.contains({1})))))",
            id="loops within loops",
        ),
        pytest.param(
            "cel.bind(a, 'x' + 'x', " + "cel.bind(a, a + a, " * 25 + "a == ''" + ")" * 26, id="growing strings"
        ),
        pytest.param("'aaaaaaaaaa'" + ".replace('a', 'aaaaaaaaaa')" * 7 + " == ''", id="growing replacements"),
    ],
)
def test_an_evaluation_that_costs_too_much_is_given_up(expression: str) -> None:
    numbers, text = str(list(range(10))), repr("x" * 100)
    program = cel.compile(expression.replace("{0}", numbers).replace("{1}", text))
    assert program.is_metered
    with pytest.raises(cel.CelEvaluationError, match=r"^operation cancelled: actual cost limit exceeded$"):
        program.evaluate(DEVICE)


def test_programs_are_remembered_by_their_text() -> None:
    assert cel.compile("device.driver == 'x'") is cel.compile("device.driver == 'x'")
    assert cel.compile("true") is not cel.compile("true", list_type_attributes=True)


def test_a_program_keeps_nothing_from_one_device_to_the_next() -> None:
    program = cel.compile("cel.bind(d, device.driver, d == 'a' || d == 'b')")
    answers = [program.evaluate(cel.DeviceView.of(driver)) for driver in ("a", "c", "b", "c")]
    assert answers == [True, False, True, False]
