"""What pods run on, and what changes of it: nodes with zones, disks, taints, images and devices; classes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from random import Random
from typing import Any

import msgspec

from harness.agreement.pods import (
    CSI_DRIVER,
    DEDICATED,
    DEVICE_CLASS,
    DISK,
    DRIVER,
    HOSTNAME,
    IMAGES,
    LOCAL,
    NAMESPACES,
    PRIORITIES,
    PROVISIONED,
    WIDGET,
    ZONE,
    ZONES,
    Manifest,
)
from kubesched.k8s.client.errors import ApiError
from kubesched.k8s.client.requester import MERGE_PATCH
from kubesched.k8s.client.rest import RestClient

AT_ONCE = 16

_PATHS = {
    "Namespace": "/api/v1/namespaces",
    "Node": "/api/v1/nodes",
    "PersistentVolume": "/api/v1/persistentvolumes",
    "StorageClass": "/apis/storage.k8s.io/v1/storageclasses",
    "CSIDriver": "/apis/storage.k8s.io/v1/csidrivers",
    "CSINode": "/apis/storage.k8s.io/v1/csinodes",
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "DeviceClass": "/apis/resource.k8s.io/v1/deviceclasses",
    "ResourceSlice": "/apis/resource.k8s.io/v1/resourceslices",
    "Pod": "/api/v1/namespaces/{}/pods",
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
    "PersistentVolumeClaim": "/api/v1/namespaces/{}/persistentvolumeclaims",
    "ResourceClaim": "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims",
}
_NO_MORE = msgspec.json.encode({"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0})


def path_of(kind: str, name: str, namespace: str = "", part: str = "") -> str:
    whole = f"{_PATHS[kind].format(namespace)}/{name}"
    return f"{whole}/{part}" if part else whole


class Server:
    """An API server, as far as this needs it."""

    def __init__(self, client: RestClient) -> None:
        self.client = client

    async def create(self, manifest: Manifest) -> Manifest:
        """As it is then; what is there already stays."""
        metadata = manifest["metadata"]
        path = _PATHS[manifest["kind"]].format(metadata.get("namespace", ""))
        try:
            made = await self.client.request("POST", path, body=msgspec.json.encode(manifest))
        except ApiError as problem:
            if not problem.is_already_exists:
                raise
            made = await self.client.request("GET", f"{path}/{metadata['name']}")
        answer: Manifest = msgspec.json.decode(made)
        return answer

    async def create_all(self, manifests: Iterable[Manifest]) -> None:
        rest = iter(manifests)

        async def some() -> None:
            for manifest in rest:
                await self.create(manifest)

        await asyncio.gather(*(some() for _ in range(AT_ONCE)))

    async def patch(self, path: str, body: Manifest) -> bool:
        """False if it is gone."""
        try:
            await self.client.request("PATCH", path, body=msgspec.json.encode(body), content_type=MERGE_PATCH)
        except ApiError as problem:
            if not (problem.is_not_found or problem.is_conflict):
                raise
            return False
        return True

    async def delete(self, path: str, *, at_once: bool = False) -> None:
        """What is gone already is no problem."""
        try:
            await self.client.request("DELETE", path, body=_NO_MORE if at_once else None)
        except ApiError as problem:
            if not (problem.is_not_found or problem.is_conflict):
                raise


# -- what there is from the beginning ----------------------------------------------------------------------------------


def fixtures() -> list[Manifest]:
    """Namespaces come first."""
    made: list[Manifest] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {"team": team}}}
        for name, team in NAMESPACES.items()
    ]
    made += [_priority(name, value) for name, value in PRIORITIES.items()]
    made.append(_priority("patient", PRIORITIES["high"], preemptionPolicy="Never"))
    late = {"volumeBindingMode": "WaitForFirstConsumer", "reclaimPolicy": "Retain"}
    made += [
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": name},
            "provisioner": by,
            **late,
        }
        for name, by in ((LOCAL, "kubernetes.io/no-provisioner"), (PROVISIONED, CSI_DRIVER))
    ]
    made.append(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSIDriver",
            "metadata": {"name": CSI_DRIVER},
            "spec": {"attachRequired": False},
        }
    )
    expression = f'device.driver == "{DRIVER}"'
    made.append(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": DEVICE_CLASS},
            "spec": {"selectors": [{"cel": {"expression": expression}}]},
        }
    )
    return made


def accounts() -> list[Manifest]:
    """Servers that give every pod an account refuse pods until it is there."""
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": name}}
        for name in NAMESPACES
    ]


def _priority(name: str, value: int, **more: Any) -> Manifest:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        **more,
    }


# -- nodes -------------------------------------------------------------------------------------------------------------


class Nodes:
    """Makes them, and changes them now and then. `dice` decides everything."""

    def __init__(self, server: Server, dice: Random) -> None:
        self._server = server
        self._dice = dice
        self.names: list[str] = []
        self.n_changes = 0
        self._n_made = 0

    async def add(self, n: int) -> None:
        made = [one for _ in range(n) for one in self._node()]
        await self._server.create_all(made)
        for one in made:
            if one["kind"] == "Node":  # servers give new ones a taint that a controller takes away
                await self._server.patch(path_of("Node", one["metadata"]["name"]), {"spec": one["spec"]})

    def _node(self) -> list[Manifest]:
        dice, number = self._dice, self._n_made
        self._n_made += 1
        name = f"n{number:04d}"
        self.names.append(name)
        labels = {HOSTNAME: name, ZONE: ZONES[number % len(ZONES)], DISK: dice.choice(("ssd", "hdd", "nvme"))}
        taints = []
        if number % 9 == 4:
            labels[DEDICATED] = "batch"
            taints.append({"key": DEDICATED, "value": "batch", "effect": "NoSchedule"})
        if number % 13 == 6:
            taints.append({"key": "example.com/old", "effect": "PreferNoSchedule"})
        amounts = {
            "cpu": dice.choice(("6", "8", "12")),
            "memory": dice.choice(("16Gi", "24Gi", "32Gi")),
            "ephemeral-storage": "100Gi",
            "pods": "60",
        }
        if number % 3 == 0:
            amounts[WIDGET] = "8"
        images = [
            {"names": [image], "sizeBytes": 150_000_000 + 40_000_000 * IMAGES.index(image)}
            for image in dice.sample(IMAGES, 5)
        ]
        made: list[Manifest] = [
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name, "labels": labels},
                "spec": {"taints": taints or None},
                "status": {
                    "capacity": amounts,
                    "allocatable": amounts,
                    "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
                    "images": images,
                },
            },
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "CSINode",
                "metadata": {"name": name},
                "spec": {"drivers": [{"name": CSI_DRIVER, "nodeID": name, "allocatable": {"count": 6}}]},
            },
        ]
        if number % 2 == 0:
            made.append(_slice(name))
        return made

    async def change_one(self) -> None:
        """Something of one of them, or one comes, or one goes."""
        self.n_changes += 1
        name = self._dice.choice(self.names)
        path = path_of("Node", name)
        match self._dice.randrange(8):
            case 0:
                await self.add(1)
            case 1 if len(self.names) > 20:
                self.names.remove(name)
                await self._server.delete(path)
                await self._server.delete(path_of("CSINode", name))
                await self._server.delete(path_of("ResourceSlice", f"{name}-gpus"))
            case 2:
                await self._server.patch(path, {"spec": {"unschedulable": True}})
            case 3:
                await self._uncordon()
            case 4:
                disk = self._dice.choice(("ssd", "hdd", "nvme"))
                await self._server.patch(path, {"metadata": {"labels": {DISK: disk}}})
            case 5:
                taint = {"key": "example.com/busy", "effect": self._dice.choice(("NoSchedule", "PreferNoSchedule"))}
                await self._server.patch(path, {"spec": {"taints": [taint]}})
            case 6:
                await self._server.patch(path, {"spec": {"taints": None}})
            case _:
                amounts = {"cpu": self._dice.choice(("8", "12"))}
                status = {"status": {"capacity": amounts, "allocatable": amounts}}
                await self._server.patch(path_of("Node", name, part="status"), status)

    async def _uncordon(self) -> None:
        for name in self._dice.sample(self.names, min(6, len(self.names))):
            await self._server.patch(path_of("Node", name), {"spec": {"unschedulable": None}})


def _slice(node: str) -> Manifest:
    devices = [
        {"name": f"gpu-{place}", "attributes": {"model": {"string": "large" if place else "small"}}}
        for place in range(4)
    ]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node}-gpus"},
        "spec": {
            "driver": DRIVER,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": devices,
        },
    }
