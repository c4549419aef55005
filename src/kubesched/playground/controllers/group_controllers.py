"""Pod groups: one that is deleted stays until its last pod has ended, and jobs get one of their own.

Next: `kubesched.k8s.workloads.jobs` for which jobs, and what they get.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from kubesched.k8s.client.errors import ApiError
from kubesched.k8s.model.apps import Job
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import KubeObject, controller_of
from kubesched.k8s.model.scheduling import GROUP_VERSION, PROTECTION_FINALIZER, PodGroup, Workload, group_key_of
from kubesched.k8s.workloads.jobs import is_group_of, is_new, is_workload_of, needs_group, pod_group_for, workload_for
from kubesched.playground.controllers.claim_controllers import is_held, let_go
from kubesched.playground.controllers.controller import ControllerContext

K = TypeVar("K", bound=KubeObject)


class PodGroupProtection:
    name = "podgroup-protection"

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._view = context.view

    def concerned(self, before: KubeObject | None, after: KubeObject | None) -> Iterable[str]:
        if isinstance(after, PodGroup):
            return (after.key,) if is_held(after, PROTECTION_FINALIZER) else ()
        if isinstance(before, Pod) and (after is None or (isinstance(after, Pod) and after.is_terminal)):
            key = group_key_of(before)
            return (key,) if key else ()
        return ()

    async def reconcile(self, key: str) -> float | None:
        group = self._view.find(PodGroup, key)
        if group is not None and is_held(group, PROTECTION_FINALIZER) and not self._has_pods(group):
            await let_go(self._context, group, PROTECTION_FINALIZER)
        return None

    def _has_pods(self, group: PodGroup) -> bool:
        pods = self._view.in_namespace(Pod, group.namespace)
        return any(group_key_of(pod) == group.key and not pod.is_terminal for pod in pods)


class JobGroups:
    """The groups of jobs, for the controller of jobs: made before the first pod, found again afterwards."""

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._view = context.view
        self._is_next = context.home_of(PodGroup).version != GROUP_VERSION

    async def ensure(self, job: Job, pods: Sequence[Pod]) -> None:
        if not needs_group(job, self._is_next):
            return
        workloads = self._workloads(job)
        if not workloads and is_new(job, pods):
            wanted = workload_for(job, self._is_next)
            await self._create(wanted)
            note = f"Created Workload {wanted.name} for Job {job.name}"
            self._context.event("job-controller", job, "WorkloadCreated", note)
            workloads = self._workloads(job)
        workload = _only(workloads, job)
        if workload is None or len(workload.spec.pod_group_templates or ()) != 1:
            return
        if not self._groups(workload):
            group = pod_group_for(job, workload, self._context.home_of(Workload).api_version, self._is_next)
            await self._create(group)
            if self._is_next:
                note = f"Created PodGroup {group.name} for Job {job.name}"
                self._context.event("job-controller", job, "PodGroupCreated", note)

    def group_of(self, job: Job) -> PodGroup | None:
        """None where its pods go by themselves: it has no group, or somebody else made one for it."""
        workload = _only(self._workloads(job), job) if needs_group(job, self._is_next) else None
        return None if workload is None else _only(self._groups(workload), job)

    def _workloads(self, job: Job) -> list[Workload]:
        return [one for one in self._view.in_namespace(Workload, job.namespace) if is_workload_of(one, job)]

    def _groups(self, workload: Workload) -> list[PodGroup]:
        return [one for one in self._view.in_namespace(PodGroup, workload.namespace) if is_group_of(one, workload)]

    async def _create(self, item: Workload | PodGroup) -> None:
        try:
            await self._context.writer.create(item)
        except ApiError as error:
            if not error.is_already_exists:  # of ours, and not seen yet: the next look finds it
                raise


def _only(found: Sequence[K], job: Job) -> K | None:
    owner = controller_of(found[0].metadata) if len(found) == 1 else None
    return found[0] if owner is not None and owner.uid == job.metadata.uid else None
