"""Label selectors and node selectors: what they match, and what is refused."""

from __future__ import annotations

import pytest

from kubesched.k8s.model import selectors
from kubesched.k8s.model.core import (
    Node,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PreferredSchedulingTerm,
)
from kubesched.k8s.model.meta import LabelSelector, LabelSelectorRequirement, ObjectMeta
from kubesched.k8s.model.selectors import EVERYTHING, NOTHING, Requirement, SelectorError

VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


@pytest.mark.parametrize(
    ("operator", "values", "matching", "others"),
    [
        pytest.param("In", ("a", "b"), ["a", "b"], ["c", "", None], id="In"),
        pytest.param("NotIn", ("a", "b"), ["c", "", None], ["a", "b"], id="NotIn holds where the label is missing"),
        pytest.param("Exists", (), ["a", ""], [None], id="Exists"),
        pytest.param("DoesNotExist", (), [None], ["a", ""], id="DoesNotExist"),
        pytest.param("Gt", ("5",), ["6", "+7", "006"], ["5", "-6", "x", "", "1_0", " 9", None], id="Gt"),
        pytest.param("Lt", ("5",), ["4", "-9"], ["5", "99999999999999999999", "4.0", None], id="Lt"),
    ],
)
def test_a_requirement_asks_for_a_label(
    operator: str, values: tuple[str, ...], matching: list[str | None], others: list[str | None]
) -> None:
    asked = selectors.requirement("key", operator, values)
    assert [value for value in matching + others if asked.matches(value)] == matching


@pytest.mark.parametrize(
    ("key", "operator", "values", "problem"),
    [
        pytest.param(
            "k",
            "In",
            None,
            "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
            id="In without values",
        ),
        pytest.param(
            "k",
            "NotIn",
            (),
            "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty",
            id="NotIn with an empty list",
        ),
        pytest.param(
            "k",
            "Exists",
            ("a",),
            'values: Invalid value: ["a"]: values set must be empty for exists and does not exist',
            id="Exists with a value",
        ),
        pytest.param(
            "k",
            "Gt",
            ("1", "2"),
            "values: Invalid value: [\"1\",\"2\"]: for 'Gt', 'Lt' operators, exactly one value is required",
            id="Gt with two values",
        ),
        pytest.param(
            "k",
            "Lt",
            ("many",),
            "values[0]: Invalid value: \"many\": for 'Gt', 'Lt' operators, the value must be an integer",
            id="Lt with a word",
        ),
        pytest.param(
            "k",
            "Like",
            ("a",),
            'operator: Unsupported value: "Like": '
            'supported values: "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"',
            id="an unknown operator",
        ),
        pytest.param(
            "k",
            "In",
            ("a b",),
            f'values[0][k]: Invalid value: "a b": {VALUE_RULE}',
            id="a value that no label can have",
        ),
        pytest.param(
            "k",
            "Gt",
            ("-1",),
            f'values[0][k]: Invalid value: "-1": {VALUE_RULE}',
            id="a negative number is no label value",
        ),
        pytest.param(
            "example.com/",
            "Gt",
            ("x",),
            '[key: Invalid value: "example.com/": name part must be non-empty; name part must consist of alphanumeric '
            "characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or "
            "'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]'), "
            "values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer]",
            id="all validation errors are told",
        ),
    ],
)
def test_a_requirement_that_makes_no_sense_is_refused_in_kubernetes_words(
    key: str, operator: str, values: tuple[str, ...] | None, problem: str
) -> None:
    with pytest.raises(SelectorError) as caught:
        selectors.requirement(key, operator, values)
    assert str(caught.value) == problem


def test_no_selector_selects_nothing_and_an_empty_one_everything() -> None:
    assert selectors.from_label_selector(None) is NOTHING
    assert not NOTHING.matches({"a": "b"})
    assert selectors.from_label_selector(LabelSelector()) == EVERYTHING
    assert EVERYTHING.matches({})
    assert selectors.from_labels(None).is_everything
    assert not NOTHING.is_everything


