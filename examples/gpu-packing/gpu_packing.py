"""GpuPacking: fills GPU nodes one after the other, and leaves them to pods that need GPUs.

Stands beside NodeResourcesFit, which still decides whether there are enough GPUs. Of the nodes that have enough, the
fullest is best: whole nodes stay free for pods that need many GPUs. A pod that needs none is kept off GPU nodes, or,
with `reserve: false`, sent there last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kubesched.framework import (
    OK,
    ActionType,
    ClusterEvent,
    CycleState,
    EventResource,
    NodeInfo,
    NodeTable,
    PodInfo,
    RegisteredEvent,
    Scope,
    Scores,
    Status,
    Verdicts,
)

RESERVED = "node(s) were reserved for pods that request {}"


@dataclass(frozen=True)
class GpuPackingArgs:
    resource: str = "nvidia.com/gpu"
    reserve: bool = True


class GpuPacking:
    name = "GpuPacking"
    args_type = GpuPackingArgs
    default_weight = 5  # beside NodeResourcesFit, which spreads by default
    filter_scope = Scope.AMOUNTS
    score_scope = Scope.AMOUNTS

    def __init__(self, args: GpuPackingArgs) -> None:
        self.resource = args.resource
        self.reserve = args.reserve
        self.reason = RESERVED.format(args.resource)

    def filter(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdicts:
        is_kept_off = (nodes.allocatable(self.resource) > 0) & self._is_other(pod)
        return Verdicts.reject(is_kept_off, self.reason, unresolvable=True)

    def filter_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        """The same for a single node: preemption and kept answers ask for it."""
        if self._is_other(pod) and node.allocatable(self.resource) > 0:
            return Status.unresolvable(self.reason)
        return OK

    def score(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> Scores:
        has = nodes.allocatable(self.resource)
        wanted = pod.resources.requests.get(self.resource, 0)
        if wanted == 0:
            return np.where(has > 0, 0, 100)
        taken = np.clip(nodes.requested(self.resource) + wanted, 0, has)
        return np.where(has > 0, 100 * taken // np.maximum(has, 1), 0)

    def score_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        has = node.allocatable(self.resource)
        wanted = pod.resources.requests.get(self.resource, 0)
        if wanted == 0:
            return 0 if has > 0 else 100
        return 100 * min(node.requested(self.resource) + wanted, has) // has if has > 0 else 0

    def _is_other(self, pod: PodInfo) -> bool:
        return self.reserve and pod.resources.requests.get(self.resource, 0) == 0

    def events_to_register(self) -> Sequence[RegisteredEvent]:
        """A rejection ends with a node that has no GPUs. Requests of a pod that waits only ever change downwards."""
        node_change = ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE
        return [RegisteredEvent(ClusterEvent(EventResource.NODE, node_change))]
