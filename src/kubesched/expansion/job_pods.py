"""How the pods of a job look: names, labels, and the number each has in an indexed job."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count, groupby

from kubesched.expansion.names import NameSource
from kubesched.expansion.templates import EMPTY_TEMPLATE, pod_from_template
from kubesched.model.core import Pod
from kubesched.model.workloads import Job

INDEXED = "Indexed"
INDEX_KEY = "batch.kubernetes.io/job-completion-index"
JOB_FINALIZER = "batch.kubernetes.io/job-tracking"
"""Keeps a pod of a job until it is counted."""


def make_job_pod(job: Job, index: int | None, names: NameSource) -> Pod:
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
        prefix = f"{job.name}-{index}-"
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
    return int(text) if text.isdecimal() else None


def parse_indexes(text: str) -> set[int]:
    """`1,3-5,7`, as a job's status has it."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


def print_indexes(indexes: Iterable[int]) -> str:
    in_order = sorted(indexes)
    parts = []
    for _, run in groupby(zip(in_order, count(), strict=False), key=lambda pair: pair[0] - pair[1]):
        numbers = [number for number, _ in run]
        parts.append(str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]}-{numbers[-1]}")
    return ",".join(parts)
