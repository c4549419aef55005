"""Requeueing: which changes are worth another attempt for a pod that this plugin rejected.

Next: `plugin`.
"""

from __future__ import annotations

from collections.abc import Callable

from kubesched.framework.events import ActionType, ClusterEvent, EventResource, Hint, RegisteredEvent
from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.resource import ResourceClaim
from kubesched.scheduler.plugins.dynamic_resources.claim_book import identity
from kubesched.scheduler.plugins.dynamic_resources.pod_claims import ClaimNotReadyError, claims_of


class RequeueHints:
    """`find` gives a claim by its key, as it is when it is asked."""

    def __init__(self, find: Callable[[str], ResourceClaim | None]) -> None:
        self._find = find

    def events(self) -> list[RegisteredEvent]:
        on_node = ActionType.ADD | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_ALLOCATABLE
        on_update = ActionType.ADD | ActionType.UPDATE
        generated = ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM
        return [
            RegisteredEvent(ClusterEvent(EventResource.NODE, on_node)),
            RegisteredEvent(ClusterEvent(EventResource.RESOURCE_CLAIM, on_update), self.after_claim_change),
            RegisteredEvent(ClusterEvent(EventResource.POD, generated), self.after_pod_change),
            RegisteredEvent(ClusterEvent(EventResource.DEVICE_CLASS, on_update)),
            RegisteredEvent(ClusterEvent(EventResource.RESOURCE_SLICE, on_update)),
        ]

    def after_claim_change(self, pod: PodInfo, old: object | None, new: object | None) -> Hint:
        """A claim of the pod's own that came, or whose status changed; or any that was deallocated."""
        assert isinstance(new, ResourceClaim)
        try:
            mine = claims_of(pod.pod, self._find)
        except ClaimNotReadyError:
            return Hint.SKIP
        before = old if isinstance(old, ResourceClaim) else None
        if before is not None and before.status.allocation is not None and new.status.allocation is None:
            return Hint.QUEUE
        if all(identity(claim) != identity(new) for claim in mine):
            return Hint.SKIP
        return Hint.QUEUE if before is None or before.status != new.status else Hint.SKIP

    def after_pod_change(self, pod: PodInfo, old: object | None, new: object | None) -> Hint:
        """The pod itself now knows all its claims."""
        assert isinstance(new, Pod)
        if (new.metadata.uid or new.pod_key) != pod.uid:
            return Hint.SKIP
        try:
            claims_of(new, self._find)
        except ClaimNotReadyError:
            return Hint.SKIP
        return Hint.QUEUE
