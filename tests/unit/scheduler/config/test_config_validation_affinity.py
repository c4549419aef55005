"""The rules on NodeAffinityArgs.addedAffinity."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Mistakes = Callable[[dict[str, Any]], list[str]]

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
PATH = "profiles[0].pluginConfig[0].args.addedAffinity"
TERM = f"{PATH}.{REQUIRED}.nodeSelectorTerms[0]"


def load_affinity(problems: Mistakes, affinity: dict[str, Any]) -> list[str]:
    entry = {"name": "NodeAffinity", "args": {"addedAffinity": affinity}}
    return problems({"profiles": [{"pluginConfig": [entry]}]})


def required(*terms: dict[str, Any]) -> dict[str, Any]:
    return {REQUIRED: {"nodeSelectorTerms": list(terms)}}


def expression(operator: str, *values: str, key: str = "zone") -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def field(operator: str, *values: str) -> dict[str, Any]:
    return {"matchFields": [{"key": "metadata.name", "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        pytest.param(
            expression("Near", "a"),
            [
                f'{TERM}.matchExpressions[0].operator: Unsupported value: "Near": supported values: '
                '"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"'
            ],
            id="an operator that is not known",
        ),
        pytest.param(
            expression("In"),
            [
                f"{TERM}.matchExpressions[0].values: Invalid value: []: "
                "for 'in', 'notin' operators, values set can't be empty"
            ],
            id="In without values",
        ),
        pytest.param(
            {"matchExpressions": [{"key": "zone", "operator": "NotIn"}]},
            [
                f"{TERM}.matchExpressions[0].values: Invalid value: null: "
                "for 'in', 'notin' operators, values set can't be empty"
            ],
            id="NotIn with values left out",
        ),
        pytest.param(
            expression("Exists", "a"),
            [
                f'{TERM}.matchExpressions[0].values: Invalid value: ["a"]: '
                "values set must be empty for exists and does not exist"
            ],
            id="Exists with a value",
        ),
        pytest.param(
            expression("Gt", "1", "x"),
            [
                f'{TERM}.matchExpressions[0].values: Invalid value: ["1","x"]: '
                "for 'Gt', 'Lt' operators, exactly one value is required",
                f'{TERM}.matchExpressions[0].values[1]: Invalid value: "x": '
                "for 'Gt', 'Lt' operators, the value must be an integer",
            ],
            id="Gt with two values of which one is no number",
        ),
        pytest.param(
            expression("Lt", "9223372036854775808"),
            [
                f'{TERM}.matchExpressions[0].values[0]: Invalid value: "9223372036854775808": '
                "for 'Gt', 'Lt' operators, the value must be an integer"
            ],
            id="Lt with a number beyond 64 bits",
        ),
        pytest.param(
            field("Exists"),
            [f'{TERM}.matchFields[0].operator: Unsupported value: "Exists": supported values: "In", "NotIn"'],
            id="an operator that fields do not have",
        ),
        pytest.param(
            {"matchFields": [{"key": "metadata.name", "operator": "In"}]},
            [f"{TERM}.matchFields[0].values: Invalid value: null: must have one element"],
            id="a field with values left out",
        ),
        pytest.param(
            field("In", "a", "b"),
            [f'{TERM}.matchFields[0].values: Invalid value: ["a","b"]: must have one element'],
            id="a field with two values",
        ),
    ],
)
def test_mistakes_in_required_terms_are_told(problems: Mistakes, term: dict[str, Any], expected: list[str]) -> None:
    assert load_affinity(problems, required(term)) == expected


def test_keys_and_values_must_have_the_form_of_labels(problems: Mistakes) -> None:
    key, value = load_affinity(problems, required(expression("In", "b!", key="a b")))
    assert key.startswith(f'{TERM}.matchExpressions[0].key: Invalid value: "a b": name part must consist of')
    assert value.startswith(
        f'{TERM}.matchExpressions[0].values[0][a b]: Invalid value: "b!": a valid label must be an empty string or'
    )


def test_mistakes_in_preferred_terms_are_told_where_kubernetes_sees_them(problems: Mistakes) -> None:
    terms = [{"weight": 1, "preference": expression("In", "a")}, {"weight": 2, "preference": field("Gt")}]
    assert load_affinity(problems, {PREFERRED: terms}) == [
        f'{PATH}.{PREFERRED}[1].matchFields[0].operator: Unsupported value: "Gt": supported values: "In", "NotIn"'
    ]


@pytest.mark.parametrize(
    "affinity",
    [
        pytest.param({}, id="nothing"),
        pytest.param(required({}, {"matchExpressions": []}), id="empty terms"),
        pytest.param({PREFERRED: [{"weight": 0, "preference": expression("Near")}]}, id="a term without weight"),
        pytest.param({PREFERRED: [{"weight": 1}]}, id="a term without preference"),
        pytest.param(required(expression("In", ""), expression("Exists")), id="an empty value, and none"),
        pytest.param(required(field("NotIn", "any text: it is no label")), id="a field's value has no form"),
    ],
)
def test_what_is_right_or_cannot_matter_loads(problems: Mistakes, affinity: dict[str, Any]) -> None:
    assert load_affinity(problems, affinity) == []
