"""Pods, nodes and tables for plugin tests, written as manifests are: camelCase fields as keyword arguments."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from kubesched.framework import Handle, PodInfo, PodSignature, Verdicts
from kubesched.framework.verdicts import ACCEPT_ALL
from kubesched.k8s.model.core import Node, Pod
from kubesched.scheduler.cluster.cluster import Cluster
from kubesched.scheduler.cluster.view import TableView

NO_HANDLE = cast(Handle, None)
"""For plugins that look at nothing but pod and nodes."""


def pod(name: str = "p", *, uid: str = "", status: dict[str, Any] | None = None, **spec: Any) -> Pod:
    manifest = {
        "metadata": {"name": name, "namespace": "default", "uid": uid},
        "spec": {"containers": [{"name": "main", "image": "app"}], **spec},
        "status": status or {},
    }
    return msgspec.convert(manifest, Pod)


def pod_info(name: str = "p", **fields: Any) -> PodInfo:
    return info_of(pod(name, **fields))


def info_of(of_pod: Pod) -> PodInfo:
    return PodInfo(of_pod, PodSignature(of_pod, label_class=0, affinity_class=-1))


def node(
    name: str,
    *,
    labels: dict[str, str] | None = None,
    status: dict[str, Any] | None = None,
    **spec: Any,
) -> Node:
    return msgspec.convert({"metadata": {"name": name, "labels": labels}, "spec": spec, "status": status or {}}, Node)


def table(*objects: Node | Pod) -> TableView:
    return Cluster.from_objects(objects).nodes


def statuses(verdicts: Verdicts, nodes: TableView) -> dict[str, tuple[str, ...]]:
    """Code and reasons of every node that is rejected."""
    if verdicts is ACCEPT_ALL:
        return {}
    found = {name: verdicts.status(position) for position, name in enumerate(nodes.names)}
    return {name: (status.code.value, *status.reasons) for name, status in found.items() if not status.is_success}
