"""Constraints of a claim across its devices: one attribute that must be the same on all, or different on each.

A constraint keeps count while the search goes on: `add` a device, `remove` it on the way back.

Next: `search`.
"""

from __future__ import annotations

from typing import Protocol

from kubesched.k8s.model.resource import DeviceAttribute, DeviceConstraint
from kubesched.scheduler.plugins.dynamic_resources.published import PublishedDevice

AttributeValue = tuple[str, object]
"""The kind of an attribute and its value: values of different kinds are never equal."""


class RunningConstraint(Protocol):
    def add(self, request: str, subrequest: str, device: PublishedDevice) -> bool:
        """Counts the device in, if it may come."""
        ...

    def remove(self, request: str, subrequest: str, device: PublishedDevice) -> None:
        """Undoes the last `add` that succeeded for this device."""
        ...


def start(constraint: DeviceConstraint) -> RunningConstraint | None:
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
        self._value: AttributeValue | None = None
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
        self._values: dict[str, AttributeValue | None] = {}
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


def _value(attribute: DeviceAttribute) -> AttributeValue | None:
    if attribute.string is not None:
        return ("string", attribute.string)
    if attribute.int_value is not None:
        return ("int", attribute.int_value)
    if attribute.bool_value is not None:
        return ("bool", attribute.bool_value)
    if attribute.version is not None:
        return ("version", attribute.version)
    return None
