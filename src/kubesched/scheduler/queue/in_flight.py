"""In-flight pods: popped and not done yet, with the events since the first of them was popped.

When an attempt fails, the events since it began are replayed for the pod: it was in no queue from which they could have
moved it, and would miss them otherwise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from kubesched.k8s.model.meta import PodKey
from kubesched.scheduler.queue.hints import ClusterChange
from kubesched.scheduler.queue.queued_pod import QueuedPodInfo

POD_POPPED = "PodPopped"
_FEW = 64


class InFlightPods:
    """By uid: a pod may be in flight while another of the same name waits already.

    The log is cut where no pod needs its beginning any more; not at every return, but when it has doubled.
    """

    __slots__ = ("_cut_at", "_first", "_log", "_pods")

    def __init__(self) -> None:
        self._pods: dict[str, QueuedPodInfo] = {}
        self._log: list[ClusterChange] = []
        self._first = 0
        self._cut_at = _FEW

    def __len__(self) -> int:
        return len(self._pods)

    def __iter__(self) -> Iterator[QueuedPodInfo]:
        return iter(self._pods.values())

    def __contains__(self, uid: str) -> bool:
        return uid in self._pods

    def get(self, uid: str) -> QueuedPodInfo | None:
        return self._pods.get(uid)

    def named(self, key: PodKey) -> list[QueuedPodInfo]:
        """More than one if a pod was deleted during its attempt, and its successor is being tried already."""
        return [queued for queued in self._pods.values() if queued.key == key]

    def start(self, queued: QueuedPodInfo) -> None:
        queued.flight_start = self._first + len(self._log)
        self._pods[queued.uid] = queued

    def end(self, uid: str) -> None:
        if self._pods.pop(uid, None) is None or not self._log:
            return
        if not self._pods:
            self._first += len(self._log)
            self._log.clear()
            self._cut_at = _FEW
        elif len(self._log) >= self._cut_at:
            # Pods start in the order in which they stand here, so the first needs the longest part of the log.
            oldest = next(iter(self._pods.values())).flight_start
            del self._log[: oldest - self._first]
            self._first = oldest
            self._cut_at = max(_FEW, 2 * len(self._log))

    def record(self, change: ClusterChange) -> None:
        if self._pods:
            self._log.append(change)

    def changes_since_start(self, uid: str) -> Sequence[ClusterChange] | None:
        """None if the pod is not in flight."""
        queued = self._pods.get(uid)
        return None if queued is None else self._log[queued.flight_start - self._first :]

    def event_counts(self) -> Counter[str]:
        """What is kept in the log, by the label of the event; and the pods."""
        counts = Counter(change.match.label for change in self._log)
        counts[POD_POPPED] = len(self._pods)
        return counts
