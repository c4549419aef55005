"""The pods of a job: how they look, what has ended since the last look, and what their failures mean for the job.

In an indexed job each pod has a number; status and policies write such numbers as `1,3-5,7`. A pod that has ended keeps
its finalizer until it is counted, once. Pods that were noted in the status before, and not counted then, are counted
now. Policies in the job's spec say what the failure of a pod means, and which successes are enough.

Before a job replaces pods that failed it waits ten seconds, doubled with every failure in a row. A job whose numbers
may each fail so often waits for each number by itself.

Next: `jobs`, which goes on from there.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from kubesched.k8s.model.apps import Job, JobStatus, PodFailureOnExitCodes, UncountedTerminatedPods
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.reported_pods import ReportedPod
from kubesched.k8s.workloads.actions import NameSource
from kubesched.k8s.workloads.pod_states import POD_FAILED, POD_SUCCEEDED, AnnotationError, condition_of, exit_code
from kubesched.k8s.workloads.templates import EMPTY_TEMPLATE, pod_from_template

_MOST = 1_000_000
"""More numbers than that are not read: no job has so many, and a text of a few letters can name billions."""


def parse_indexes(text: str) -> set[int]:
    """What cannot be read is passed over: an API server has refused it."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        if not first.isdecimal() or not (last or first).isdecimal() or len(first) + len(last) > 24:
            continue
        start, end = int(first), int(last or first)
        found.update(range(start, min(end + 1, start + _MOST - len(found))))
    return found


def print_indexes(indexes: Iterable[int]) -> str:
    in_order = sorted(indexes)
    parts = []
    for _, run in itertools.groupby(zip(in_order, itertools.count(), strict=False), key=lambda pair: pair[0] - pair[1]):
        numbers = [number for number, _ in run]
        if len(numbers) == 1:
            parts.append(str(numbers[0]))
        else:
            parts.append(f"{numbers[0]}{',' if len(numbers) == 2 else '-'}{numbers[-1]}")
    return ",".join(parts)


INDEXED = "Indexed"
INDEX_KEY = "batch.kubernetes.io/job-completion-index"
INDEX_FAILURES_KEY = "batch.kubernetes.io/job-index-failure-count"
_LONGEST_NUMBER = 12
_LONGEST_PREFIX = 58
JOB_FINALIZER = "batch.kubernetes.io/job-tracking"
"""Keeps a pod of a job until it is counted."""


def make_job_pod(job: Job, index: int | None, names: NameSource, n_failures: int = 0) -> Pod:
    """`n_failures` is how often pods of this number have failed."""
    uid = job.metadata.uid
    labels = {
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": job.name,
        "controller-uid": uid,
        "job-name": job.name,
    }
    annotations = {}
    prefix = f"{job.name}-"
    if index is not None:
        labels[INDEX_KEY] = annotations[INDEX_KEY] = str(index)
        prefix = f"{job.name[: _LONGEST_PREFIX - len(str(index)) - 2]}-{index}-"
        if job.spec.backoff_limit_per_index is not None:
            annotations[INDEX_FAILURES_KEY] = str(n_failures)
    return pod_from_template(
        job.spec.template or EMPTY_TEMPLATE,
        job,
        names.name(prefix),
        labels=labels,
        annotations=annotations,
        finalizers=(JOB_FINALIZER,),
    )


def completion_index(pod: Pod) -> int | None:
    text = (pod.metadata.annotations or {}).get(INDEX_KEY, "")
    return int(text) if text.isdecimal() and len(text) < _LONGEST_NUMBER else None


def index_failures(pod: Pod) -> int:
    """How often its number had failed before it was made."""
    text = (pod.metadata.annotations or {}).get(INDEX_FAILURES_KEY, "")
    return int(text) if text.isdecimal() and len(text) < _LONGEST_NUMBER else 0


FAIL_JOB = "FailJob"
FAIL_INDEX = "FailIndex"
IGNORE = "Ignore"
COUNT = "Count"
_PLAIN_CODE = 1


@dataclass(frozen=True, slots=True)
class FailureVerdict:
    """What to do about a failed pod; the message says which rule said so."""

    action: str = COUNT
    message: str = ""


def replaces_only_failed(job: Job) -> bool:
    """Whether pods on their way out still take their place."""
    return job.spec.pod_replacement_policy == POD_FAILED or job.spec.pod_failure_policy is not None


