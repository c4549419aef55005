"""Defaults of objects other than pods, as an API server fills them in when they are written by hand."""

from __future__ import annotations

from msgspec.structs import replace

from kubesched.k8s.model.core import Namespace, Node
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.storage import StorageClass

NAMESPACE_NAME_LABEL = "kubernetes.io/metadata.name"
IMMEDIATE = "Immediate"


def with_object_defaults(item: KubeObject) -> KubeObject:
    if isinstance(item, Node):
        status = item.status
        if status.allocatable is None and status.capacity is not None:
            return replace(item, status=replace(status, allocatable=status.capacity))
    elif isinstance(item, Namespace):
        labels = {**item.labels, NAMESPACE_NAME_LABEL: item.name}
        return replace(item, metadata=replace(item.metadata, labels=labels))
    elif isinstance(item, StorageClass) and item.volume_binding_mode is None:
        return replace(item, volume_binding_mode=IMMEDIATE)
    return item
