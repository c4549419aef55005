"""Protobuf bodies: as kubectl sends them, and whatever else comes."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.playground.apiserver.http.protobuf import ProtobufError, decode_envelope

_DEPLOYMENT = "azhzAAoVCgdhcHBzL3YxEgpEZXBsb3ltZW50"


def _field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _envelope(api_version: str, kind: str, message: bytes) -> bytes:
    names = _field(1, api_version.encode()) + _field(2, kind.encode())
    return b"k8s\x00" + _field(1, names) + _field(2, message)


def test_strings_maps_and_empty_fields_become_json() -> None:
    labels = _field(11, _field(1, b"a") + _field(2, b"b"))
    metadata = _field(1, _field(1, b"x") + _field(2, b"") + labels + _field(8, b""))
    data = _field(2, _field(1, b"k") + _field(2, b"v"))
    found = decode_envelope(_envelope("v1", "ConfigMap", metadata + data))
    expected = {"metadata": {"name": "x", "labels": {"a": "b"}}, "data": {"k": "v"}}
    assert found == {"kind": "ConfigMap", "apiVersion": "v1", **expected}


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        pytest.param(_field(2, -3), {"value": -3}, id="a negative integer"),
        pytest.param(_field(3, 1), {"globalDefault": True}, id="a truth"),
        pytest.param(_field(5, b"Never"), {"preemptionPolicy": "Never"}, id="a text behind a pointer"),
        pytest.param(_field(99, b"?"), {}, id="an unknown field"),
    ],
)
def test_scalars_of_a_priority_class(message: bytes, expected: dict[str, object]) -> None:
    found = decode_envelope(_envelope("scheduling.k8s.io/v1", "PriorityClass", message))
    assert found == {"kind": "PriorityClass", "apiVersion": "scheduling.k8s.io/v1", **expected}


def test_times_and_quantities_get_their_json_form() -> None:
    time = _field(1, _field(8, _field(1, 1_700_000_000)))
    limits = _field(1, _field(1, b"cpu") + _field(2, _field(1, b"500m")))
    resources = _field(8, limits)
    spec = _field(2, _field(2, _field(1, b"c") + resources))
    found = decode_envelope(_envelope("v1", "Pod", time + spec))
    assert found["metadata"]["creationTimestamp"] == "2023-11-14T22:13:20Z"
    assert found["spec"]["containers"][0]["resources"] == {"limits": {"cpu": "500m"}}


def test_fields_of_inlined_structs_belong_to_the_outer_object() -> None:
    driver = _field(22, _field(1, b"d") + _field(2, b"h"))
    spec = _field(2, driver) + _field(3, b"ReadWriteOnce")
    found = decode_envelope(_envelope("v1", "PersistentVolume", _field(2, spec)))
    assert found["spec"] == {"csi": {"driver": "d", "volumeHandle": "h"}, "accessModes": ["ReadWriteOnce"]}
    volume = _field(1, b"v") + _field(2, _field(2, _field(1, b"Memory")))
    found = decode_envelope(_envelope("v1", "Pod", _field(2, _field(1, volume))))
    assert found["spec"] == {"volumes": [{"name": "v", "emptyDir": {"medium": "Memory"}}]}


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        pytest.param(_field(1, 0) + _field(2, 3), 3, id="a number"),
        pytest.param(_field(1, 1) + _field(3, b"50%"), "50%", id="a text"),
    ],
)
def test_an_int_or_string_is_the_one_or_the_other(sent: bytes, expected: object) -> None:
    found = decode_envelope(_envelope("policy/v1", "PodDisruptionBudget", _field(2, _field(1, sent))))
    assert found["spec"] == {"minAvailable": expected}


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"hello", id="no magic bytes"),
        pytest.param(b"k8s\x00\xff", id="a cut number"),
        pytest.param(b"k8s\x00\x0a\xff\x01", id="a length beyond the end"),
        pytest.param(base64.b64decode(_DEPLOYMENT)[:-4], id="a cut envelope"),
        pytest.param(_envelope("v1", "Nonsense", b""), id="an unknown kind"),
    ],
)
def test_what_is_no_protobuf_is_refused(data: bytes) -> None:
    with pytest.raises(ProtobufError):
        decode_envelope(data)


@given(st.binary(max_size=200))
def test_any_bytes_are_decoded_or_refused(message: bytes) -> None:
    try:
        decode_envelope(_envelope("v1", "Pod", message))
    except ProtobufError:
        return


def test_schemas_of_custom_resources_hold_schemas_booleans_and_values() -> None:
    text = _field(5, b"string")
    items = _field(24, _field(1, text))
    others = _field(30, _field(1, 1) + _field(2, text))
    default = _field(8, _field(1, b'{"a":1}'))
    choice = _field(20, _field(1, b'"x"'))
    schema = _field(5, b"array") + default + choice + items + others
    version = _field(1, b"v1") + _field(4, _field(1, schema))
    found = decode_envelope(
        _envelope("apiextensions.k8s.io/v1", "CustomResourceDefinition", _field(2, _field(7, version)))
    )
    read = found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    string = {"type": "string"}
    assert {name: read[name] for name in ("default", "enum", "items", "additionalProperties")} == {
        "default": {"a": 1},
        "enum": ["x"],
        "items": string,
        "additionalProperties": string,
    }
