"""Bindings read the quick way say what they say when read by the schema; anything unusual is left to the schema."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.apiserver_load.requests import binding_protobuf
from kubesched.playground.apiserver.http.bodies import plain_binding
from kubesched.playground.apiserver.http.protobuf import decode_envelope

JSON, PROTOBUF = "application/json", "application/vnd.kubernetes.protobuf"


def _binding(**changed: Any) -> dict[str, Any]:
    metadata = {"name": "p", "namespace": "n", "uid": "u"}
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": metadata,
        "target": {"kind": "Node", "name": "m"},
        **changed,
    }


def _set_fields(found: dict[str, Any]) -> dict[str, Any]:
    """Without what is empty: absent and empty mean the same in a binding."""
    return {part: {name: v for name, v in found[part].items() if v} for part in ("metadata", "target")}


def test_a_binding_in_json_keeps_all_that_binding_looks_at() -> None:
    metadata = {"name": "p", "uid": "u", "resourceVersion": "7", "labels": {"a": "b"}, "annotations": {"c": "d"}}
    found = plain_binding(msgspec.json.encode(_binding(metadata=metadata)), JSON)
    assert found is not None
    assert _set_fields(found) == {"metadata": metadata, "target": {"kind": "Node", "name": "m"}}


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(_binding(kind="Pod"), id="another kind"),
        pytest.param(_binding(apiVersion="v2"), id="another version"),
        pytest.param(_binding(spec={}), id="an unknown field"),
        pytest.param(_binding(target=None), id="no target"),
        pytest.param(_binding(metadata={"name": 5}), id="a wrong type"),
        pytest.param(_binding(target={"kind": "Node", "name": "m", "uid": "x"}), id="a field that is seldom sent"),
        pytest.param([], id="no object"),
    ],
)
def test_unusual_bindings_are_left_to_the_schema(body: Any) -> None:
    assert plain_binding(msgspec.json.encode(body), JSON) is None


@given(st.text(max_size=20), st.text(max_size=20), st.text(max_size=20))
def test_protobuf_says_the_same_as_read_by_the_schema(pod: str, uid: str, node: str) -> None:
    data = binding_protobuf(pod, uid, node)
    found = plain_binding(data, PROTOBUF)
    assert found is not None
    assert _set_fields(found) == _set_fields(decode_envelope(data))


@given(st.binary(max_size=60))
def test_no_protobuf_at_all_is_left_to_the_schema(rest: bytes) -> None:
    """Never an exception, whatever comes; also a number where a message should be."""
    assert plain_binding(b"k8s\x00" + b"\x08\x01" + rest, PROTOBUF) is None
    plain_binding(b"k8s\x00" + rest, PROTOBUF)
    plain_binding(binding_protobuf("p", "u", "n")[: len(rest)] + rest, PROTOBUF)
    assert plain_binding(rest, "text/plain") is None
