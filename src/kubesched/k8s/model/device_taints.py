"""Taints of devices: those that rules add to what drivers publish. `taints` has what tolerates them."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from kubesched.k8s.model.resource import DeviceTaintRule, ResourceSlice


def selects(rule: DeviceTaintRule, driver: str, pool: str, device: str) -> bool:
    """Whether the rule is about this device; one without a selector is about all."""
    selector = rule.spec.device_selector
    if selector is None:
        return True
    asked = ((selector.driver, driver), (selector.pool, pool), (selector.device, device))
    return all(wanted is None or wanted == found for wanted, found in asked)


def with_rule_taints(slice_: ResourceSlice, rules: Iterable[DeviceTaintRule]) -> ResourceSlice:
    """The slice as if its driver had published the taints of the rules too; the same object if there are none."""
    spec = slice_.spec
    devices = list(spec.devices or ())
    is_changed = False
    for rule in rules:
        for position, device in enumerate(devices):
            if selects(rule, spec.driver, spec.pool.name, device.name):
                devices[position] = replace(device, taints=(*(device.taints or ()), rule.spec.taint))
                is_changed = True
    return replace(slice_, spec=replace(spec, devices=tuple(devices))) if is_changed else slice_
