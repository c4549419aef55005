"""What each node is offered: all published pools by who can see them, and which nodes are offered the same.

Three kinds of slices: *local* ones for a single node, *floating* ones for many (all nodes, a node selector, or device
by device), and those with shared counters, which every node sees because devices anywhere may draw on them.

Nodes that see the same devices in the same state, whatever the pools are called, get the same *code*; a search for
devices is done once per code. Codes are remembered, and worked out again only for nodes whose pools changed.

Next: `search` looks for devices in an offer.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from kubesched.framework.nodes import CodeArray, IntArray, NodeTable
from kubesched.k8s.model.quantity import QuantityError
from kubesched.k8s.model.resource import ResourceSlice
from kubesched.scheduler.plugins.dynamic_resources.claim_book import DeviceLedger, PoolUsage
from kubesched.scheduler.plugins.dynamic_resources.published import (
    DeviceId,
    NodeRule,
    PoolId,
    PoolView,
    PublishedDevice,
    PublishedPool,
    PublishedSlice,
    Sight,
    SliceReader,
)
from kubesched.scheduler.plugins.object_changes import ObjectChanges

# -- what is published, by who can see it ------------------------------------------------------------------------------


@dataclass(slots=True)
class InventoryChange:
    """Whom a change concerns: these nodes, or possibly all."""

    pools: set[PoolId] = field(default_factory=set)
    nodes: set[str] = field(default_factory=set)
    everyone: bool = False


class Inventory:
    """What drivers publish. `refresh` takes what changed since it was last asked."""

    def __init__(self) -> None:
        self.pools: dict[PoolId, PublishedPool] = {}
        self.local: dict[str, dict[str, PublishedSlice]] = {}
        """By node, then by slice name."""
        self.floating: dict[str, PublishedSlice] = {}
        self.unhealthy_idle: dict[PoolId, PoolView] = {}
        """Pools in a bad state that every node knows of because of their counters, devices or not."""
        self._changes: ObjectChanges[ResourceSlice] = ObjectChanges()
        self._read: dict[str, PublishedSlice] = {}
        self._reader = SliceReader()
        self._unreadable: dict[str, str] = {}

    @property
    def problem(self) -> str | None:
        """Why nothing can be said about any node, if so."""
        for name in sorted(self._unreadable):
            return self._unreadable[name]
        for name in sorted(self.floating):
            error = self.floating[name].error
            if error is not None:
                return error
        return None

    def refresh(self, slices: Mapping[str, ResourceSlice]) -> InventoryChange:
        """Takes what changed, and says whom that concerns."""
        change = InventoryChange()
        for before, now in self._changes.take(slices):
            if before is not None:
                self._drop(before.name, change)
            if now is not None:
                self._take(now.name, now, change)
        for pool_id in change.pools:
            change.everyone |= self._check_idle(pool_id) or self.is_seen_by_many(pool_id)
            change.nodes |= self.nodes_of(pool_id)
        return change

    def nodes_of(self, pool_id: PoolId) -> set[str]:
        """The nodes that have slices of this pool to themselves."""
        pool = self.pools.get(pool_id)
        return set() if pool is None else {slice_.local_to for slice_ in pool.slices.values() if slice_.local_to}

    def is_seen_by_many(self, pool_id: PoolId) -> bool:
        """Whether nodes may see devices of this pool without having slices of it to themselves."""
        pool = self.pools.get(pool_id)
        return pool is not None and any(slice_.name in self.floating for slice_ in pool.slices.values())

    def _take(self, name: str, item: ResourceSlice, change: InventoryChange) -> None:
        try:
            slice_ = self._reader.read(item)
        except QuantityError as error:
            self._unreadable[name] = f"ResourceSlice {name}: {error}"
            return
        self._read[name] = slice_
        change.pools.add(slice_.pool_id)
        self.pools.setdefault(slice_.pool_id, PublishedPool(slice_.pool_id)).put(slice_)
        if slice_.local_to:
            self.local.setdefault(slice_.local_to, {})[name] = slice_
        elif not slice_.has_counters and (slice_.rule.is_set or slice_.device_rules is not None):
            self.floating[name] = slice_

    def _drop(self, name: str, change: InventoryChange) -> None:
        self._unreadable.pop(name, None)
        slice_ = self._read.pop(name, None)
        if slice_ is None:
            return
        change.pools.add(slice_.pool_id)
        change.everyone |= name in self.floating
        pool = self.pools[slice_.pool_id]
        pool.remove(name)
        if not pool.slices:
            del self.pools[slice_.pool_id]
        self.floating.pop(name, None)
        mine = self.local.get(slice_.local_to)
        if mine is not None:
            change.nodes.add(slice_.local_to)
            mine.pop(name, None)
            if not mine:
                del self.local[slice_.local_to]

    def _check_idle(self, pool_id: PoolId) -> bool:
        """Whether there is, or was, something bad about the pool for all nodes to see."""
        was_unhealthy = self.unhealthy_idle.pop(pool_id, None) is not None
        pool = self.pools.get(pool_id)
        if pool is not None and pool.counter_slices:
            view = pool.view(())
            if view is not None and view.is_unhealthy:
                self.unhealthy_idle[pool_id] = view
        return was_unhealthy or pool_id in self.unhealthy_idle


# -- what a node is offered --------------------------------------------------------------------------------------------


_MAX_CODES = 100_000
"""More different offers than this were not seen at the same time: old ones are dropped."""


class NodeOffer:
    """Pools in the order in which they are tried, and what is taken of them. Devices are numbered through."""

    def __init__(self, views: tuple[PoolView, ...], ledger: DeviceLedger) -> None:
        self.views = views
        self.usages: tuple[PoolUsage, ...] = tuple(ledger.usage(view.pool_id) for view in views)

    @cached_property
    def devices(self) -> list[PublishedDevice]:
        return [device for view in self.views for device in view.devices]

    @cached_property
    def places(self) -> list[tuple[int, int]]:
        """(n_devices,) the number of each device's pool, and its own in there."""
        return [(pool, index) for pool, view in enumerate(self.views) for index in range(len(view.devices))]

    @cached_property
    def usable(self) -> list[bool]:
        return [flag for view in self.views for flag in view.usable]

    @cached_property
    def is_dedicated(self) -> list[bool]:
        """(n_devices,) whether the device is allocated to one claim alone."""
        return [
            device.name in usage.dedicated
            for view, usage in zip(self.views, self.usages, strict=True)
            for device in view.devices
        ]

    def device_id(self, device: int) -> DeviceId:
        pool, index = self.places[device]
        return self.views[pool].device_id(index)

    def origin(self, device: int) -> PublishedSlice:
        """The slice that the device is from."""
        pool, index = self.places[device]
        return self.views[pool].origins[index]


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Nodes that see the same floating slices."""

    sights: tuple[Sight, ...]
    key: Hashable


_ALL_ALIKE = NodeGroup((), ())
"""Where there are no floating slices."""


class OfferBook:
    """Codes of offers, by node. `examples` has one offer for each code in use."""

    def __init__(self, inventory: Inventory, ledger: DeviceLedger) -> None:
        self.examples: dict[int, NodeOffer] = {}
        self.generation = 0
        """Goes up when codes start anew."""
        self._inventory = inventory
        self._ledger = ledger
        self._numbers: dict[Hashable, int] = {}
        self._codes: dict[Hashable, dict[str, int]] = {}
        self._layout: object = None
        self._by_row: CodeArray = np.empty(0, dtype=np.int32)
        """The codes by row, where all nodes see the same floating slices; -1 where it is not known."""
        self._forgotten: set[str] = set()
        """Nodes whose code by row is to be forgotten."""

    def update(self, change: InventoryChange) -> set[str] | None:
        """Forgets the codes of nodes that may be offered something else now, and says which; None if all may be."""
        nodes, everyone = set(change.nodes), change.everyone
        for pool_id in self._ledger.take_changed():
            nodes |= self._inventory.nodes_of(pool_id)
            everyone |= self._inventory.is_seen_by_many(pool_id)
        if len(self._numbers) > _MAX_CODES:
            self._numbers.clear()
            self.examples.clear()
            self.generation += 1
            everyone = True
        if everyone:
            self._codes.clear()
            self._layout = None
            return None
        self._forgotten |= nodes
        for codes in self._codes.values():
            for name in nodes:
                codes.pop(name, None)
        return nodes

    def codes(self, nodes: NodeTable) -> CodeArray:
        """(n_nodes,) the code of each node's offer."""
        if not self._inventory.floating:
            return self._codes_of_rows(nodes)
        groups, member_of = self._groups(nodes)
        found = np.empty(len(nodes), dtype=np.int32)
        for number, group in enumerate(groups):
            positions = np.flatnonzero(member_of == number)
            found[positions] = self._codes_in(group, nodes.take(positions))
        return found

    def code_at(self, nodes: NodeTable, row: int) -> int:
        """The code of the offer to one node of the whole table."""
        if not self._inventory.floating:
            self._follow_rows(nodes)
            code = self._by_row.item(row)
            if code >= 0:
                return code
        return int(self.codes(nodes.take(np.array([row]))).item(0))

    def _codes_of_rows(self, nodes: NodeTable) -> CodeArray:
        """Where nodes differ in nothing but the slices that they have to themselves."""
        self._follow_rows(nodes)
        rows = nodes.rows
        found: CodeArray = self._by_row[rows]
        unknown = np.flatnonzero(found < 0)
        if len(unknown):
            codes = self._codes_in(_ALL_ALIKE, nodes.take(unknown))
            found[unknown] = codes
            self._by_row[rows[unknown]] = codes
        return found

    def _follow_rows(self, nodes: NodeTable) -> None:
        if self._layout is not nodes.layout:
            self._layout = nodes.layout
            self._by_row = np.full(len(nodes.whole), -1, dtype=np.int32)
        else:
            for name in self._forgotten:
                row = nodes.row_of(name)
                if row is not None:
                    self._by_row[row] = -1
        self._forgotten.clear()

    @property
    def n_codes(self) -> int:
        return len(self._numbers)

    def _codes_in(self, group: NodeGroup, nodes: NodeTable) -> CodeArray:
        known = self._codes.setdefault(group.key, {})
        names = nodes.names
        found = np.fromiter((known.get(name, -1) for name in names), dtype=np.int32, count=len(names))
        without: int | None = None
        for position in np.flatnonzero(found < 0).tolist():
            name = names[position]
            if name in self._inventory.local:
                code = self._code(name, group, nodes, position)
            else:
                code = without = self._code("", group, nodes, position) if without is None else without
            known[name] = found[position] = code
        return found

    def offer(self, node: NodeTable) -> NodeOffer:
        """What the one node of this table is offered, by its own names."""
        groups, _ = self._groups(node)
        return self._offer(node.names[0], groups[0], node, 0)

    def _code(self, name: str, group: NodeGroup, nodes: NodeTable, position: int) -> int:
        offer = self._offer(name, group, nodes, position)
        key = tuple((view.signature, usage.signature) for view, usage in zip(offer.views, offer.usages, strict=True))
        number = self._numbers.setdefault(key, len(self._numbers))
        if number not in self.examples:
            self.examples[number] = offer
        return number

    def _offer(self, name: str, group: NodeGroup, nodes: NodeTable, position: int) -> NodeOffer:
        sights: dict[PoolId, list[Sight]] = {}
        for slice_ in self._inventory.local.get(name, {}).values():
            sights.setdefault(slice_.pool_id, []).append((slice_, _usable_devices(slice_, nodes, position)))
        for sight in group.sights:
            sights.setdefault(sight[0].pool_id, []).append(sight)
        views = [view for pool_id, view in self._inventory.unhealthy_idle.items() if pool_id not in sights]
        for pool_id, seen in sights.items():
            view = self._inventory.pools[pool_id].view(seen)
            if view is not None:
                views.append(view)
        views.sort(key=lambda view: (view.has_binding_conditions, view.pool_id))
        return NodeOffer(tuple(views), self._ledger)

    def _groups(self, nodes: NodeTable) -> tuple[list[NodeGroup], IntArray]:
        """The nodes grouped by the floating slices they see, and (n_nodes,) the number of each node's group."""
        floating = [self._inventory.floating[name] for name in sorted(self._inventory.floating)]
        if not floating or not len(nodes):
            return [_ALL_ALIKE], np.zeros(len(nodes), dtype=np.int64)
        rules = [rule for slice_ in floating for rule in _rules(slice_)]
        packed = np.packbits(np.stack([rule.mask(nodes) for rule in rules]), axis=0).T
        kinds, member_of = np.unique(packed, axis=0, return_inverse=True)
        groups = []
        for kind in kinds:
            answers = np.unpackbits(kind)[: len(rules)].astype(np.bool_).tolist()
            groups.append(NodeGroup(_sights(floating, answers), kind.tobytes()))
        return groups, member_of.reshape(-1).astype(np.int64)


def _rules(slice_: PublishedSlice) -> list[NodeRule]:
    return [slice_.rule, *(slice_.device_rules or ())]


def _sights(floating: list[PublishedSlice], answers: list[bool]) -> tuple[Sight, ...]:
    """What is seen by a node for which the rules of these slices have these answers."""
    found: list[Sight] = []
    start = 0
    for slice_ in floating:
        n_devices = len(slice_.device_rules or ())
        usable = tuple(answers[start + 1 : start + 1 + n_devices])
        if answers[start] if slice_.rule.is_set else any(usable):
            found.append((slice_, None if slice_.device_rules is None else usable))
        start += 1 + n_devices
    return tuple(found)


def _usable_devices(slice_: PublishedSlice, nodes: NodeTable, position: int) -> tuple[bool, ...] | None:
    if slice_.device_rules is None:
        return None
    node = nodes.take(np.array([position]))
    return tuple(bool(rule.mask(node)[0]) for rule in slice_.device_rules)
