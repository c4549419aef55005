"""Claims that belong to a pod: for ephemeral volumes, and from resource claim templates.

Next: `kubesched.k8s.workloads.claims` for the rules.
"""

from __future__ import annotations

from collections.abc import Iterable

from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.resource import ResourceClaimTemplate
from kubesched.k8s.model.storage import PersistentVolumeClaim
from kubesched.k8s.workloads.claims import needs_claims, sync_pod_claims
from kubesched.playground.controllers.controller import ControllerContext


class PodClaimController:
    name = "pod-claims"

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._view = context.view

    def concerned(self, before: KubeObject | None, after: KubeObject | None) -> Iterable[str]:
        if isinstance(after, Pod):
            return (after.key,) if not after.spec.node_name and needs_claims(after) else ()
        if isinstance(after, ResourceClaimTemplate):
            pods = self._view.in_namespace(Pod, after.namespace)
            return [pod.key for pod in pods if not pod.spec.node_name and needs_claims(pod)]
        return ()

    async def reconcile(self, key: str) -> float | None:
        pod = self._view.find(Pod, key)
        if pod is not None:
            claims, templates = self._view.of(PersistentVolumeClaim), self._view.of(ResourceClaimTemplate)
            await self._context.writer.carry_out(sync_pod_claims(pod, claims, templates, self._context.names))
        return None
