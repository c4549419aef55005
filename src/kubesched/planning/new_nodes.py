"""The node that a bought machine becomes: the one place where an offer turns into objects."""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec.structs import replace

from kubesched.k8s.model.core import Node, NodeCondition, NodeSpec, NodeStatus
from kubesched.k8s.model.meta import KubeObject, ObjectMeta
from kubesched.k8s.model.storage import CSINode, CSINodeDriver, CSINodeSpec, VolumeNodeResources
from kubesched.planning.catalogue import Option

HOSTNAME = "kubernetes.io/hostname"
_NOT_IN_NAMES = re.compile(r"[^a-z0-9.-]+")
_LONGEST_STEM = 200


def node_name(option: Option, number: int) -> str:
    stem = "-".join(part for part in ("new", *option.name.lower().split("/")) if part)
    return f"{_NOT_IN_NAMES.sub('-', stem)[:_LONGEST_STEM].strip('-.')}-{number}"


def node_from_offer(option: Option, number: int) -> list[KubeObject]:
    """A ready node of this option, and the CSINode beside it if the shape limits volumes. Start-up taints are gone by
    the time that pods are placed, so a new node has none."""
    name = node_name(option, number)
    node = Node(
        metadata=ObjectMeta(name=name, labels={**option.labels, HOSTNAME: name}),
        spec=NodeSpec(taints=option.taints or None),
        status=NodeStatus(
            allocatable=dict(option.shape.allocatable),
            capacity=dict(option.shape.capacity),
            conditions=(NodeCondition("Ready", "True"),),
        ),
    )
    if not option.shape.volume_limits:
        return [node]
    drivers = tuple(
        CSINodeDriver(name=driver, node_id=name, allocatable=VolumeNodeResources(count=most))
        for driver, most in sorted(option.shape.volume_limits.items())
    )
    return [node, CSINode(metadata=ObjectMeta(name=name), spec=CSINodeSpec(drivers=drivers))]


def sample_node(option: Option, number: int) -> list[KubeObject]:
    """A node of an option to ask about, under a name that no other node has."""
    node, *others = node_from_offer(option, number)
    name = f"{node.name}-sample-{number}"
    return [replace(one, metadata=_renamed(one.metadata, name)) for one in (node, *others)]


def _renamed(metadata: ObjectMeta, name: str) -> ObjectMeta:
    labels = {key: name if value == metadata.name else value for key, value in (metadata.labels or {}).items()}
    return replace(metadata, name=name, labels=labels or None)


def manifest_of(item: KubeObject) -> dict[str, Any]:
    """A new node, or what comes with it, as a manifest to create it by."""
    kind = type(item).__name__
    version = "v1" if kind == "Node" else "storage.k8s.io/v1"
    return {"apiVersion": version, "kind": kind, **msgspec.json.decode(msgspec.json.encode(item))}
