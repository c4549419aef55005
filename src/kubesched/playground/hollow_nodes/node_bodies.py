"""Nodes as a kubelet registers them: made to measure, or from manifests. Pure functions, JSON out."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass

from kubesched.k8s.model import quantity
from kubesched.k8s.model.times import print_instant
from kubesched.playground.hollow_nodes.pod_play import Body, host_ip

KUBELET_VERSION = "v1.36.4"

_CONDITIONS = {
    "MemoryPressure": ("False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    "DiskPressure": ("False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    "PIDPressure": ("False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    "Ready": ("True", "KubeletReady", "kubelet is posting ready status"),
}


@dataclass(frozen=True, slots=True)
class NodeShape:
    """What the nodes look like that are made by number."""

    cpu: str = "8"
    memory: str = "32Gi"
    pods: int = 110
    zones: int = 3
    prefix: str = "node-"

    def checked(self) -> NodeShape:
        """Itself. Raises QuantityError for amounts that are none."""
        for option, amount in (("--cpu", self.cpu), ("--memory", self.memory)):
            try:
                quantity.parse(amount)
            except quantity.QuantityError as error:
                raise quantity.QuantityError(f"{option} {amount}: {error}") from None
        return self

    def bodies(self, count: int) -> Iterator[Body]:
        for number in range(count):
            name = f"{self.prefix}{number}"
            labels = {"topology.kubernetes.io/zone": f"zone-{number % self.zones}"} if self.zones else {}
            capacity = {"cpu": self.cpu, "memory": self.memory, "pods": str(self.pods), "ephemeral-storage": "100Gi"}
            yield {"metadata": {"name": name, "labels": labels}, "status": {"capacity": capacity}}


def registered(given: Body, now_s: float) -> Body:
    """The node as its kubelet posts it: with what every node has, unless it is given otherwise."""
    body = deepcopy(given)
    metadata = body.setdefault("metadata", {})
    name = metadata["name"]
    for key in ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"):
        metadata.pop(key, None)
    metadata["labels"] = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        **(metadata.get("labels") or {}),
    }
    status = body.setdefault("status", {})
    status.setdefault("capacity", deepcopy(status.get("allocatable") or {}))
    status.setdefault("allocatable", deepcopy(status["capacity"]))
    status.setdefault(
        "addresses", [{"type": "InternalIP", "address": host_ip(name)}, {"type": "Hostname", "address": name}]
    )
    status["nodeInfo"] = {**_node_info(name), **(status.get("nodeInfo") or {})}
    status["conditions"] = conditions_now(now_s)
    return {"apiVersion": "v1", "kind": "Node", **body}


def conditions_now(now_s: float) -> list[Body]:
    """All is well."""
    moment = print_instant(now_s)
    return [
        {
            "type": kind,
            "status": status,
            "reason": reason,
            "message": message,
            "lastHeartbeatTime": moment,
            "lastTransitionTime": moment,
        }
        for kind, (status, reason, message) in _CONDITIONS.items()
    ]


def _node_info(name: str) -> Body:
    return {
        "machineID": name,
        "systemUUID": name,
        "bootID": name,
        "kernelVersion": "hollow",
        "osImage": "hollow node",
        "containerRuntimeVersion": "hollow://1.0",
        "kubeletVersion": KUBELET_VERSION,
        "kubeProxyVersion": "",
        "operatingSystem": "linux",
        "architecture": "amd64",
    }
