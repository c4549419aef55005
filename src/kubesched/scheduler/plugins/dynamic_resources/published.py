"""What drivers publish, read once: devices with their amounts parsed, and the slices that they come in.

Nodes of one kind publish the same devices under different names. `SliceContent` is what such slices have in common;
there is one object for all of them, so that a question about a device is answered once for the whole fleet.

Next: `pools` puts slices together.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple
from weakref import WeakValueDictionary

import msgspec

from kubesched.k8s.cel.program import DeviceView
from kubesched.k8s.model import quantity
from kubesched.k8s.model.quantity import Quantity
from kubesched.k8s.model.resource import Counter, Device, DeviceTaint, ResourceSlice
from kubesched.scheduler.plugins.dynamic_resources.node_rules import NodeRule

BLOCKING_EFFECTS = ("NoSchedule", "NoExecute")
"""Taints with any other effect, known or not, keep nobody away."""


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
        self.view: DeviceView | None = None
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
