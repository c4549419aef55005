"""What each node is offered, and which nodes are offered the same.

Nodes that see the same devices in the same state, whatever the pools are called, get the same *code*; a search for
devices is done once per code. Codes are remembered, and worked out again only for nodes whose pools changed.

Next: `search` looks for devices in an offer.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kubesched.framework.nodes import CodeArray, IntArray, NodeTable
from kubesched.scheduler.plugins.dynamic_resources.inventory import Inventory, InventoryChange
from kubesched.scheduler.plugins.dynamic_resources.ledger import DeviceLedger, PoolUsage
from kubesched.scheduler.plugins.dynamic_resources.node_rules import NodeRule
from kubesched.scheduler.plugins.dynamic_resources.pools import PoolView, Sight
from kubesched.scheduler.plugins.dynamic_resources.published import DeviceId, PoolId, PublishedDevice, PublishedSlice

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
        """(n_devices,) whether somebody has the device to himself."""
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
class Company:
    """Nodes that see the same floating slices."""

    sights: tuple[Sight, ...]
    key: Hashable


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

    def update(self, change: InventoryChange) -> None:
        """Forgets the codes of nodes that may be offered something else now."""
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
            return
        for codes in self._codes.values():
            for name in nodes:
                codes.pop(name, None)

    def codes(self, nodes: NodeTable) -> CodeArray:
        """(n_nodes,) the code of each node's offer."""
        companies, member_of = self._companies(nodes)
        if len(companies) == 1:
            return self._codes_in(companies[0], nodes)
        found = np.empty(len(nodes), dtype=np.int32)
        for number, company in enumerate(companies):
            positions = np.flatnonzero(member_of == number)
            found[positions] = self._codes_in(company, nodes.take(positions))
        return found

    @property
    def n_codes(self) -> int:
        return len(self._numbers)

    def _codes_in(self, company: Company, nodes: NodeTable) -> CodeArray:
        known = self._codes.setdefault(company.key, {})
        names = nodes.names
        found = np.fromiter((known.get(name, -1) for name in names), dtype=np.int32, count=len(names))
        without: int | None = None
        for position in np.flatnonzero(found < 0).tolist():
            name = names[position]
            if name in self._inventory.local:
                code = self._code(name, company, nodes, position)
            else:
                code = without = self._code("", company, nodes, position) if without is None else without
            known[name] = found[position] = code
        return found

    def offer(self, node: NodeTable) -> NodeOffer:
        """What the one node of this table is offered, by its own names."""
        companies, _ = self._companies(node)
        return self._offer(node.names[0], companies[0], node, 0)

    def _code(self, name: str, company: Company, nodes: NodeTable, position: int) -> int:
        offer = self._offer(name, company, nodes, position)
        key = tuple((view.signature, usage.signature) for view, usage in zip(offer.views, offer.usages, strict=True))
        number = self._numbers.setdefault(key, len(self._numbers))
        if number not in self.examples:
            self.examples[number] = offer
        return number

    def _offer(self, name: str, company: Company, nodes: NodeTable, position: int) -> NodeOffer:
        sights: dict[PoolId, list[Sight]] = {}
        for slice_ in self._inventory.local.get(name, {}).values():
            sights.setdefault(slice_.pool_id, []).append((slice_, _usable_devices(slice_, nodes, position)))
        for sight in company.sights:
            sights.setdefault(sight[0].pool_id, []).append(sight)
        views = [view for pool_id, view in self._inventory.unhealthy_idle.items() if pool_id not in sights]
        for pool_id, seen in sights.items():
            view = self._inventory.pools[pool_id].view(seen)
            if view is not None:
                views.append(view)
        views.sort(key=lambda view: (view.has_binding_conditions, view.pool_id))
        return NodeOffer(tuple(views), self._ledger)

    def _companies(self, nodes: NodeTable) -> tuple[list[Company], IntArray]:
        """The nodes by what floating slices they see: companies, and (n_nodes,) the number of each node's own."""
        floating = [self._inventory.floating[name] for name in sorted(self._inventory.floating)]
        if not floating or not len(nodes):
            return [Company((), ())], np.zeros(len(nodes), dtype=np.int64)
        rules = [rule for slice_ in floating for rule in _rules(slice_)]
        packed = np.packbits(np.stack([rule.mask(nodes) for rule in rules]), axis=0).T
        kinds, member_of = np.unique(packed, axis=0, return_inverse=True)
        companies = []
        for kind in kinds:
            answers = np.unpackbits(kind)[: len(rules)].astype(np.bool_).tolist()
            companies.append(Company(_sights(floating, answers), kind.tobytes()))
        return companies, member_of.reshape(-1).astype(np.int64)


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
