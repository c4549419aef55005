"""Expressions over variables of any type, as validation rules and admission policies use them."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.k8s.cel import CelCompileError, CelEvaluationError, StructFields, compile_expression, kinds
from kubesched.k8s.cel.kinds import CelType, TypeKind
from kubesched.k8s.cel.operations import LazyMap, StructValue
from kubesched.k8s.cel.steps import CostMeter

DEPLOYMENT: dict[str, Any] = {
    "metadata": {"name": "web", "labels": {"env": "test"}},
    "spec": {"replicas": 3, "template": {"spec": {"containers": [{"name": "a"}, {"name": "b"}]}}},
}
ANYTHING = {"object": kinds.DYN, "oldObject": kinds.DYN}
SPEC = CelType(TypeKind.STRUCT, "Spec")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("object.spec.replicas <= 5", True),
        ("object.spec.replicas * 2", 6),
        ("has(object.spec.paused)", False),
        ("object.spec.template.spec.containers.all(c, c.name != 'c')", True),
        ("object.metadata.labels['env'].startsWith('te')", True),
        ("oldObject == null", True),
        ("object.spec.?strategy.orValue('none')", "none"),
        ("'%s has %d'.format([object.metadata.name, object.spec.replicas])", "web has 3"),
    ],
)
def test_a_decoded_object_is_read_by_its_fields(text: str, expected: object) -> None:
    assert compile_expression(text, ANYTHING).evaluate({"object": DEPLOYMENT, "oldObject": None}) == expected


def test_a_field_that_is_missing_is_an_error_of_the_evaluation() -> None:
    with pytest.raises(CelEvaluationError, match="no such key: paused"):
        compile_expression("object.spec.paused", ANYTHING).evaluate({"object": DEPLOYMENT, "oldObject": None})


def test_unknown_variables_and_fields_of_typed_variables_are_errors_of_the_text() -> None:
    with pytest.raises(CelCompileError, match="undeclared reference to 'objekt'"):
        compile_expression("objekt.spec", ANYTHING)
    fields = StructFields({"Spec": {"replicas": kinds.INT}})
    with pytest.raises(CelCompileError, match="undefined field 'replica'"):
        compile_expression("self.replica > 1", {"self": SPEC}, fields)
    assert compile_expression("self.replicas > 1", {"self": SPEC}, fields).evaluate({"self": {"replicas": 2}}) is True


def test_structs_that_may_be_built_know_their_type() -> None:
    fields = StructFields({"Patch": {"op": kinds.STRING, "value": kinds.DYN}}, frozenset({"Patch"}))
    built = compile_expression("Patch{op: 'add', value: {'a': 1}}", {}, fields).evaluate({})
    assert isinstance(built, StructValue)
    assert (built.type_name, dict(built)) == ("Patch", {"op": "add", "value": {"a": 1}})
    optional = compile_expression("Patch{op: 'remove', ?value: optional.none()}", {}, fields).evaluate({})
    assert optional == {"op": "remove"}
    with pytest.raises(CelCompileError, match="undefined field 'path'"):
        compile_expression("Patch{path: ''}", {}, fields)
    with pytest.raises(CelCompileError, match="expected type of field 'op' is 'string' but provided type is 'int'"):
        compile_expression("Patch{op: 1}", {}, fields)
    with pytest.raises(CelCompileError, match="undeclared reference to 'Other'"):
        compile_expression("Other{op: 'add'}", {}, fields)


def test_lazy_maps_compute_what_is_asked_for_and_once() -> None:
    asked: list[str] = []

    def compute(name: str) -> object:
        asked.append(name)
        return 7

    variables = LazyMap({"a": lambda: compute("a"), "b": lambda: compute("b")})
    expression = compile_expression("variables.a == 7 && has(variables.b) && variables.a < 8", {"variables": kinds.DYN})
    assert expression.evaluate({"variables": variables}) is True
    assert asked == ["a", "b"]


def test_every_evaluation_is_metered_and_meters_can_be_shared() -> None:
    nested = compile_expression("l.all(a, l.all(b, l.all(c, a + b + c >= 0)))", {"l": kinds.DYN})
    with pytest.raises(CelEvaluationError, match="actual cost limit exceeded"):
        nested.evaluate({"l": list(range(200))})
    cheap, meter = compile_expression("1 + 1 == 2 && l.size() > 0", {"l": kinds.DYN}), CostMeter(limit=20)
    with pytest.raises(CelEvaluationError, match="actual cost limit exceeded"):
        for _ in range(20):
            cheap.evaluate({"l": [1]}, meter)
