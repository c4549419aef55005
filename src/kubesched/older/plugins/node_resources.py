"""NodeResourcesFit and the four scores by resources, with their accounts and their arithmetic of old.

Init containers and overhead entered the accounts one after the other; containers that keep running beside the others,
pod-level requests and resizing came later, and do not count at all.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.handle import Handle
from kubesched.framework.nodes import NodeInfo
from kubesched.framework.pod_info import PodInfo, PodSignature
from kubesched.k8s.model.core import Container, Pod
from kubesched.k8s.model.quantity import Quantity
from kubesched.k8s.model.requests import (
    CPU,
    DEFAULT_MEMORY_BYTES,
    DEFAULT_MILLI_CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    in_node_units,
    is_counted,
    is_extended,
    to_nanos,
)
from kubesched.older.config.generations import Generation
from kubesched.older.plugins.rejection import OlderPlugin, Reason, ReasonedFilter

Amounts = dict[str, int]

_DEFAULTS = {CPU: DEFAULT_MILLI_CPU, MEMORY: DEFAULT_MEMORY_BYTES}


@dataclass(frozen=True, slots=True)
class PodAmounts:
    """One pod's, in the units that nodes are counted in."""

    wanted: Amounts
    """What a node must have free for it."""
    counted: Amounts
    """What it takes from the node that it is on."""
    counted_for_score: Amounts
    """The same with defaults for silent containers: cpu and memory."""
    scored: Amounts
    """What is added to a node's amounts when the pod itself is scored."""


class Accounts:
    """Amounts by pod signature, worked out once."""

    def __init__(self, generation: Generation) -> None:
        self._generation = generation
        self._known: dict[int, tuple[PodSignature, PodAmounts]] = {}

    def of(self, pod: PodInfo) -> PodAmounts:
        signature = pod.signature
        known = self._known.get(id(signature))
        if known is None:
            known = self._known[id(signature)] = signature, _amounts(pod.pod, self._generation)
        return known[1]

    def requested(self, node: NodeInfo) -> Amounts:
        total: Amounts = {}
        for other in node.pods:
            add(total, self.of(other).counted)
        return total

    def requested_for_score(self, node: NodeInfo) -> Amounts:
        """Cpu and memory with defaults for silent containers, everything else as requested."""
        total: Amounts = {}
        for other in node.pods:
            amounts = self.of(other)
            add(total, amounts.counted)
            for name in _DEFAULTS:
                total[name] = total.get(name, 0) - amounts.counted.get(name, 0) + amounts.counted_for_score[name]
        return total


def add(total: Amounts, amounts: Amounts) -> None:
    for name, amount in amounts.items():
        total[name] = total.get(name, 0) + amount


def limits_of(pod: Pod) -> Amounts:
    """The sum of the containers' limits, or what a single init container may use."""
    total: Amounts = {}
    for container in pod.spec.containers:
        add(total, _listed(container, "limits"))
    for container in pod.spec.init_containers or ():
        _raise_to(total, _listed(container, "limits"))
    return total


def _amounts(pod: Pod, generation: Generation) -> PodAmounts:
    own: Amounts = {}
    for container in pod.spec.containers:
        add(own, _listed(container, "requests"))
    with_init = dict(own)
    for container in pod.spec.init_containers or ():
        _raise_to(with_init, _listed(container, "requests"))
    overhead = _overhead(pod) if generation.counts_overhead else {}
    wanted = dict(with_init)
    add(wanted, overhead)
    counted = dict(with_init if generation.counts_init_containers else own)
    add(counted, overhead)
    defaulted = _defaulted(pod, generation)
    counted_for_score = {name: defaulted[name] + overhead.get(name, 0) for name in _DEFAULTS}
    return PodAmounts(wanted, counted, counted_for_score, _scored(pod, wanted, defaulted, generation))


def _scored(pod: Pod, wanted: Amounts, defaulted: Amounts, generation: Generation) -> Amounts:
    """Overhead is added in whole units here, of cpu as well: half a core of overhead adds a single milli-core."""
    amounts = {**wanted, **defaulted}
    if generation.counts_overhead:
        for name, nanos in to_nanos(pod.spec.overhead, "spec.overhead").items():
            if name in _DEFAULTS:
                amounts[name] += Quantity(nanos).value
    return amounts


def _defaulted(pod: Pod, generation: Generation) -> Amounts:
    """Cpu and memory; a container that names none counts as if it asked for a little."""
    total = dict.fromkeys(_DEFAULTS, 0)
    for container in pod.spec.containers:
        add(total, _with_defaults(container))
    if generation.counts_init_containers:
        for container in pod.spec.init_containers or ():
            _raise_to(total, _with_defaults(container))
    return total


def _with_defaults(container: Container) -> Amounts:
    listed = _listed(container, "requests")
    return {name: listed.get(name, amount) for name, amount in _DEFAULTS.items()}


def _listed(container: Container, field: str) -> Amounts:
    amounts = None if container.resources is None else getattr(container.resources, field)
    return in_node_units(to_nanos(amounts, f"resources.{field}"))


def _overhead(pod: Pod) -> Amounts:
    found = in_node_units(to_nanos(pod.spec.overhead, "spec.overhead"))
    return {name: amount for name, amount in found.items() if is_counted(name)}


def _raise_to(total: Amounts, amounts: Amounts) -> None:
    for name, amount in amounts.items():
        if amount > total.get(name, 0):
            total[name] = amount


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
