"""What a word of YAML means: one table for all places that read YAML. The answers are those of sigs.k8s.io/yaml."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kubesched.k8s.model import kubernetes_yaml
from kubesched.k8s.model.kubernetes_yaml import load_document, load_documents, needs_quotes, plain_yaml
from kubesched.playground.apiserver.body_text import YamlTextError, dump_yaml, load_yaml
from kubesched.playground.manifests import read_documents
from kubesched.scheduler.config.errors import ErrorList
from kubesched.scheduler.config.load import parse
from kubesched.simulator.bench.templates import parse_template

SCALARS: list[tuple[str, Any]] = [
    ("1:30", "1:30"),
    ("190:20:30", "190:20:30"),
    ("1e3", 1000),
    ("1E3", 1000),
    ("+1e2", 100),
    ("12e03", 12000),
    ("1e", "1e"),
    ("1e400", "1e400"),
    ("1e20", 1e20),
    ("1e-7", 1e-7),
    ("1_2e1_0", 120000000000),
    ("0o17", 15),
    ("017", 15),
    ("08", 8),
    ("0_8", 8),
    ("00", 0),
    ("0o", "0o"),
    ("0x1F", 31),
    ("0X1f", 31),
    ("0x1p-2", "0x1p-2"),
    ("0xfffffffffffffffff", "0xfffffffffffffffff"),
    ("0777777777777777777777777", 7.777777777777778e23),
    ("0b101", 5),
    ("-0b11", -3),
    ("+0b11", 3),
    ("0b12", "0b12"),
    ("0b_", "0b_"),
    ("1_000", 1000),
    ("1_000.5", 1000.5),
    ("685_230.15", 685230.15),
    ("_1", "_1"),
    ("-_5", -5),
    ("5_", 5),
    (".5", 0.5),
    (".5_0", 0.5),
    ("._5", "._5"),
    ("+.5", 0.5),
    ("1.", 1),
    ("1.0", 1),
    ("1.50", 1.5),
    ("1.2.3", "1.2.3"),
    ("+1", 1),
    ("+", "+"),
    ("-0", 0),
    ("18446744073709551615", 18446744073709551615),
    ("18446744073709551616", 18446744073709551616.0),
    ("-9223372036854775808", -9223372036854775808),
    ("123456789012345678901", 123456789012345680000.0),
    ("2026-01-01", "2026-01-01"),
    ("2026-01-01T10:00:00Z", "2026-01-01T10:00:00Z"),
    ("!!timestamp 2026-01-01", "2026-01-01"),
    ("y", True),
    ("Y", True),
    ("yes", True),
    ("on", True),
    ("TRUE", True),
    ("n", False),
    ("Off", False),
    ("yEs", "yEs"),
    ("~", None),
    ("null", None),
    ("", None),
    ("nULL", "nULL"),
    ('"1"', "1"),
    ("'1e3'", "1e3"),
    ('"y"', "y"),
    ("!!str 1", "1"),
    ('!!int "5"', 5),
    ("!!float 5", 5),
    ("!!binary aGk=", "hi"),
    ("!!set {b, c}", {"b": None, "c": None}),
    ("=", "="),
]

KEYS = [
    ("1", "1"),
    ("1.5", "1.5"),
    ("0.1", "0.1"),
    ("1e3", "1000"),
    ("1e6", "1e+06"),
    ("1234567.0", "1.234567e+06"),
    ("0.00001", "1e-05"),
    ("0.0012", "0.0012"),
    (".inf", ".inf"),
    ("y", "true"),
    ("off", "false"),
    ("2026-01-01", "2026-01-01"),
    ("1:30", "1:30"),
    ("0o17", "15"),
]

REFUSED = [
    (".inf", "json: unsupported value: +Inf"),
    ("-.INF", "json: unsupported value: -Inf"),
    (".nan", "json: unsupported value: NaN"),
    ("!!int foo", "cannot decode !!str `foo` as a !!int"),
    ("!!bool foo", "cannot decode !!str `foo` as a !!bool"),
    ("{~: a}", "null cannot be a key"),
    ("!!binary '*'", "!!binary value contains invalid base64 data"),
]

_HEAD = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"


def _everywhere(text: str) -> dict[str, Any]:
    """What each reader makes of the value of a field."""
    document = f"{_HEAD}a: {text}\n"
    errors = ErrorList()
    return {
        "manifests": next(load_documents(document))["a"],
        "request bodies": load_yaml(document.encode())["a"],
        "kubesched up": read_documents(document.encode(), "x.yaml")[0]["a"],
        "configuration": parse(document, "x.yaml", errors)["a"],
        "bench templates": parse_template(document, "x.yaml").manifest()["a"],
    }


@pytest.mark.parametrize(("text", "value"), SCALARS)
def test_a_word_means_the_same_in_every_reader(text: str, value: object) -> None:
    found = _everywhere(text)
    assert {place: (type(read), read) for place, read in found.items()} == dict.fromkeys(found, (type(value), value))


@pytest.mark.parametrize(("text", "key"), KEYS)
def test_keys_become_texts(text: str, key: str) -> None:
    found = _everywhere(f"\n  {text}: b")
    assert found == {place: {key: "b"} for place in found}


@pytest.mark.parametrize(("text", "problem"), REFUSED)
def test_what_json_cannot_hold_is_refused(text: str, problem: str) -> None:
    with pytest.raises(yaml.MarkedYAMLError) as caught:
        load_document(f"b: 1\na: {text}")
    assert caught.value.problem == problem
    assert caught.value.problem_mark is not None and caught.value.problem_mark.line == 1
    with pytest.raises(YamlTextError, match="^" + problem.replace("+", r"\+").replace("*", r"\*")):
        load_yaml(f"a: {text}".encode())


def test_of_equal_keys_the_last_counts() -> None:
    assert load_document('{1: a, "1": b}') == {"1": "b"}


def test_merged_mappings_give_what_is_not_given() -> None:
    assert load_document("a: &x {b: 1, c: 2}\nd: {<<: *x, b: 3}")["d"] == {"b": 3, "c": 2}


def test_a_bench_template_reads_again_what_was_filled_in() -> None:
    template = parse_template(_HEAD + "a: 1e{{ .Index }}\nb: {1e{{ .Index }}: y}\n", "x.yaml")
    found = template.manifest(template.values(3))
    assert (found["a"], found["b"]) == (1000, {"1000": True})


@given(st.text(alphabet=st.sampled_from("0123456789+-._:eExXoObByYnN~<=aT"), max_size=12))
def test_texts_are_written_so_that_they_are_read_again(text: str) -> None:
    assert load_document(plain_yaml({"a": text, text: 1})) == {"a": text, text: 1}
    assert load_yaml(dump_yaml({"a": text})) == {"a": text}
    assert yaml.safe_load(plain_yaml({"a": text})) == {"a": text}, "a reader by other rules"
    if not needs_quotes(text) and text.isalnum():
        assert load_document(f"a: {text}") == {"a": text}


_numbers = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
_values = st.recursive(
    st.none() | st.booleans() | _numbers | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(_values)
def test_what_is_written_is_read_as_json_would_be(value: object) -> None:
    written = load_document(plain_yaml(value))
    assert written == msgspec.json.decode(json.dumps(value))


def test_no_other_module_chooses_how_yaml_is_read() -> None:
    source = Path(kubernetes_yaml.__file__).parents[2]
    elsewhere = [
        str(file.relative_to(source))
        for file in source.rglob("*.py")
        if file.name not in ("kubernetes_yaml.py", "bounded_yaml.py")
        and any(name in file.read_text() for name in ("SafeLoader", "yaml.safe_load", "yaml.load"))
    ]
    assert elsewhere == []
