"""Shared counters of a pool: devices that are cut from the same silicon draw on them.

What is available is fixed for the cycle; what the search is about to use up comes and goes with its devices.

Next: `search`.
"""

from __future__ import annotations

from kubesched.scheduler.plugins.dynamic_resources.ledger import PoolUsage
from kubesched.scheduler.plugins.dynamic_resources.pools import PoolView
from kubesched.scheduler.plugins.dynamic_resources.published import CounterKey, PublishedDevice


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
