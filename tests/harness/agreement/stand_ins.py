"""What kubelets and controllers would do, as far as scheduling waits for it.

Kubelets: bound pods are running a moment later, and those that are to go are gone a moment later. Controllers: volumes
are made where pods are to go, gates are opened, and claims for devices go with their pods. Volumes are bound to claims
by `live_scenarios.volume_controller`.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import time
from collections.abc import Awaitable, Callable
from random import Random

from harness.agreement.cluster import Server, path_of
from harness.agreement.pods import PROVISIONED
from kubesched.k8s.client.list_watch import Informers
from kubesched.k8s.client.resources import resource_of
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.storage import SELECTED_NODE_ANNOTATION, PersistentVolumeClaim

_AT_ONCE = 12

Work = Callable[[], Awaitable[object]]


class Later:
    """Does things when their time has come, several at a time."""

    def __init__(self) -> None:
        self._due: list[tuple[float, int, Work]] = []
        self._n = 0
        self._changed = asyncio.Event()

    def add(self, after_s: float, work: Work) -> None:
        self._n += 1
        heapq.heappush(self._due, (time.monotonic() + after_s, self._n, work))
        self._changed.set()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(_AT_ONCE):
                group.create_task(self._do())

    async def _do(self) -> None:
        while True:
            left_s = self._due[0][0] - time.monotonic() if self._due else 1.0
            if left_s > 0:
                self._changed.clear()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._changed.wait(), left_s)
                continue
            await heapq.heappop(self._due)[2]()


class PodStates:
    """Pods by what has become of them, as a watch shows it; and the stand-ins that answer that."""

    def __init__(self, server: Server, dice: Random) -> None:
        self._server = server
        self._dice = dice
        self.later = Later()
        self.informers = Informers(
            server.client,
            [resource_of(Pod), resource_of(PersistentVolumeClaim)],
        )
        self.informers.add_handler(self)
        self.untried: set[str] = set()
        """Nobody has tried to schedule these, or said so."""
        self.waiting: set[str] = set()
        """They were tried in vain."""
        self.bound: dict[str, str] = {}
        """With their nodes."""
        self.n_bound = self.n_nominated = self.n_gone = 0
        self._seen: dict[str, set[str]] = {}
        """By key, what has been done about a pod or a claim."""

    def _once(self, key: str, what: str) -> bool:
        done = self._seen.setdefault(key, set())
        if what in done:
            return False
        done.add(what)
        return True

    # -- for the informers ---------------------------------------------------------------------------------------------

    def put(self, item: KubeObject) -> None:
        if isinstance(item, Pod):
            self._pod(item)
        elif isinstance(item, PersistentVolumeClaim):
            node = (item.metadata.annotations or {}).get(SELECTED_NODE_ANNOTATION, "")
            waits = item.spec.storage_class_name == PROVISIONED and not item.spec.volume_name
            if node and waits and self._once(f"claim {item.key}", node):
                self.later.add(self._dice.uniform(0.05, 0.6), lambda: self._provision(item, node))

    def remove(self, item: KubeObject) -> None:
        if not isinstance(item, Pod):
            return
        self.n_gone += 1
        for states in (self.untried, self.waiting):
            states.discard(item.key)
        self.bound.pop(item.key, None)
        self._seen.pop(item.key, None)
        for entry in item.spec.resource_claims or ():
            name = entry.resource_claim_name
            self.later.add(0.05, lambda name=name: self._drop_claim(item.namespace, str(name)))  # type: ignore[misc]

    def _pod(self, pod: Pod) -> None:
        key, node = pod.key, pod.spec.node_name
        if pod.metadata.deletion_timestamp and self._once(key, "going"):
            self.later.add(self._dice.uniform(0.1, 1.2), lambda: self._delete(pod))
        if pod.spec.scheduling_gates and self._once(key, "gated"):
            self.later.add(self._dice.uniform(0.5, 3.0), lambda: self._open(pod))
        self.untried.discard(key)
        self.waiting.discard(key)
        if node:
            if self._once(key, "bound"):
                self.n_bound += 1
                self.later.add(self._dice.uniform(0.1, 1.5), lambda: self._start(pod))
            self.bound[key] = node
            return
        if pod.status.nominated_node_name and self._once(key, "nominated"):
            self.n_nominated += 1
        tried = any(one.type == "PodScheduled" and one.status == "False" for one in pod.status.conditions or ())
        (self.waiting if tried else self.untried).add(key)

    # -- what they do --------------------------------------------------------------------------------------------------

    async def _start(self, pod: Pod) -> None:
        if pod.key in self.bound:
            path = path_of("Pod", pod.metadata.name, pod.namespace, "status")
            await self._server.patch(path, {"status": {"phase": "Running"}})

    async def _delete(self, pod: Pod) -> None:
        await self._server.delete(path_of("Pod", pod.metadata.name, pod.namespace), at_once=True)

    async def _open(self, pod: Pod) -> None:
        await self._server.patch(path_of("Pod", pod.metadata.name, pod.namespace), {"spec": {"schedulingGates": []}})

    async def _drop_claim(self, namespace: str, name: str) -> None:
        path = path_of("ResourceClaim", name, namespace)
        await self._server.patch(path, {"metadata": {"finalizers": None}})
        await self._server.delete(path)

    async def _provision(self, claim: PersistentVolumeClaim, node: str) -> None:
        reference = {
            "kind": "PersistentVolumeClaim",
            "apiVersion": "v1",
            "name": claim.metadata.name,
            "namespace": claim.namespace,
            "uid": claim.metadata.uid,
        }
        there = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
        await self._server.create(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": {"name": f"made-{claim.metadata.uid}"},
                "spec": {
                    "capacity": {"storage": "1Gi"},
                    "accessModes": ["ReadWriteOnce"],
                    "persistentVolumeReclaimPolicy": "Retain",
                    "storageClassName": PROVISIONED,
                    "claimRef": reference,
                    "csi": {"driver": "csi.example.com", "volumeHandle": claim.metadata.uid},
                    "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [there]}]}},
                },
            }
        )