def test_a_label_selector_wants_all_of_its_requirements() -> None:
    selector = selectors.from_label_selector(
        LabelSelector(
            match_labels={"tier": "front", "app": "web"},
            match_expressions=(LabelSelectorRequirement("legacy", "DoesNotExist"),),
        )
    )
    assert str(selector) == "app=web,!legacy,tier=front"
    assert selector.matches({"app": "web", "tier": "front", "more": "labels"})
    assert not selector.matches({"app": "web"})
    assert not selector.matches({"app": "web", "tier": "front", "legacy": ""})


@pytest.mark.parametrize("operator", [pytest.param("Gt", id="only for nodes"), pytest.param("in", id="wrong case")])
def test_label_selectors_know_four_operators(operator: str) -> None:
    selector = LabelSelector(match_expressions=(LabelSelectorRequirement("k", operator, ("1",)),))
    with pytest.raises(SelectorError, match=f'"{operator}" is not a valid label selector operator'):
        selectors.from_label_selector(selector)


def _node(name: str, **labels: str) -> Node:
    return Node(metadata=ObjectMeta(name=name, labels=labels))


def _label_term(*requirements: tuple[str, str, tuple[str, ...] | None]) -> NodeSelectorTerm:
    return NodeSelectorTerm(match_expressions=tuple(NodeSelectorRequirement(*found) for found in requirements))


def _field_term(key: str, operator: str, *values: str) -> NodeSelectorTerm:
    return NodeSelectorTerm(match_fields=(NodeSelectorRequirement(key, operator, values),))


BROKEN = _label_term(("disk", "Gt", ("large",)))


@pytest.mark.parametrize(
    ("terms", "matches"),
    [
        pytest.param((), False, id="no term matches no node"),
        pytest.param((NodeSelectorTerm(),), False, id="an empty term matches no node"),
        pytest.param((_label_term(("disk", "In", ("ssd",))),), True, id="a label"),
        pytest.param((_label_term(("disk", "In", ("ssd",)), ("gpu", "Exists", None)),), False, id="terms are and-ed"),
        pytest.param((_label_term(("gpu", "Exists", None)), _label_term(("disk", "Exists", None))), True, id="or-ed"),
        pytest.param((BROKEN, _label_term(("disk", "Exists", None))), True, id="one good term is enough"),
        pytest.param((BROKEN,), False, id="a broken term matches no node"),
        pytest.param((_field_term("metadata.name", "In", "a"),), True, id="the node's name"),
        pytest.param((_field_term("metadata.name", "NotIn", "a"),), False, id="any name but this"),
        pytest.param((_field_term("metadata.name", "In", "a", "b"),), False, id="two names are a validation error"),
        pytest.param((_field_term("metadata.name", "Exists"),), False, id="fields know In and NotIn"),
        pytest.param((_field_term("spec.podCIDR", "In", "x"),), False, id="other fields are empty"),
        pytest.param((_field_term("spec.podCIDR", "NotIn", "x"),), True, id="so they are not in anything"),
    ],
)
def test_a_node_selector_matches_a_node(terms: tuple[NodeSelectorTerm, ...], matches: bool) -> None:
    selector = selectors.from_node_selector(NodeSelector(terms))
    assert selector.matches(_node("a", disk="ssd")) is matches


def test_mistakes_of_a_node_selector_are_kept_in_their_terms() -> None:
    selector = selectors.from_node_selector(
        NodeSelector((BROKEN, _label_term(("disk", "Exists", None)), _field_term("x", "Gt")))
    )
    assert selector.errors == (
        "values[0]: Invalid value: \"large\": for 'Gt', 'Lt' operators, the value must be an integer",
        'operator: Unsupported value: "Gt": supported values: "In", "NotIn"',
    )


def test_preferred_terms_that_cannot_count_are_left_out() -> None:
    terms = (
        PreferredSchedulingTerm(0, _label_term(("disk", "Exists", None))),
        PreferredSchedulingTerm(5, NodeSelectorTerm()),
        PreferredSchedulingTerm(7, _label_term(("disk", "Exists", None))),
    )
    ((term, weight),) = selectors.compile_preferred_terms(terms)
    assert (term.labels, weight) == ((Requirement("disk", "Exists"),), 7)
