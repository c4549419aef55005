"""Whether a device satisfies a request: selectors, taints, constraints, capacity and shared counters.

CEL selectors are those of the DeviceClass and of the request; what an expression says about a device is remembered with
the device, for all nodes that have such a device. Constraints span the devices of a claim: one attribute that must be
the same on all, or different on each. Capacity of devices that allow multiple allocations is consumed in portions.
Devices that are partitions of the same hardware draw on the shared counters of their pool. What depends on the devices
tried so far is kept up to date while the search adds devices and removes them again.

Next: `search`, which asks; `kubesched.k8s.cel` for the language.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Protocol

from kubesched.k8s import cel
from kubesched.k8s.model.quantity import Notation, Quantity, from_int
from kubesched.k8s.model.resource import DeviceAttribute, DeviceConstraint, DeviceSelector
from kubesched.k8s.model.taints import tolerates
from kubesched.scheduler.plugins.dynamic_resources.claim_book import Consumed, PoolUsage
from kubesched.scheduler.plugins.dynamic_resources.outcomes import AllocationError, SearchBudget
from kubesched.scheduler.plugins.dynamic_resources.published import (
    CounterKey,
    PoolView,
    PublishedCapacity,
    PublishedDevice,
    RequestRange,
)
from kubesched.scheduler.plugins.dynamic_resources.requests import Want

# -- selectors and taints ----------------------------------------------------------------------------------------------


_MAX_REMEMBERED = 256
"""How many expressions are remembered with a device; claims of strangers can bring any number."""

_MAX_PROGRAMS = 1024
_UNITS_PER_CHARACTER = 30
"""What compiling costs."""


def is_selected(want: Want, device: PublishedDevice, claim_key: str, budget: SearchBudget) -> bool:
    """Raises AllocationError where an expression is broken, or has no answer for the device; SearchAbandonedError."""
    if want.device_class is not None:
        source = f"class {want.device_class.name}"
        if not _all_match(want.device_class.spec.selectors or (), device, source, budget):
            return False
    return _all_match(want.selectors, device, f"claim {claim_key}", budget)


def is_kept_away(device: PublishedDevice, want: Want) -> bool:
    """Whether the device has a taint that the request does not tolerate."""
    tolerations = want.tolerations or ()
    return any(not any(tolerates(toleration, taint) for toleration in tolerations) for taint in device.taints)


def _all_match(
    selectors: tuple[DeviceSelector, ...], device: PublishedDevice, source: str, budget: SearchBudget
) -> bool:
    return all(
        _matches(selector, device, f"{source}: selector #{index}", budget) for index, selector in enumerate(selectors)
    )


def _matches(selector: DeviceSelector, device: PublishedDevice, place: str, budget: SearchBudget) -> bool:
    expression = selector.cel.expression if selector.cel is not None else ""
    known = device.selected.get(expression)
    if known is None:
        known = _ask(expression, device, budget)
    if isinstance(known, str):
        raise AllocationError(f"{place}: {known}")
    return known


def _ask(expression: str, device: PublishedDevice, budget: SearchBudget) -> bool | str:
    """The answer, or why there is none. It is remembered even if it was too dear: another time it costs nothing."""
    program = _compiled(expression, budget)
    meter = cel.CostMeter()
    answer: bool | str
    if isinstance(program, str):
        answer = program
    else:
        try:
            answer = program.evaluate(_view(device), meter)
        except cel.CelError as error:
            answer = f"CEL runtime error: {error}"
    if len(device.selected) >= _MAX_REMEMBERED:
        device.selected.clear()
    device.selected[expression] = answer
    budget.has_learnt = True
    budget.spend(meter.spent)
    return answer


_programs: OrderedDict[str, cel.Program | str] = OrderedDict()
"""Those used last, and why others are none."""


def _compiled(expression: str, budget: SearchBudget) -> cel.Program | str:
    known = _programs.get(expression)
    if known is not None:
        _programs.move_to_end(expression)
        return known
    try:
        known = cel.compile(expression)
    except cel.CelCompileError as error:
        known = f"CEL compile error: {error}"
    _programs[expression] = known
    if len(_programs) > _MAX_PROGRAMS:
        _programs.popitem(last=False)
    budget.has_learnt = True
    budget.spend(len(expression) * _UNITS_PER_CHARACTER)
    return known


def _view(device: PublishedDevice) -> cel.DeviceView:
    """Raises CelError where an attribute is not what it says."""
    if device.view is not None:
        return device.view
    attributes = {name: _attribute(name, value) for name, value in (device.device.attributes or {}).items()}
    capacity = {name: published.value for name, published in device.capacity.items()}
    device.view = cel.DeviceView.of(device.driver, attributes, capacity, device.is_shareable)
    return device.view


def _attribute(name: str, attribute: DeviceAttribute) -> cel.AttributeValue:
    if attribute.int_value is not None:
        return attribute.int_value
    if attribute.bool_value is not None:
        return attribute.bool_value
    if attribute.string is not None:
        return attribute.string
    if attribute.version is not None:
        return cel.VersionText(attribute.version)
    raise cel.CelEvaluationError(f"attribute {name}: unsupported attribute value")


# -- capacity ----------------------------------------------------------------------------------------------------------


Wanted = Mapping[str, Quantity]
"""What a request asks of each capacity."""


def consumption(wanted: Wanted, capacity: Mapping[str, PublishedCapacity]) -> dict[str, Quantity]:
    """What a request uses up of each capacity of a device; of those it does not mention, the usual portion."""
    return {name: _portion(wanted.get(name), published) for name, published in capacity.items()}


def has_room(
    wanted: Wanted, capacity: Mapping[str, PublishedCapacity], consumed: Consumed, consuming: Consumed
) -> bool:
    """Whether the portions are allowed, and left over by what is consumed and what is about to be."""
    if any(name not in capacity for name in wanted):
        return False
    for name, published in capacity.items():
        portion = _portion(wanted.get(name), published)
        if _breaks_policy(portion, published):
            return False
        if portion.nanos + consumed.get(name, 0) + consuming.get(name, 0) > published.value.nanos:
            return False
    return True


def _portion(wanted: Quantity | None, published: PublishedCapacity) -> Quantity:
    if wanted is None:
        return published.value if published.default is None else published.default
    limits = published.valid_range
    if limits is not None and limits.lowest is not None:
        return _round_up(wanted, limits, limits.lowest)
    for value in published.valid_values:
        if wanted <= value:
            return value
    return wanted


def _round_up(wanted: Quantity, limits: RequestRange, lowest: Quantity) -> Quantity:
    if wanted < lowest:
        return lowest
    if limits.step is None or not limits.step.value:
        return wanted
    steps = -(-(wanted.value - lowest.value) // limits.step.value)
    return from_int(lowest.value + steps * limits.step.value, Notation.BINARY_SI)


def _breaks_policy(portion: Quantity, published: PublishedCapacity) -> bool:
    if not published.has_policy or portion == published.default:
        return False
    limits = published.valid_range
    if limits is None:
        return bool(published.valid_values) and portion not in published.valid_values
    if limits.highest is not None and portion > limits.highest:
        return True
    if limits.step is None or not limits.step.value:
        return False
    lowest = 0 if limits.lowest is None else limits.lowest.value
    return (portion.value - lowest) % limits.step.value != 0


# -- constraints -------------------------------------------------------------------------------------------------------


_TypedValue = tuple[str, object]
"""The kind of an attribute and its value: values of different kinds are never equal."""


class RunningConstraint(Protocol):
    def add(self, request: str, subrequest: str, device: PublishedDevice) -> bool:
        """Counts the device in, if it may come."""
        ...

    def remove(self, request: str, subrequest: str, device: PublishedDevice) -> None:
        """Undoes the last `add` that succeeded for this device."""
        ...


def start_constraint(constraint: DeviceConstraint) -> RunningConstraint | None:
    """None for a constraint of a kind that is not known."""
    requests = frozenset(constraint.requests or ())
    if constraint.match_attribute is not None:
        return MatchAttribute(requests, constraint.match_attribute)
    if constraint.distinct_attribute is not None:
        return DistinctAttribute(requests, constraint.distinct_attribute)
    return None


class MatchAttribute:
    """All devices have the attribute, with the value of the first of them."""

    def __init__(self, requests: frozenset[str], attribute: str) -> None:
        self._requests = requests
        self._attribute = attribute
        self._value: _TypedValue | None = None
        self._n_devices = 0

    def add(self, request: str, subrequest: str, device: PublishedDevice) -> bool:
        if not _applies(self._requests, request, subrequest):
            return True
        attribute = find_attribute(device, self._attribute)
        if attribute is None:
            return False
        value = _value(attribute)
        if self._n_devices == 0:
            self._value = value
        elif value is None or value != self._value:
            return False
        self._n_devices += 1
        return True

    def remove(self, request: str, subrequest: str, device: PublishedDevice) -> None:
        if _applies(self._requests, request, subrequest):
            self._n_devices -= 1


class DistinctAttribute:
    """All devices have the attribute, each with a value of its own.

    As kube-scheduler does, only the last device of each request is remembered.
    """

    def __init__(self, requests: frozenset[str], attribute: str) -> None:
        self._requests = requests
        self._attribute = attribute
        self._values: dict[str, _TypedValue | None] = {}
        self._n_devices = 0

    def add(self, request: str, subrequest: str, device: PublishedDevice) -> bool:
        if not _applies(self._requests, request, subrequest):
            return True
        attribute = find_attribute(device, self._attribute)
        if attribute is None:
            return False
        value = _value(attribute)
        if self._n_devices and self._values and (value is None or value in self._values.values()):
            return False
        self._values[request] = value
        self._n_devices += 1
        return True

    def remove(self, request: str, subrequest: str, device: PublishedDevice) -> None:
        if _applies(self._requests, request, subrequest):
            self._values.pop(request, None)
            self._n_devices -= 1


def find_attribute(device: PublishedDevice, name: str) -> DeviceAttribute | None:
    """By its full name or, where the domain is the driver's own, by the name without it."""
    attributes = device.device.attributes or {}
    if name in attributes:
        return attributes[name]
    domain, slash, own_name = name.partition("/")
    if not slash or domain != device.driver:
        return None
    return attributes.get(own_name)


