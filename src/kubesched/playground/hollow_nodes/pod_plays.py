"""The pods of hollow nodes, each taken up when it is bound, looked at when something is due, and stopped when deleted.

    bound ──start──▶ played (see `pod_play`) ──▶ over        deleted ──hooks, grace──▶ stopped ──▶ gone

Keeps only what a status does not tell: the runs of containers, what waits on the wheel, and since when a pod is on its
way out. Events are in the kubelet's own words: images, containers, and nodes that start or are cordoned
(`KubeletNotes`).

Next: `pod_play` for the rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import msgspec

from kubesched.k8s.client.event_forms import NORMAL, WARNING, pod_reference
from kubesched.k8s.client.event_recorder import EventSource, RecordEvent
from kubesched.k8s.client.requester import STRATEGIC_PATCH, Requester
from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.storage import ObjectReference
from kubesched.k8s.workloads.pod_states import POD_FAILED, POD_RUNNING
from kubesched.playground.hollow_nodes.containers import CRASH_LOOP, HollowContainer, HollowPod, RunBook, pre_stop_s
from kubesched.playground.hollow_nodes.pod_play import (
    Body,
    Turn,
    begun_now,
    conditions,
    play,
    says_the_same,
    status_body,
    stopped,
)
from kubesched.playground.hollow_nodes.sending import Sender, TimerWheel

DEFAULT_GRACE_S = 30
TERMINATED = 143
"""The exit code of a container that was asked to stop, and did."""
KILLED = 137
"""Of one that had to be killed when its grace was over."""


@dataclass(frozen=True, slots=True)
class Delays:
    """How long containers take to start, and to stop when they are asked to."""

    start_s: float = 1.0
    stop_s: float = 1.0


def has_begun(pod: HollowPod) -> bool:
    """Its kubelet has taken it up before."""
    return pod.status.phase == POD_RUNNING or bool(pod.status.start_time)


def stops_in_s(pod: HollowPod, delays: Delays) -> tuple[float, int]:
    """How long a deleted pod takes, and the exit code of its containers: hooks run first, and grace ends all."""
    grace = pod.metadata.deletion_grace_period_seconds
    if grace is None:
        grace = pod.spec.termination_grace_period_seconds
    if grace is None:
        grace = DEFAULT_GRACE_S
    if pod.is_terminal or not has_begun(pod):
        return min(delays.stop_s, grace), TERMINATED
    hooks_s = pre_stop_s(pod)
    if hooks_s is None or hooks_s + delays.stop_s > grace:
        return float(grace), KILLED
    return hooks_s + delays.stop_s, TERMINATED


_ANY = ("", "0.0.0.0")

REASON = "NodePorts"
MESSAGE = "Pod was rejected: Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"

Port = tuple[int, str, str]
"""(number, protocol, address)"""


class HostPorts:
    """Who has which ports, by node."""

    def __init__(self) -> None:
        self._taken: dict[str, dict[str, list[Port]]] = {}

    def take(self, pod: HollowPod) -> bool:
        """Whether they are free; then they are this pod's."""
        ports = list(_ports(pod))
        if not ports:
            return True
        on_node = self._taken.setdefault(pod.spec.node_name, {})
        uid = pod.metadata.uid
        others = [port for owner, taken in on_node.items() if owner != uid for port in taken]
        if any(_clash(port, other) for port in ports for other in others):
            return False
        on_node[uid] = ports
        return True

    def free(self, pod: HollowPod) -> None:
        on_node = self._taken.get(pod.spec.node_name)
        if on_node is not None:
            on_node.pop(pod.metadata.uid, None)
            if not on_node:
                del self._taken[pod.spec.node_name]


def _ports(pod: HollowPod) -> Iterator[Port]:
    for container in pod.spec.containers:
        for port in container.ports or ():
            if port.host_port:
                yield port.host_port, port.protocol or "TCP", port.host_ip or ""