def has_failed(job: Job, pod: Pod) -> bool:
    """A deleted pod counts as failed at once, unless the job waits for its end."""
    if pod.status.phase == POD_FAILED:
        return True
    return pod.is_terminating and not pod.is_terminal and not replaces_only_failed(job)


def verdict_of(job: Job, pod: Pod) -> FailureVerdict:
    """Of a failed pod, by the first rule that matches."""
    policy = job.spec.pod_failure_policy
    for number, rule in enumerate((policy.rules if policy else None) or ()):
        where = f"matching {rule.action} rule at index {number}"
        if rule.on_exit_codes is not None:
            for name, code in _failed_codes(pod):
                if _matches(rule.on_exit_codes, name, code):
                    failed = f"Container {name} for pod {pod.key} failed with exit code {code}"
                    return FailureVerdict(rule.action, f"{failed} {where}")
        for pattern in rule.on_pod_conditions or ():
            known = condition_of(pod, pattern.type)
            if known is not None and known.status == pattern.status:
                return FailureVerdict(rule.action, f"Pod {pod.key} has condition {pattern.type} {where}")
    return FailureVerdict()


def met_success_rule(job: Job, succeeded: Collection[int]) -> int | None:
    """The number of the first rule of the success policy that is met."""
    policy = job.spec.success_policy
    for number, rule in enumerate((policy.rules if policy else None) or ()):
        if rule.succeeded_indexes is None:
            if rule.succeeded_count is not None and len(succeeded) >= rule.succeeded_count:
                return number
            continue
        asked = parse_indexes(rule.succeeded_indexes)
        n_met = len(asked & set(succeeded))
        if n_met >= (len(asked) if rule.succeeded_count is None else rule.succeeded_count):
            return number
    return None


def n_restarts(pod: Pod) -> int:
    """Of all its containers."""
    if not isinstance(pod, ReportedPod):
        return 0
    known = (*(pod.status.init_container_statuses or ()), *(pod.status.container_statuses or ()))
    return sum(status.restart_count for status in known)


def _matches(asked: PodFailureOnExitCodes, name: str, code: int) -> bool:
    if asked.container_name is not None and asked.container_name != name:
        return False
    return (code in (asked.values or ())) == (asked.operator == "In")


def _failed_codes(pod: Pod) -> Iterator[tuple[str, int]]:
    """(container, code) of those that did not end with 0; if not reported, from annotations."""
    if isinstance(pod, ReportedPod):
        for status in (*(pod.status.container_statuses or ()), *(pod.status.init_container_statuses or ())):
            ended = None if status.state is None else status.state.terminated
            if ended is not None and ended.exit_code != 0:
                yield status.name, ended.exit_code
        return
    try:
        code = exit_code(pod.metadata) or _PLAIN_CODE
    except AnnotationError:
        code = _PLAIN_CODE
    for container in pod.spec.containers:
        yield container.name, code


FIRST_WAIT_S = 10.0
LONGEST_WAIT_S = 600.0


@dataclass(slots=True)
class _Streak:
    n_failed: int = 0
    last_at_s: float = 0.0


class JobFailures:
    """Failures in a row, by the job's uid and the number of its pod. Kept in memory, as the job controller does."""

    def __init__(self) -> None:
        self._streaks: dict[str, dict[int | None, _Streak]] = {}

    def record(self, uid: str, n_failed: int, n_succeeded: int, now_s: float, index: int | None = None) -> None:
        streaks = self._streaks.setdefault(uid, {})
        if n_succeeded:
            streaks.pop(index, None)
        if n_failed:
            streak = streaks.setdefault(index, _Streak())
            streak.n_failed += n_failed
            streak.last_at_s = now_s
        if not streaks:
            del self._streaks[uid]

    def ready_at_s(self, uid: str, index: int | None = None) -> float:
        """From when on the next pod may be made."""
        streak = self._streaks.get(uid, {}).get(index)
        if streak is None:
            return 0.0
        return streak.last_at_s + min(FIRST_WAIT_S * 2.0 ** min(streak.n_failed - 1, 30), LONGEST_WAIT_S)

    def n_failed(self, uid: str, index: int) -> int:
        """As far as it is remembered."""
        streak = self._streaks.get(uid, {}).get(index)
        return 0 if streak is None else streak.n_failed

    def forget(self, uid: str) -> None:
        self._streaks.pop(uid, None)


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