def _applies(requests: frozenset[str], request: str, subrequest: str) -> bool:
    if not requests or request in requests:
        return True
    return bool(subrequest) and f"{request}/{subrequest}" in requests


def _value(attribute: DeviceAttribute) -> _TypedValue | None:
    if attribute.string is not None:
        return ("string", attribute.string)
    if attribute.int_value is not None:
        return ("int", attribute.int_value)
    if attribute.bool_value is not None:
        return ("bool", attribute.bool_value)
    if attribute.version is not None:
        return ("version", attribute.version)
    return None


# -- shared counters ---------------------------------------------------------------------------------------------------


def available_counters(view: PoolView, usage: PoolUsage) -> dict[CounterKey, int]:
    """Nano-units left by the devices that are allocated, on this node or elsewhere. Can be negative."""
    left = dict(view.counters)
    for slice_ in (*view.slices, *view.elsewhere):
        for device in slice_.content.devices:
            if device.counters and usage.is_allocated(device.name):
                for key, nanos in device.counters:
                    if key in left:
                        left[key] -= nanos
    return left


class CounterAccount:
    """What is left of one pool's counters while devices are being tried."""

    def __init__(self, view: PoolView, usage: PoolUsage) -> None:
        self._available = available_counters(view, usage)
        self._using: dict[CounterKey, int] = {}

    def reserve(self, device: PublishedDevice) -> bool:
        """Takes what the device needs, unless some counter of the pool is then overdrawn."""
        self._change(device, +1)
        if any(nanos < self._using.get(key, 0) for key, nanos in self._available.items()):
            self._change(device, -1)
            return False
        return True

    def release(self, device: PublishedDevice) -> None:
        self._change(device, -1)

    def _change(self, device: PublishedDevice, sign: int) -> None:
        for key, nanos in device.counters:
            self._using[key] = self._using.get(key, 0) + sign * nanos
