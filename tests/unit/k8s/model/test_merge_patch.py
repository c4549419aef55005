"""JSON merge patches: all cases of RFC 7396, appendix A, and the way back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.k8s.model.merge_patch import merge_patch, merged

_CASES = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    (["a", "b"], ["c", "d"], ["c", "d"]),
    ({"a": "b"}, ["c"], ["c"]),
    ({"a": "foo"}, None, None),
    ({"a": "foo"}, "bar", "bar"),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]


@pytest.mark.parametrize(("document", "patch", "expected"), _CASES)
def test_the_cases_of_the_standard(document: Any, patch: Any, expected: Any) -> None:
    assert merged(document, patch) == expected


_JSON = st.recursive(
    st.none() | st.integers() | st.text("ab", max_size=2),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text("abc", min_size=1, max_size=1), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(_JSON, _JSON)
def test_a_merge_patch_twice_is_a_merge_patch_once(document: Any, patch: Any) -> None:
    once = merged(document, patch)
    assert merged(once, patch) == once


@pytest.mark.parametrize(
    ("before", "after", "patch"),
    [
        pytest.param({"a": 1}, {"a": 1}, {}, id="nothing changed"),
        pytest.param({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}}, {"a": {"c": 3}}, id="a field inside"),
        pytest.param({"a": 1, "b": 2}, {"b": 2}, {"a": None}, id="a field that goes"),
        pytest.param({"a": [1]}, {"a": [1, 2]}, {"a": [1, 2]}, id="a list, as a whole"),
        pytest.param({}, {"a": None}, {}, id="a field that is to be absent, and is"),
    ],
)
def test_a_merge_patch_has_what_changed(before: dict[str, Any], after: dict[str, Any], patch: dict[str, Any]) -> None:
    assert merge_patch(before, after) == patch


_WITHOUT_NULL = st.recursive(
    st.integers() | st.text("ab", max_size=2),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text("abc", min_size=1, max_size=1), inner, max_size=3)
    ),
    max_leaves=8,
)
_OBJECT = st.dictionaries(st.text("abc", min_size=1, max_size=1), _WITHOUT_NULL, max_size=3)


@given(_OBJECT, _OBJECT)
def test_a_patch_leads_from_one_object_to_the_other(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert merged(before, merge_patch(before, after)) == after
