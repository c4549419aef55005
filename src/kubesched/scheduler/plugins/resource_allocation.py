"""How full nodes are, resource by resource: what both scores on resources are made of. Not a plugin itself.

Where a DeviceClass backs an extended resource, devices count: per node, those of the class and those of them that are
allocated. Every published slice counts, whatever its pool's state. A node about which something cannot be decided,
because of a validation error in a node selector or in the class's CEL expression, counts as having no devices. Which
devices a class selects is remembered until slice or class change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kubesched.framework import Handle, NodeTable, Objects, PodInfo
from kubesched.framework.nodes import IntArray, NodeInfo, RowArray
from kubesched.framework.verdicts import BoolArray
from kubesched.k8s import cel
from kubesched.k8s.model import quantity, selectors
from kubesched.k8s.model.core import NodeSelector
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.requests import CPU, EPHEMERAL_STORAGE, MEMORY, is_extended, is_scalar
from kubesched.k8s.model.resource import (
    Device,
    DeviceAttribute,
    DeviceClass,
    ResourceClaim,
    ResourceSlice,
    device_class_of,
)
from kubesched.k8s.model.selectors import NODE_NAME_FIELD, NodeTerm, Requirement
from kubesched.scheduler.config.plugin_args import ResourceSpec

Answers = tuple[bool | None, ...]
"""For each device of a slice, whether the class picks it; None where an expression is broken or has no answer."""

_ROOM_FOR_OLD_ANSWERS = 1000


@dataclass(frozen=True, slots=True, eq=False)
class KnownAnswers:
    device_class: DeviceClass
    published: ResourceSlice
    answers: Answers


class ClassMembership:
    """Asks every device once."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], KnownAnswers] = {}

    def answers(self, device_class: DeviceClass, published: ResourceSlice) -> Answers:
        key = (device_class.name, published.name)
        known = self._known.get(key)
        if known is None or known.device_class is not device_class or known.published is not published:
            driver, devices = published.spec.driver, published.spec.devices or ()
            answers = tuple(_is_picked(device_class, driver, device) for device in devices)
            known = self._known[key] = KnownAnswers(device_class, published, answers)
        return known.answers

    def forget_old(self, n_slices: int) -> None:
        """Drops what is kept when most of it must be about slices that are gone."""
        if len(self._known) > 2 * n_slices + _ROOM_FOR_OLD_ANSWERS:
            self._known.clear()


def _is_picked(device_class: DeviceClass, driver: str, device: Device) -> bool | None:
    expressions = [s.cel.expression for s in device_class.spec.selectors or () if s.cel is not None]
    if not expressions:
        return True
    try:
        view = _view(driver, device)
        return all(cel.compile(expression).evaluate(view) for expression in expressions)
    except (cel.CelError, quantity.QuantityError):
        return None


def _view(driver: str, device: Device) -> cel.DeviceView:
    attributes = {name: _attribute(name, value) for name, value in (device.attributes or {}).items()}
    capacity = {name: quantity.parse(amount.value) for name, amount in (device.capacity or {}).items()}
    return cel.DeviceView.of(driver, attributes, capacity)


def _attribute(name: str, attribute: DeviceAttribute) -> cel.AttributeValue:
    if attribute.version is not None:
        return cel.VersionText(attribute.version)
    for value in (attribute.int_value, attribute.bool_value, attribute.string):
        if value is not None:
            return value
    raise cel.CelEvaluationError(f"attribute {name}: unsupported attribute value")


DEVICE_KINDS = (DeviceClass, ResourceClaim, ResourceSlice)
"""The objects that say what devices there are and who has them."""

TakenDevice = tuple[str, str, str]
"""(driver, pool, device)"""

Positions = RowArray | BoolArray
"""Where in the table: as indices or as a mask."""


@dataclass(frozen=True, slots=True, eq=False)
class PlacedDevices:
    """Devices of one slice, by their indices, and the nodes they can be used on; `is_unclear` if that is not known."""

    devices: Sequence[int]
    positions: Positions
    is_unclear: bool = False


