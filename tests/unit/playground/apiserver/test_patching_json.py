"""JSON patch: the cases of RFC 6902, and what the server answers when a patch does not fit."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.playground.apiserver.errors import StatusError
from kubesched.playground.apiserver.patching import json_patch


@pytest.mark.parametrize(
    ("document", "operations", "expected"),
    [
        pytest.param(
            {"foo": "bar"},
            [{"op": "add", "path": "/baz", "value": "qux"}],
            {"baz": "qux", "foo": "bar"},
            id="A.1 a member",
        ),
        pytest.param(
            {"foo": ["bar", "baz"]},
            [{"op": "add", "path": "/foo/1", "value": "qux"}],
            {"foo": ["bar", "qux", "baz"]},
            id="A.2 an element",
        ),
        pytest.param({"baz": "qux", "foo": 1}, [{"op": "remove", "path": "/baz"}], {"foo": 1}, id="A.3 a member away"),
        pytest.param(
            {"foo": ["bar", "qux"]}, [{"op": "remove", "path": "/foo/1"}], {"foo": ["bar"]}, id="A.4 an element away"
        ),
        pytest.param({"a": 1}, [{"op": "replace", "path": "/a", "value": 2}], {"a": 2}, id="A.5 a value"),
        pytest.param(
            {"foo": {"bar": "baz", "waldo": "fred"}, "qux": {"corge": "grault"}},
            [{"op": "move", "from": "/foo/waldo", "path": "/qux/thud"}],
            {"foo": {"bar": "baz"}, "qux": {"corge": "grault", "thud": "fred"}},
            id="A.6 a value moves",
        ),
        pytest.param(
            {"foo": ["all", "grass", "cows", "eat"]},
            [{"op": "move", "from": "/foo/1", "path": "/foo/3"}],
            {"foo": ["all", "cows", "eat", "grass"]},
            id="A.7 an element moves",
        ),
        pytest.param(
            {"baz": "qux", "foo": ["a", 2, "c"]},
            [{"op": "test", "path": "/baz", "value": "qux"}, {"op": "test", "path": "/foo/1", "value": 2}],
            {"baz": "qux", "foo": ["a", 2, "c"]},
            id="A.8 tests that hold",
        ),
        pytest.param(
            {"foo": "bar"},
            [{"op": "add", "path": "/child", "value": {"grandchild": {}}}],
            {"foo": "bar", "child": {"grandchild": {}}},
            id="A.10 a nested member",
        ),
        pytest.param(
            {"foo": "bar"},
            [{"op": "add", "path": "/baz", "value": 1, "xyz": 2}],
            {"foo": "bar", "baz": 1},
            id="A.11 unknown keys are ignored",
        ),
        pytest.param(
            {"/": 9, "~1": 10}, [{"op": "test", "path": "/~01", "value": 10}], {"/": 9, "~1": 10}, id="A.14 escapes"
        ),
        pytest.param(
            {"foo": ["bar"]},
            [{"op": "add", "path": "/foo/-", "value": ["abc", "def"]}],
            {"foo": ["bar", ["abc", "def"]]},
            id="A.16 at the end",
        ),
        pytest.param(
            {"a": {"b": 1}}, [{"op": "copy", "from": "/a", "path": "/c"}], {"a": {"b": 1}, "c": {"b": 1}}, id="copy"
        ),
        pytest.param({"a": 1}, [{"op": "replace", "path": "", "value": {"b": 2}}], {"b": 2}, id="the whole document"),
    ],
)
def test_operations_that_fit(document: Any, operations: list[Any], expected: Any) -> None:
    before = copy.deepcopy(document)
    assert json_patch.apply(document, operations) == expected
    assert document == before


@pytest.mark.parametrize(
    "operation",
    [
        pytest.param({"op": "test", "path": "/a", "value": 2}, id="A.9 a test that fails"),
        pytest.param({"op": "test", "path": "/t", "value": 1}, id="true is not one"),
        pytest.param({"op": "add", "path": "/no/parent", "value": 1}, id="A.12 no parent"),
        pytest.param({"op": "remove", "path": "/missing"}, id="nothing to remove"),
        pytest.param({"op": "add", "path": "/list/9", "value": 1}, id="beyond the list"),
        pytest.param({"op": "remove", "path": f"/list/{'9' * 5000}"}, id="a place of 5,000 digits"),
        pytest.param({"op": "add", "path": "/o" * 600, "value": 1}, id="600 levels down"),
        pytest.param({"op": "remove", "path": "/list/-"}, id="the end cannot be removed"),
        pytest.param({"op": "frobnicate", "path": "/a"}, id="an unknown operation"),
        pytest.param({"op": "add", "path": "a", "value": 1}, id="a path without a slash"),
        pytest.param({"op": "move", "from": "/o", "path": "/o/p"}, id="into itself"),
    ],
)
def test_operations_that_do_not_fit_are_refused_alike(operation: Any) -> None:
    with pytest.raises(StatusError) as refusal:
        json_patch.apply({"a": 1, "t": True, "list": [1], "o": {}}, [operation])
    assert (refusal.value.code, refusal.value.reason) == (422, "Invalid")


def test_a_patch_that_is_no_list_is_a_bad_request() -> None:
    with pytest.raises(StatusError) as refusal:
        json_patch.apply({}, {"op": "add"})
    assert refusal.value.code == 400
    assert refusal.value.message == (
        "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"
    )


def test_copies_that_double_are_refused_before_they_fill_the_memory() -> None:
    operations = [{"op": "copy", "from": "", "path": f"/{number}"} for number in range(40)]
    with pytest.raises(StatusError) as refusal:
        json_patch.apply({"a": "x" * 1000}, operations)
    assert (refusal.value.code, refusal.value.reason) == (422, "Invalid")
    assert refusal.value.message == "the server rejected our request due to an error in our request"


def test_copies_count_together_up_to_three_mebibytes() -> None:
    mebibyte = {"a": "x" * (1024 * 1024 - 2)}
    copies = [{"op": "copy", "from": "/a", "path": f"/copy{number}"} for number in range(4)]
    assert len(json_patch.apply(mebibyte, copies[:3])) == 4
    with pytest.raises(StatusError):
        json_patch.apply(mebibyte, copies)


def test_copies_into_themselves_end() -> None:
    operations = [{"op": "copy", "from": "/a", "path": "/a" * depth} for depth in range(2, 400)]
    with pytest.raises(StatusError) as refusal:
        json_patch.apply({"a": {}}, operations)
    assert refusal.value.code == 422


def test_too_many_operations_are_refused_in_the_real_words() -> None:
    with pytest.raises(StatusError) as refusal:
        json_patch.apply({}, [{"op": "add", "path": "/a", "value": 1}] * 10_001)
    assert (refusal.value.code, refusal.value.reason) == (413, "RequestEntityTooLarge")
    assert refusal.value.message == (
        "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001"
    )
    assert len(json_patch.apply({}, [{"op": "add", "path": "/a", "value": 1}] * 10_000)) == 1


_NAMES = st.text("ab/~", min_size=1, max_size=3)
_DOCUMENTS = st.dictionaries(_NAMES, st.integers() | st.dictionaries(_NAMES, st.integers(), max_size=2), max_size=4)


@given(_DOCUMENTS, _NAMES, st.integers())
def test_adding_then_removing_a_new_member_changes_nothing(document: dict[str, Any], name: str, value: int) -> None:
    document.pop(name, None)
    path = "/" + name.replace("~", "~0").replace("/", "~1")
    operations = [{"op": "add", "path": path, "value": value}, {"op": "test", "path": path, "value": value}]
    added = json_patch.apply(document, operations)
    assert added == {**document, name: value}
    assert json_patch.apply(added, [{"op": "remove", "path": path}]) == document


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        pytest.param({"op": "replace", "path": "/b", "value": 1}, {"a": [1, 2], "b": 1}, id="replace nothing"),
        pytest.param({"op": "add", "path": "/b"}, {"a": [1, 2], "b": None}, id="no value is null"),
        pytest.param({"op": "copy", "from": "/b", "path": "/c"}, {"a": [1, 2], "c": None}, id="copy what is not there"),
        pytest.param({"op": "test", "path": "/b"}, {"a": [1, 2]}, id="what is not there is null"),
        pytest.param({"op": "remove", "path": "/a/-1"}, {"a": [1]}, id="from the end"),
        pytest.param({"op": "add", "path": "/a/01", "value": 3}, {"a": [1, 3, 2]}, id="a leading zero"),
        pytest.param({"op": "replace", "path": "", "value": {"c": 1}}, {"c": 1}, id="all of it"),
    ],
)
def test_more_than_the_standard_is_taken(operation: dict[str, Any], expected: dict[str, Any]) -> None:
    assert json_patch.apply({"a": [1, 2]}, [operation]) == expected
