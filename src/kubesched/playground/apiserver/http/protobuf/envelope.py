"""The envelope of Kubernetes protobuf: four magic bytes, the kind, and the kind's message.

``decode_envelope`` gives the plain object with kind and apiVersion, as if JSON had been sent. Read ``messages.py``
next.
"""

from __future__ import annotations

from typing import Any

from kubesched.playground.apiserver.http.protobuf.messages import decode_message, text
from kubesched.playground.apiserver.http.protobuf.wire import ProtobufError, fields_of
from kubesched.playground.apiserver.openapi.struct_types import ValueType, struct_type, type_of_kind

__all__ = ["MAGIC", "ProtobufError", "decode_envelope"]

MAGIC = b"k8s\x00"
_META = "io.k8s.apimachinery.pkg.apis.meta.v1."


def decode_envelope(data: bytes) -> dict[str, Any]:
    """The object that was sent."""
    if not data.startswith(MAGIC):
        raise ProtobufError(
            "provided data does not appear to be a protobuf message, expected prefix "
            f"[{' '.join(str(byte) for byte in MAGIC)}]"
        )
    outer = dict(fields_of(data[len(MAGIC) :]))
    named, message = outer.get(1, b""), outer.get(2, b"")
    if isinstance(named, int) or isinstance(message, int):
        raise ProtobufError("proto: wrong wireType = 0")
    names = dict(fields_of(named))
    api_version, kind = text(names.get(1, b"")), text(names.get(2, b""))
    return {"kind": kind, "apiVersion": api_version, **decode_message(message, type_of(api_version, kind))}


def type_of(api_version: str, kind: str) -> ValueType:
    """The type of a kind's message. Raises ProtobufError."""
    group, _, version = api_version.rpartition("/")
    found = type_of_kind(group, version, kind)
    if found is None and kind in ("DeleteOptions", "Status"):
        return struct_type(_META + kind)
    if found is None:
        raise ProtobufError(f'no kind "{kind}" is registered for version "{api_version}"')
    return found
