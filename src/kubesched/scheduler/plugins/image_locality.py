"""ImageLocality: nodes that already hold the pod's images score higher.

An image counts with its size, scaled down the fewer nodes have it, so that pods do not pile up on the one node that
pulled the image first. The sum is then placed between two bounds: images below the lower one are not worth
considering, and above the upper one, which grows with the number of containers, all nodes are equally good.

Next: `kubesched.framework.nodes`, whose columns know the images.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

import numpy as np

from kubesched.framework import MAX_NODE_SCORE, CycleState, Handle, NodeInfo, NodeTable, PodInfo
from kubesched.framework.caching import Scope
from kubesched.framework.results import Scores
from kubesched.k8s.model.core import PodSpec

MIB = 1024 * 1024
MIN_THRESHOLD_BYTES = 23 * MIB
MAX_CONTAINER_THRESHOLD_BYTES = 1000 * MIB


class ImageLocality:
    name: ClassVar[str] = "ImageLocality"
    score_scope: ClassVar[Scope] = Scope.NODES
    reads_objects: ClassVar[bool] = False

    def __init__(self, _args: object, handle: Handle) -> None:
        """Has no arguments, and looks at nothing but pod and nodes."""
        self._handle = handle

    def score(self, _cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> Scores:
        n_all = len(nodes.whole)
        present_bytes = np.zeros(len(nodes), dtype=np.int64)
        is_present = False
        for image in _images(pod.spec):
            if n_having := nodes.image_node_count(image):
                present_bytes += (nodes.image_sizes(image) * (n_having / n_all)).astype(np.int64)
                is_present = True
        if not is_present:
            return present_bytes
        most = self.most_bytes(pod.spec)
        counted = np.where(present_bytes < MIN_THRESHOLD_BYTES, MIN_THRESHOLD_BYTES, np.minimum(present_bytes, most))
        scores: Scores = MAX_NODE_SCORE * (counted - MIN_THRESHOLD_BYTES) // (most - MIN_THRESHOLD_BYTES)
        return scores

    def score_node(self, _cycle: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        whole = self._handle.nodes
        return self.score_by_counts(pod, node, {image: whole.image_node_count(image) for image in _images(pod.spec)})

    def score_by_counts(self, pod: PodInfo, node: NodeInfo, n_having: Mapping[str, int]) -> int:
        """The score if so many nodes have each image."""
        n_all = len(self._handle.nodes)
        present_bytes = 0
        for image in _images(pod.spec):
            if size_bytes := node.image_size(image):
                present_bytes += int(size_bytes * (n_having.get(image, 0) / n_all))
        most = self.most_bytes(pod.spec)
        counted = MIN_THRESHOLD_BYTES if present_bytes < MIN_THRESHOLD_BYTES else min(present_bytes, most)
        return MAX_NODE_SCORE * (counted - MIN_THRESHOLD_BYTES) // (most - MIN_THRESHOLD_BYTES)

    def most_bytes(self, spec: PodSpec) -> int:
        """The upper bound. Without containers it is below the lower one, which then wins."""
        return MAX_CONTAINER_THRESHOLD_BYTES * (len(spec.init_containers or ()) + len(spec.containers))


def _images(spec: PodSpec) -> Iterator[str]:
    """Every image that the pod needs, once for each container or volume that needs it."""
    for container in (*(spec.init_containers or ()), *spec.containers):
        yield normalized_image_name(container.image)
    for volume in spec.volumes or ():
        if volume.image is not None:
            yield normalized_image_name(volume.image.reference)


def normalized_image_name(name: str) -> str:
    """The name with a tag, as container runtimes report it."""
    return name if name.rfind(":") > name.rfind("/") else f"{name}:latest"
