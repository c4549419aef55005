"""The kubelets of many nodes: registers them, keeps them alive, and plays out the life of the pods bound to them.

    fleet = KubeletFleet(client, FleetSettings(adopts_all=True))
    await fleet.start(node_bodies)
    ...
    await fleet.stop()

A node with the annotation `kubesched.dev/kubelet: stopped` is left alone until it is taken off: its lease runs out, its
pods stay as they are. A node that is deleted is forgotten.

Next: `pod_steps` for what happens to pods, `sending` for how it is written.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

import msgspec

from kubesched.client.errors import ApiError
from kubesched.client.event_recorder import EventTeller
from kubesched.client.list_watch import Informers, InformerSettings, Pace
from kubesched.client.list_watch.requests import Narrowing
from kubesched.client.patch_types import STRATEGIC_PATCH
from kubesched.client.resources import Resource
from kubesched.client.rest import RestClient
from kubesched.expansion.pod_states import POD_RUNNING
from kubesched.kubelets.kubelet_notes import KubeletNotes
from kubesched.kubelets.lease_renewals import LeaseRenewals
from kubesched.kubelets.node_bodies import conditions_now, registered
from kubesched.kubelets.pod_statuses import Body, ended_status, host_ip, ready_again_status, running_status
from kubesched.kubelets.pod_steps import Delays, PodStep, next_step
from kubesched.kubelets.sending import Sender
from kubesched.kubelets.timer_wheel import TimerWheel
from kubesched.model.core import Node, Pod
from kubesched.model.meta import KubeObject

KUBELET_SWITCH = "kubesched.dev/kubelet"
STOPPED = "stopped"

_RESOURCES = (Resource(Pod, "", "v1", "pods", True), Resource(Node, "", "v1", "nodes", False))
_BOUND_PODS = Narrowing(field_selector="spec.nodeName!=")
_REGISTERED_AT_ONCE = 32

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
        self._informers = Informers(client, _RESOURCES, InformerSettings(narrowings={Pod: _BOUND_PODS}), pace)
        self._informers.of(Pod).lister.add_index("node", lambda pod: (pod.spec.node_name,))
        self._ours: set[str] = set()
        self._stopped: set[str] = set()
        self._planned: dict[str, PodStep] = {}
        """What is planned for a pod, by its uid."""
        self._seen: set[str] = set()
        self._tasks: list[asyncio.Task[None]] = []
        self._events = EventTeller(client, now_s, most_queued=MOST_EVENTS_WAITING, n_writers=1)
        self._notes = KubeletNotes(self._events.tell)

    # -- life ----------------------------------------------------------------------------------------------------------

    async def start(self, bodies: Iterable[Body] = ()) -> int:
        """Registers these nodes, then plays them. Returns how many nodes there are."""
        await self.register(bodies)
        for kind, handler in (
            (Node, _Handler(self._put_node, self._drop_node)),
            (Pod, _Handler(self._put_pod, self._drop_pod)),
        ):
            self._informers.of(kind).add_handler(handler)
        self._sender.start()
        self._informers.start()
        self._tasks.append(asyncio.create_task(self._leases.run(), name="lease renewals"))
        self._tasks.append(asyncio.create_task(self._events.run(), name="events of kubelets"))
        await self._informers.wait_for_sync("kubelets")
        return len(self._ours)

    async def stop(self) -> None:
        self._wheel.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
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
            self._notes.started(node)
            self._take_up_pods(node.name)
        self._notes.looked_at(node)
        if not _is_ready(node):
            name, status = node.name, {"conditions": conditions_now(self._now_s())}
            self._sender.send(f"node {name}", lambda: self._post_status(name, status))

    def _drop_node(self, node: KubeObject) -> None:
        self._ours.discard(node.name)
        self._stopped.discard(node.name)
        self._seen.discard(node.name)
        self._leases.drop(node.name)
        self._notes.forget(node.name)

    def _take_up_pods(self, name: str) -> None:
        for pod in self._informers.of(Pod).lister.by_index("node", name):
            self._planned.pop(pod.metadata.uid, None)
            self._put_pod(pod)

    async def _post_status(self, name: str, status: Body) -> None:
        body = msgspec.json.encode({"status": status})
        await self._client.request("PATCH", f"/api/v1/nodes/{name}/status", body=body, content_type=STRATEGIC_PATCH)

    # -- pods ----------------------------------------------------------------------------------------------------------

    def _plays(self, node_name: str) -> bool:
        return node_name in self._ours and node_name not in self._stopped

    def _put_pod(self, pod: KubeObject) -> None:
        if not isinstance(pod, Pod) or not self._plays(pod.spec.node_name):
            return
        found = next_step(pod, self._settings.delays, self._now_s())
        uid = pod.metadata.uid
        if found is None or self._planned.get(uid) is found[0]:
            return
        step, for_s = found
        self._planned[uid] = step
        if step is PodStep.STOP and pod.status.phase == POD_RUNNING:
            self._notes.stopping(pod)
        self._wheel.after(for_s, partial(self._step, pod.key, uid, step))

    def _drop_pod(self, pod: KubeObject) -> None:
        self._planned.pop(pod.metadata.uid, None)

    def _step(self, key: str, uid: str, step: PodStep) -> None:
        """The step, if the pod is still there by then and nothing else was planned, and its kubelet works."""
        pod = self._informers.of(Pod).lister.get_by_key(key)
        if pod is None or pod.metadata.uid != uid or self._planned.get(uid) is not step:
            return
        if not self._plays(pod.spec.node_name):
            self._planned.pop(uid, None)
            return
        if step is PodStep.READY:
            self._planned.pop(uid, None)  # what was done may have to be done again
        self._sender.send(f"pod {key}", partial(self._carry_out, pod, step))

    async def _carry_out(self, pod: Pod, step: PodStep) -> None:
        path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"
        if step is PodStep.STOP:
            options = {"gracePeriodSeconds": 0, "preconditions": {"uid": pod.metadata.uid}}
            await self._client.request("DELETE", path, body=msgspec.json.encode(options))
            return
        if step is PodStep.START:
            status = running_status(pod, host_ip(pod.spec.node_name), self._now_s())
        elif step is PodStep.READY:
            status = ready_again_status(self._now_s())
        else:
            status = ended_status(pod, self._now_s())
        patch = {"metadata": {"uid": pod.metadata.uid}, "status": status}
        await self._client.request(
            "PATCH", f"{path}/status", body=msgspec.json.encode(patch), content_type=STRATEGIC_PATCH
        )
        if step is PodStep.START:
            self._notes.running(pod)


@dataclass(frozen=True, slots=True)
class _Handler:
    put: Callable[[KubeObject], None]
    remove: Callable[[KubeObject], None]


def _is_ready(node: Node) -> bool:
    return any(known.type == "Ready" and known.status == "True" for known in node.status.conditions or ())
