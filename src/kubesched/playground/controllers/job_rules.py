"""Jobs, as `workload` asks for their rules; and their pods, which are let go when nobody counts them any more.

What has ended is noted in the status before the pods are let go, and counted afterwards: whatever happens in between,
each pod is counted once.
"""

from __future__ import annotations

from collections.abc import Iterable

from kubesched.k8s.client.errors import ApiError
from kubesched.k8s.client.requester import STRATEGIC_PATCH
from kubesched.k8s.model.apps import Job, JobStatus
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import KubeObject, controller_of
from kubesched.k8s.workloads.actions import PACED, Plan, UpdateObject
from kubesched.k8s.workloads.job_pods import INDEX_KEY, JOB_FINALIZER, JobFailures, completion_index, count
from kubesched.k8s.workloads.jobs import OWN_MANAGER, sync_job
from kubesched.playground.controllers.controller import ControllerContext
from kubesched.playground.controllers.documents import Body
from kubesched.playground.controllers.status.pod_counts import job_status, noted_status
from kubesched.playground.controllers.whole_bodies import plain
from kubesched.playground.controllers.workload import selector_of, write_status
from kubesched.playground.controllers.workload_kinds import PodMaking

_INDEX_VARIABLE = {
    "name": "JOB_COMPLETION_INDEX",
    "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.labels['{INDEX_KEY}']"}},
}


class JobRules(PodMaking[Job]):
    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._failures = JobFailures()

    def plan(self, owner: Job) -> Plan:
        return sync_job(owner, self._pods(owner), self._context.names, self._failures, self._context.now_s(), PACED)

    async def prepare(self, owner: Job, plan: Plan) -> None:
        lets_go = any(isinstance(action, UpdateObject) and isinstance(action.item, Pod) for action in plan.actions)
        if not lets_go or owner.is_finished:
            return
        counted = count(owner, self._pods(owner), JobFailures(), self._context.now_s())
        now = self._view.find(Job, owner.key)
        if now is not None:
            await write_status(self._context, now, noted_status(counted.status, plain(counted.newly)))

    def status(self, owner: Job, plan: Plan) -> Body:
        if owner.is_finished or owner.spec.managed_by not in (None, OWN_MANAGER):
            return {}
        return job_status(
            _planned_status(owner, plan), self._pods(owner), self._view.whole(owner).status, self._context.now_s()
        )

    def body_of(self, owner: Job, item: KubeObject) -> Body | None:
        if not isinstance(item, Pod):
            return None
        body = self._pod_body(owner, item)
        index = completion_index(item)
        if index is not None:
            body["spec"]["hostname"] = f"{owner.name}-{index}"
            for container in (*body["spec"].get("initContainers", ()), *body["spec"].get("containers", ())):
                known = container.setdefault("env", [])
                if not any(one["name"] == _INDEX_VARIABLE["name"] for one in known):
                    known.append(_INDEX_VARIABLE)
        return body


def _planned_status(owner: Job, plan: Plan) -> JobStatus:
    updates = [action.item for action in plan.actions if isinstance(action, UpdateObject)]
    return next((item.status for item in updates if isinstance(item, Job)), owner.status)


class JobPodRelease:
    """Pods that keep a job's finalizer although there is no job that counts them."""

    name = "job-pod-release"

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._view = context.view

    def concerned(self, before: KubeObject | None, after: KubeObject | None) -> Iterable[str]:
        item = before if after is None else after
        if isinstance(item, Pod):
            return (item.key,) if after is not None and JOB_FINALIZER in (item.metadata.finalizers or ()) else ()
        if isinstance(item, Job) and (after is None or item.metadata.deletion_timestamp is not None):
            return [pod.key for pod in self._view.owned(item.metadata.uid, Pod)]
        return ()

    async def reconcile(self, key: str) -> float | None:
        pod = self._view.find(Pod, key)
        if pod is None or JOB_FINALIZER not in (pod.metadata.finalizers or ()) or self._is_counted(pod):
            return None
        patch = {"metadata": {"uid": pod.metadata.uid, "$deleteFromPrimitiveList/finalizers": [JOB_FINALIZER]}}
        try:
            await self._context.writer.patch(pod, patch, content_type=STRATEGIC_PATCH)
        except ApiError as error:
            if not (error.is_not_found or error.is_conflict):
                raise
        return None

    def _is_counted(self, pod: Pod) -> bool:
        owner = controller_of(pod.metadata)
        if owner is None:
            jobs = self._view.in_namespace(Job, pod.namespace)
            found = (selector_of(job) for job in jobs if not job.is_finished)
            return any(selector is not None and selector.matches(pod.labels) for selector in found)
        job = self._view.by_uid(owner.uid)
        return isinstance(job, Job) and job.metadata.deletion_timestamp is None