class DeviceCounts:
    """Counts devices, and remembers which of them are of a class."""

    def __init__(self) -> None:
        self._membership = ClassMembership()

    def of(self, device_class: DeviceClass, nodes: NodeTable, objects: Objects) -> tuple[IntArray, IntArray]:
        """(n_nodes,) how many devices there are, and (n_nodes,) how many of them are allocated."""
        capacity = np.zeros(len(nodes), dtype=np.int64)
        allocated = np.zeros(len(nodes), dtype=np.int64)
        unclear = np.zeros(len(nodes), dtype=np.bool_)
        taken = frozenset(_taken_devices(objects.resource_claims.values()))
        by_name = {name: np.array([position], dtype=np.intp) for position, name in enumerate(nodes.names)}
        self._membership.forget_old(len(objects.resource_slices))
        for published in objects.resource_slices.values():
            is_of_class = self._membership.answers(device_class, published)
            is_taken = _are_taken(published, taken)
            for placed in _placements(published, nodes, by_name):
                found = [index for index in placed.devices if is_of_class[index]]
                unclear[placed.positions] |= placed.is_unclear or any(is_of_class[i] is None for i in placed.devices)
                capacity[placed.positions] += len(found)
                allocated[placed.positions] += sum(is_taken[index] for index in found)
        return np.where(unclear, 0, capacity), np.where(unclear, 0, allocated)


def _taken_devices(claims: Iterable[ResourceClaim]) -> Iterator[TakenDevice]:
    """Devices that claims hold, alone or shared. Access for administrators takes nothing away."""
    for claim in claims:
        allocation = claim.status.allocation
        for result in (allocation.devices.results or ()) if allocation is not None else ():
            if not result.admin_access:
                yield result.driver, result.pool, result.device


def _are_taken(published: ResourceSlice, taken: frozenset[TakenDevice]) -> list[bool]:
    driver, pool = published.spec.driver, published.spec.pool.name
    return [(driver, pool, device.name) in taken for device in published.spec.devices or ()]


def _placements(
    published: ResourceSlice, nodes: NodeTable, by_name: Mapping[str, Positions]
) -> Iterator[PlacedDevices]:
    spec = published.spec
    devices = spec.devices or ()
    if not spec.per_device_node_selection:
        # What says nothing about nodes is for all of them here; the API server does not let such slices through.
        is_for_all = bool(spec.all_nodes) or not (spec.node_name or spec.node_selector)
        yield from _place(range(len(devices)), spec.node_name, is_for_all, spec.node_selector, nodes, by_name)
        return
    for index, device in enumerate(devices):
        yield from _place((index,), device.node_name, bool(device.all_nodes), device.node_selector, nodes, by_name)


def _place(
    devices: Sequence[int],
    node_name: str | None,
    all_nodes: bool,
    selector: NodeSelector | None,
    nodes: NodeTable,
    by_name: Mapping[str, Positions],
) -> Iterator[PlacedDevices]:
    if all_nodes:
        yield PlacedDevices(devices, np.ones(len(nodes), dtype=np.bool_))
    elif node_name:
        if node_name in by_name:
            yield PlacedDevices(devices, by_name[node_name])
    elif selector is not None:
        compiled = selectors.from_node_selector(selector)
        if compiled.errors:
            yield PlacedDevices((), np.ones(len(nodes), dtype=np.bool_), is_unclear=True)
            return
        picked = np.zeros(len(nodes), dtype=np.bool_)
        for term in compiled.terms:
            picked |= _picked_by(term, nodes)
        yield PlacedDevices(devices, picked)


def _picked_by(term: NodeTerm, nodes: NodeTable) -> BoolArray:
    picked = np.ones(len(nodes), dtype=np.bool_)
    for requirement in term.labels:
        picked &= nodes.matching(requirement)
    for requirement in term.fields:
        picked &= _with_field(requirement, nodes)
    return picked


def _with_field(requirement: Requirement, nodes: NodeTable) -> BoolArray:
    """The name is the only field that nodes have; any other is empty."""
    if requirement.key != NODE_NAME_FIELD:
        return np.full(len(nodes), requirement.matches(""), dtype=np.bool_)
    named = nodes.named(requirement.values[0])
    return named if requirement.operator == "In" else ~named


def asks_for_devices(pod: PodInfo, classes: Mapping[str, DeviceClass]) -> bool:
    """Whether a class of devices stands for one of the resources."""
    return any(is_extended(name) and device_class_of(name, classes) is not None for name in pod.resources.wanted)


def devices_do_not_matter(pod: PodInfo, changed: Sequence[KubeObject]) -> bool:
    """Whether a pod without claims is indifferent to what changed. Only extended resources can be devices."""
    if not any(is_extended(name) for name in pod.resources.wanted):
        return True
    return not any(isinstance(item, DEVICE_KINDS) for item in changed)


