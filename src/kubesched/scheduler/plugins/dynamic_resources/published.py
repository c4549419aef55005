"""What drivers publish in ResourceSlices, read once: devices with their amounts parsed, slices, and pools.

Nodes of one kind publish the same devices under different names. `SliceContent` is what such slices have in common;
there is one object for all of them, so that a question about a device is answered once for the whole fleet. Slices and
devices are for one node by name, for all nodes, or for those that a node selector selects (`NodeRule`).

A pool is the slices that a driver publishes together. It counts with the newest generation that the node can see. It is
incomplete while slices are missing, and invalid when names clash or counters do not add up; no devices are allocated
from either kind, but their being there can matter.

Next: `offers` lists for each node the pools it can see.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple
from weakref import WeakValueDictionary

import msgspec
import numpy as np

from kubesched.framework.nodes import NodeTable, matching_nodes
from kubesched.framework.verdicts import BoolArray
from kubesched.k8s import cel
from kubesched.k8s.model import quantity, selectors
from kubesched.k8s.model.core import NodeSelector
from kubesched.k8s.model.quantity import Quantity
from kubesched.k8s.model.resource import Counter, Device, DeviceTaint, ResourceSlice
from kubesched.k8s.model.selectors import CompiledNodeSelector

# -- for which nodes ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NodeRule:
    """What is set first counts: a name, then all nodes, then the selector. Nothing set means no node."""

    node_name: str = ""
    all_nodes: bool = False
    selector: CompiledNodeSelector | None = None

    @classmethod
    def of(cls, node_name: str | None, all_nodes: bool | None, selector: NodeSelector | None) -> NodeRule:
        compiled = None if selector is None else selectors.from_node_selector(selector)
        return cls(node_name or "", bool(all_nodes), compiled)

    @property
    def is_set(self) -> bool:
        return bool(self.node_name) or self.all_nodes or self.selector is not None

    @property
    def error(self) -> str | None:
        """Why the selector cannot be understood, if it counts and cannot."""
        if self.node_name or self.all_nodes or self.selector is None or not self.selector.errors:
            return None
        return f"failed to parse node selector: {', '.join(self.selector.errors)}"

    def mask(self, nodes: NodeTable) -> BoolArray:
        """(n_nodes,) the nodes it is meant for."""
        if self.node_name:
            return nodes.named(self.node_name)
        if self.all_nodes:
            return np.ones(len(nodes), dtype=np.bool_)
        if self.selector is not None:
            return matching_nodes(self.selector, nodes)
        return np.zeros(len(nodes), dtype=np.bool_)


# -- slices and devices ------------------------------------------------------------------------------------------------


BLOCKING_EFFECTS = ("NoSchedule", "NoExecute")
"""Taints with any other effect, known or not, do not block."""


class PoolId(NamedTuple):
    driver: str
    pool: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}"


class DeviceId(NamedTuple):
    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}/{self.device}"


class CounterKey(NamedTuple):
    counter_set: str
    counter: str


@dataclass(frozen=True, slots=True)
class RequestRange:
    """Amounts from `lowest` on, in steps, up to `highest`."""

    lowest: Quantity | None
    highest: Quantity | None
    step: Quantity | None


@dataclass(frozen=True, slots=True)
class PublishedCapacity:
    """How much of something a device has, and in what portions it is given out."""

    value: Quantity
    has_policy: bool = False
    default: Quantity | None = None
    valid_values: tuple[Quantity, ...] = ()
    valid_range: RequestRange | None = None


class PublishedDevice:
    """A device as all slices with the same content publish it."""

    __slots__ = ("capacity", "counters", "device", "driver", "is_shareable", "name", "selected", "taints", "view")

    def __init__(self, device: Device, driver: str) -> None:
        self.device = device
        self.driver = driver
        self.name = device.name
        self.is_shareable = bool(device.allow_multiple_allocations)
        self.capacity = _capacity(device)
        self.counters = tuple(
            (CounterKey(use.counter_set, name), nanos)
            for use in device.consumes_counters or ()
            for name, nanos in _nanos(use.counters).items()
        )
        self.taints: tuple[DeviceTaint, ...] = tuple(t for t in device.taints or () if t.effect in BLOCKING_EFFECTS)
        self.selected: dict[str, bool | str] = {}
        """What is known of CEL expressions about this device: the answer, or why there is none; kept by `selection`."""
        self.view: cel.DeviceView | None = None
        """The device as expressions see it; made by `selection` when first needed."""


class SliceContent:
    """Devices and counters, without the names that differ between slices."""

    def __init__(self, number: int, spec_driver: str, slice_: ResourceSlice) -> None:
        self.number = number
        self.devices = tuple(PublishedDevice(device, spec_driver) for device in slice_.spec.devices or ())
        self.counter_sets = tuple((entry.name, _nanos(entry.counters)) for entry in slice_.spec.shared_counters or ())
        self.consumed_sets = frozenset(
            use.counter_set for device in slice_.spec.devices or () for use in device.consumes_counters or ()
        )
        self.has_binding_conditions = any(device.binding_conditions for device in slice_.spec.devices or ())


class PublishedSlice:
    """One slice: where it belongs, whom it is for, what it offers."""

    __slots__ = ("content", "device_rules", "generation", "has_counters", "name", "pool_id", "rule", "source", "total")

    def __init__(self, source: ResourceSlice, content: SliceContent) -> None:
        spec = source.spec
        self.source = source
        self.content = content
        self.name = source.name
        self.pool_id = PoolId(spec.driver, spec.pool.name)
        self.generation = spec.pool.generation
        self.total = spec.pool.resource_slice_count
        self.has_counters = bool(spec.shared_counters)
        self.rule = NodeRule.of(spec.node_name, spec.all_nodes, spec.node_selector)
        self.device_rules: tuple[NodeRule, ...] | None = None
        if spec.per_device_node_selection:
            self.device_rules = tuple(
                NodeRule.of(device.node_name, device.all_nodes, device.node_selector) for device in spec.devices or ()
            )

    @property
    def local_to(self) -> str:
        """The one node that can see this slice; counters are for all to see."""
        return "" if self.has_counters else self.rule.node_name

    @property
    def error(self) -> str | None:
        """Why it cannot be told which nodes may see this slice."""
        if self.has_counters:
            return None
        if self.rule.error is not None:
            return f"failed to perform node selection for slice {self.name}: {self.rule.error}"
        if self.rule.is_set:
            return None
        for device, rule in zip(self.content.devices, self.device_rules or (), strict=False):
            if rule.error is not None:
                return f"failed to perform node selection for device {device.name} in slice {self.name}: {rule.error}"
        return None


class SliceReader:
    """Reads slices, and knows which of them have the same content."""

    def __init__(self) -> None:
        self._contents: WeakValueDictionary[bytes, SliceContent] = WeakValueDictionary()
        self._numbers = count()

    def read(self, source: ResourceSlice) -> PublishedSlice:
        spec = source.spec
        key = msgspec.json.encode((spec.driver, spec.per_device_node_selection, spec.devices, spec.shared_counters))
        content = self._contents.get(key)
        if content is None:
            content = self._contents[key] = SliceContent(next(self._numbers), spec.driver, source)
        return PublishedSlice(source, content)


def device_names(slices: Iterable[PublishedSlice]) -> list[str]:
    return [device.name for slice_ in slices for device in slice_.content.devices]


def _nanos(counters: dict[str, Counter] | None) -> dict[str, int]:
    return {name: quantity.parse(counter.value).nanos for name, counter in (counters or {}).items()}


def _capacity(device: Device) -> dict[str, PublishedCapacity]:
    found = {}
    for name, capacity in (device.capacity or {}).items():
        policy = capacity.request_policy
        value = quantity.parse(capacity.value)
        if policy is None:
            found[name] = PublishedCapacity(value)
            continue
        limits = policy.valid_range
        found[name] = PublishedCapacity(
            value,
            has_policy=True,
            default=_optional(policy.default),
            valid_values=tuple(quantity.parse(amount) for amount in policy.valid_values or ()),
            valid_range=None
            if limits is None
            else RequestRange(_optional(limits.min), _optional(limits.max), _optional(limits.step)),
        )
    return found


def _optional(amount: str | int | float | None) -> Quantity | None:
    return None if amount is None else quantity.parse(amount)


# -- pools -------------------------------------------------------------------------------------------------------------


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
