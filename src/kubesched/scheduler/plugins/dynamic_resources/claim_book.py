"""ResourceClaims as the scheduler must see them, and the devices that they have allocated.

What the API server said last is not enough. An allocation is *pending* from Reserve until it is written; no other pod
may use the claim meanwhile, and its devices are taken. After the write the updated claim is *assumed* until the watch
delivers it or something newer. One book serves all profiles: they allocate the same devices.

The ledger adds up by pool which devices are taken, and how much of those that can be shared. Devices allocated for
admin access are not taken.

Next: `offers`, which sees what is left.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from kubesched.k8s.model import quantity
from kubesched.k8s.model.meta import OwnerReference
from kubesched.k8s.model.resource import (
    EXTENDED_RESOURCE_CLAIM_ANNOTATION,
    AllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
)
from kubesched.scheduler.plugins.dynamic_resources.published import PoolId
from kubesched.scheduler.plugins.object_changes import ObjectChanges

# -- devices taken -----------------------------------------------------------------------------------------------------


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
        self._told: dict[PoolId, Hashable] = {}
        """The signatures of what was taken when `take_changed` last told."""

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
        """The pools of which something else is taken than when this was last asked."""
        changed = set()
        for pool_id in self._changed:
            signature = self.usage(pool_id).signature
            if self._told.get(pool_id, UNUSED.signature) != signature:
                self._told[pool_id] = signature
                changed.add(pool_id)
        self._changed = set()
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


# -- claims ------------------------------------------------------------------------------------------------------------


def identity(claim: ResourceClaim) -> str:
    """The uid, or for manifests that never met an API server, the key in its place."""
    return claim.metadata.uid or claim.key


@dataclass(slots=True)
class _Pending:
    """An allocation that was decided on, and is not written yet."""

    claim: ResourceClaim
    pod_uids: set[str] = field(default_factory=set)
    """The pods that need it: one, or several of a group."""
    writer_uid: str = ""
    """The one of them that is about to write it; empty if none is."""


class ClaimBook:
    """Claims by key, with what is pending and what is assumed on top."""

    def __init__(self) -> None:
        self.ledger = DeviceLedger()
        self._changes: ObjectChanges[ResourceClaim] = ObjectChanges()
        self._known: dict[str, ResourceClaim] = {}
        self._assumed: dict[str, ResourceClaim] = {}
        self._pending: dict[str, _Pending] = {}
        self._for_extended_resources: dict[str, ResourceClaim] = {}
        self._timed_out: dict[str, str | None] = {}

    def refresh(self, claims: Mapping[str, ResourceClaim]) -> None:
        """Takes what the API server said since the last time."""
        for before, now in self._changes.take(claims):
            if now is not None:
                self._learn(now.key, now)
            elif before is not None:
                self._forget(before.key)

    def get(self, key: str) -> ResourceClaim | None:
        assumed = self._assumed.get(key)
        return self._known.get(key) if assumed is None else assumed

    def latest(self, key: str, known: ResourceClaim | None) -> ResourceClaim | None:
        """As `get`, given what the API server says now, without a `refresh`."""
        assumed = self._assumed.get(key)
        if assumed is None or known is None or identity(assumed) != identity(known):
            return known
        age = _compare_versions(known, assumed)
        is_older = known is self._known.get(key) if age is None else age < 0
        return assumed if is_older else known

    def made_for_pod(self, pod_name: str, pod_uid: str) -> ResourceClaim | None:
        """The claim for the pod's extended resources that an earlier attempt left behind."""
        for key, claim in self._for_extended_resources.items():
            if any(_is_controlling_pod(owner, pod_name, pod_uid) for owner in claim.metadata.owner_references or ()):
                return self.get(key)
        return None

    # -- allocations on their way -------------------------------------------------------------------------------------

    def is_pending(self, claim: ResourceClaim) -> bool:
        return identity(claim) in self._pending

    def pending_allocation(self, claim: ResourceClaim) -> AllocationResult | None:
        pending = self._pending.get(identity(claim))
        return None if pending is None else pending.claim.status.allocation

    def hold(self, claim: ResourceClaim, pod_uid: str) -> None:
        """The claim, allocated, will be written soon, for this pod; the pods of a group share what the first of them
        was given."""
        assert claim.status.allocation is not None
        pending = self._pending.get(identity(claim))
        if pending is None:
            pending = self._pending[identity(claim)] = _Pending(claim)
            self.ledger.enter(("pending", identity(claim)), claim.status.allocation)
        pending.pod_uids.add(pod_uid)

    def release(self, claim: ResourceClaim, pod_uid: str, *, is_known: bool = False) -> bool:
        """It was written, or will not be for this pod. False if it is still pending for others, or was not at all.
        Where it `is_known` that it was written, it is pending for nobody any more."""
        pending = self._pending.get(identity(claim))
        if pending is None or (pod_uid not in pending.pod_uids and not is_known):
            return False
        pending.pod_uids.discard(pod_uid)
        if pending.writer_uid == pod_uid:
            pending.writer_uid = ""
        if pending.pod_uids and not is_known:
            return False
        del self._pending[identity(claim)]
        self.ledger.erase(("pending", identity(claim)))
        return True

    def is_written_by_another(self, claim: ResourceClaim, pod_uid: str) -> bool:
        pending = self._pending.get(identity(claim))
        return pending is not None and pending.writer_uid not in ("", pod_uid)

    def begin_writing(self, claim: ResourceClaim, pod_uid: str) -> None:
        pending = self._pending.get(identity(claim))
        if pending is not None:
            pending.writer_uid = pod_uid

    def assume(self, claim: ResourceClaim) -> bool:
        """The API server took this; the watch will say so. False if the claim is not known here (yet, or any more)."""
        known = self._known.get(claim.key)
        if known is None or identity(known) != identity(claim):
            return False
        age = _compare_versions(known, claim)
        if age is None or age < 0:
            self._assumed[claim.key] = claim
            self._book(claim.key)
        return True

    def restore(self, key: str) -> None:
        """Back to what the API server said."""
        if self._assumed.pop(key, None) is not None:
            self._book(key)

    # -- binding conditions that took too long ------------------------------------------------------------------------

    def note_timeout(self, claim: ResourceClaim) -> None:
        """The wait for the binding conditions of this allocation was given up."""
        allocation = claim.status.allocation
        self._timed_out[identity(claim)] = None if allocation is None else allocation.allocation_timestamp

    def has_timed_out(self, claim: ResourceClaim) -> bool:
        allocation = claim.status.allocation
        if allocation is None or identity(claim) not in self._timed_out:
            return False
        return self._timed_out[identity(claim)] == allocation.allocation_timestamp

    # -- what the API server says -------------------------------------------------------------------------------------

    def _learn(self, key: str, claim: ResourceClaim) -> None:
        self._known[key] = claim
        assumed = self._assumed.get(key)
        if assumed is not None:
            age = _compare_versions(claim, assumed)
            if age is None or age >= 0 or identity(assumed) != identity(claim):
                del self._assumed[key]
        if (claim.metadata.annotations or {}).get(EXTENDED_RESOURCE_CLAIM_ANNOTATION) == "true":
            self._for_extended_resources[key] = claim
        else:
            self._for_extended_resources.pop(key, None)
        self._book(key)

    def _forget(self, key: str) -> None:
        claim = self._known.pop(key)
        self._assumed.pop(key, None)
        self._for_extended_resources.pop(key, None)
        self._timed_out.pop(identity(claim), None)
        self.ledger.erase(key)

    def _book(self, key: str) -> None:
        claim = self.get(key)
        if claim is not None and claim.status.allocation is not None:
            self.ledger.enter(key, claim.status.allocation)
        else:
            self.ledger.erase(key)


def _is_controlling_pod(owner: OwnerReference, pod_name: str, pod_uid: str) -> bool:
    return owner.name == pod_name and owner.controller and owner.uid == pod_uid


def _compare_versions(one: ResourceClaim, other: ResourceClaim) -> int | None:
    """Negative if the first is older, positive if it is newer; None where versions cannot tell."""
    ours, theirs = one.metadata.resource_version, other.metadata.resource_version
    if ours.isdigit() and theirs.isdigit():
        return int(ours) - int(theirs)
    return None
