"""Events of kubelets, in their own words: images, containers, and nodes that start or are cordoned.

Next: `fleet`, which knows when.
"""

from __future__ import annotations

from kubesched.client.event_recorder import NORMAL, Speaker, Tell, pod_reference
from kubesched.model.core import Node, Pod
from kubesched.model.storage import ObjectReference


class KubeletNotes:
    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._is_cordoned: dict[str, bool] = {}
        """By node, as it was seen last."""

    def running(self, pod: Pod) -> None:
        """Its containers have been started just now."""
        for field, containers in (("initContainers", pod.spec.init_containers), ("containers", pod.spec.containers)):
            for container in containers or ():
                path = f"spec.{field}{{{container.name}}}"
                image = f'Container image "{container.image}" already present on machine'
                self._of_pod(pod, path, "Pulled", image)
                self._of_pod(pod, path, "Created", "Container created")
                self._of_pod(pod, path, "Started", "Container started")

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

    def _of_pod(self, pod: Pod, field_path: str, reason: str, note: str) -> None:
        known = pod_reference(pod.namespace, pod.name, pod.metadata.uid)
        about = ObjectReference(known.kind, known.namespace, known.name, known.uid, "v1", field_path=field_path)
        self._tell(Speaker("kubelet", pod.spec.node_name), about, reason, note, NORMAL)

    def _of_node(self, node: Node, reason: str, note: str) -> None:
        """A kubelet knows its node by name only: that is its uid in events."""
        about = ObjectReference(kind="Node", name=node.name, uid=node.name)
        self._tell(Speaker("kubelet", node.name), about, reason, note, NORMAL)
