"""A read-only view of the queue: counts for metrics, pods for debugging.

Counts that follow from where pods are, are taken when asked for, and so cannot drift.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from kubesched.k8s.model.meta import PodKey
from kubesched.scheduler.queue.hints import HintFailure, HintTable
from kubesched.scheduler.queue.in_flight import InFlightPods
from kubesched.scheduler.queue.queued_pod import QueuedPodInfo
from kubesched.scheduler.queue.sub_queues import ACTIVE, BACKOFF, GATED, UNSCHEDULABLE, SubQueues


class QueueContents:
    """A view: it shows what the queue holds now."""

    def __init__(self, pods: SubQueues, in_flight: InFlightPods, hints: HintTable) -> None:
        self._pods = pods
        self._in_flight = in_flight
        self._hints = hints

    # -- pods ----------------------------------------------------------------------------------------------------------

    @property
    def active(self) -> list[QueuedPodInfo]:
        """In the order in which they would be popped."""
        return list(self._pods.active)

    @property
    def backoff(self) -> list[QueuedPodInfo]:
        """Rejected ones in the order in which they would be popped early, then those that failed by an error."""
        return list(self._pods.backoff)

    @property
    def unschedulable(self) -> list[QueuedPodInfo]:
        return [queued for queued in self._pods.unschedulable if not queued.is_gated]

    @property
    def gated(self) -> list[QueuedPodInfo]:
        return [queued for queued in self._pods.unschedulable if queued.is_gated]

    @property
    def in_flight(self) -> list[QueuedPodInfo]:
        return list(self._in_flight)

    def find(self, key: PodKey) -> QueuedPodInfo | None:
        """A pod that waits, wherever; one in flight does not."""
        return self._pods.by_key.get(key)

    def place_of(self, queued: QueuedPodInfo) -> str:
        """The sub-queue of a pod that waits."""
        if queued.heap is None:
            return UNSCHEDULABLE
        return ACTIVE if queued.heap is self._pods.active else BACKOFF

    def __len__(self) -> int:
        """How many wait."""
        return len(self._pods.by_key)

    def lengths(self) -> tuple[int, int, int]:
        """How many wait in the active queue, in backoff, and as unschedulable, gated ones among these."""
        return len(self._pods.active), len(self._pods.backoff), len(self._pods.unschedulable)

    def __str__(self) -> str:
        active, backoff, unschedulable = self.lengths()
        return f"activeQ:{active}; backoffQ:{backoff}; unschedulablePods:{unschedulable}"

    # -- metrics -------------------------------------------------------------------------------------------------------

    def pending_pods(self) -> dict[str, int]:
        """`pending_pods` by queue."""
        gated = sum(1 for queued in self._pods.unschedulable if queued.is_gated)
        return {
            ACTIVE: len(self._pods.active),
            BACKOFF: len(self._pods.backoff),
            UNSCHEDULABLE: len(self._pods.unschedulable) - gated,
            GATED: gated,
        }

    def incoming_pods(self) -> dict[tuple[str, str], int]:
        """`queue_incoming_pods_total` by (queue, event)."""
        return {
            (queue, event): count for queue, counts in self._pods.incoming.items() for event, count in counts.items()
        }

    def unschedulable_pods(self) -> Counter[tuple[str, str]]:
        """`unschedulable_pods` by (plugin, profile): pods that the plugin rejected at their last attempt."""
        waiting = self._pods.by_key.values()
        return Counter(
            (plugin, queued.info.pod.spec.scheduler_name) for queued in waiting for plugin in queued.rejectors
        )

    def in_flight_events(self) -> Counter[str]:
        """`inflight_events` by event."""
        return self._in_flight.event_counts()

    def hint_failures(self) -> Sequence[HintFailure]:
        """The last hints that broke."""
        return tuple(self._hints.failures)
