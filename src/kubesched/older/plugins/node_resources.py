"""NodeResourcesFit and the four scores by resources, with their arithmetic of old."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.handle import Handle
from kubesched.framework.nodes import NodeInfo
from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.model.requests import CPU, EPHEMERAL_STORAGE, MEMORY, is_counted, is_extended
from kubesched.older.config.generations import Generation
from kubesched.older.plugins.amounts import Accounts, limits_of
from kubesched.older.plugins.rejection import OlderPlugin, Reason, ReasonedFilter

_BUILT_IN = (CPU, MEMORY, EPHEMERAL_STORAGE)
_HIGHEST_UTILIZATION = 100
_SHAPE_TOP = 10


class OlderNodeResourcesFit(ReasonedFilter):
    def __init__(self, name: str, args: Mapping[str, Any], handle: Handle, generation: Generation) -> None:
        super().__init__(name, args, handle, generation)
        self._accounts = Accounts(generation)
        self._ignored = frozenset(args.get("ignoredResources") or ())
        self._ignored_groups = frozenset(args.get("ignoredResourceGroups") or ())

    def reasons(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> Sequence[Reason]:
        found = []
        if node.pod_count + 1 > node.allowed_pods:
            found.append(Reason(self.generation.too_many_pods))
        wanted = self._accounts.of(pod).wanted
        scalars = [name for name in wanted if name not in _BUILT_IN]
        if not scalars and not any(wanted.values()):
            return found
        # A pod that asks for anything is held to cpu, memory and storage, even those that it does not ask for.
        requested = self._accounts.requested(node)
        checked = (*_BUILT_IN, *(name for name in scalars if not self._is_ignored(name)))
        found.extend(
            Reason(f"Insufficient {name}")
            for name in checked
            if node.allocatable(name) < wanted.get(name, 0) + requested.get(name, 0)
        )
        return found

    def _is_ignored(self, name: str) -> bool:
        return is_extended(name) and (name in self._ignored or name.split("/")[0] in self._ignored_groups)


class ResourceScore(OlderPlugin, ABC):
    """Scores by the share of each resource that would be requested."""

    def __init__(self, name: str, args: Mapping[str, Any], handle: Handle, generation: Generation) -> None:
        super().__init__(name, args, handle, generation)
        self._accounts = Accounts(generation)
        self._weights = self._weights_of(args.get("resources"))

    def _weights_of(self, resources: Sequence[Mapping[str, Any]] | None) -> dict[str, int]:
        if not resources:
            return {CPU: 1, MEMORY: 1}
        return {entry["name"]: entry.get("weight") or 1 for entry in resources}

    def score_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        scored = self._accounts.of(pod).scored
        on_node = self._accounts.requested_for_score(node)
        return self.score_of({name: self._amounts(name, scored, on_node, node) for name in self._weights})

    def _amounts(
        self, name: str, scored: Mapping[str, int], on_node: Mapping[str, int], node: NodeInfo
    ) -> tuple[int, int]:
        """Requested and allocatable; both 0 for a resource that nodes do not count."""
        if not is_counted(name):
            return 0, 0
        return on_node.get(name, 0) + scored.get(name, 0), node.allocatable(name)

    @abstractmethod
    def score_of(self, amounts: Mapping[str, tuple[int, int]]) -> int:
        """From requested and allocatable of each resource."""

    def _mean(self, scores: Mapping[str, int]) -> int:
        return sum(score * self._weights[name] for name, score in scores.items()) // sum(self._weights.values())


class NodeResourcesLeastAllocated(ResourceScore):
    def score_of(self, amounts: Mapping[str, tuple[int, int]]) -> int:
        return self._mean({name: self._free_share(*pair) for name, pair in amounts.items()})

    def _free_share(self, requested: int, capacity: int) -> int:
        if capacity == 0 or requested > capacity:
            return 0
        return (capacity - requested) * self.generation.highest_score // capacity


class NodeResourcesMostAllocated(ResourceScore):
    def score_of(self, amounts: Mapping[str, tuple[int, int]]) -> int:
        return self._mean({name: self._used_share(*pair) for name, pair in amounts.items()})

    def _used_share(self, requested: int, capacity: int) -> int:
        if requested > capacity and self.generation.overfull_counts_as_full:
            requested = capacity
        if capacity == 0 or requested > capacity:
            return 0
        return requested * self.generation.highest_score // capacity


class OlderBalancedAllocation(ResourceScore):
    """The smaller the difference between the shares of cpu and memory, the better."""

    def _weights_of(self, resources: Sequence[Mapping[str, Any]] | None) -> dict[str, int]:
        return {CPU: 1, MEMORY: 1}

    def score_of(self, amounts: Mapping[str, tuple[int, int]]) -> int:
        cpu, memory = _fraction(*amounts[CPU]), _fraction(*amounts[MEMORY])
        if cpu >= 1 or memory >= 1:
            return 0
        return int((1 - abs(cpu - memory)) * float(self.generation.highest_score))


class RequestedToCapacityRatio(ResourceScore):
    """What the requested share is worth, by a function of straight pieces."""

    def __init__(self, name: str, args: Mapping[str, Any], handle: Handle, generation: Generation) -> None:
        super().__init__(name, args, handle, generation)
        scale = generation.highest_score // _SHAPE_TOP
        shape = args.get("shape") or [{"utilization": 0, "score": _SHAPE_TOP}, {"utilization": 100, "score": 0}]
        self._shape = [(int(point.get("utilization", 0)), int(point.get("score", 0)) * scale) for point in shape]

    def _weights_of(self, resources: Sequence[Mapping[str, Any]] | None) -> dict[str, int]:
        if self.generation.ratio_averages_all:
            return {CPU: 1, MEMORY: 1}
        if resources is not None and not resources and self.generation.ratio_needs_resources:
            return {}
        return super()._weights_of(resources)

    def score_of(self, amounts: Mapping[str, tuple[int, int]]) -> int:
        scores = {name: self._worth(*pair) for name, pair in amounts.items()}
        if self.generation.ratio_averages_all:
            return sum(scores.values()) // 2
        counted = {name: score for name, score in scores.items() if score > 0}
        weights = sum(self._weights[name] for name in counted)
        if weights == 0:
            return 0
        total = sum(score * self._weights[name] for name, score in counted.items())
        return math.floor(total / weights + 0.5)

    def _worth(self, requested: int, capacity: int) -> int:
        full = _HIGHEST_UTILIZATION
        share = full if capacity == 0 or requested > capacity else full - (capacity - requested) * full // capacity
        before: tuple[int, int] | None = None
        for utilization, score in self._shape:
            if share <= utilization:
                if before is None:
                    return score
                rise = (score - before[1]) * (share - before[0])
                return before[1] + _toward_zero(rise, utilization - before[0])
            before = utilization, score
        return self._shape[-1][1]


class NodeResourceLimits(OlderPlugin):
    """1 for a node that has room for the pod's limit of cpu or of memory."""

    def score_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        limits = limits_of(pod.pod)
        return int(any(0 < limits.get(name, 0) <= node.allocatable(name) for name in (CPU, MEMORY)))


class EqualPriority(OlderPlugin):
    """All nodes are alike."""

    def score_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        return 1


def _fraction(requested: int, capacity: int) -> float:
    return 1.0 if capacity == 0 else requested / capacity


def _toward_zero(dividend: int, divisor: int) -> int:
    quotient = abs(dividend) // abs(divisor)
    return quotient if (dividend < 0) == (divisor < 0) else -quotient
