"""Which devices are taken, and how much of those that can be shared: by pool, as allocated claims say.

Every holder (a claim known from the API server, or an allocation on its way there) enters what it was allocated and
takes it back when it goes. Devices allocated for admin access are not taken.

Next: `claim_book` says who holds what.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from kubesched.k8s.model import quantity
from kubesched.k8s.model.resource import AllocationResult, DeviceRequestAllocationResult
from kubesched.scheduler.plugins.dynamic_resources.published import PoolId

Consumed = dict[str, int]
"""Nano-units of each capacity of a device."""


@dataclass(frozen=True, eq=False)
class PoolUsage:
    """What is taken of one pool. Devices go by their name in it."""

    dedicated: frozenset[str] = frozenset()
    shared: frozenset[str] = frozenset()
    consumed: dict[str, Consumed] = field(default_factory=dict)
    signature: Hashable = ()
    """Equal when the same is taken, in whatever pool."""

    def is_allocated(self, device_name: str) -> bool:
        return device_name in self.dedicated or device_name in self.shared or device_name in self.consumed


UNUSED = PoolUsage()


class DeviceLedger:
    """Usage by pool. Asking costs nothing; a pool is added up again only after something in it changed."""

    def __init__(self) -> None:
        self._holdings: dict[PoolId, dict[Hashable, list[DeviceRequestAllocationResult]]] = {}
        self._pools_of: dict[Hashable, set[PoolId]] = {}
        self._entered: dict[Hashable, AllocationResult] = {}
        self._usage: dict[PoolId, PoolUsage] = {}
        self._changed: set[PoolId] = set()

    def enter(self, holder: Hashable, allocation: AllocationResult) -> None:
        """Books what the holder was allocated, in place of what it held before."""
        if self._entered.get(holder) == allocation:
            return
        self.erase(holder)
        self._entered[holder] = allocation
        for result in allocation.devices.results or ():
            if result.admin_access:
                continue
            pool_id = PoolId(result.driver, result.pool)
            self._holdings.setdefault(pool_id, {}).setdefault(holder, []).append(result)
            self._pools_of.setdefault(holder, set()).add(pool_id)
            self._stale(pool_id)

    def erase(self, holder: Hashable) -> None:
        self._entered.pop(holder, None)
        for pool_id in self._pools_of.pop(holder, ()):
            holdings = self._holdings[pool_id]
            del holdings[holder]
            if not holdings:
                del self._holdings[pool_id]
            self._stale(pool_id)

    def usage(self, pool_id: PoolId) -> PoolUsage:
        if pool_id not in self._holdings:
            return UNUSED
        found = self._usage.get(pool_id)
        if found is None:
            found = self._usage[pool_id] = _add_up(self._holdings[pool_id])
        return found

    def take_changed(self) -> set[PoolId]:
        """The pools whose usage changed since this was last asked."""
        changed, self._changed = self._changed, set()
        return changed

    def _stale(self, pool_id: PoolId) -> None:
        self._usage.pop(pool_id, None)
        self._changed.add(pool_id)


def _add_up(holdings: dict[Hashable, list[DeviceRequestAllocationResult]]) -> PoolUsage:
    dedicated: set[str] = set()
    shared: set[str] = set()
    consumed: dict[str, Consumed] = {}
    for results in holdings.values():
        for result in results:
            if result.share_id is None:
                dedicated.add(result.device)
                continue
            shared.add(result.device)
            if result.consumed_capacity is not None:
                used = consumed.setdefault(result.device, {})
                for name, amount in result.consumed_capacity.items():
                    used[name] = used.get(name, 0) + quantity.parse(amount).nanos
    signature = (
        frozenset(dedicated),
        frozenset(shared),
        frozenset((device, frozenset(used.items())) for device, used in consumed.items()),
    )
    return PoolUsage(frozenset(dedicated), frozenset(shared), consumed, signature)
