"""The status of jobs: what the rules counted, and what a user wants to see besides."""

from __future__ import annotations

from collections.abc import Sequence

from kubesched.controllers.documents import Body
from kubesched.controllers.status.conditions import condition, find_condition, with_condition_set
from kubesched.expansion.pod_states import is_active, is_healthy
from kubesched.model.core import Pod
from kubesched.model.times import print_instant
from kubesched.model.workloads import JobStatus

_MESSAGES = {
    "CompletionsReached": "Reached expected number of succeeded pods",
    "BackoffLimitExceeded": "Job has reached the specified backoff limit",
    "DeadlineExceeded": "Job was active longer than specified deadline",
}
_FORERUNNER = {"Complete": "SuccessCriteriaMet", "Failed": "FailureTarget"}
"""The condition that comes before the one that ends a job."""


def job_status(counted: JobStatus, pods: Sequence[Pod], before: Body, now_s: float) -> Body:
    """`counted` is what the rules made of the status; `pods` are those of the job."""
    active = [pod for pod in pods if is_active(pod)]
    status: Body = {
        "succeeded": counted.succeeded or None,
        "failed": counted.failed or None,
        "active": len(active) or None,
        "ready": sum(map(is_healthy, active)),
        "terminating": sum(1 for pod in pods if pod.is_terminating and not pod.is_terminal),
        "uncountedTerminatedPods": {},
        "startTime": counted.start_time,
        "completedIndexes": counted.completed_indexes or None,
    }
    conditions: list[Body] = list(before.get("conditions") or ())
    for ended in counted.conditions or ():
        if find_condition(conditions, ended.type) is not None:
            continue
        message = _MESSAGES.get(ended.reason, ended.reason)
        for kind in (_FORERUNNER[ended.type], ended.type):
            made = {**condition(kind, True, ended.reason, message), "lastProbeTime": print_instant(now_s)}
            conditions = with_condition_set(conditions, made, now_s)
        status |= {"active": None, "ready": 0, "terminating": 0}
        if ended.type == "Complete":
            status["completionTime"] = print_instant(now_s)
    if conditions:
        status["conditions"] = conditions
    return status
