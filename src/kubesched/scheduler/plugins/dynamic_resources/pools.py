"""Resource pools: the slices that a driver publishes together, and a pool as one node sees it.

A pool counts with the newest generation that the node can see. It is incomplete while slices are missing, and invalid
when names clash or counters do not add up; neither kind gives out devices, but their being there can matter.

Next: `inventory` keeps the pools, `offers` lines them up for a node.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

from kubesched.scheduler.plugins.dynamic_resources.published import (
    CounterKey,
    DeviceId,
    PoolId,
    PublishedDevice,
    PublishedSlice,
    device_names,
)

Sight = tuple[PublishedSlice, tuple[bool, ...] | None]
"""A slice that a node can see and, where devices choose their nodes one by one, which of its devices it may use."""


@dataclass(frozen=True, eq=False)
class PoolView:
    """A pool as a node sees it: its devices, in the order in which they are tried."""

    pool_id: PoolId
    signature: Hashable
    """Equal for views that differ in names only."""
    is_incomplete: bool = False
    is_invalid: bool = False
    slices: tuple[PublishedSlice, ...] = ()
    """Those with devices that the node can see, by name."""
    elsewhere: tuple[PublishedSlice, ...] = ()
    """The others of a pool of which the node does not see all: their devices use up counters, too."""
    counters: dict[CounterKey, int] = field(default_factory=dict)
    """What the pool's counter sets start with, in nano-units."""
    devices: tuple[PublishedDevice, ...] = ()
    origins: tuple[PublishedSlice, ...] = ()
    """(n_devices,) the slice that each device is from."""
    usable: tuple[bool, ...] = ()
    """(n_devices,) whether the device is meant for the node."""
    has_binding_conditions: bool = False

    @property
    def is_unhealthy(self) -> bool:
        return self.is_incomplete or self.is_invalid

    def device_id(self, index: int) -> DeviceId:
        return DeviceId(self.pool_id.driver, self.pool_id.pool, self.devices[index].name)


class PublishedPool:
    """All slices of a pool, of whatever generation, and the views of it that were asked for."""

    def __init__(self, pool_id: PoolId) -> None:
        self.pool_id = pool_id
        self.slices: dict[str, PublishedSlice] = {}
        self._views: dict[tuple[tuple[str, tuple[bool, ...] | None], ...], PoolView | None] = {}

    def put(self, slice_: PublishedSlice) -> None:
        self.slices[slice_.name] = slice_
        self._views.clear()

    def remove(self, name: str) -> None:
        self.slices.pop(name, None)
        self._views.clear()

    @property
    def counter_slices(self) -> list[PublishedSlice]:
        return [slice_ for slice_ in self.slices.values() if slice_.has_counters]

    def view(self, seen: Iterable[Sight]) -> PoolView | None:
        """As a node sees it that sees these slices, beside those with counters, which all nodes see. None if what it
        sees is out of date."""
        sights = sorted([*seen, *((slice_, None) for slice_ in self.counter_slices)], key=lambda sight: sight[0].name)
        key = tuple((slice_.name, usable) for slice_, usable in sights)
        if key not in self._views:
            self._views[key] = self._build(sights)
        return self._views[key]

    def _build(self, sights: list[Sight]) -> PoolView | None:
        newest = max(slice_.generation for slice_, _ in sights)
        current = [sight for sight in sights if sight[0].generation == newest]
        seen = [slice_ for slice_, _ in current]
        elsewhere: list[PublishedSlice] = []
        if len(seen) != seen[0].total:
            if any(slice_.generation > newest for slice_ in self.slices.values()):
                return None
            names = {slice_.name for slice_ in seen}
            same_age = [slice_ for slice_ in self.slices.values() if slice_.generation == newest]
            if len(same_age) != seen[0].total:
                return PoolView(self.pool_id, ("incomplete", self.pool_id), is_incomplete=True)
            elsewhere = [slice_ for slice_ in same_age if slice_.name not in names]
        if not _is_valid(seen, elsewhere):
            return PoolView(self.pool_id, ("invalid", self.pool_id), is_invalid=True)
        return _complete_view(self.pool_id, current, tuple(elsewhere))


def _complete_view(pool_id: PoolId, current: list[Sight], elsewhere: tuple[PublishedSlice, ...]) -> PoolView:
    with_devices = [(slice_, usable) for slice_, usable in current if not slice_.has_counters]
    slices = tuple(slice_ for slice_, _ in with_devices)
    usable = tuple(
        flag
        for slice_, flags in with_devices
        for flag in (flags if flags is not None else (True,) * len(slice_.content.devices))
    )
    counters = _counters(slice_ for slice_, _ in current)
    if elsewhere:
        # What others of the pool use up is known of this pool only: names count.
        signature: Hashable = (pool_id, tuple(slice_.name for slice_ in slices), usable)
    else:
        signature = (
            pool_id.driver,
            tuple(slice_.content.number for slice_, _ in current),
            usable,
        )
    return PoolView(
        pool_id,
        signature,
        slices=slices,
        elsewhere=elsewhere,
        counters=counters,
        devices=tuple(device for slice_ in slices for device in slice_.content.devices),
        origins=tuple(slice_ for slice_ in slices for _ in slice_.content.devices),
        usable=usable,
        has_binding_conditions=any(slice_.content.has_binding_conditions for slice_ in slices),
    )


def _counters(slices: Iterable[PublishedSlice]) -> dict[CounterKey, int]:
    return {
        CounterKey(set_name, name): nanos
        for slice_ in slices
        for set_name, counters in slice_.content.counter_sets
        for name, nanos in counters.items()
    }


def _is_valid(seen: list[PublishedSlice], elsewhere: list[PublishedSlice]) -> bool:
    """No device of the node's and no counter set comes twice, and devices use counters that exist."""
    names = device_names(slice_ for slice_ in seen if not slice_.has_counters)
    if len(set(names)) != len(names):
        return False
    set_names = [name for slice_ in seen for name, _ in slice_.content.counter_sets]
    if len(set(set_names)) != len(set_names):
        return False
    known_sets, known_counters = frozenset(set_names), _counters(seen)
    return all(
        slice_.content.consumed_sets <= known_sets
        and all(key in known_counters for device in slice_.content.devices for key, _ in device.counters)
        for slice_ in (*seen, *elsewhere)
    )
