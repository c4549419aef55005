"""Selectors as they are typed: what they stand for, how they are printed, what is refused."""

from __future__ import annotations

import pytest

from kubesched.k8s.model.selectors import EVERYTHING, Requirement, SelectorError, parse_selector


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        pytest.param("app=web", "app=web", id="equal"),
        pytest.param("app == web", "app=web", id="equal in two signs"),
        pytest.param("app in (web)", "app=web", id="in a set of one"),
        pytest.param("app!=web", "app!=web", id="not equal"),
        pytest.param("app notin (web)", "app!=web", id="not in a set of one"),
        pytest.param("tier in (front, back)", "tier in (back,front)", id="values are sorted"),
        pytest.param("tier notin(a,b,a)", "tier notin (a,b)", id="and stand once"),
        pytest.param("x=a,a=x", "a=x,x=a", id="requirements stand in the order of their keys"),
        pytest.param("!legacy", "!legacy", id="absent"),
        pytest.param("\t! legacy\n", "!legacy", id="blanks do not matter"),
        pytest.param("example.com/zone", "example.com/zone", id="present"),
        pytest.param("size>3,size<9", "size>3,size<9", id="numbers"),
        pytest.param("app=", "app=", id="the empty value"),
        pytest.param("app=,b", "app=,b", id="the empty value before a comma"),
        pytest.param("app in ()", "app=", id="no value in parentheses is the empty one"),
        pytest.param("app in (,a)", "app in (,a)", id="the empty value first"),
        pytest.param("app in (a,)", "app in (,a)", id="the empty value last"),
        pytest.param("app in (a,,b)", "app in (,a,b)", id="the empty value in between"),
        pytest.param("in in (in,notin)", "in in (in,notin)", id="operators can be keys and values"),
        pytest.param("notin=in", "notin=in", id="also of the short form"),
    ],
)
def test_a_text_is_read_and_printed_again(text: str, printed: str) -> None:
    found = parse_selector(text)
    assert str(found) == printed
    assert parse_selector(printed) == found


def test_an_empty_text_selects_everything() -> None:
    assert parse_selector("") == parse_selector(" ") == EVERYTHING


def test_a_text_becomes_requirements() -> None:
    found = parse_selector("b notin (y,x),a>5,!c,d")
    assert found.requirements == (
        Requirement("a", "Gt", ("5",)),
        Requirement("b", "NotIn", ("x", "y")),
        Requirement("c", "DoesNotExist"),
        Requirement("d", "Exists"),
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param(",a", "found ',', expected: !, identifier, or 'end of string'", id="begins with a comma"),
        pytest.param("a,", "found '', expected: identifier after ','", id="ends with a comma"),
        pytest.param("a,=b", "found '=', expected: identifier after ','", id="no key"),
        pytest.param("a=b c", "found 'c', expected: ',' or 'end of string'", id="two values"),
        pytest.param("!a=b", "found '=', expected: ',' or 'end of string'", id="absent and equal"),
        pytest.param("!", "unable to parse requirement: found '', expected: identifier", id="only a sign"),
        pytest.param("a=(", "unable to parse requirement: found '(', expected: identifier", id="no value"),
        pytest.param(
            "a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt", id="no operator"
        ),
        pytest.param("a in b", "unable to parse requirement: found 'b' expected: '('", id="no parentheses"),
        pytest.param(
            "a in (=",
            "unable to parse requirement: found '=', expected: ',', ')' or identifier",
            id="no value in a set",
        ),
        pytest.param("a in (b", "unable to parse requirement: found '', expected: ',' or ')'", id="left open"),
        pytest.param(
            "a in (b,!", "unable to parse requirement: found '!', expected: ',', or identifier", id="a sign in a set"
        ),
        pytest.param(
            "a>b",
            "unable to parse requirement: "
            "values[0]: Invalid value: \"b\": for 'Gt', 'Lt' operators, the value must be an integer",
            id="more than a word",
        ),
        pytest.param(
            "/a",
            'unable to parse requirement: <nil>: Invalid value: "/a": prefix part must be non-empty',
            id="a key that no label can have",
        ),
    ],
)
def test_what_is_no_selector_is_refused_in_kubernetes_words(text: str, problem: str) -> None:
    with pytest.raises(SelectorError) as caught:
        parse_selector(text)
    assert str(caught.value) == problem


@pytest.mark.parametrize("text", [pytest.param("a=-b", id="value"), pytest.param("Foo!.bar=a", id="sign in key")])
def test_labels_that_cannot_exist_are_refused(text: str) -> None:
    with pytest.raises(SelectorError):
        parse_selector(text)


def test_blanks_without_end_cost_no_time() -> None:
    assert str(parse_selector("a=b" + " " * 100_000)) == str(parse_selector("a=b"))
