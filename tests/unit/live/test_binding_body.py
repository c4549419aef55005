"""Both forms of a binding say the same, as the API server's own schema reads them."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.live.writes.binding_body import binding_json, binding_message
from kubesched.playground.apiserver.http.protobuf import decode_envelope

NAMES = st.text(min_size=1, max_size=260)


@given(NAMES, NAMES, NAMES, NAMES)
def test_protobuf_says_what_json_says(namespace: str, name: str, uid: str, node_name: str) -> None:
    read = decode_envelope(binding_message(namespace, name, uid, node_name))
    assert read == msgspec.json.decode(binding_json(namespace, name, uid, node_name))


def test_its_bytes() -> None:
    """As protobuf's wire format has them: the magic, the kind, then metadata (1, 3, 5) and target (1, 3)."""
    found = binding_message("ns", "web", "u-1", "node-7")
    metadata, target = b"\x0a\x03web\x1a\x02ns\x2a\x03u-1", b"\x0a\x04Node\x1a\x06node-7"
    binding = b"\x0a\x0e" + metadata + b"\x12\x0e" + target
    assert found == b"k8s\0\x0a\x0d\x0a\x02v1\x12\x07Binding\x12\x20" + binding


def test_what_cannot_be_a_name_is_refused() -> None:
    with pytest.raises(ValueError, match="too long for a name"):
        binding_message("ns", "x" * 20_000, "", "")
