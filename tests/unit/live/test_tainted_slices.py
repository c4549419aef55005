"""Taint rules reach the loop as taints of slices, and nothing else changes."""

from __future__ import annotations

from kubesched.k8s.model.meta import KubeObject, ObjectMeta
from kubesched.k8s.model.resource import (
    Device,
    DeviceTaint,
    DeviceTaintRule,
    DeviceTaintRuleSpec,
    DeviceTaintSelector,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from kubesched.live.shell import TaintedSlices

BROKEN = DeviceTaint("broken", "NoSchedule")


class _Listener:
    def __init__(self) -> None:
        self.known: dict[str, KubeObject] = {}
        self.n_told = 0

    def put(self, item: KubeObject) -> None:
        self.known[item.name] = item
        self.n_told += 1

    def remove(self, item: KubeObject) -> None:
        del self.known[item.name]
        self.n_told += 1

    def taints(self, name: str) -> dict[str, tuple[DeviceTaint, ...] | None]:
        slice_ = self.known[name]
        assert isinstance(slice_, ResourceSlice)
        return {device.name: device.taints for device in slice_.spec.devices or ()}


def _slice(name: str, pool: str, *devices: str) -> ResourceSlice:
    spec = ResourceSliceSpec("d.x", ResourcePool(pool), all_nodes=True, devices=tuple(map(Device, devices)))
    return ResourceSlice(ObjectMeta(name=name), spec)


def _rule(name: str, selector: DeviceTaintSelector | None, taint: DeviceTaint = BROKEN) -> DeviceTaintRule:
    return DeviceTaintRule(ObjectMeta(name=name), DeviceTaintRuleSpec(taint, selector))


def test_a_rule_taints_what_it_selects_before_and_after_it_comes() -> None:
    listener = _Listener()
    slices = TaintedSlices(listener)
    slices.put(_slice("s", "p", "a", "b"))
    slices.put(_rule("r", DeviceTaintSelector(driver="d.x", pool="p", device="b")))
    slices.put(_slice("t", "q", "b"))
    assert listener.taints("s") == {"a": None, "b": (BROKEN,)}
    assert listener.taints("t") == {"b": None}
    slices.put(_rule("r", None))
    assert listener.taints("t") == {"b": (BROKEN,)}
    slices.remove(_rule("r", None))
    assert listener.taints("s") == {"a": None, "b": None}


def test_slices_that_no_rule_concerns_are_told_once() -> None:
    listener = _Listener()
    slices = TaintedSlices(listener)
    slices.put(_slice("s", "p", "a"))
    slices.put(_rule("r", DeviceTaintSelector(driver="other")))
    slices.remove(_rule("r", DeviceTaintSelector(driver="other")))
    assert listener.n_told == 1
    slices.remove(_slice("s", "p", "a"))
    assert not listener.known
