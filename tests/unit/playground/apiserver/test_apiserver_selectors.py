"""Label and field selectors: what they match, and what they say when they cannot be read."""

from __future__ import annotations

import pytest

from kubesched.playground.apiserver.errors import StatusError
from kubesched.playground.apiserver.kinds.registry import ALL_KINDS
from kubesched.playground.apiserver.verbs.read import parse_fields, parse_labels

_PODS = next(kind for kind in ALL_KINDS if kind.plural == "pods")


@pytest.mark.parametrize(
    ("text", "labels", "expected"),
    [
        pytest.param("a=1", {"a": "1"}, True, id="equal"),
        pytest.param("a==1", {"a": "2"}, False, id="not equal"),
        pytest.param("a!=1", {}, True, id="unequal holds for an absent label"),
        pytest.param("a in (1,2)", {"a": "2"}, True, id="one of a set"),
        pytest.param("a notin (1,2)", {"a": "2"}, False, id="none of a set"),
        pytest.param("a", {"a": ""}, True, id="present"),
        pytest.param("!a", {"a": ""}, False, id="absent"),
        pytest.param("a>3", {"a": "10"}, True, id="greater as a number"),
        pytest.param("a<3", {"a": "x"}, False, id="no number is not less"),
        pytest.param("a=1,b!=2", {"a": "1", "b": "2"}, False, id="all terms must hold"),
        pytest.param("a=", {"a": ""}, True, id="an empty value"),
    ],
)
def test_label_selectors_match(text: str, labels: dict[str, str], expected: bool) -> None:
    matches = parse_labels(text)
    assert matches is not None
    assert matches(labels) is expected


def test_an_empty_selector_selects_everything() -> None:
    assert parse_labels("") is None
    assert parse_fields("", _PODS) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            "a in (", "unable to parse requirement: found '', expected: ',', ')' or identifier", id="open set"
        ),
        pytest.param("=x", "found '=', expected: !, identifier, or 'end of string'", id="no key"),
        pytest.param("a=1,,", "found ',', expected: identifier after ','", id="two commas"),
        pytest.param(
            "a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt", id="words"
        ),
    ],
)
def test_broken_label_selectors_are_refused_in_the_words_of_the_real_server(text: str, message: str) -> None:
    with pytest.raises(StatusError) as refused:
        parse_labels(text)
    assert refused.value.message == message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("spec.nodeName=n", True, id="equal"),
        pytest.param("spec.nodeName!=n", False, id="unequal"),
        pytest.param("spec.nodeName=n,metadata.name=x", False, id="all terms must hold"),
    ],
)
def test_field_selectors_match(text: str, expected: bool) -> None:
    matches = parse_fields(text, _PODS)
    assert matches is not None
    assert matches({"spec.nodeName": "n", "metadata.name": "p"}) is expected


def test_a_field_that_cannot_be_selected_by_is_refused() -> None:
    with pytest.raises(StatusError, match=r"field label not supported: spec\.foo"):
        parse_fields("spec.foo=1", _PODS)


def test_blanks_without_end_cost_no_time() -> None:
    assert parse_labels("a=b" + " " * 100_000) is not None
    assert parse_labels("\t" * 100_000) is None
