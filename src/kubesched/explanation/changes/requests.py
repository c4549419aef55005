"""Lower which request to what: the largest requests with which the pod would fit.

Of one resource alone, wherever a node lacks nothing else; of several together only if one alone is never enough. What
nodes lack is worked out as arrays over these nodes. In the pod, the largest container gives way first, so that as few
as possible change; init containers are brought under the same limit, and a request of the pod as a whole is lowered
with them. Where Kubernetes wants request and limit to be equal (extended resources, huge pages), the limit follows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from kubesched.explanation.changes.what_if import (
    Change,
    ChangeKind,
    PatchOperation,
    PatchPod,
    Proposal,
    Reluctance,
    Situation,
    put,
)
from kubesched.explanation.findings.finding import lacking
from kubesched.explanation.layout import exact, exact_and_readable
from kubesched.framework.nodes import IntArray, RowArray
from kubesched.framework.verdicts import ACCEPT_ALL, BoolArray
from kubesched.k8s.model import quantity
from kubesched.k8s.model.core import Container, Pod, ResourceRequirements
from kubesched.k8s.model.quantity import Notation, Quantity
from kubesched.k8s.model.requests import (
    CPU,
    HUGE_PAGES_PREFIX,
    PODS,
    is_extended,
    is_restartable,
    is_scalar,
    to_nanos,
)
from kubesched.scheduler.plugins.node_resources_fit import NodeResourcesFit


@dataclass(frozen=True, slots=True)
class Shortfalls:
    """One row of each array per resource, one column per node."""

    rows: RowArray
    resources: tuple[str, ...]
    requested: IntArray
    """(n_resources,)"""
    free: IntArray
    allocatable: IntArray
    lacks: BoolArray

    @property
    def missing(self) -> IntArray:
        """(n_resources, n_nodes) how much more would have to be free; 0 where there is enough."""
        return np.where(self.lacks, self.requested[:, np.newaxis] - self.free, 0)

    def cost(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """(n_nodes,) what is missing, as shares of what is requested, added up."""
        shares = self.missing / np.maximum(self.requested, 1)[:, np.newaxis]
        total: np.ndarray[tuple[int], np.dtype[np.float64]] = shares.sum(axis=0)
        return total

    def amounts(self, position: int) -> dict[str, int]:
        """What is missing on one of the nodes."""
        column = self.missing[:, position].tolist()
        return {resource: units for resource, units in zip(self.resources, column, strict=True) if units > 0}


def find_shortfalls(situation: Situation, rows: RowArray) -> Shortfalls:
    """The shortfalls of these rows, all of which NodeResourcesFit rejects."""
    resources = _resources(situation)
    free, allocatable = _amounts(situation, rows, resources)
    wanted = situation.pod.resources.wanted
    requested = np.array([1 if name == PODS else wanted.get(name, 0) for name in resources], dtype=np.int64)
    return Shortfalls(rows, resources, requested, free, allocatable, _lacks(situation, rows, resources))


def _resources(situation: Situation) -> tuple[str, ...]:
    """All that any node lacks."""
    verdicts = situation.failures.verdicts_of(NodeResourcesFit.name)
    found = dict.fromkeys(lacking(verdicts.reasons))
    for statuses in situation.failures.crowded.values():
        for status in statuses:
            if status.plugin == NodeResourcesFit.name:
                found.update(dict.fromkeys(lacking(status.reasons)))
    return tuple(found)


def _amounts(situation: Situation, rows: RowArray, resources: tuple[str, ...]) -> tuple[IntArray, IntArray]:
    nodes = situation.cluster.nodes.take(rows)
    free = np.zeros((len(resources), len(rows)), dtype=np.int64)
    allocatable = np.zeros_like(free)
    for index, name in enumerate(resources):
        allocatable[index] = nodes.allowed_pods if name == PODS else nodes.allocatable(name)
        free[index] = allocatable[index] - (nodes.pod_counts if name == PODS else nodes.requested(name))
        for row, nominated_pods in situation.nominated_pods.items():
            taken = sum(
                1 if name == PODS else nominated_pod.resources.requests.get(name, 0) for nominated_pod in nominated_pods
            )
            free[index, rows == row] -= taken
    return free, allocatable


def _lacks(situation: Situation, rows: RowArray, resources: tuple[str, ...]) -> BoolArray:
    """As the plugin itself said it."""
    lacks = np.zeros((len(resources), len(rows)), dtype=np.bool_)
    verdicts = situation.failures.verdicts_of(NodeResourcesFit.name)
    if verdicts is not ACCEPT_ALL:
        for reason, bits in zip(verdicts.reasons, verdicts.bits, strict=True):
            for name in lacking([reason]):
                lacks[resources.index(name)] = bits[rows]
    for row, statuses in situation.failures.crowded.items():
        for name in (name for s in statuses if s.plugin == NodeResourcesFit.name for name in lacking(s.reasons)):
            lacks[resources.index(name), rows == row] = True
    return lacks


Path = tuple[str | int, ...]


@dataclass(slots=True)
class _Asking:
    """One container's request of the resource in question, as it is and as it becomes."""

    path: Path
    resources: ResourceRequirements
    before: int
    after: int


