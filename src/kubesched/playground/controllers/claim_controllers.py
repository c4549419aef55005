"""Claims that belong to a pod or a pod group, for ephemeral volumes and devices: made from templates, and released.

The scheduler reserves a claim for devices for a pod and never takes that back; this is who does. Then nobody is waited
for, devices become free, and claims made for a pod go.

Next: `kubesched.k8s.workloads.claims` for the rules.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import KubeObject, controller_of
from kubesched.k8s.model.resource import FINALIZER, ResourceClaim, ResourceClaimConsumerReference, ResourceClaimTemplate
from kubesched.k8s.model.scheduling import GROUP, PodGroup, group_key_of
from kubesched.k8s.model.storage import PersistentVolumeClaim
from kubesched.k8s.workloads.claims import needs_claims, sync_group_claims, sync_pod_claims
from kubesched.playground.controllers.controller import ControllerContext
from kubesched.playground.controllers.volume_controllers import let_go
from kubesched.playground.controllers.whole_objects import Body


class PodClaimController:
    name = "pod-claims"

    def __init__(self, context: ControllerContext, groups_have_claims: bool = False) -> None:
        self._context = context
        self._groups_have_claims = groups_have_claims
        self._view = context.view

    def concerned(self, before: KubeObject | None, after: KubeObject | None) -> Iterable[str]:
        if isinstance(after, Pod):
            return (after.key,) if not after.spec.node_name and needs_claims(after) else ()
        if isinstance(after, ResourceClaimTemplate):
            pods = self._view.in_namespace(Pod, after.namespace)
            return [pod.key for pod in pods if not pod.spec.node_name and needs_claims(pod)]
        if self._groups_have_claims and isinstance(after, PodGroup) and after.spec.resource_claims:
            pods = self._view.in_namespace(Pod, after.namespace)
            return [pod.key for pod in pods if not pod.spec.node_name and group_key_of(pod) == after.key]
        return ()

    async def reconcile(self, key: str) -> float | None:
        pod = self._view.find(Pod, key)
        if pod is not None:
            claims, templates = self._view.of(PersistentVolumeClaim), self._view.of(ResourceClaimTemplate)
            group = self._view.find(PodGroup, group_key_of(pod)) if self._groups_have_claims else None
            await self._context.writer.carry_out(sync_pod_claims(pod, claims, templates, self._context.names, group))
        return None


class GroupClaimController:
    name = "podgroup-claims"

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._view = context.view

    def concerned(self, before: KubeObject | None, after: KubeObject | None) -> Iterable[str]:
        if isinstance(after, PodGroup):
            return (after.key,) if after.spec.resource_claims else ()
        if isinstance(after, ResourceClaimTemplate):
            groups = self._view.in_namespace(PodGroup, after.namespace)
            return [group.key for group in groups if group.spec.resource_claims]
        return ()

    async def reconcile(self, key: str) -> float | None:
        group = self._view.find(PodGroup, key)
        if group is not None:
            templates = self._view.of(ResourceClaimTemplate)
            await self._context.writer.carry_out(
                sync_group_claims(group, templates, self._context.names, self._context.home_of(PodGroup).api_version)
            )
        return None


class DeviceClaimRelease:
    name = "resource-claim"

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._view = context.view

    def concerned(self, before: KubeObject | None, after: KubeObject | None) -> Iterable[str]:
        if isinstance(after, ResourceClaim):
            return (after.key,)
        if isinstance(before, Pod) and (after is None or (isinstance(after, Pod) and _is_done(after))):
            claims = self._view.in_namespace(ResourceClaim, before.namespace)
            return [claim.key for claim in claims if _concerns(claim, before)]
        if isinstance(before, PodGroup) and after is None:
            claims = self._view.in_namespace(ResourceClaim, before.namespace)
            return [claim.key for claim in claims if _concerns(claim, before)]
        return ()

    async def reconcile(self, key: str) -> float | None:
        claim = self._view.find(ResourceClaim, key)
        if claim is None:
            return None
        users = claim.status.reserved_for or ()
        kept = tuple(user for user in users if self._is_waited_for(claim, user))
        is_ended = claim.metadata.deletion_timestamp is not None
        # a claim with neither users nor allocation may be about to get them: the scheduler protects it first
        if len(kept) < len(users) or (is_ended and not kept):
            await self._release(claim, kept)
        if not kept and not is_ended and self._is_left_over(claim):
            await self._context.writer.delete(claim)
        return None

    async def _release(self, claim: ResourceClaim, kept: tuple[ResourceClaimConsumerReference, ...]) -> None:
        """Leaves the claim to these; without any, its devices are free and nothing keeps it."""
        is_free = not kept and FINALIZER in (claim.metadata.finalizers or ())
        status: Body = {"reservedFor": [msgspec.to_builtins(user) for user in kept] or None}
        if is_free:
            status["allocation"] = None
        if claim.status.reserved_for or (is_free and claim.status.allocation is not None):
            body = {"metadata": {"resourceVersion": claim.metadata.resource_version}, "status": status}
            await self._context.writer.patch(claim, body, subresource="status")
        now = self._view.find(ResourceClaim, claim.key)
        if is_free and now is not None:
            await let_go(self._context, now, FINALIZER)

    def _is_waited_for(self, claim: ResourceClaim, user: ResourceClaimConsumerReference) -> bool:
        if (user.api_group, user.resource) == (GROUP, "podgroups"):
            group = self._view.find(PodGroup, f"{claim.namespace}/{user.name}")
            return group is not None and group.metadata.uid == user.uid
        if user.api_group or user.resource != "pods":
            return True
        pod = self._view.find(Pod, f"{claim.namespace}/{user.name}")
        return pod is not None and pod.metadata.uid == user.uid and not _is_done(pod)

    def _is_left_over(self, claim: ResourceClaim) -> bool:
        """It was made for a pod that is done; of one that is gone, the garbage collector takes it."""
        owner = controller_of(claim.metadata)
        if owner is None or owner.kind != "Pod":
            return False
        pod = self._view.find(Pod, f"{claim.namespace}/{owner.name}")
        return pod is not None and (pod.metadata.uid != owner.uid or _is_done(pod))


def _is_done(pod: Pod) -> bool:
    """It will not run any more, or never will."""
    return pod.is_terminal or (pod.is_terminating and not pod.spec.node_name)


def _concerns(claim: ResourceClaim, user: Pod | PodGroup) -> bool:
    owner = controller_of(claim.metadata)
    is_owned = owner is not None and owner.uid == user.metadata.uid
    return is_owned or any(one.uid == user.metadata.uid for one in claim.status.reserved_for or ())
