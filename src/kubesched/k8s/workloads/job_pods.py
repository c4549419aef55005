"""How the pods of a job look: names, labels, and the number each has in an indexed job."""

from __future__ import annotations

from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.workloads import Job
from kubesched.k8s.workloads.names import NameSource
from kubesched.k8s.workloads.templates import EMPTY_TEMPLATE, pod_from_template

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
