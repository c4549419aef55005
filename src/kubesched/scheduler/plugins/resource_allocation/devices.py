"""Counts, per node, the devices of a class and those of them that are allocated.

Every published slice counts, whatever its pool's state. A node about which something cannot be decided, because of a
validation error in a node selector or in the class's expression, counts as having no devices.

Next: `device_classes` says which devices are of a class.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kubesched.framework import NodeTable, Objects
from kubesched.framework.nodes import IntArray, RowArray
from kubesched.framework.verdicts import BoolArray
from kubesched.k8s.model import selectors
from kubesched.k8s.model.core import NodeSelector
from kubesched.k8s.model.resource import DeviceClass, ResourceClaim, ResourceSlice
from kubesched.k8s.model.selectors import NODE_NAME_FIELD, NodeTerm, Requirement
from kubesched.scheduler.plugins.resource_allocation.device_classes import ClassMembership

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
