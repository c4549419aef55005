"""The status of jobs: what the rules counted, and what a user wants to see besides."""

from __future__ import annotations

from collections.abc import Sequence

from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.times import print_instant
from kubesched.k8s.model.workloads import JobStatus
from kubesched.k8s.workloads.pod_states import is_active, is_healthy
from kubesched.playground.controllers.documents import Body
from kubesched.playground.controllers.status.conditions import condition, find_condition, with_condition_set


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
        "failedIndexes": counted.failed_indexes,
    }
    conditions: list[Body] = list(before.get("conditions") or ())
    for known in counted.conditions or ():
        there = find_condition(conditions, known.type)
        if there is not None and there.get("status") == known.status:
            continue
        made = condition(known.type, known.status == "True", known.reason, known.message)
        conditions = with_condition_set(conditions, {**made, "lastProbeTime": print_instant(now_s)}, now_s)
        if known.type in ("Complete", "Failed") and known.status == "True":
            status |= {"active": None, "ready": 0, "terminating": 0}
    if counted.completion_time is not None:
        status["completionTime"] = counted.completion_time
    if conditions:
        status["conditions"] = conditions
    return status


def noted_status(counted: JobStatus, newly: Body) -> Body:
    """What is written before pods are let go: should we end in between, they are counted all the same."""
    return {
        "uncountedTerminatedPods": newly,
        "completedIndexes": counted.completed_indexes or None,
        "failedIndexes": counted.failed_indexes,
    }
