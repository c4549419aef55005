"""The objects that scenarios make, as JSON: marked with the run that made them, and closed to everybody else.

Next: `site`, which sends them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Manifest = dict[str, Any]

RUN_KEY = "kubesched.testing/run"
"""Label of all that a run made, and taint of its nodes."""
HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"

_COLLECTIONS = {
    "Namespace": "/api/v1/namespaces",
    "Node": "/api/v1/nodes",
    "PersistentVolume": "/api/v1/persistentvolumes",
    "StorageClass": "/apis/storage.k8s.io/v1/storageclasses",
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "Pod": "/api/v1/namespaces/{namespace}/pods",
    "PersistentVolumeClaim": "/api/v1/namespaces/{namespace}/persistentvolumeclaims",
    "ServiceAccount": "/api/v1/namespaces/{namespace}/serviceaccounts",
    "Event": "/apis/events.k8s.io/v1/namespaces/{namespace}/events",
}


def collection(kind: str, namespace: str = "") -> str:
    """The path of all objects of a kind."""
    return _COLLECTIONS[kind].format(namespace=namespace)


def api_version(kind: str) -> str:
    _, _, rest = _COLLECTIONS[kind].partition("/apis/")
    return "v1" if not rest else "/".join(rest.split("/")[:2])


def marked(kind: str, name: str, run_id: str, labels: Mapping[str, str] | None = None, **parts: Any) -> Manifest:
    metadata = {"name": name, "labels": {RUN_KEY: run_id, **(labels or {})}}
    return {"apiVersion": api_version(kind), "kind": kind, "metadata": metadata, **parts}


def node(name: str, run_id: str, *, zone: str, cpu: int) -> Manifest:
    """Nothing runs on it: no kubelet stands behind it."""
    amounts = {"cpu": str(cpu), "memory": "32Gi", "pods": "110", "ephemeral-storage": "100Gi"}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "there is no kubelet"}
    return marked(
        "Node",
        name,
        run_id,
        {HOSTNAME: name, ZONE: zone, "kubernetes.io/os": "linux"},
        spec={"taints": [{"key": RUN_KEY, "value": run_id, "effect": "NoSchedule"}]},
        status={"capacity": amounts, "allocatable": amounts, "conditions": [ready]},
    )


def pod(
    name: str,
    run_id: str,
    scheduler_name: str,
    *,
    cpu: str = "100m",
    labels: Mapping[str, str] | None = None,
    **spec: Any,
) -> Manifest:
    """For the nodes of this run only, whatever taints others put on them; gone at once when it is deleted."""
    container = {
        "name": "main",
        "image": "registry.k8s.io/pause:3.10",
        "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}},
    }
    whole = {
        "schedulerName": scheduler_name,
        "nodeSelector": {RUN_KEY: run_id},
        "tolerations": [{"operator": "Exists"}],
        "terminationGracePeriodSeconds": 0,
        "containers": [container],
        **spec,
    }
    return marked("Pod", name, run_id, labels, spec=whole)


def priority_class(name: str, run_id: str, value: int) -> Manifest:
    return marked("PriorityClass", name, run_id, value=value, globalDefault=False)


def storage_class(name: str, run_id: str) -> Manifest:
    """Volumes are there already, and are chosen when a pod needs one."""
    return marked(
        "StorageClass",
        name,
        run_id,
        provisioner="kubernetes.io/no-provisioner",
        volumeBindingMode="WaitForFirstConsumer",
        reclaimPolicy="Retain",
    )


def volume(name: str, run_id: str, storage_class_name: str, node_name: str) -> Manifest:
    on_node = {"key": HOSTNAME, "operator": "In", "values": [node_name]}
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "persistentVolumeReclaimPolicy": "Retain",
        "storageClassName": storage_class_name,
        "volumeMode": "Filesystem",
        "local": {"path": f"/mnt/{name}"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [on_node]}]}},
    }
    return marked("PersistentVolume", name, run_id, spec=spec)


def claim(name: str, run_id: str, storage_class_name: str) -> Manifest:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": storage_class_name,
        "volumeMode": "Filesystem",
        "resources": {"requests": {"storage": "1Gi"}},
    }
    return marked("PersistentVolumeClaim", name, run_id, spec=spec)
