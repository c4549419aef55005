"""The scoring strategies: how full nodes would be, as one number from 0 to 100 per node; and the same of placements.

`strategy_scores` is for whole tables, `node_score` the same for a single node. All arithmetic is on int64 and truncates
toward zero, as kube-scheduler's does. A resource that a node does not have does not count for that node.
RequestedToCapacityRatio scores by a shape: straight lines between points, tabulated over whole percents of utilization.
Placements of a pod group are packed whatever strategy scores nodes (`placement_score`).

Next: `kubesched.scheduler.plugins.resource_allocation` for what goes in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from kubesched.framework.groups import CountedPlacements, PlacementAssignments
from kubesched.framework.nodes import IntArray, NodeTable
from kubesched.framework.results import MAX_NODE_SCORE, Scores
from kubesched.k8s.model.requests import CPU, MEMORY
from kubesched.scheduler.config.plugin_args import (
    MOST_ALLOCATED,
    REQUESTED_TO_CAPACITY_RATIO,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
)
from kubesched.scheduler.plugins.resource_allocation import NodeUse, ResourceUse

MAX_UTILIZATION = 100
MAX_CUSTOM_SCORE = 10
"""Points are scored from 0 to 10 in the configuration."""
_LARGE = 2**55


@lru_cache(maxsize=64)
def broken_linear(shape: tuple[UtilizationShapePoint, ...]) -> IntArray:
    """(101,) the score at 0, 1, … 100 percent. Before the first and beyond the last point the line is level."""
    scale = MAX_NODE_SCORE // MAX_CUSTOM_SCORE
    points = [(point.utilization, point.score * scale) for point in shape]
    table = np.array([_value_at(percent, points) for percent in range(MAX_UTILIZATION + 1)], dtype=np.int64)
    table.flags.writeable = False
    return table


def _value_at(percent: int, points: Sequence[tuple[int, int]]) -> int:
    before = points[0]
    for utilization, score in points:
        if percent <= utilization:
            if percent <= before[0]:
                return before[1]
            rise = (score - before[1]) * (percent - before[0])
            # Integers are cut toward zero here, also on a falling line.
            return before[1] + int(rise / (utilization - before[0]))
        before = (utilization, score)
    return before[1]


ResourceScore = Callable[[IntArray, IntArray], IntArray]
"""(requested, allocatable) -> score of one resource; `allocatable` is nowhere 0."""

NodeScore = Callable[[Sequence[NodeUse]], int]
"""The score of a node, of which the amounts are positive and not so large that arithmetic could overflow."""


def strategy_scores(strategy: ScoringStrategy, uses: Sequence[ResourceUse], n_nodes: int) -> Scores:
    """(n_nodes,) the weighted mean over the resources."""
    if strategy.type == REQUESTED_TO_CAPACITY_RATIO and strategy.requested_to_capacity_ratio is not None:
        return _requested_to_capacity_ratio(broken_linear(strategy.requested_to_capacity_ratio.shape), uses, n_nodes)
    is_most = strategy.type == MOST_ALLOCATED
    if uses and all(use.is_plain for use in uses):
        return _plain_scores(uses, is_most=is_most)
    score = _most_allocated if is_most else _least_allocated
    total, weights = _weighted_sum(score, uses, n_nodes)
    return divide_toward_zero(total, np.maximum(weights, 1))


def _plain_scores(uses: Sequence[ResourceUse], *, is_most: bool) -> Scores:
    """The same where every node has every resource, and nothing is negative: then dividing is all there is to it."""
    total: IntArray | None = None
    for use in uses:
        part: IntArray
        if is_most:
            part = np.minimum(use.requested, use.allocatable)
        else:
            part = np.maximum(use.allocatable - use.requested, 0)
        part *= MAX_NODE_SCORE
        part //= use.allocatable
        if use.weight != 1:
            part *= use.weight
        total = part if total is None else np.add(total, part, out=part)
    assert total is not None
    scores: Scores = total // max(sum(use.weight for use in uses), 1)
    return scores


def _least_allocated(requested: IntArray, allocatable: IntArray) -> IntArray:
    return divide_toward_zero(np.maximum(allocatable - requested, 0) * MAX_NODE_SCORE, allocatable)


def _most_allocated(requested: IntArray, allocatable: IntArray) -> IntArray:
    return divide_toward_zero(np.minimum(requested, allocatable) * MAX_NODE_SCORE, allocatable)


def _requested_to_capacity_ratio(curve: IntArray, uses: Sequence[ResourceUse], n_nodes: int) -> Scores:
    """A resource that scores nothing does not count at all; the mean is rounded, not cut."""

    def score(requested: IntArray, allocatable: IntArray) -> IntArray:
        utilization = divide_toward_zero(requested * MAX_UTILIZATION, allocatable)
        utilization = np.where(requested > allocatable, MAX_UTILIZATION, utilization)
        return curve[np.clip(utilization, 0, MAX_UTILIZATION)]

    total, weights = _weighted_sum(score, uses, n_nodes, only_positive=True)
    return _round_half_up(total / np.maximum(weights, 1))


def _weighted_sum(
    score: ResourceScore, uses: Sequence[ResourceUse], n_nodes: int, *, only_positive: bool = False
) -> tuple[IntArray, IntArray | int]:
    """Σ score·weight and Σ weight per node, over the resources that the node has (`only_positive`: and that score)."""
    total = np.zeros(n_nodes, dtype=np.int64)
    weights: IntArray | int = 0
    for use in uses:
        has_any = np.not_equal(use.allocatable, 0)
        if has_any.all() and not only_positive:
            total += score(use.requested, use.allocatable) * use.weight
            weights = weights + use.weight
            continue
        scores = score(use.requested, np.where(has_any, use.allocatable, 1))
        weight = use.weight * (has_any & np.greater(scores, 0) if only_positive else has_any)
        total += scores * weight
        weights = weights + weight
    return total, weights


def node_score(strategy: ScoringStrategy) -> NodeScore:
    if strategy.type == REQUESTED_TO_CAPACITY_RATIO and strategy.requested_to_capacity_ratio is not None:
        curve = broken_linear(strategy.requested_to_capacity_ratio.shape).tolist()
        return lambda uses: _node_on_curve(curve, uses)
    return _node_most_allocated if strategy.type == MOST_ALLOCATED else _node_least_allocated


def _node_least_allocated(uses: Sequence[NodeUse]) -> int:
    total = weights = 0
    for weight, allocatable, _, requested in uses:
        if requested < allocatable:
            total += (allocatable - requested) * MAX_NODE_SCORE // allocatable * weight
        weights += weight
    return total // (weights or 1)


def _node_most_allocated(uses: Sequence[NodeUse]) -> int:
    total = weights = 0
    for weight, allocatable, _, requested in uses:
        full = requested >= allocatable
        total += (MAX_NODE_SCORE if full else requested * MAX_NODE_SCORE // allocatable) * weight
        weights += weight
    return total // (weights or 1)


def _node_on_curve(curve: Sequence[int], uses: Sequence[NodeUse]) -> int:
    total = weights = 0
    for weight, allocatable, _, requested in uses:
        full = requested >= allocatable
        if score := curve[MAX_UTILIZATION if full else requested * MAX_UTILIZATION // allocatable]:
            total += score * weight
            weights += weight
    mean = total / (weights or 1)
    return int(mean) + (mean - int(mean) >= 0.5)


def divide_toward_zero(number: IntArray, divisor: IntArray) -> IntArray:
    """Integer division as Go does it: -7 / 2 is -3."""
    quotient = number // divisor
    if np.less(number, 0).any() or np.less(divisor, 0).any():
        is_cut_down = (number % divisor != 0) & ((number < 0) != (divisor < 0))
        quotient = quotient + is_cut_down
    return quotient


def _round_half_up(numbers: NDArray[np.float64]) -> Scores:
    """To the nearest integer, halves up; the numbers are not negative."""
    whole = np.floor(numbers)
    rounded: Scores = (whole + (numbers - whole >= 0.5)).astype(np.int64)
    return rounded


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


def counted_placement_scores(specs: Sequence[ResourceSpec], nodes: NodeTable, counted: CountedPlacements) -> IntArray:
    """(n_placements,) the same for each."""
    total: IntArray = np.zeros(len(counted.counts), dtype=np.int64)
    weights: IntArray | int = 0
    for spec in specs:
        asked = counted.asked(spec.name)
        allocatable = counted.kept_sums(f"allocatable {spec.name}", nodes.allocatable(spec.name), MAX_NODE_SCORE)
        requested = asked + counted.sums(_requested(nodes, spec.name), MAX_NODE_SCORE)
        used = np.minimum(requested, allocatable) * MAX_NODE_SCORE
        if allocatable.all() and (spec.name in (CPU, MEMORY) or asked.all()):  # as it mostly is
            share = used // allocatable
            total = total + (share if spec.weight == 1 else share * spec.weight)
            weights = weights + spec.weight
            continue
        counts = allocatable != 0
        if spec.name not in (CPU, MEMORY):
            counts &= asked != 0
        total = total + np.where(counts, used // np.where(counts, allocatable, 1) * spec.weight, 0)
        weights = weights + np.where(counts, spec.weight, 0)
    found: IntArray = (total // np.maximum(weights, 1)).astype(np.int64)
    return found


def _requested(nodes: NodeTable, resource: str) -> IntArray:
    if resource == CPU:
        return nodes.nonzero_cpu_milli
    return nodes.nonzero_memory_bytes if resource == MEMORY else nodes.requested(resource)
