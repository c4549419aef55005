"""Nodes as a kubelet registers them, made to measure or from manifests; and their signs of life.

Each lease is renewed every so often, and all of them spread evenly over that time. With many nodes the time between two
renewals grows, so that an API server is not kept busy by them alone; the lease says how long it holds.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import msgspec

from kubesched.k8s.client.errors import AnswerLost, ApiError, Unreachable
from kubesched.k8s.client.lease import print_micro_time
from kubesched.k8s.client.requester import MERGE_PATCH, Requester
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


LEASE_PATH = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
SHORTEST_INTERVAL_S = 10.0
RENEWALS_PER_S = 100.0
ROUND_S = 0.5
"""How often a batch is sent."""

_log = logging.getLogger("kubesched.kubelets")


def interval_s(n_nodes: int, shortest_s: float = SHORTEST_INTERVAL_S) -> float:
    """Between two renewals of the same lease."""
    return max(shortest_s, n_nodes / RENEWALS_PER_S)


class LeaseRenewals:
    """Nodes are added with their uid, and dropped by name."""

    def __init__(self, api: Requester, now_s: Callable[[], float] = time.time) -> None:
        self._api = api
        self._now_s = now_s
        self._uids: dict[str, str] = {}
        self._due: dict[str, float] = {}
        self._n_expected = 0

    def expect(self, n_nodes: int) -> None:
        """So many nodes are to come: the first leases must hold until all of them have had their turn."""
        self._n_expected = max(self._n_expected, n_nodes)

    async def create(self, name: str, uid: str) -> None:
        """The first sign of life of a node. Raises ApiError."""
        self._uids[name] = uid
        self._due[name] = asyncio.get_running_loop().time() + self._interval_s() / 2
        moment = print_micro_time(self._now_s())
        await self._api.request("POST", LEASE_PATH, body=msgspec.json.encode(self._lease(name, moment)))

    def add(self, name: str, uid: str) -> None:
        self._uids[name] = uid
        self._due.setdefault(name, 0.0)

    def drop(self, name: str) -> None:
        self._uids.pop(name, None)
        self._due.pop(name, None)

    @property
    def names(self) -> list[str]:
        return list(self._uids)

    async def run(self) -> None:
        events = asyncio.get_running_loop()
        while True:
            await asyncio.gather(*(self._renew(name) for name in self.due(events.time())))
            await asyncio.sleep(ROUND_S)

    def due(self, at_s: float) -> list[str]:
        """Those to be renewed now, and no more than a fair share of all: the first renewals are spread, too."""
        every_s = self._interval_s()
        share = max(4, int(len(self._uids) * ROUND_S / every_s) + 1)
        found = [name for name, due_s in self._due.items() if due_s <= at_s][:share]
        for name in found:
            del self._due[name]  # to the end of the line
            self._due[name] = at_s + every_s
        return found

    async def _renew(self, name: str) -> None:
        moment = print_micro_time(self._now_s())
        patch = {"spec": {"renewTime": moment, "leaseDurationSeconds": self._holds_s()}}
        try:
            try:
                await self._api.request(
                    "PATCH",
                    f"{LEASE_PATH}/{name}",
                    body=msgspec.json.encode(patch),
                    content_type=MERGE_PATCH,
                )
            except ApiError as error:
                if not error.is_not_found or name not in self._uids:
                    raise
                await self._api.request("POST", LEASE_PATH, body=msgspec.json.encode(self._lease(name, moment)))
        except (ApiError, Unreachable, AnswerLost) as failure:
            _log.info("A lease was not renewed", extra={"fields": {"node": name, "err": str(failure)}, "v": 2})

    def _holds_s(self) -> int:
        return int(4 * self._interval_s())

    def _interval_s(self) -> float:
        return interval_s(max(len(self._uids), self._n_expected))

    def _lease(self, name: str, moment: str) -> dict[str, Any]:
        owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": self._uids[name]}
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": name, "namespace": "kube-node-lease", "ownerReferences": [owner]},
            "spec": {"holderIdentity": name, "leaseDurationSeconds": self._holds_s(), "renewTime": moment},
        }
