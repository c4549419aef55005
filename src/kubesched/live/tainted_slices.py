"""Slices of devices with the taints that rules (DeviceTaintRule) put on them, for a loop that knows no rules.

Stands between informers and shell when the gate DRADeviceTaintRules is on: whoever listens behind it sees slices change
when a rule comes, changes or goes, and nothing of the rules themselves.
"""

from __future__ import annotations

from kubesched.k8s.client.list_watch import InformerHandler
from kubesched.k8s.client.resources import Resource
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.resource import DeviceTaintRule, ResourceSlice, with_rule_taints

TAINT_RULES = Resource(DeviceTaintRule, "resource.k8s.io", "v1beta2", "devicetaintrules", False, ("v1alpha3",))


class TaintedSlices:
    """An informer's handler in front of another one."""

    def __init__(self, listener: InformerHandler) -> None:
        self._listener = listener
        self._rules: dict[str, DeviceTaintRule] = {}
        self._published: dict[str, ResourceSlice] = {}
        self._told: dict[str, ResourceSlice] = {}
        """What the listener knows of each slice."""

    def put(self, item: KubeObject) -> None:
        if isinstance(item, DeviceTaintRule):
            self._rules[item.name] = item
            self._tell_changes()
        elif isinstance(item, ResourceSlice):
            self._published[item.name] = item
            self._tell(item)
        else:
            self._listener.put(item)

    def remove(self, item: KubeObject) -> None:
        if isinstance(item, DeviceTaintRule):
            self._rules.pop(item.name, None)
            self._tell_changes()
        elif isinstance(item, ResourceSlice):
            self._published.pop(item.name, None)
            self._listener.remove(self._told.pop(item.name, item))
        else:
            self._listener.remove(item)

    def _tell(self, slice_: ResourceSlice) -> None:
        tainted = with_rule_taints(slice_, self._in_order())
        self._told[slice_.name] = tainted
        self._listener.put(tainted)

    def _tell_changes(self) -> None:
        rules = self._in_order()
        for name, slice_ in self._published.items():
            tainted = with_rule_taints(slice_, rules)
            if tainted != self._told.get(name):
                self._told[name] = tainted
                self._listener.put(tainted)

    def _in_order(self) -> list[DeviceTaintRule]:
        return [self._rules[name] for name in sorted(self._rules)]