def _clash(one: Port, other: Port) -> bool:
    is_same_address = one[2] == other[2] or one[2] in _ANY or other[2] in _ANY
    return one[:2] == other[:2] and is_same_address


Pulled = Callable[[str, Iterable[str]], None]
"""Told (node, images) of containers that were started."""


class PodPlays:
    def __init__(
        self,
        api: Requester,
        delays: Delays,
        wheel: TimerWheel,
        sender: Sender,
        notes: KubeletNotes,
        now_s: Callable[[], float],
        is_played: Callable[[str], bool],
        pulled: Pulled,
    ) -> None:
        """`is_played`: whether the kubelet of this node works."""
        self._api = api
        self._delays = delays
        self._wheel = wheel
        self._sender = sender
        self._notes = notes
        self._now_s = now_s
        self._is_played = is_played
        self._pulled = pulled
        self._book = RunBook()
        self._ports = HostPorts()
        self._pods: dict[str, HollowPod] = {}
        """Those that are played, by uid, as they were seen last."""
        self._due_s: dict[str, float] = {}
        """When a pod is looked at next, if that is known."""
        self._going_since_s: dict[str, float] = {}

    def put(self, pod: HollowPod) -> None:
        """The pod is, or has become, like this; its node is one of ours."""
        uid, now_s = pod.metadata.uid, self._now_s()
        is_new = uid not in self._pods
        self._pods[uid] = pod
        if pod.is_terminating:
            if uid not in self._going_since_s and pod.status.phase == POD_RUNNING:
                self._notes.stopping(pod)
            since_s = self._going_since_s.setdefault(uid, now_s)
            self._look_at(uid, since_s + stops_in_s(pod, self._delays)[0])
        elif has_begun(pod) and not pod.is_terminal:
            if is_new:
                self._ports.take(pod)
            self._play(pod)
        elif pod.is_terminal:
            self._ports.free(pod)
        elif is_new:
            self._look_at(uid, now_s + self._delays.start_s)

    def drop(self, pod: KubeObject) -> None:
        uid = pod.metadata.uid
        known = self._pods.pop(uid, None)
        if known is not None:
            self._ports.free(known)
        self._due_s.pop(uid, None)
        self._going_since_s.pop(uid, None)
        self._book.forget(uid)

    def _look_at(self, uid: str, at_s: float) -> None:
        """Unless that is planned for an earlier time."""
        due_s = self._due_s.get(uid)
        if due_s is not None and due_s <= at_s:
            return
        self._due_s[uid] = at_s
        self._wheel.after(at_s - self._now_s(), partial(self._due, uid, at_s))

    def _due(self, uid: str, at_s: float) -> None:
        if self._due_s.get(uid) != at_s:
            return
        del self._due_s[uid]
        pod = self._pods.get(uid)
        if pod is None:
            return
        if not self._is_played(pod.spec.node_name):
            del self._pods[uid]  # taken up anew when its kubelet is back
        elif pod.is_terminating:
            self._sender.send(f"pod {pod.key}", partial(self._stop, pod))
        elif not pod.is_terminal:
            if has_begun(pod) or self._ports.take(pod):
                self._play(pod)
            else:
                status = {"phase": POD_FAILED, "reason": REASON, "message": MESSAGE}
                self._sender.send(f"pod {pod.key}", partial(self._report, pod, status))

    def _play(self, seen: HollowPod) -> None:
        now_s = self._now_s()
        pod = begun_now(seen, now_s)
        turn = play(pod, self._book, now_s)
        made = conditions(pod, turn.report, now_s)
        if not says_the_same(seen, turn.report, made):
            status = status_body(pod, turn.report, now_s)
            self._sender.send(f"pod {pod.key}", partial(self._report, pod, status))
        if turn.started:
            self._pulled(pod.spec.node_name, [container.image for container in turn.started])
        self._notes.played(pod, turn)
        if turn.at_s is not None:
            self._look_at(pod.metadata.uid, turn.at_s)

    async def _report(self, pod: HollowPod, status: Body) -> None:
        patch = {"metadata": {"uid": pod.metadata.uid}, "status": status}
        path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/status"
        await self._api.request("PATCH", path, body=msgspec.json.encode(patch), content_type=STRATEGIC_PATCH)

    async def _stop(self, pod: HollowPod) -> None:
        """Who holds a pod by a finalizer wants to know how it ended."""
        if pod.metadata.finalizers and not pod.is_terminal:
            now_s = self._now_s()
            code = stops_in_s(pod, self._delays)[1]
            await self._report(pod, status_body(pod, stopped(pod, code, now_s), now_s))
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": pod.metadata.uid}}
        path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"
        await self._api.request("DELETE", path, body=msgspec.json.encode(options))


