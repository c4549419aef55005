"""No node holds more than it can, as far as the loop can help it.

Twice. By what the loop was told: when it picks a node, the pods it knows there, those it is binding there and the new
one must fit. And by what the server has: a node on which nothing happened behind the loop's back (no other scheduler,
no change of its size, no request of unknown outcome) is never over-committed by the loop's bindings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from harness.chaos.api_server import ApiServerModel
from harness.chaos.checks.violation import Violation
from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.requests import PODS, node_units, pod_resources
from kubesched.scheduler.engine.loop import Scheduler

INVARIANT = "no node holds more than it can"


class CapacityLedger:
    """Counts on its own: nothing is taken from the loop but which pod it binds where."""

    def __init__(self) -> None:
        self._held: dict[str, tuple[Pod, str]] = {}
        """By uid, pods on their way to a node: the pod, and the node's name."""
        self._excused: set[str] = set()
        self._n_bindings_seen = 0

    def excuse(self, name: str) -> None:
        """A node or a pod (by uid): something happened to it that the loop could not know of."""
        self._excused.add(name)

    def restarted(self) -> None:
        self._held.clear()

    # -- by what the loop was told -------------------------------------------------------------------------------------

    def check_told(self, loop: Scheduler, told: list[KubeObject], done: set[str]) -> None:
        """`done` are the uids of pods whose binding was answered with success."""
        pods = {item.metadata.uid: item for item in told if isinstance(item, Pod) and not item.is_terminal}
        self._release(loop, pods, done)
        for uid, binding in loop.bindings.items():
            if uid not in self._held and uid in pods and not pods[uid].is_terminating and not pods[uid].spec.node_name:
                node_name = binding.decision.node_name
                self._check_node(binding.queued.info.pod, node_name, told, pods.values())
                self._held[uid] = (binding.queued.info.pod, node_name)

    def _release(self, loop: Scheduler, pods: dict[str, Pod], done: set[str]) -> None:
        for uid in list(self._held):
            pod = pods.get(uid)
            is_over = pod is None or pod.is_terminating or bool(pod.spec.node_name)
            if is_over or (uid not in loop.bindings and uid not in done):
                del self._held[uid]

    def _check_node(self, pod: Pod, node_name: str, told: Iterable[KubeObject], pods: Iterable[Pod]) -> None:
        node = next((item for item in told if isinstance(item, Node) and item.name == node_name), None)
        if node is None:
            raise Violation(INVARIANT, f"{pod.name} goes to node {node_name}, which is not known")
        there = [other for other in pods if other.spec.node_name == node_name]
        there += [other for other, held_on in self._held.values() if held_on == node_name]
        _check_fit(node, [*there, pod], wanted=_amounts(pod))

    # -- by what the server has ----------------------------------------------------------------------------------------

    def check_server(self, server: ApiServerModel) -> None:
        fresh = server.bindings[self._n_bindings_seen :]
        self._n_bindings_seen = len(server.bindings)
        for node_name in {binding.node_name for binding in fresh} - self._excused:
            node = server.find(Node, node_name)
            pods = [p for p in server.all(Pod).values() if p.spec.node_name == node_name and not p.is_terminal]
            if node is not None and not any(pod.metadata.uid in self._excused for pod in pods):
                _check_fit(node, pods, wanted=None)


def _check_fit(node: Node, pods: list[Pod], wanted: Counter[str] | None) -> None:
    """Of the wanted resources, or of all."""
    capacity = node_units(node.status.allocatable, "status.allocatable")
    used: Counter[str] = Counter()
    for pod in pods:
        used.update(_amounts(pod))
    for name, amount in used.items():
        is_asked = wanted is None or wanted[name] > 0
        if is_asked and amount > capacity.get(name, 0):
            names = ", ".join(sorted(pod.name for pod in pods))
            raise Violation(
                INVARIANT, f"node {node.name} has {capacity.get(name, 0)} {name} and holds {amount}: {names}"
            )


def _amounts(pod: Pod) -> Counter[str]:
    return Counter({**pod_resources(pod).requests, PODS: 1})
