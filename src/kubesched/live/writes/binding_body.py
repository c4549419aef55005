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
    """In one go: it is done for every pod that is bound, while others wait for it."""
    pod, space, id_, node = name.encode(), namespace.encode(), uid.encode(), node_name.encode()
    try:
        metadata = b"\x0a%b%b\x1a%b%b\x2a%b%b" % (
            _SIZES[len(pod)],
            pod,
            _SIZES[len(space)],
            space,
            _SIZES[len(id_)],
            id_,
        )
        target = b"\x0a\x04Node\x1a%b%b" % (_SIZES[len(node)], node)
        binding = b"\x0a%b%b\x12%b%b" % (_SIZES[len(metadata)], metadata, _SIZES[len(target)], target)
        return b"%b\x12%b%b" % (_BEGIN, _SIZES[len(binding)], binding)
    except IndexError:
        raise ValueError("too long for a name") from None


_SIZES = [bytes((size,)) if size < 128 else bytes((size & 127 | 128, size >> 7)) for size in range(4096)]
"""As they are written before a text, or before a message in a message."""
_BEGIN = b"k8s\0\x0a\x0d\x0a\x02v1\x12\x07Binding"
