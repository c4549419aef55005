"""A Binding as it is posted: in JSON, or in protobuf, which the API server reads in less time.

kube-scheduler's `contentType` decides which. In protobuf only what is set is written; with four short fields it is not
worth a library.

Next: `object_writes`, which posts it.
"""

from __future__ import annotations

import msgspec

PROTOBUF = "application/vnd.kubernetes.protobuf"
_encode = msgspec.json.Encoder().encode


def binding_json(namespace: str, name: str, uid: str, node_name: str) -> bytes:
    return _encode(
        {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name, "namespace": namespace, "uid": uid},
            "target": {"kind": "Node", "name": node_name},
        }
    )


def binding_message(namespace: str, name: str, uid: str, node_name: str) -> bytes:
    metadata = _field(1, name.encode()) + _field(3, namespace.encode()) + _field(5, uid.encode())
    target = _field(1, b"Node") + _field(3, node_name.encode())
    return _BEGIN + _field(2, _field(1, metadata) + _field(2, target))


def _field(number: int, content: bytes) -> bytes:
    """Of a message: a text, or a message in it."""
    size = len(content)
    if size < 128:
        return bytes((number << 3 | 2, size)) + content
    if size < 1 << 14:
        return bytes((number << 3 | 2, size & 127 | 128, size >> 7)) + content
    raise ValueError("too long for a name")


_BEGIN = b"k8s\0" + _field(1, _field(1, b"v1") + _field(2, b"Binding"))
