"""PrioritySort: the order of the queue."""

from __future__ import annotations

from dataclasses import dataclass

from small_clusters import NO_HANDLE, pod_info

from kubesched.framework import PodInfo
from kubesched.scheduler.plugins.priority_sort import PrioritySort


@dataclass(frozen=True)
class Waiting:
    info: PodInfo
    queued_at_s: float


def test_higher_priority_comes_first_and_then_who_waited_longest() -> None:
    queue = [
        Waiting(pod_info("unset-late", priority=None), 5.0),
        Waiting(pod_info("high-late", priority=10), 4.0),
        Waiting(pod_info("negative", priority=-1), 0.0),
        Waiting(pod_info("high-early", priority=10), 3.0),
        Waiting(pod_info("zero-early", priority=0), 1.0),
    ]
    ordered = sorted(queue, key=PrioritySort(None, NO_HANDLE).sort_key)
    assert [w.info.name for w in ordered] == ["high-early", "high-late", "zero-early", "unset-late", "negative"]
