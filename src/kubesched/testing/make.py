"""Manifests with keyword arguments: valid objects with nothing surprising in them.

make.node("a", cpu="4", memory="8Gi", labels={"disk": "ssd"}, taints=[make.taint("gpu")])
make.pod("web-1", cpu="500m", on="a", tolerations=[make.toleration("gpu")])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Manifest = dict[str, Any]

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"


def node(
    name: str,
    *,
    cpu: str | int = "4",
    memory: str | int = "8Gi",
    pods: int = 110,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Manifest] = (),
    unschedulable: bool = False,
    images: Mapping[str, int] | None = None,
    allocatable: Mapping[str, str | int] | None = None,
) -> Manifest:
    """A node with its hostname label. `images` are sizes in bytes by name."""
    spec: Manifest = {}
    if taints:
        spec["taints"] = list(taints)
    if unschedulable:
        spec["unschedulable"] = True
    status: Manifest = {"allocatable": {"cpu": cpu, "memory": memory, "pods": pods, **(allocatable or {})}}
    if images:
        status["images"] = [{"names": [image], "sizeBytes": size} for image, size in images.items()]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {HOSTNAME: name, **(labels or {})}},
        "spec": spec,
        "status": status,
    }


def pod(
    name: str,
    *,
    namespace: str = "default",
    on: str = "",
    cpu: str | int | None = None,
    memory: str | int | None = None,
    requests: Mapping[str, str | int] | None = None,
    labels: Mapping[str, str] | None = None,
    priority: int = 0,
    host_ports: Sequence[int] = (),
    image: str = "example.com/app:1",
    started: str = "",
    spec: Manifest | None = None,
    status: Manifest | None = None,
    metadata: Manifest | None = None,
) -> Manifest:
    """A pod of one container. `spec`, `status` and `metadata` add any other field."""
    amounts: Manifest = dict(requests or {})
    if cpu is not None:
        amounts["cpu"] = cpu
    if memory is not None:
        amounts["memory"] = memory
    container: Manifest = {"name": "main", "image": image, "resources": {"requests": amounts}}
    if host_ports:
        container["ports"] = [{"containerPort": port, "hostPort": port, "protocol": "TCP"} for port in host_ports]
    full_spec: Manifest = {"containers": [container], "priority": priority, **(spec or {})}
    full_status: Manifest = {"phase": "Running" if on else "Pending", **(status or {})}
    if on:
        full_spec["nodeName"] = on
    if started:
        full_status["startTime"] = started
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{namespace}-{name}",
            "labels": dict(labels or {}),
            **(metadata or {}),
        },
        "spec": full_spec,
        "status": full_status,
    }


def taint(key: str, value: str = "", effect: str = "NoSchedule") -> Manifest:
    return {"key": key, "value": value, "effect": effect}


def toleration(key: str = "", *, operator: str = "Exists", value: str = "", effect: str = "") -> Manifest:
    return {"key": key, "operator": operator, "value": value, "effect": effect}


def spread(key: str, *, max_skew: int = 1, hard: bool = True, labels: Mapping[str, str]) -> Manifest:
    return {
        "maxSkew": max_skew,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule" if hard else "ScheduleAnyway",
        "labelSelector": {"matchLabels": dict(labels)},
    }


def affinity_term(key: str, labels: Mapping[str, str]) -> Manifest:
    return {"topologyKey": key, "labelSelector": {"matchLabels": dict(labels)}}


def budget(name: str, labels: Mapping[str, str], *, allowed: int, namespace: str = "default") -> Manifest:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": {"matchLabels": dict(labels)}},
        "status": {"disruptionsAllowed": allowed},
    }
