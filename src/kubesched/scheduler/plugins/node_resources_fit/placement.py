"""How full the nodes of a placement would be with a pod group on them: the fuller, the better.

Whatever strategy scores nodes: groups are packed. All nodes of the placement count as one large one.
"""

from __future__ import annotations

from collections.abc import Sequence

from kubesched.framework.groups import PlacementAssignments
from kubesched.framework.nodes import IntArray, NodeTable
from kubesched.framework.results import MAX_NODE_SCORE
from kubesched.k8s.model.requests import CPU, MEMORY
from kubesched.scheduler.config.plugin_args import ResourceSpec


def placement_score(specs: Sequence[ResourceSpec], nodes: NodeTable, proposed: PlacementAssignments) -> int:
    """The weighted mean over the resources that the placement has; one that is neither CPU nor memory counts only if
    the group asks for it. `nodes` are all there are; the proposed pods are not on them yet."""
    rows = proposed.placement.rows
    total = weights = 0
    for spec in specs:
        asked = sum(pod.resources.container_requests.get(spec.name, 0) for pod, _ in proposed.assignments)
        if not asked and spec.name not in (CPU, MEMORY):
            continue
        allocatable = int(nodes.allocatable(spec.name)[rows].sum())
        if allocatable == 0:
            continue
        requested = asked + int(_requested(nodes, spec.name)[rows].sum())
        total += min(requested, allocatable) * MAX_NODE_SCORE // allocatable * spec.weight
        weights += spec.weight
    return total // weights if weights else 0


def _requested(nodes: NodeTable, resource: str) -> IntArray:
    if resource == CPU:
        return nodes.nonzero_cpu_milli
    return nodes.nonzero_memory_bytes if resource == MEMORY else nodes.requested(resource)
