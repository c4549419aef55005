"""Jobs: pods that run to their end, as many at a time as allowed, until enough have succeeded.

A finished pod is counted once: its finalizer is taken off together with the count. A pod that is deleted counts as
failed. After failures, the next pod waits a while, longer each time; after too many, the job has failed.

Next: `job_pods` for how the pods look, `job_failures` for how long to wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from msgspec.structs import replace

from kubesched.expansion.actions import Plan
from kubesched.expansion.bursts import UNPACED, Bursts
from kubesched.expansion.job_failures import JobFailures
from kubesched.expansion.job_pods import (
    INDEXED,
    JOB_FINALIZER,
    completion_index,
    make_job_pod,
    parse_indexes,
    print_indexes,
)
from kubesched.expansion.names import NameSource
from kubesched.expansion.pod_states import POD_FAILED, POD_SUCCEEDED, is_active
from kubesched.expansion.replicas import least_valuable
from kubesched.model.core import Pod
from kubesched.model.times import parse_instant, print_instant
from kubesched.model.workloads import Job, JobCondition, JobStatus

DEFAULT_BACKOFF_LIMIT = 6


def sync_job(
    job: Job,
    pods: Sequence[Pod],
    names: NameSource,
    failures: JobFailures,
    now_s: float,
    bursts: Bursts = UNPACED,
) -> Plan:
    """`pods` are those of the job that are not yet counted."""
    plan = Plan()
    if job.is_finished:
        return plan
    active = [pod for pod in pods if is_active(pod)]
    status = _count(plan, job, pods, failures, now_s)
    if job.spec.suspend:
        _delete_all(plan, active)
    elif (condition := _outcome(job, status, len(active), now_s)) is not None:
        status = replace(status, conditions=(*(status.conditions or ()), condition))
        _delete_all(plan, active)
    else:
        if status.start_time is None:
            status = replace(status, start_time=print_instant(now_s))
        _adjust(plan, job, status, active, names, failures, now_s, bursts)
        if job.spec.active_deadline_seconds is not None and status.start_time is not None:
            plan.look_again(parse_instant(status.start_time) + job.spec.active_deadline_seconds)
    if status != job.status:
        plan.update(replace(job, status=status))
    return plan


def n_completions(job: Job) -> int | None:
    """How many pods must succeed; None if the pods find out among themselves."""
    if job.spec.completions is None and job.spec.parallelism is None:
        return 1
    return job.spec.completions


def _count(plan: Plan, job: Job, pods: Sequence[Pod], failures: JobFailures, now_s: float) -> JobStatus:
    """The job's status with what has ended since; the pods are let go."""
    ended = [pod for pod in pods if not is_active(pod) and JOB_FINALIZER in (pod.metadata.finalizers or ())]
    succeeded = [pod for pod in ended if pod.status.phase == POD_SUCCEEDED]
    n_failed = len(ended) - len(succeeded)
    failures.record(job.metadata.uid, n_failed, len(succeeded), now_s)
    for pod in ended:
        kept = tuple(name for name in pod.metadata.finalizers or () if name != JOB_FINALIZER)
        plan.update(replace(pod, metadata=replace(pod.metadata, finalizers=kept or None)))
    status = job.status
    if job.spec.completion_mode == INDEXED:
        indexes = parse_indexes(status.completed_indexes)
        indexes |= {index for pod in succeeded if (index := completion_index(pod)) is not None}
        status = replace(status, succeeded=len(indexes), completed_indexes=print_indexes(indexes))
    else:
        status = replace(status, succeeded=status.succeeded + len(succeeded))
    return replace(status, failed=status.failed + n_failed)


def _outcome(job: Job, status: JobStatus, n_active: int, now_s: float) -> JobCondition | None:
    """How the job ended; None while it goes on."""
    limit = DEFAULT_BACKOFF_LIMIT if job.spec.backoff_limit is None else job.spec.backoff_limit
    if status.failed > limit:
        return JobCondition(POD_FAILED, "True", "BackoffLimitExceeded")
    deadline = job.spec.active_deadline_seconds
    if deadline is not None and status.start_time and now_s >= parse_instant(status.start_time) + deadline:
        return JobCondition(POD_FAILED, "True", "DeadlineExceeded")
    completions = n_completions(job)
    if completions is None:
        is_complete = status.succeeded > 0 and n_active == 0
    else:
        is_complete = status.succeeded >= completions
    return JobCondition("Complete", "True", "CompletionsReached") if is_complete else None


def _adjust(
    plan: Plan,
    job: Job,
    status: JobStatus,
    active: Sequence[Pod],
    names: NameSource,
    failures: JobFailures,
    now_s: float,
    bursts: Bursts,
) -> None:
    """More pods, or fewer, so that as many run as may."""
    parallelism = 1 if job.spec.parallelism is None else job.spec.parallelism
    completions = n_completions(job)
    if completions is not None:
        n_wanted = min(parallelism, completions - status.succeeded)
    else:
        n_wanted = len(active) if status.succeeded else parallelism
    for pod in least_valuable(active, len(active) - n_wanted):
        plan.delete(pod)
    n_missing = n_wanted - len(active)
    if n_missing <= 0:
        return
    ready_at_s = failures.ready_at_s(job.metadata.uid)
    if ready_at_s > now_s:
        plan.look_again(ready_at_s)
        return
    indexes = _free_indexes(job, status, active, completions, bursts.cut(plan, n_missing, active))
    for index in indexes:
        plan.create(make_job_pod(job, index, names))


def _free_indexes(
    job: Job, status: JobStatus, active: Sequence[Pod], completions: int | None, n: int
) -> list[int | None]:
    """The lowest numbers that nobody has or had; None for pods without one."""
    if job.spec.completion_mode != INDEXED or completions is None:
        return [None] * n
    taken = parse_indexes(status.completed_indexes) | {completion_index(pod) for pod in active}
    return list(islice((index for index in range(completions) if index not in taken), n))


def _delete_all(plan: Plan, pods: Sequence[Pod]) -> None:
    for pod in pods:
        plan.delete(pod)
