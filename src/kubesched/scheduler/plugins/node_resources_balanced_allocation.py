"""NodeResourcesBalancedAllocation: prefers nodes whose resources the pod would leave evenly used.

The score compares the balance with and without the pod: around 75 where the pod changes nothing, more where it evens
out what others left uneven. Fractions are float64 in kube-scheduler's order of evaluation, so that scores agree to
the last bit.

Next: `kubesched.scheduler.plugins.resource_allocation`, for the columns that go in.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from kubesched.framework import MAX_NODE_SCORE, OK, CycleState, Handle, NodeInfo, NodeTable, PodInfo, Status
from kubesched.framework.caching import Scope
from kubesched.framework.nodes import IntArray
from kubesched.framework.results import Scores
from kubesched.framework.status import SKIP
from kubesched.framework.verdicts import BoolArray
from kubesched.k8s.model.meta import KubeObject
from kubesched.scheduler.config.plugin_args import NodeResourcesBalancedAllocationArgs
from kubesched.scheduler.plugins.resource_allocation import (
    ResourceUse,
    ResourceUses,
    ScoredResource,
    asks_for_devices,
    devices_do_not_matter,
    scored_resources,
)

FloatArray = NDArray[np.float64]

_HALF = MAX_NODE_SCORE // 2


@dataclass(frozen=True, slots=True)
class BalancedResources:
    """What counts for the pod in the score; None if it asks for nothing that does."""

    resources: tuple[ScoredResource, ...] | None


class NodeResourcesBalancedAllocation:
    """Scores by how much the pod improves or spoils the balance between a node's resources."""

    name: ClassVar[str] = "NodeResourcesBalancedAllocation"
    score_scope: ClassVar[Scope] = Scope.AMOUNTS

    def __init__(self, args: object, handle: Handle) -> None:
        given = args if isinstance(args, NodeResourcesBalancedAllocationArgs) else NodeResourcesBalancedAllocationArgs()
        self._resources = given.resources
        self._handle = handle
        self._uses = ResourceUses(handle, nonzero=False)

    def pre_score(self, cycle: CycleState, pod: PodInfo, _nodes: NodeTable) -> Status:
        """A pod that asks for none of the resources changes no balance; scored, all such pods would go to one node."""
        found = self._resources_for(pod)
        cycle.put(found)
        return SKIP if found.resources is None else OK

    def score(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> Scores:
        found = cycle.find(BalancedResources) or self._resources_for(pod)
        if found.resources is None:
            return np.zeros(len(nodes), dtype=np.int64)
        uses = self._uses.of(found.resources, nodes)
        if len(uses) == 2 and all(use.is_plain for use in uses):
            balanced = _balances_of_two(*uses)
            return _gained(balanced[0], balanced[1])
        allocatable = [use.allocatable for use in uses]
        with_pod = balance([use.requested for use in uses], allocatable, len(nodes))
        without_pod = balance([use.allocated for use in uses], allocatable, len(nodes))
        return _gained(with_pod, without_pod)

    def score_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        found = cycle.find(BalancedResources) or self._resources_for(pod)
        if found.resources is None:
            return 0
        uses = self._uses.on_node(found.resources, node)
        if uses is None:
            return int(self.score(cycle, pod, self._handle.nodes.take(np.array([node.row])))[0])
        shares_with: list[float] = []
        shares_without: list[float] = []
        for _, allocatable, allocated, requested in uses:
            # Divided as floats, as columns are: whole numbers would be rounded once less.
            total = float(allocatable)
            shares_with.append(requested / total if requested < allocatable else 1.0)
            shares_without.append(allocated / total if allocated < allocatable else 1.0)
        with_pod, without_pod = node_balance(shares_with), node_balance(shares_without)
        return _HALF + (_HALF + with_pod - without_pod) // 2

    def score_scope_for(self, pod: PodInfo) -> Scope:
        """Devices are counted node by node."""
        return Scope.ROW if asks_for_devices(pod, self._handle.objects.device_classes) else self.score_scope

    def objects_changed(self, _cycle: CycleState, pod: PodInfo, changed: Sequence[KubeObject]) -> bool:
        return devices_do_not_matter(pod, changed)

    def _resources_for(self, pod: PodInfo) -> BalancedResources:
        requests = pod.resources.requests
        if not any(requests.get(resource.name, 0) for resource in self._resources):
            return BalancedResources(None)
        return BalancedResources(scored_resources(self._resources, requests))


def balance(used: Sequence[IntArray], allocatable: Sequence[IntArray], n_nodes: int) -> Scores:
    """(n_nodes,) from 50, where one resource is used up and another not at all, to 100, where all are used alike."""
    present = [np.not_equal(total, 0) for total in allocatable]
    fractions = [_fraction(part, total, has) for part, total, has in zip(used, allocatable, present, strict=True)]
    if len(fractions) < 2:
        return np.full(n_nodes, MAX_NODE_SCORE, dtype=np.int64)
    deviation = _deviation_of_two(fractions, present) if len(fractions) == 2 else _deviation(fractions, present)
    scores: Scores = ((1 - deviation) * float(MAX_NODE_SCORE)).astype(np.int64)
    return scores


def _gained(with_pod: Scores, without_pod: Scores) -> Scores:
    """The score from the balance with the pod and without."""
    scores: Scores = _HALF + (_HALF + with_pod - without_pod) // 2
    return scores


def _balances_of_two(one: ResourceUse, other: ResourceUse) -> Scores:
    """(2, n_nodes) as `balance`, with the pod and without, for two resources of which every node has some."""
    shares = np.empty((2, 2, len(one.allocatable)))
    for share, use in zip(shares, (one, other), strict=True):
        np.divide(use.requested, use.allocatable, out=share[0])
        np.divide(use.allocated, use.allocatable, out=share[1])
    np.minimum(shares, 1.0, out=shares)
    deviation = shares[0] - shares[1]
    deviation /= 2
    np.abs(deviation, out=deviation)
    np.subtract(1, deviation, out=deviation)
    deviation *= float(MAX_NODE_SCORE)
    scores: Scores = deviation.astype(np.int64)
    return scores


def _fraction(used: IntArray, allocatable: IntArray, has_any: BoolArray) -> FloatArray:
    """How much of the resource is used, at most 1; where a node does not have it, the number means nothing."""
    divisor = allocatable if has_any.all() else np.where(has_any, allocatable, 1)
    share: FloatArray = np.minimum(used / divisor, 1.0)
    return share


def _deviation_of_two(fractions: Sequence[FloatArray], present: Sequence[BoolArray]) -> FloatArray:
    """For two numbers the standard deviation is half their distance; a single one does not deviate."""
    distance: FloatArray = np.abs((fractions[0] - fractions[1]) / 2)
    return np.where(present[0] & present[1], distance, 0.0)


def _deviation(fractions: Sequence[FloatArray], present: Sequence[BoolArray]) -> FloatArray:
    """Of the fractions that each node has. Summed in order: in floating point the order counts."""
    columns = np.stack(fractions)
    has = np.stack(present)
    n_present = has.sum(axis=0)
    count = np.maximum(n_present, 1).astype(np.float64)
    mean = _sum_in_order(np.where(has, columns, 0.0)) / count
    deviation = np.sqrt(_sum_in_order(np.where(has, (columns - mean) * (columns - mean), 0.0)) / count)
    highest = np.where(has, columns, -np.inf).max(axis=0)
    lowest = np.where(has, columns, np.inf).min(axis=0)
    return np.select([n_present > 2, n_present == 2], [deviation, np.abs((highest - lowest) / 2)], 0.0)


def node_balance(shares: Sequence[float]) -> int:
    """As `balance`, for one node, from the shares that are used of the resources it has."""
    count = len(shares)
    if count == 2:
        deviation = abs((shares[0] - shares[1]) / 2)
    elif count < 2:
        return MAX_NODE_SCORE
    else:
        mean = _total_in_order(shares) / count
        deviation = math.sqrt(_total_in_order([(share - mean) * (share - mean) for share in shares]) / count)
    return int((1 - deviation) * float(MAX_NODE_SCORE))


def _total_in_order(numbers: Sequence[float]) -> float:
    """One addition after the other, which `sum` does not promise."""
    total = 0.0
    for number in numbers:
        total += number
    return total


def _sum_in_order(columns: FloatArray) -> FloatArray:
    """(n_nodes,) one addition after the other, which `np.sum` does not promise."""
    total = np.zeros(columns.shape[1])
    for column in columns:
        total = total + column
    return total
