"""What pods ask for and what nodes have given away, by the accounts of an older version.

Init containers and overhead entered the accounts one after the other; containers that keep running beside the others,
pod-level requests and resizing came later, and do not count at all.
"""

from __future__ import annotations

from dataclasses import dataclass

from kubesched.framework.nodes import NodeInfo
from kubesched.framework.pod_info import PodInfo, PodSignature
from kubesched.k8s.model.core import Container, Pod
from kubesched.k8s.model.quantity import Quantity
from kubesched.k8s.model.requests import (
    CPU,
    DEFAULT_MEMORY_BYTES,
    DEFAULT_MILLI_CPU,
    MEMORY,
    in_node_units,
    is_counted,
    to_nanos,
)
from kubesched.older.config.generations import Generation

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