def lower_request(pod: Pod, resource: str, units: int) -> tuple[PatchOperation, ...] | None:
    """Operations after which the pod asks for so many milli-cpus, bytes or whole units; None if there is no way."""
    overhead = to_nanos(pod.spec.overhead, "spec.overhead").get(resource, 0)
    budget = units * (quantity.NANO // 1000 if resource == CPU else quantity.NANO) - overhead
    if budget < 0:
        return None
    staying = [_asking(container, path, resource) for container, path in _staying(pod)]
    _cut_down(staying, budget)
    passing = _capped_init_containers(pod, resource, budget, {asking.path: asking.after for asking in staying})
    whole = _whole_pod(pod, resource, budget)
    changed = [asking for asking in [*staying, *passing, *whole] if asking.after < asking.before]
    return tuple(operation for asking in changed for operation in _lowering_operations(asking, resource))


def _staying(pod: Pod) -> Iterator[tuple[Container, Path]]:
    """Containers that run as long as the pod does."""
    for index, container in enumerate(pod.spec.containers):
        yield container, ("spec", "containers", index)
    for index, container in enumerate(pod.spec.init_containers or ()):
        if is_restartable(container):
            yield container, ("spec", "initContainers", index)


def _asking(container: Container, path: Path, resource: str) -> _Asking:
    resources = container.resources or ResourceRequirements()
    nanos = to_nanos(resources.requests, "requests").get(resource, 0)
    return _Asking((*path, "resources"), resources, nanos, nanos)


def _cut_down(staying: list[_Asking], budget: int) -> None:
    excess = sum(asking.after for asking in staying) - budget
    for asking in sorted(staying, key=lambda asking: -asking.before):
        if excess <= 0:
            return
        cut = min(excess, asking.after)
        asking.after -= cut
        excess -= cut


def _capped_init_containers(pod: Pod, resource: str, budget: int, staying: dict[Path, int]) -> list[_Asking]:
    """Init containers that come and go, each beside the restartable ones that were started before it."""
    found = []
    beside = 0
    for index, container in enumerate(pod.spec.init_containers or ()):
        asking = _asking(container, ("spec", "initContainers", index), resource)
        if is_restartable(container):
            beside += staying[asking.path]
            continue
        asking.after = min(asking.after, budget - beside)
        found.append(asking)
    return found


def _whole_pod(pod: Pod, resource: str, budget: int) -> list[_Asking]:
    resources = pod.spec.resources
    if resources is None or resource not in (resources.requests or {}):
        return []
    nanos = to_nanos(resources.requests, "spec.resources.requests")[resource]
    return [_Asking(("spec", "resources"), resources, nanos, min(nanos, budget))]


def _lowering_operations(asking: _Asking, resource: str) -> Iterator[PatchOperation]:
    is_bytes = resource != CPU and not is_extended(resource)
    text = str(Quantity(asking.after, Notation.BINARY_SI if is_bytes else Notation.DECIMAL_SI))
    yield put(*asking.path, "requests", resource, value=text)
    is_tied = is_extended(resource) or resource.startswith(HUGE_PAGES_PREFIX)
    if is_tied and resource in (asking.resources.limits or {}):
        yield put(*asking.path, "limits", resource, value=text)


SMALL_CUT, LARGE_CUT = 0.25, 0.6
"""Shares of a request that a program may do without, or hardly."""


def lower_requests(situation: Situation) -> list[Change]:
    if NodeResourcesFit.name not in situation.failures.rejecting():
        return []
    shortfalls = find_shortfalls(situation, situation.failures.only({NodeResourcesFit.name}))
    found = []
    for resource in shortfalls.resources:
        if resource != PODS:
            change = situation.what_if.first_that_helps(_alone(situation, shortfalls, resource))
            found.extend([change] if change is not None else [])
    if not found:
        change = situation.what_if.first_that_helps(_together(situation, shortfalls))
        found.extend([change] if change is not None else [])
    return found


def propose_requests(situation: Situation, row: int) -> Proposal | None:
    """What the pod may ask for on this node; None if it asks for too much of something that cannot be lowered."""
    shortfalls = find_shortfalls(situation, np.array([row]))
    return _lower(situation, row, _targets(shortfalls, 0), float(shortfalls.cost()[0]))


def _alone(situation: Situation, shortfalls: Shortfalls, resource: str) -> Iterator[Proposal]:
    """For nodes that lack this resource only, the one with most of it first."""
    index = shortfalls.resources.index(resource)
    alone = np.flatnonzero(shortfalls.lacks[index] & (shortfalls.lacks.sum(axis=0) == 1))
    tried: set[int] = set()
    for position in alone[np.argsort(-shortfalls.free[index, alone], kind="stable")].tolist():
        target = max(0, int(shortfalls.free[index, position]))
        if target not in tried:
            tried.add(target)
            row = int(shortfalls.rows[position])
            proposal = _lower(situation, row, {resource: target}, float(shortfalls.cost()[position]))
            if proposal is not None:
                yield proposal


def _together(situation: Situation, shortfalls: Shortfalls) -> Iterator[Proposal]:
    """For nodes that lack several, the one first where least has to be given up."""
    cost = shortfalls.cost()
    order: RowArray = np.argsort(cost, kind="stable")
    for position in order.tolist():
        row = int(shortfalls.rows[position])
        proposal = _lower(situation, row, _targets(shortfalls, position), float(cost[position]))
        if proposal is not None:
            yield proposal


def _targets(shortfalls: Shortfalls, position: int) -> dict[str, int]:
    free = shortfalls.free[:, position].tolist()
    lacks = shortfalls.lacks[:, position].tolist()
    return {
        resource: max(0, units)
        for resource, units, is_short in zip(shortfalls.resources, free, lacks, strict=True)
        if is_short
    }


def _lower(situation: Situation, row: int, targets: Mapping[str, int], cost: float) -> Proposal | None:
    pod = situation.pod
    operations: list[PatchOperation] = []
    for resource, units in targets.items():
        lowered = None if resource == PODS else lower_request(pod.pod, resource, units)
        if not lowered:
            return None
        operations.extend(lowered)
    wanted = pod.resources.wanted
    amounts = {name: (wanted.get(name, 0), units) for name, units in targets.items()}
    cut = max((before - after) / max(before, 1) for before, after in amounts.values())
    steps = [
        f"the {name} request from {exact_and_readable(name, before)} to {exact_and_readable(name, after)}"
        for name, (before, after) in amounts.items()
    ]
    dropped = [name for name in amounts if amounts[name][1] == 0 and is_scalar(name)]
    return Proposal(
        kind=ChangeKind.REQUESTS,
        description=f"do without {dropped[0]}" if dropped and len(amounts) == 1 else f"lower {' and '.join(steps)}",
        node=situation.name(row),
        actions=(PatchPod(pod.key, tuple(operations)),),
        details={"requests": {n: {"from": exact(n, old), "to": exact(n, new)} for n, (old, new) in amounts.items()}},
        n_edits=len(targets),
        cost=cost,
        reluctance=reluctance_to_lose(cut),
        cost_to_others=f"costs others nothing; the pod gets {'none of it' if dropped else f'{cut:.0%} less'}",
        is_drastic=any(units == 0 for units in targets.values()),
    )


def reluctance_to_lose(cut: float) -> Reluctance:
    """By the share of the request that is given up."""
    if cut <= SMALL_CUT:
        return Reluctance.LITTLE
    return Reluctance.MUCH if cut <= LARGE_CUT else Reluctance.HARM
