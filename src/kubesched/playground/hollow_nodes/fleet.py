"""Many hollow nodes: registers them, keeps them alive, and plays out the life of the pods bound to them.

    fleet = KubeletFleet(client, FleetSettings(adopts_all=True))
    await fleet.start(node_bodies)
    ...
    await fleet.stop()

Nodes are registered as a kubelet does it, made to measure or from manifests. Each lease is renewed every so often, and
all of them spread evenly over that time. With many nodes the time between two renewals grows, so that an API server is
not kept busy by them alone; the lease says how long it holds.

A node with the annotation `kubesched.dev/kubelet: stopped` is left alone until it is taken off: its lease runs out, its
pods stay as they are. A node that is deleted is forgotten.

Next: `pod_play` for what happens to pods, `sending` for how it is written.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import msgspec

from kubesched.k8s.client.errors import AnswerLost, ApiError, Unreachable
from kubesched.k8s.client.event_recorder import EventBroadcaster
from kubesched.k8s.client.lease import print_micro_time
from kubesched.k8s.client.list_watch import Informers, InformerSettings, Pace
from kubesched.k8s.client.list_watch.exchange import ListOptions
from kubesched.k8s.client.requester import MERGE_PATCH, STRATEGIC_PATCH, Requester
from kubesched.k8s.client.resources import Resource
from kubesched.k8s.client.rest import RestClient
from kubesched.k8s.client.work_queue import end_all
from kubesched.k8s.model import quantity
from kubesched.k8s.model.core import Node
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.times import print_instant
from kubesched.playground.hollow_nodes.containers import HollowPod
from kubesched.playground.hollow_nodes.pod_play import Body, host_ip
from kubesched.playground.hollow_nodes.pod_plays import Delays, KubeletNotes, PodPlays
from kubesched.playground.hollow_nodes.sending import Sender, TimerWheel

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


MOST_IMAGES = 50
IMAGE_BYTES = 100_000_000
"""Nobody knows how large they are; a round number for all."""


def allocatable_patch(node: Node) -> Body:
    """What to change in `status.allocatable`; None takes a resource away."""
    capacity, allocatable = node.status.capacity or {}, node.status.allocatable or {}
    patch: Body = {
        name: str(amount) for name, amount in capacity.items() if _is_extended(name) and allocatable.get(name) != amount
    }
    return patch | {name: None for name in allocatable if _is_extended(name) and name not in capacity}


def images_body(images: list[str]) -> list[Body]:
    """The newest that fit, as a kubelet reports them."""
    return [{"names": [image], "sizeBytes": IMAGE_BYTES} for image in images[-MOST_IMAGES:]]


def full_name(image: str) -> str:
    """As a node lists it: with its tag."""
    return image if ":" in image.rpartition("/")[2] or "@" in image else f"{image}:latest"


def _is_extended(name: str) -> bool:
    domain, _, rest = name.partition("/")
    return bool(rest) and not (domain == "kubernetes.io" or domain.endswith(".kubernetes.io"))


KUBELET_SWITCH = "kubesched.dev/kubelet"
STOPPED = "stopped"

NAME = "kubelets"

_RESOURCES = (Resource(HollowPod, "", "v1", "pods", True, kind_name="Pod"), Resource(Node, "", "v1", "nodes", False))
_BOUND_PODS = ListOptions(field_selector="spec.nodeName!=")
_REGISTERED_AT_ONCE = 32
_IMAGES_TOLD_AFTER_S = 10.0

MOST_EVENTS_WAITING = 600
"""Events beyond that are dropped, as kubelets drop theirs: many pods that start at once must not wait for them."""


@dataclass(frozen=True, slots=True)
class FleetSettings:
    """`adopts_all`: every node of the cluster gets a kubelet, also those that others make."""

    delays: Delays = field(default_factory=Delays)
    adopts_all: bool = False


class NodeRefusedError(ValueError):
    """The server does not take a node: names it."""


class KubeletFleet:
    def __init__(
        self,
        client: RestClient,
        settings: FleetSettings | None = None,
        *,
        pace: Pace | None = None,
        now_s: Callable[[], float] = time.time,
    ) -> None:
        self._client = client
        self._settings = settings or FleetSettings()
        self._now_s = now_s
        self._wheel = TimerWheel()
        self._sender = Sender(self._wheel)
        self._leases = LeaseRenewals(client, now_s)
        informing = InformerSettings(list_options={HollowPod: _BOUND_PODS}, name=NAME)
        self._informers = Informers(client, _RESOURCES, informing, pace)
        self._informers.of(HollowPod).lister.add_index("node", lambda pod: (pod.spec.node_name,))
        self._ours: set[str] = set()
        self._stopped: set[str] = set()
        self._seen: set[str] = set()
        self._images: dict[str, dict[str, None]] = {}
        """Names of images by node, in the order in which they came."""
        self._untold: set[str] = set()
        """Nodes that will tell of new images in a while."""
        self._tasks: list[asyncio.Task[None]] = []
        self._events = EventBroadcaster(client, now_s, most_queued=MOST_EVENTS_WAITING, n_writers=1)
        self._notes = KubeletNotes(self._events.tell)
        self._plays = PodPlays(
            client, self._settings.delays, self._wheel, self._sender, self._notes, now_s, self._is_played, self._pulled
        )

    # -- life ----------------------------------------------------------------------------------------------------------

    async def start(self, bodies: Iterable[Body] = ()) -> int:
        """Registers these nodes, then plays them. Returns how many nodes there are."""
        await self.register(bodies)
        for kind, handler in (
            (Node, _Handler(self._put_node, self._drop_node)),
            (HollowPod, _Handler(self._put_pod, self._drop_pod)),
        ):
            self._informers.of(kind).add_handler(handler)
        self._sender.start()
        self._informers.start()
        self._tasks.append(asyncio.create_task(self._leases.run(), name="lease renewals"))
        self._tasks.append(asyncio.create_task(self._events.run(), name="events of kubelets"))
        await self._informers.wait_for_sync(NAME)
        return len(self._ours)

    async def stop(self) -> None:
        self._wheel.close()
        await end_all(self._tasks)
        await self._informers.stop()
        await self._sender.stop()

    async def register(self, bodies: Iterable[Body]) -> None:
        """Nodes that are there already stay as they are. Raises NodeRefusedError."""
        waiting = list(bodies)
        self._ours |= {body["metadata"]["name"] for body in waiting}
        self._leases.expect(len(self._ours))
        for start in range(0, len(waiting), _REGISTERED_AT_ONCE):
            some = waiting[start : start + _REGISTERED_AT_ONCE]
            await asyncio.gather(*(self._register(body) for body in some))

    async def _register(self, given: Body) -> None:
        body = registered(given, self._now_s())
        try:
            answer = await self._client.request("POST", "/api/v1/nodes", body=msgspec.json.encode(body))
            node = msgspec.json.decode(answer, type=Node)
            await self._leases.create(node.name, node.metadata.uid)
        except ApiError as error:
            if not error.is_already_exists:
                raise NodeRefusedError(f"Node {body['metadata']['name']}: {error.message}") from None

    # -- nodes ---------------------------------------------------------------------------------------------------------

    def _put_node(self, node: KubeObject) -> None:
        if not isinstance(node, Node):
            return
        if self._settings.adopts_all:
            self._ours.add(node.name)
        if node.name not in self._ours:
            return
        if (node.metadata.annotations or {}).get(KUBELET_SWITCH) == STOPPED:
            self._stopped.add(node.name)
            self._leases.drop(node.name)
            return
        self._leases.add(node.name, node.metadata.uid)
        if node.name in self._stopped or node.name not in self._seen:
            self._stopped.discard(node.name)
            self._seen.add(node.name)
            self._images[node.name] = {name: None for image in node.status.images or () for name in image.names or ()}
            self._notes.started(node)
            for pod in self._informers.of(HollowPod).lister.by_index("node", node.name):
                self._put_pod(pod)
        self._notes.looked_at(node)
        status: Body = {} if _is_ready(node) else {"conditions": conditions_now(self._now_s())}
        resources = allocatable_patch(node)
        if resources:
            status["allocatable"] = resources
        if status:
            self._post_status(node.name, status)

    def _drop_node(self, node: KubeObject) -> None:
        self._ours.discard(node.name)
        self._stopped.discard(node.name)
        self._seen.discard(node.name)
        self._images.pop(node.name, None)
        self._leases.drop(node.name)
        self._notes.forget(node.name)

    def _pulled(self, node_name: str, images: Iterable[str]) -> None:
        """Containers with these images were started: the node says so a little later, once for many."""
        known = self._images.get(node_name)
        new = [name for name in map(full_name, images) if name and known is not None and name not in known]
        if known is None or not new:
            return
        known.update(dict.fromkeys(new))
        if node_name not in self._untold:
            self._untold.add(node_name)
            self._wheel.after(_IMAGES_TOLD_AFTER_S, partial(self._tell_images, node_name))

    def _tell_images(self, node_name: str) -> None:
        self._untold.discard(node_name)
        known = self._images.get(node_name)
        if known is not None and self._is_played(node_name):
            self._post_status(node_name, {"images": images_body(list(known))})

    def _post_status(self, name: str, status: Body) -> None:
        body = msgspec.json.encode({"status": status})

        async def post() -> None:
            await self._client.request("PATCH", f"/api/v1/nodes/{name}/status", body=body, content_type=STRATEGIC_PATCH)

        self._sender.send(f"node {name}", post)

    # -- pods ----------------------------------------------------------------------------------------------------------

    def _is_played(self, node_name: str) -> bool:
        return node_name in self._ours and node_name not in self._stopped

    def _put_pod(self, pod: KubeObject) -> None:
        if isinstance(pod, HollowPod) and self._is_played(pod.spec.node_name):
            self._plays.put(pod)

    def _drop_pod(self, pod: KubeObject) -> None:
        self._plays.drop(pod)


@dataclass(frozen=True, slots=True)
class _Handler:
    put: Callable[[KubeObject], None]
    remove: Callable[[KubeObject], None]


def _is_ready(node: Node) -> bool:
    return any(known.type == "Ready" and known.status == "True" for known in node.status.conditions or ())
