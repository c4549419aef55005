"""How full the nodes of a placement would be with a pod group on them: the fuller, the better.

Whatever strategy scores nodes: groups are packed. All nodes of the placement count as one large one.
"""

from __future__ import annotations

from collections.abc import Sequence

from kubesched.framework.groups import PlacementAssignments
from kubesched.framework.nodes import NodeTable
from kubesched.framework.results import MAX_NODE_SCORE
from kubesched.k8s.model.requests import CPU, MEMORY
from kubesched.scheduler.config.plugin_args import ResourceSpec


def placement_score(specs: Sequence[ResourceSpec], nodes: NodeTable, proposed: PlacementAssignments) -> int:
    """The weighted mean over the resources that the placement has; one that is neither CPU nor memory counts only if
    the group asks for it. The proposed pods are not on the table."""
    part = nodes.take(proposed.placement.rows)
    total = weights = 0
    for spec in specs:
        asked = sum(pod.resources.container_requests.get(spec.name, 0) for pod, _ in proposed.assignments)
        if not asked and spec.name not in (CPU, MEMORY):
            continue
        allocatable = int(part.allocatable(spec.name).sum())
        if allocatable == 0:
            continue
        total += min(asked + _requested(part, spec.name), allocatable) * MAX_NODE_SCORE // allocatable * spec.weight
        weights += spec.weight
    return total // weights if weights else 0


def _requested(nodes: NodeTable, resource: str) -> int:
    if resource == CPU:
        return int(nodes.nonzero_cpu_milli.sum())
    return int((nodes.nonzero_memory_bytes if resource == MEMORY else nodes.requested(resource)).sum())
