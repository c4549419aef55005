"""Events of kubelets, in their own words: images, containers, and nodes that start or are cordoned.

Next: `fleet`, which knows when.
"""

from __future__ import annotations

from kubesched.k8s.client.event_recorder import NORMAL, WARNING, EventSource, RecordEvent, pod_reference
from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.storage import ObjectReference
from kubesched.playground.hollow_nodes.containers import CRASH_LOOP
from kubesched.playground.hollow_nodes.hollow_pods import HollowContainer, HollowPod
from kubesched.playground.hollow_nodes.pod_play import Turn


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
