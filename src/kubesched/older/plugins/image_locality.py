"""ImageLocality of old: the containers' images alone, between fixed bounds."""

from __future__ import annotations

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.nodes import NodeInfo
from kubesched.framework.pod_info import PodInfo
from kubesched.older.plugins.rejection import OlderPlugin

_MIB = 1024 * 1024
_LEAST_BYTES = 23 * _MIB
_MOST_BYTES = 1000 * _MIB


class OlderImageLocality(OlderPlugin):
    def score_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        nodes = self.handle.nodes
        present = 0
        for container in pod.spec.containers:
            image = _with_tag(container.image)
            size_bytes = node.image_size(image)
            if size_bytes:
                present += int(float(size_bytes) * (nodes.image_node_count(image) / len(nodes)))
        most = _MOST_BYTES * (len(pod.spec.containers) if self.generation.images_by_container else 1)
        counted = _LEAST_BYTES if present < _LEAST_BYTES else min(present, most)
        return self.generation.highest_score * (counted - _LEAST_BYTES) // (most - _LEAST_BYTES)


def _with_tag(image: str) -> str:
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"
