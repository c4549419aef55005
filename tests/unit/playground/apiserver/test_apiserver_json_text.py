"""JSON that cannot be read is told in the words of Go's decoder; what it repairs is repaired."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.playground.apiserver.body_text import YamlTextError, go_json_error, load_yaml, read_json
from kubesched.playground.apiserver.patching.json_patch import as_written


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(b"", "unexpected end of JSON input", id="nothing"),
        pytest.param(b'{"a":', "unexpected end of JSON input", id="the end too early"),
        pytest.param(b"tru", "invalid character ' ' in literal true (expecting 'e')", id="half a literal"),
        pytest.param(b'{"a":tru}', "invalid character '}' in literal true (expecting 'e')", id="a wrong literal"),
        pytest.param(b'{"a":01}', "invalid character '1' after object key:value pair", id="a leading zero"),
        pytest.param(b'{"a":1.}', "invalid character '}' after decimal point in numeric literal", id="no decimals"),
        pytest.param(b'{"a":1e}', "invalid character '}' in exponent of numeric literal", id="no exponent"),
        pytest.param(b'{"a":-}', "invalid character '}' in numeric literal", id="a lone minus"),
        pytest.param(b"{'a':1}", "invalid character '\\'' looking for beginning of object key string", id="quotes"),
        pytest.param(b'{"a"}', "invalid character '}' after object key", id="no value"),
        pytest.param(b"[1 2]", "invalid character '2' after array element", id="no comma"),
        pytest.param(b'{"a":"\n"}', "invalid character '\\n' in string literal", id="a line break in a text"),
        pytest.param(b'{"a":"\\x"}', "invalid character 'x' in string escape code", id="an unknown escape"),
        pytest.param(b'{"a":"\\u12"}', "invalid character '\"' in \\u hexadecimal character escape", id="too short"),
        pytest.param(b"{} x", "invalid character 'x' after top-level value", id="something behind it"),
        pytest.param(b"\xff", "invalid character 'ÿ' looking for beginning of value", id="no text at all"),
        pytest.param(b"[" * 20_000, "exceeded max depth", id="too deep"),
    ],
)
def test_what_go_says_about_text_that_is_no_json(text: bytes, expected: str) -> None:
    with pytest.raises(ValueError, match=r".") as refusal:
        read_json(text)
    assert str(refusal.value) == expected


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner)))
def test_good_json_has_no_mistake(value: object) -> None:
    assert go_json_error(json.dumps(value).encode()) == ""


def test_broken_characters_are_replaced() -> None:
    assert read_json(b'{"a":"\\ud800"}') == {"a": "\ufffd"}
    assert read_json(b'["\xff"]') == ["\ufffd"]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b"[" * 30_000, id="deep lists"),
        pytest.param(b"- " * 30_000, id="deep blocks"),
        pytest.param(b"&a [*a]", id="a list in itself"),
        pytest.param(b"a: &a [%b]\n" % (b"1," * 5000) + b"".join(b"b%d: *a\n" % n for n in range(20)), id="copies"),
        pytest.param(b"a: &a {x: 1}\n" + b"b: {<<: [%b]}\n" % (b"*a," * 60_000), id="merged copies"),
        pytest.param(b"- a\n" * 200_000, id="a long list"),
    ],
)
def test_yaml_that_would_break_the_server_is_refused(text: bytes) -> None:
    with pytest.raises(YamlTextError):
        load_yaml(text)


def test_yaml_may_repeat_itself_a_little() -> None:
    text = b"a: &a [1]\n" + b"".join(b"b%d: *a\n" % n for n in range(20))
    assert load_yaml(text) == {"a": [1], **{f"b{n}": [1] for n in range(20)}}


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        pytest.param({"b": {"y": 1}}, {"a": {"z": 1, "y": 2}, "b": {"x": 0, "y": 1}}, id="a merge patch"),
        pytest.param([{"op": "add", "path": "/b/y"}], {"a": {"z": 1, "y": 2}, "b": {"x": 0, "y": 1}}, id="operations"),
    ],
)
def test_keys_are_sorted_where_a_patch_reached(patch: object, expected: dict[str, dict[str, int]]) -> None:
    shown = as_written({"b": {"y": 1, "x": 0}, "a": {"z": 1, "y": 2}}, patch)
    assert list(shown) == list(expected)
    assert [list(shown[name]) for name in shown] == [list(expected[name]) for name in expected]
