"""YAML and JSON are read as Kubernetes reads them, and what is repeated or broken is told with its place."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.scheduler.config import ConfigError
from kubesched.scheduler.config.errors import ErrorList
from kubesched.scheduler.config.load import parse


def parsed(text: str | bytes) -> Any:
    errors = ErrorList()
    value = parse(text, "file", errors)
    assert not errors
    return value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("a: 1\nb: [x, 2.5]", {"a": 1, "b": ["x", 2.5]}, id="block and flow style"),
        pytest.param("a: 1\n---\nb: 2", {"a": 1}, id="only the first document counts"),
        pytest.param("---\na: 1", {"a": 1}, id="a document marker at the start"),
        pytest.param("# nothing", None, id="only a comment"),
        pytest.param("a: 2026-01-02", {"a": "2026-01-02"}, id="a date is text"),
        pytest.param("a: 1:30", {"a": "1:30"}, id="a base-60 number is text"),
        pytest.param("a: 1e3", {"a": 1000}, id="an exponent makes a number"),
        pytest.param("a: 1.0", {"a": 1}, id="a number without a fraction is whole"),
        pytest.param("a: 0o17\nb: 017\nc: 0x1f\nd: 0b11", {"a": 15, "b": 15, "c": 31, "d": 3}, id="other bases"),
        pytest.param("a: yes\nb: off\nc: n", {"a": True, "b": False, "c": False}, id="booleans of YAML 1.1"),
        pytest.param("a: 'yes'", {"a": "yes"}, id="quotes make text"),
        pytest.param("a: ~\nb:\nc: null", {"a": None, "b": None, "c": None}, id="nulls"),
        pytest.param("2: a\ntrue: b\nno: c", {"2": "a", "true": "b", "false": "c"}, id="keys become text"),
        pytest.param("a: !!binary aGk=", {"a": "hi"}, id="bytes become text"),
        pytest.param("a: &x {b: 1}\nc: *x", {"a": {"b": 1}, "c": {"b": 1}}, id="an alias"),
        pytest.param("a: &x {b: 1}\nc: {<<: *x, d: 2}", {"a": {"b": 1}, "c": {"b": 1, "d": 2}}, id="a merge key"),
        pytest.param('  {"a": [1, null]}', {"a": [1, None]}, id="JSON"),
        pytest.param('{"a": "\\ud83d\\ude00"}', {"a": "😀"}, id="JSON with an escaped surrogate pair"),
        pytest.param("a: ü".encode(), {"a": "ü"}, id="bytes are UTF-8"),
    ],
)
def test_text_is_read_as_kubernetes_reads_it(text: str | bytes, value: Any) -> None:
    assert parsed(text) == value


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        pytest.param("a: 1\na: 2", ['a: duplicate field "a" (line 2)'], id="at the top"),
        pytest.param(
            "a:\n- b: 1\n  c: 2\n  b: 3\n",
            ['a[0].b: duplicate field "b" (line 4)'],
            id="within a list",
        ),
        pytest.param(
            "a: {b: 1, b: 2}\nc: 1\nc: 2\n",
            ['a.b: duplicate field "b" (line 1)', 'c: duplicate field "c" (line 3)'],
            id="all of them are told",
        ),
        pytest.param('1: a\n"1": b', ['1: duplicate field "1" (line 2)'], id="a number and a text that are alike"),
        pytest.param(
            "a: &x {b: 1, b: 2}\nc: *x", ['a.b: duplicate field "b" (line 1)'], id="under an alias they are told once"
        ),
        pytest.param(
            "a: &x {b: 1}\nc: {<<: *x, b: 2}", ['c.b: duplicate field "b" (line 2)'], id="merged in, and given again"
        ),
        pytest.param('{"a": [{"b": 1, "c": 1, "b": 2}]}', ['a[0].b: duplicate field "b"'], id="in JSON"),
    ],
)
def test_keys_given_twice_are_told_with_their_path(text: str, messages: list[str]) -> None:
    errors = ErrorList()
    parse(text, "file", errors)
    assert [str(error) for error in errors] == messages


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("a: [1\n", "f: line 2, column 1: not YAML: did not find expected ',' or ']'", id="broken YAML"),
        pytest.param('{"a": }', "f: line 1, column 7: Expecting value", id="broken JSON"),
        pytest.param('{"a": NaN}', "f: line 1, column 1: NaN is not a JSON value", id="not a number, in JSON"),
        pytest.param("a: .inf", "f: line 1, column 4: not YAML: json: unsupported value: +Inf", id="infinity, in YAML"),
        pytest.param("~: a", "f: line 1, column 1: not YAML: null cannot be a key", id="a key that is null"),
        pytest.param("a: &x [*x]", "f: line 1, column 8: not YAML: anchor 'x' value contains itself", id="a circle"),
        pytest.param(b"a: \xff", "f: not UTF-8: byte 3 is 0xff", id="not UTF-8"),
        pytest.param('{"a":' * 100_000, "f: nested too deeply", id="a bottomless pit"),
    ],
)
def test_text_that_cannot_be_read_is_one_error(text: str | bytes, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(text, "f", ErrorList())
    assert str(caught.value) == message
