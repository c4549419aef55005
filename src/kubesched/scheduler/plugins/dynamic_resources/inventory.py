"""All that is published, by pool and by who can see it. Kept up to date slice by slice.

Three kinds of slices: *local* ones for a single node, *floating* ones for many (all nodes, a node selector, or device
by device), and those with shared counters, which every node sees because devices anywhere may draw on them.

Next: `offers` asks it what a node is offered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kubesched.k8s.model.quantity import QuantityError
from kubesched.k8s.model.resource import ResourceSlice
from kubesched.scheduler.plugins.dynamic_resources.pools import PoolView, PublishedPool
from kubesched.scheduler.plugins.dynamic_resources.published import PoolId, PublishedSlice, SliceReader
from kubesched.scheduler.plugins.object_changes import ObjectChanges


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
        except QuantityError as mistake:
            self._unreadable[name] = f"ResourceSlice {name}: {mistake}"
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
