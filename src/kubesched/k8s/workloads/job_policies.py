"""What the failure of a pod means for its job, and which successes are enough: the policies in a job's spec."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.reported_pods import ReportedPod
from kubesched.k8s.model.workloads import Job, PodFailureOnExitCodes
from kubesched.k8s.workloads.index_sets import parse_indexes
from kubesched.k8s.workloads.pod_runs import AnnotationError, exit_code
from kubesched.k8s.workloads.pod_states import POD_FAILED, condition_of

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
    """(container, code) of those that did not end with 0. Where nobody reported them, annotations tell."""
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
