"""Workloads that make workloads: deployments make replica sets, cron jobs make jobs.

Replica sets are made, scaled, numbered and tidied up, and the status tells how far the rollout is. Every template that
is rolled out gets a number (`deployment.kubernetes.io/revision`), a template that comes back gets a new one: that is
what `kubectl rollout history` and `undo` go by. A job is made when its time comes, and old ones are tidied away.

Next: `status` for conditions, `kubesched.k8s.workloads.deployments` for how far sets are scaled.
"""

from __future__ import annotations

import logging
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import partial

from kubesched.k8s.client.errors import ApiError
from kubesched.k8s.model.apps import CronJob, Deployment, Job, ReplicaSet
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.cron_schedule import CronError
from kubesched.k8s.model.meta import KubeObject, controller_of
from kubesched.k8s.model.times import parse_instant, print_instant
from kubesched.k8s.workloads.actions import DeleteObject, Plan, UpdateObject
from kubesched.k8s.workloads.deployments import REVISION_ANNOTATION, find_current, size_annotations, sync_deployment
from kubesched.k8s.workloads.jobs import sync_cron_job
from kubesched.playground.controllers.controller import ControllerContext
from kubesched.playground.controllers.status import (
    condition,
    deployment_status,
    stalls_in_s,
    with_condition_set,
    with_replica_failure,
)
from kubesched.playground.controllers.whole_objects import Body, job_body, replica_set_body
from kubesched.playground.controllers.workload import (
    JobNotes,
    ScalingNotes,
    claims_of,
    selector_of,
    settle_claims,
    write_status,
)

DEFAULT_HISTORY = 10

_NOT_HANDED_DOWN = frozenset({"kubectl.kubernetes.io/last-applied-configuration", REVISION_ANNOTATION})


