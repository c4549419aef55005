"""Cron jobs: a job whenever its time comes.

Next: `cron_schedule`, which says when that is.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from kubesched.k8s.model.apps import CronJob, Job
from kubesched.k8s.model.cron_schedule import CronSchedule
from kubesched.k8s.model.meta import ObjectMeta
from kubesched.k8s.model.times import parse_instant, print_instant
from kubesched.k8s.workloads.actions import Plan
from kubesched.k8s.workloads.templates import owner_reference

SCHEDULED_ANNOTATION = "batch.kubernetes.io/cronjob-scheduled-timestamp"


def sync_cron_job(owner: CronJob, jobs: Sequence[Job], since_s: float, now_s: float) -> Plan:
    """`jobs` are those of the cron job; `since_s` is when the cron job itself came. Raises CronError."""
    plan = Plan()
    if owner.spec.suspend:
        return plan
    schedule = CronSchedule.parse(owner.spec.schedule, owner.spec.time_zone or "UTC")
    last = owner.status.last_schedule_time
    from_s = since_s if last is None else max(since_s, parse_instant(last))
    deadline_s = owner.spec.starting_deadline_seconds
    if deadline_s is not None:  # what is later than that is missed
        from_s = max(from_s, now_s - deadline_s)
    due_s = schedule.last_between(from_s, now_s)
    if due_s is not None:
        running = [job for job in jobs if not job.is_finished]
        if not running or owner.spec.concurrency_policy != "Forbid":
            if owner.spec.concurrency_policy == "Replace":
                for job in running:
                    plan.delete(job)
            plan.create(_job(owner, due_s))
            plan.update(replace(owner, status=replace(owner.status, last_schedule_time=print_instant(due_s))))
    next_s = schedule.next_after(now_s)
    if next_s is not None:
        plan.look_again(next_s)
    return plan


def _job(owner: CronJob, due_s: float) -> Job:
    template = owner.spec.job_template
    metadata = template.metadata
    return Job(
        metadata=ObjectMeta(
            name=f"{owner.name}-{int(due_s) // 60}",
            namespace=owner.namespace,
            labels=metadata.labels,
            annotations={**(metadata.annotations or {}), SCHEDULED_ANNOTATION: print_instant(due_s)},
            owner_references=(owner_reference(owner),),
        ),
        spec=template.spec,
    )
