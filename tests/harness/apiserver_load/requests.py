"""What is sent to the server: nodes, pods, bindings as kube-scheduler and `kubesched run` post them, patches of a pod's
status.

Requests are made before they are sent, so that making them is not measured. Next: `run.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from harness.apiserver_load.raw_http import ServerAccess

NAMESPACE = "default"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
NODES = "/api/v1/nodes"
_ZONES = 3


def node_name(number: int) -> str:
    return f"node-{number:05d}"


def pod_name(number: int) -> str:
    return f"web-{number:06d}"


def _node(number: int) -> dict[str, Any]:
    name = node_name(number)
    amounts = {"cpu": "32", "memory": "128Gi", "pods": "110", "ephemeral-storage": "200Gi"}
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "topology.kubernetes.io/zone": f"zone-{number % _ZONES}",
        "topology.kubernetes.io/region": "here",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"capacity": amounts, "allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def _pod(number: int) -> dict[str, Any]:
    container = {
        "name": "web",
        "image": "registry.k8s.io/pause:3.9",
        "ports": [{"containerPort": 8080}],
        "env": [{"name": "MODE", "value": "production"}],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
        "readinessProbe": {"httpGet": {"path": "/ready", "port": 8080}},
    }
    metadata = {"name": pod_name(number), "labels": {"app": f"web-{number % 50}", "tier": "front"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}


def _request(access: ServerAccess, method: str, path: str, body: bytes, media_type: str) -> bytes:
    head = access.head(method, path, f"Content-Type: {media_type}\r\nContent-Length: {len(body)}\r\n\r\n")
    return head + body


def node_posts(access: ServerAccess, count: int) -> Iterator[bytes]:
    bodies = (msgspec.json.encode(_node(number)) for number in range(count))
    return iter([_request(access, "POST", NODES, body, "application/json") for body in bodies])


def pod_posts(access: ServerAccess, count: int) -> Iterator[bytes]:
    bodies = (msgspec.json.encode(_pod(number)) for number in range(count))
    return iter([_request(access, "POST", PODS, body, "application/json") for body in bodies])


def _binding_json(pod: str, uid: str, node: str) -> bytes:
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": pod, "namespace": NAMESPACE, "uid": uid},
        "target": {"kind": "Node", "name": node},
    }
    return msgspec.json.encode(binding)


def _message(*fields: tuple[int, str | bytes]) -> bytes:
    """A protobuf message of short strings and messages."""
    parts = []
    for number, value in fields:
        data = value.encode() if isinstance(value, str) else value
        parts.append(bytes((number << 3 | 2,)) + _length(len(data)) + data)
    return b"".join(parts)


def _length(value: int) -> bytes:
    return bytes((value,)) if value < 128 else bytes((value & 127 | 128, value >> 7))


def binding_protobuf(pod: str, uid: str, node: str) -> bytes:
    """As client-go writes it: empty strings of non-pointer fields are there too."""
    times = (8, _message())
    metadata = _message((1, pod), (2, ""), (3, NAMESPACE), (4, ""), (5, uid), (6, ""), times)
    target = _message((1, "Node"), (2, ""), (3, node), (4, ""), (5, ""), (6, ""), (7, ""))
    binding = _message((1, metadata), (2, target))
    return b"k8s\x00" + _message((1, _message((1, "v1"), (2, "Binding"))), (2, binding), (3, ""), (4, ""))


def binding_posts(
    access: ServerAccess, uids: dict[str, str], numbers: range, n_nodes: int, protobuf: bool
) -> Iterator[bytes]:
    """A binding for each of these pods, to the nodes by turns."""
    media_type = "application/vnd.kubernetes.protobuf" if protobuf else "application/json"
    encode = binding_protobuf if protobuf else _binding_json
    posts = []
    for number in numbers:
        pod = pod_name(number)
        body = encode(pod, uids[pod], node_name(number % n_nodes))
        posts.append(_request(access, "POST", f"{PODS}/{pod}/binding", body, media_type))
    return iter(posts)


def status_patches(access: ServerAccess, uids: dict[str, str], numbers: range) -> Iterator[bytes]:
    """Each pod is told to run, as a kubelet tells it."""
    posts = []
    for number in numbers:
        pod = pod_name(number)
        now = "2026-01-01T00:00:00Z"
        conditions = [
            {"type": name, "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
            for name in ("ContainersReady", "Initialized", "Ready")
        ]
        status = {"phase": "Running", "conditions": conditions, "startTime": now, "hostIP": "10.0.0.1"}
        body = msgspec.json.encode({"metadata": {"uid": uids[pod]}, "status": status})
        media_type = "application/strategic-merge-patch+json"
        posts.append(_request(access, "PATCH", f"{PODS}/{pod}/status", body, media_type))
    return iter(posts)
