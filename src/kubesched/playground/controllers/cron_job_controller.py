"""Cron jobs: a job when its time comes, and old ones tidied away."""

from __future__ import annotations

import logging
from collections.abc import Container, Iterable, Mapping
from functools import partial

from kubesched.k8s.model.apps import CronJob, Job
from kubesched.k8s.model.cron_schedule import CronError
from kubesched.k8s.model.meta import KubeObject, controller_of
from kubesched.k8s.model.times import parse_instant
from kubesched.k8s.workloads.actions import DeleteObject, Plan, UpdateObject
from kubesched.k8s.workloads.cron_jobs import sync_cron_job
from kubesched.playground.controllers.controller import ControllerContext
from kubesched.playground.controllers.whole_objects import Body, job_body
from kubesched.playground.controllers.workload import JobNotes, write_status

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