class KubeletNotes:
    def __init__(self, tell: RecordEvent) -> None:
        self._tell = tell
        self._is_cordoned: dict[str, bool] = {}
        """By node, as it was seen last."""

    def played(self, pod: HollowPod, turn: Turn) -> None:
        """What has happened to its containers just now."""
        for container in turn.started:
            path = _field_path(pod, container)
            image = f'Container image "{container.image}" already present on machine'
            self._of_pod(pod, path, "Pulled", image)
            self._of_pod(pod, path, "Created", "Container created")
            self._of_pod(pod, path, "Started", "Container started")
        for container, status in turn.backed_off:
            waiting = None if status.state is None else status.state.waiting
            path = _field_path(pod, container)
            if waiting is not None and waiting.reason == CRASH_LOOP:
                where = f"{pod.name}_{pod.namespace}({pod.metadata.uid})"
                note = f"Back-off restarting failed container {container.name} in pod {where}"
                self._of_pod(pod, path, "BackOff", note, WARNING)
            elif waiting is not None:
                self._of_pod(pod, path, "Pulling", f'Pulling image "{container.image}"')
                self._of_pod(pod, path, "Failed", waiting.message[:1].upper() + waiting.message[1:], WARNING)

    def stopping(self, pod: Pod) -> None:
        for container in pod.spec.containers:
            path = f"spec.containers{{{container.name}}}"
            self._of_pod(pod, path, "Killing", f"Stopping container {container.name}")

    def started(self, node: Node) -> None:
        self._of_node(node, "Starting", "Starting kubelet.")

    def looked_at(self, node: Node) -> None:
        """Tells when it was cordoned or uncordoned since."""
        is_cordoned = bool(node.spec.unschedulable)
        was_cordoned = self._is_cordoned.get(node.name, is_cordoned)
        self._is_cordoned[node.name] = is_cordoned
        if is_cordoned != was_cordoned:
            reason = "NodeNotSchedulable" if is_cordoned else "NodeSchedulable"
            self._of_node(node, reason, f"Node {node.name} status is now: {reason}")

    def forget(self, node_name: str) -> None:
        self._is_cordoned.pop(node_name, None)

    def _of_pod(self, pod: Pod, field_path: str, reason: str, note: str, type_: str = NORMAL) -> None:
        known = pod_reference(pod.namespace, pod.name, pod.metadata.uid)
        about = ObjectReference(known.kind, known.namespace, known.name, known.uid, "v1", field_path=field_path)
        self._tell(EventSource("kubelet", pod.spec.node_name), about, reason, note, type_)

    def _of_node(self, node: Node, reason: str, note: str) -> None:
        """A kubelet knows its node by name only: that is its uid in events."""
        about = ObjectReference(kind="Node", name=node.name, uid=node.name)
        self._tell(EventSource("kubelet", node.name), about, reason, note, NORMAL)


def _field_path(pod: HollowPod, container: HollowContainer) -> str:
    if container in (pod.spec.init_containers or ()):
        return f"spec.initContainers{{{container.name}}}"
    if container in (pod.spec.ephemeral_containers or ()):
        return f"spec.ephemeralContainers{{{container.name}}}"
    return f"spec.containers{{{container.name}}}"