_ALWAYS_COUNTED = (CPU, MEMORY, EPHEMERAL_STORAGE)

_LARGE = 2**55
"""From here on a hundred times an amount may not fit in 64 bits."""

NodeUse = tuple[int, int, int, int]
"""(weight, allocatable, allocated, requested) of one resource on one node; as in `ResourceUse`."""


class ScoredResource(NamedTuple):
    """A resource that counts for a pod, and how much the pod asks for."""

    name: str
    weight: int
    asked: int


def scored_resources(resources: Iterable[ResourceSpec], requests: Mapping[str, int]) -> tuple[ScoredResource, ...]:
    """Scalar resources that the pod does not request are left out: a node is no better for having them."""
    found = []
    for spec in resources:
        asked = requests.get(spec.name, 0)
        if spec.name in _ALWAYS_COUNTED or (asked and is_scalar(spec.name)):
            found.append(ScoredResource(spec.name, spec.weight, asked))
    return tuple(found)


class ResourceUse(NamedTuple):
    """One resource as columns of shape (n_nodes,). A node with an allocatable of 0 does not have it."""

    weight: int
    allocatable: IntArray
    allocated: IntArray
    requested: IntArray
    """Allocated, with what the pod asks for on top."""
    is_plain: bool = False
    """Whether all nodes are known to have some of the resource, and not so much that arithmetic could overflow."""


class ResourceUses:
    """Reads amounts, and counts devices where these stand for a resource. With `nonzero`, pods on nodes count with
    defaults for cpu and memory."""

    def __init__(self, handle: Handle, *, nonzero: bool) -> None:
        self._handle = handle
        self._nonzero = nonzero
        self._device_counts = DeviceCounts()

    def of(self, resources: Iterable[ScoredResource], nodes: NodeTable) -> list[ResourceUse]:
        uses = []
        for resource in resources:
            is_plain = False
            if resource.name in _ALWAYS_COUNTED:
                allocatable, allocated = nodes.allocatable(resource.name), self._allocated(resource.name, nodes)
                is_plain = nodes.is_plain(resource.name)
            else:
                allocatable, allocated = self._scalar_columns(resource.name, nodes)
            uses.append(ResourceUse(resource.weight, allocatable, allocated, allocated + resource.asked, is_plain))
        return uses

    def on_node(self, resources: Sequence[ScoredResource], node: NodeInfo) -> list[NodeUse] | None:
        """The resources that the node has; None where only columns tell: devices have to be counted, or amounts are
        such that arithmetic on 64 bits may come out differently."""
        uses: list[NodeUse] = []
        nonzero = self._nonzero
        for name, weight, asked in resources:
            allocatable = node.allocatable(name)
            if allocatable == 0:
                if name not in _ALWAYS_COUNTED and self._has_devices(name):
                    return None
                continue
            if nonzero and name == CPU:
                allocated = node.nonzero_cpu_milli
            elif nonzero and name == MEMORY:
                allocated = node.nonzero_memory_bytes
            else:
                allocated = node.requested(name)
            requested = allocated + asked
            if not (0 < allocatable < _LARGE and 0 <= allocated <= requested < _LARGE):
                return None
            uses.append((weight, allocatable, allocated, requested))
        return uses

    def _has_devices(self, resource: str) -> bool:
        return device_class_of(resource, self._handle.objects.device_classes) is not None

    def _scalar_columns(self, resource: str, nodes: NodeTable) -> tuple[IntArray, IntArray]:
        """A node that reports none of the resource may have devices that stand for it."""
        allocatable, allocated = nodes.allocatable(resource), nodes.requested(resource)
        objects = self._handle.objects
        device_class = device_class_of(resource, objects.device_classes)
        if device_class is None or allocatable.all():
            return allocatable, allocated
        capacity, taken = self._device_counts.of(device_class, nodes, objects)
        by_devices = np.equal(allocatable, 0) & np.greater(capacity, 0)
        return np.where(by_devices, capacity, allocatable), np.where(by_devices, taken, allocated)

    def _allocated(self, resource: str, nodes: NodeTable) -> IntArray:
        if self._nonzero and resource == CPU:
            return nodes.nonzero_cpu_milli
        if self._nonzero and resource == MEMORY:
            return nodes.nonzero_memory_bytes
        return nodes.requested(resource)