class DeploymentController:
    name = "deployment"

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._view = context.view

    def concerned(self, before: KubeObject | None, after: KubeObject | None) -> Iterable[str]:
        item = before if after is None else after
        if isinstance(item, Deployment):
            return () if after is None else (item.key,)
        if isinstance(item, ReplicaSet | Pod):
            return [owner.key for owner in self._view.owners_of(item) if isinstance(owner, Deployment)]
        return ()

    async def reconcile(self, key: str) -> float | None:
        deployment = self._view.find(Deployment, key)
        if deployment is None or deployment.metadata.deletion_timestamp is not None:
            return None
        selector = selector_of(deployment)
        if selector is not None:
            candidates = self._view.in_namespace(ReplicaSet, deployment.namespace)
            await settle_claims(self._context, deployment, claims_of(deployment, selector, candidates))
        sets = self._sets(deployment)
        plan = sync_deployment(deployment, sets, self._pods(sets), self._context.now_s())
        notes = ScalingNotes(self._context, deployment)
        try:
            await self._context.writer.carry_out(plan, partial(self._body, deployment), notes)
        except ApiError as error:
            await self._tell_refusal(deployment, error)
            raise
        await self._number(deployment)
        await self._tidy_up(deployment)
        return _soonest(await self._tell_status(key), plan.again_at_s, self._context.now_s())

    async def _tell_refusal(self, deployment: Deployment, error: ApiError) -> None:
        """A name that is taken is counted, so that the next one is another; other refusals are told."""
        status = self._view.whole(deployment).status
        if error.is_already_exists:
            count = status.get("collisionCount", 0) + 1
            await write_status(self._context, deployment, {"collisionCount": count})
        elif not error.is_conflict:
            told = condition("Progressing", False, "ReplicaSetCreateError", error.message)
            now_s = self._context.now_s()
            told["lastUpdateTime"] = print_instant(now_s)
            conditions = with_condition_set(status.get("conditions") or (), told, now_s)
            await write_status(self._context, deployment, {"conditions": conditions})

    def _sets(self, deployment: Deployment) -> list[ReplicaSet]:
        """The oldest first: they shrink first."""
        owned = self._view.owned(deployment.metadata.uid, ReplicaSet)
        return sorted(owned, key=lambda known: (known.metadata.creation_timestamp or "", known.name))

    def _pods(self, sets: Sequence[ReplicaSet]) -> dict[str, list[Pod]]:
        return {known.metadata.uid: self._view.owned(known.metadata.uid, Pod) for known in sets}

    def _body(self, deployment: Deployment, item: KubeObject) -> Body | None:
        if not isinstance(item, ReplicaSet):
            return None
        body = replica_set_body(item, self._view.whole(deployment).spec)
        body["metadata"]["annotations"] = {
            **handed_down(deployment),
            **body["metadata"].get("annotations", {}),
        }
        return body

    async def _number(self, deployment: Deployment) -> None:
        """The current set has the highest number, and the deployment the same."""
        sets = self._sets(deployment)
        current = find_current(deployment, sets)
        if current is None:
            return
        highest = max((revision_of(known) for known in sets if known is not current), default=0)
        revision = revision_of(current)
        if revision <= highest:
            revision = highest + 1
        wanted = {**handed_down(deployment), **size_annotations(deployment), REVISION_ANNOTATION: str(revision)}
        known_annotations = current.metadata.annotations or {}
        if any(known_annotations.get(key) != value for key, value in wanted.items()):
            await self._context.writer.patch(current, {"metadata": {"annotations": wanted}})
        if (deployment.metadata.annotations or {}).get(REVISION_ANNOTATION) != str(revision):
            # through the status, as the number is no wish of the user's: the generation stays
            numbered = {"metadata": {"annotations": {REVISION_ANNOTATION: str(revision)}}}
            await self._context.writer.patch(deployment, numbered, subresource="status")

    async def _tidy_up(self, deployment: Deployment) -> None:
        """Old sets without pods go when there are more than history keeps."""
        limit = self._view.whole(deployment).spec.get("revisionHistoryLimit", DEFAULT_HISTORY)
        sets = self._sets(deployment)
        current = find_current(deployment, sets)
        old = sorted((known for known in sets if known is not current), key=revision_of)
        for known in old[: max(0, len(old) - limit)]:
            if known.spec.replicas == 0 and not self._view.owned(known.metadata.uid, Pod):
                await self._context.writer.delete(known)

    async def _tell_status(self, key: str) -> float | None:
        deployment = self._view.find(Deployment, key)
        if deployment is None:
            return None
        whole, now_s = self._view.whole(deployment), self._context.now_s()
        sets = self._sets(deployment)
        failures = [self._view.whole(known).status.get("conditions") or () for known in sets]
        status = deployment_status(deployment, whole.spec, whole.status, sets, self._pods(sets), now_s)
        status["conditions"] = with_replica_failure(status["conditions"], failures, now_s)
        await write_status(self._context, deployment, status)
        return stalls_in_s(status, whole.spec, now_s)


def revision_of(known: ReplicaSet) -> int:
    text = (known.metadata.annotations or {}).get(REVISION_ANNOTATION, "0")
    return int(text) if text.isdecimal() else 0


def handed_down(deployment: Deployment) -> dict[str, str]:
    """Annotations that a replica set takes over, the cause of the change among them."""
    given = deployment.metadata.annotations or {}
    return {key: value for key, value in given.items() if key not in _NOT_HANDED_DOWN}


def _soonest(in_s: float | None, at_s: float | None, now_s: float) -> float | None:
    times = [for_s for for_s in (in_s, None if at_s is None else max(0.0, at_s - now_s)) if for_s is not None]
    return min(times, default=None)


_log = logging.getLogger("kubesched.controllers")
_KEPT = {"Complete": ("successfulJobsHistoryLimit", 3), "Failed": ("failedJobsHistoryLimit", 1)}


