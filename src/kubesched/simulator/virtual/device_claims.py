"""Claims for devices are given back when their pods have ended."""

from __future__ import annotations

from msgspec.structs import replace

from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.resource import ResourceClaim, ResourceClaimStatus
from kubesched.simulator.virtual.clock import VirtualClock
from kubesched.simulator.virtual.store import ClusterStore


class DeviceClaims:
    def __init__(self, clock: VirtualClock, store: ClusterStore) -> None:
        self._clock = clock
        self._store = store
        store.listen(self._on_change)

    def _on_change(self, before: KubeObject | None, after: KubeObject | None) -> None:
        if not isinstance(before, Pod) or not _uses_devices(before):
            return
        has_ended = after is None or (isinstance(after, Pod) and after.is_terminal and not before.is_terminal)
        if has_ended:
            uid = before.metadata.uid
            self._clock.after(0.0, lambda: self._give_back(uid))

    def _give_back(self, uid: str) -> None:
        for claim in list(self._store.of(ResourceClaim).values()):
            users = claim.status.reserved_for or ()
            left = tuple(user for user in users if user.uid != uid)
            if len(left) < len(users):
                status = replace(claim.status, reserved_for=left) if left else ResourceClaimStatus()
                self._store.update(replace(claim, status=status))


def _uses_devices(pod: Pod) -> bool:
    return bool(pod.spec.resource_claims) or pod.status.extended_resource_claim_status is not None
