"""What has ended since a job was looked at last: its counts and its numbers, each pod once.

A pod that has ended keeps its finalizer until it is counted. Pods that were noted in the status before, and not counted
then, are counted now.

Next: `jobs`, which goes on from there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.workloads import Job, JobStatus, UncountedTerminatedPods
from kubesched.k8s.workloads.index_sets import parse_indexes, print_indexes
from kubesched.k8s.workloads.job_failures import JobFailures
from kubesched.k8s.workloads.job_pods import INDEXED, JOB_FINALIZER, completion_index, index_failures
from kubesched.k8s.workloads.job_policies import FAIL_INDEX, FAIL_JOB, IGNORE, FailureVerdict, has_failed, verdict_of
from kubesched.k8s.workloads.pod_states import POD_SUCCEEDED


@dataclass(frozen=True, slots=True)
class JobCount:
    """`status` has all that has ended; `ended` are the pods that can be let go; `failing` is why the job is to fail."""

    status: JobStatus
    ended: list[Pod]
    newly: UncountedTerminatedPods
    completed: set[int]
    failed_indexes: set[int]
    failing: str = ""


def count(job: Job, pods: Sequence[Pod], failures: JobFailures, now_s: float) -> JobCount:
    """`pods` are those of the job, counted or not."""
    held = [pod for pod in pods if JOB_FINALIZER in (pod.metadata.finalizers or ())]
    succeeded = [pod for pod in held if pod.status.phase == POD_SUCCEEDED]
    failed = [pod for pod in held if pod.status.phase != POD_SUCCEEDED and has_failed(job, pod)]
    verdicts = {pod.metadata.uid: verdict_of(job, pod) for pod in failed}
    counted = [pod for pod in failed if verdicts[pod.metadata.uid].action != IGNORE]
    noted = job.status.uncounted_terminated_pods or UncountedTerminatedPods()
    known = {*(noted.succeeded or ()), *(noted.failed or ())}
    newly = UncountedTerminatedPods(
        (*(noted.succeeded or ()), *(pod.metadata.uid for pod in succeeded if pod.metadata.uid not in known)) or None,
        (*(noted.failed or ()), *(pod.metadata.uid for pod in counted if pod.metadata.uid not in known)) or None,
    )
    _remember(job, succeeded, [pod for pod in counted if pod.metadata.uid not in known], failures, now_s)
    completed, failed_indexes = _indexes(job, succeeded, failed, counted, verdicts)
    status = replace(job.status, failed=job.status.failed + len(newly.failed or ()), uncounted_terminated_pods=None)
    if job.spec.completion_mode == INDEXED:
        status = replace(status, succeeded=len(completed), completed_indexes=print_indexes(completed))
        if job.spec.backoff_limit_per_index is not None:
            status = replace(status, failed_indexes=print_indexes(failed_indexes))
    else:
        status = replace(status, succeeded=status.succeeded + len(newly.succeeded or ()))
    failing = next((one.message for one in verdicts.values() if one.action == FAIL_JOB), "")
    return JobCount(status, [*succeeded, *failed], newly, completed, failed_indexes, failing)


def _indexes(
    job: Job,
    succeeded: Sequence[Pod],
    failed: Sequence[Pod],
    counted: Sequence[Pod],
    verdicts: Mapping[str, FailureVerdict],
) -> tuple[set[int], set[int]]:
    """(completed, failed) numbers of an indexed job."""
    if job.spec.completion_mode != INDEXED:
        return set(), set()
    top = job.spec.completions or 0
    done = {index for pod in succeeded if (index := completion_index(pod)) is not None and index < top}
    completed = {index for index in parse_indexes(job.status.completed_indexes) if index < top} | done
    limit = job.spec.backoff_limit_per_index
    if limit is None:
        return completed, set()
    lost = {index for index in parse_indexes(job.status.failed_indexes or "") if index < top}
    for pod in failed:
        index = completion_index(pod)
        if index is None or index >= top:
            continue
        is_named = verdicts[pod.metadata.uid].action == FAIL_INDEX
        if is_named or (pod in counted and index_failures(pod) >= limit):
            lost.add(index)
    return completed, lost - completed


def _remember(job: Job, succeeded: Sequence[Pod], failed: Sequence[Pod], failures: JobFailures, now_s: float) -> None:
    uid = job.metadata.uid
    failures.record(uid, len(failed), len(succeeded), now_s)
    if job.spec.backoff_limit_per_index is not None:
        for pod in failed:
            index = completion_index(pod)
            if index is not None:
                failures.record(uid, max(1, index_failures(pod) + 1 - failures.n_failed(uid, index)), 0, now_s, index)