class CronJobController:
    name = "cronjob"

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._view = context.view

    def concerned(self, before: KubeObject | None, after: KubeObject | None) -> Iterable[str]:
        item = before if after is None else after
        if isinstance(item, CronJob):
            return () if after is None else (item.key,)
        owner = controller_of(item.metadata) if isinstance(item, Job) else None
        known = None if owner is None else self._view.by_uid(owner.uid)
        return (known.key,) if isinstance(known, CronJob) else ()

    async def reconcile(self, key: str) -> float | None:
        owner = self._view.find(CronJob, key)
        if owner is None or owner.metadata.deletion_timestamp is not None:
            return None
        now_s = self._context.now_s()
        jobs = self._view.owned(owner.metadata.uid, Job)
        created = owner.metadata.creation_timestamp
        try:
            plan = sync_cron_job(owner, jobs, parse_instant(created) if created else now_s, now_s)
        except CronError as error:
            _log.warning("A cron job has no schedule", extra={"fields": {"cronjob": key, "err": str(error)}})
            return None
        notes = JobNotes(self._context, owner)
        await self._context.writer.carry_out(_without_status(plan), partial(self._body, owner), notes)
        await self._tell_status(owner, plan)
        await self._tidy_up(owner)
        return None if plan.again_at_s is None else max(0.0, plan.again_at_s - now_s)

    def _body(self, owner: CronJob, item: KubeObject) -> Body | None:
        return job_body(item, self._view.whole(owner).spec) if isinstance(item, Job) else None

    async def _tell_status(self, owner: CronJob, plan: Plan) -> None:
        now = self._view.find(CronJob, owner.key)
        if now is None:
            return
        jobs = self._view.owned(owner.metadata.uid, Job)
        replaced = {action.item.metadata.uid for action in plan.actions if isinstance(action, DeleteObject)}
        self._tell_ends(now, {job.metadata.uid: job for job in jobs}, replaced)
        status: Body = {"active": [_reference(job) for job in jobs if not job.is_finished] or None}
        for action in plan.actions:
            if isinstance(action, UpdateObject) and isinstance(action.item, CronJob):
                status["lastScheduleTime"] = action.item.status.last_schedule_time
        ends = [end for job in jobs if (end := self._view.whole(job).status.get("completionTime"))]
        if ends:
            status["lastSuccessfulTime"] = max(ends)
        await write_status(self._context, now, status)

    def _tell_ends(self, owner: CronJob, jobs: Mapping[str, Job], replaced: Container[str]) -> None:
        """Of jobs that were active when the status was written last, but for those that we took away ourselves."""
        for known in self._view.whole(owner).status.get("active") or ():
            uid = known.get("uid", "")
            job = jobs.get(uid)
            if job is None and uid in replaced:
                continue
            if job is None:
                self._tell(owner, "MissingJob", f"Active job went missing: {known.get('name')}")
            elif job.is_finished:
                ending = "Complete" if _has_ended(job, "Complete") else "Failed"
                self._tell(owner, "SawCompletedJob", f"Saw completed job: {job.name}, condition: {ending}")

    def _tell(self, owner: CronJob, reason: str, note: str) -> None:
        self._context.event("cronjob-controller", owner, reason, note)

    async def _tidy_up(self, owner: CronJob) -> None:
        spec = self._view.whole(owner).spec
        jobs = sorted(self._view.owned(owner.metadata.uid, Job), key=lambda job: job.metadata.creation_timestamp or "")
        for ending, (field, usual) in _KEPT.items():
            ended = [job for job in jobs if _has_ended(job, ending)]
            for job in ended[: max(0, len(ended) - spec.get(field, usual))]:
                await self._context.writer.delete(job)
                JobNotes(self._context, owner).done(DeleteObject(job), job)


def _has_ended(job: Job, ending: str) -> bool:
    return any(known.type == ending and known.status == "True" for known in job.status.conditions or ())


def _without_status(plan: Plan) -> Plan:
    return Plan([action for action in plan.actions if not isinstance(action, UpdateObject)], plan.again_at_s)


def _reference(job: Job) -> Body:
    return {
        "kind": "Job",
        "namespace": job.namespace,
        "name": job.name,
        "uid": job.metadata.uid,
        "apiVersion": "batch/v1",
        "resourceVersion": job.metadata.resource_version,
    }
