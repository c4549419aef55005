"""Where a pod can be while it waits, and how it gets from one place to another: active, backoff, unschedulable.

A pod is in one place only. On its way to active or backoff it must pass the gates (preEnqueue); one that does not
goes to the unschedulable ones, as gated.

Next: `scheduling_queue` decides when a pod moves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from kubesched.framework.holds import Hold
from kubesched.framework.status import OK, Status
from kubesched.k8s.model.meta import PodKey
from kubesched.scheduler.queue.backoff import BackoffQueue
from kubesched.scheduler.queue.heap import PodHeap
from kubesched.scheduler.queue.hints import Requeue
from kubesched.scheduler.queue.profile import QueueSettings
from kubesched.scheduler.queue.queued_pod import QueuedPodInfo
from kubesched.scheduler.queue.unschedulable import UnschedulablePods

ACTIVE = "active"
BACKOFF = "backoff"
UNSCHEDULABLE = "unschedulable"
GATED = "gated"


Moved = Callable[[QueuedPodInfo, str, str], None]
"""(pod, sub-queue, event) -> None: the pod came there."""

Held = Callable[[QueuedPodInfo, Status], None]
"""(pod, what a PreEnqueue plugin says) -> None: the pod is gated."""


class SubQueues:
    """`event` is why a pod moves: kube-scheduler's label for it."""

    def __init__(self, settings: QueueSettings) -> None:
        self._gates_before_backoff = settings.pop_from_backoff
        self.by_key: dict[PodKey, QueuedPodInfo] = {}
        self.active = PodHeap()
        self.backoff = BackoffQueue(settings)
        self.unschedulable = UnschedulablePods()
        self.incoming: dict[str, Counter[str]] = {queue: Counter() for queue in (ACTIVE, BACKOFF, UNSCHEDULABLE)}
        """How many pods came into which sub-queue, by event."""
        self.moved: Moved | None = None
        self.held: Held | None = None

    # -- ways in -------------------------------------------------------------------------------------------------------

    def requeue(self, queued: QueuedPodInfo, how: Requeue, event: str, now_s: float) -> None:
        if how is Requeue.SKIP:
            self._park(queued, event)
        elif how is Requeue.AFTER_BACKOFF and self.backoff.is_backing_off(queued, now_s):
            self._to_backoff(queued, event)
        else:
            self.to_active(queued, event, now_s)

    def to_active(self, queued: QueuedPodInfo, event: str, now_s: float, *, from_backoff: bool = False) -> None:
        has_passed = from_backoff and self._gates_before_backoff
        if not has_passed and not self._passes_gates(queued, event):
            return
        if queued.initial_attempt_at_s is None:
            queued.initial_attempt_at_s = now_s
        if queued.key in self.by_key:
            self._leave(queued)
        self.active.push(queued, queued.profile.sort_key(queued))
        self.by_key[queued.key] = queued
        self.incoming[ACTIVE][event] += 1
        if self.moved is not None:
            self.moved(queued, ACTIVE, event)

    def backoff_completed(self, event: str, now_s: float) -> None:
        """Moves those whose backoff is over."""
        for queued in self.backoff.pop_completed(now_s):
            self.to_active(queued, event, now_s, from_backoff=True)

    def _to_backoff(self, queued: QueuedPodInfo, event: str) -> None:
        if self._gates_before_backoff and not self._passes_gates(queued, event):
            return
        if queued.key in self.by_key:
            self._leave(queued)
        self.backoff.push(queued, queued.profile.sort_key(queued))
        self.by_key[queued.key] = queued
        self.incoming[BACKOFF][event] += 1
        if self.moved is not None:
            self.moved(queued, BACKOFF, event)

    def _park(self, queued: QueuedPodInfo, event: str) -> None:
        if queued.heap is not None:
            queued.heap.remove(queued)
        self.by_key[queued.key] = queued
        if self.unschedulable.put(queued):
            self.incoming[UNSCHEDULABLE][event] += 1
        if self.moved is not None:
            self.moved(queued, UNSCHEDULABLE, event)

    def _passes_gates(self, queued: QueuedPodInfo, event: str) -> bool:
        profile = queued.profile
        gate = profile.gates.get(queued.gating_plugin) if queued.gating_plugin else None
        status = OK if gate is None else gate(queued.info)
        if status is OK or status.is_success:
            status = profile.pre_enqueue(queued.info)
            if status is OK or status.is_success:
                queued.gating_plugin = ""
                queued.hold = None
                return True
        queued.gating_plugin = status.plugin or queued.gating_plugin
        queued.hold = status if isinstance(status, Hold) else None
        queued.unschedulable_plugins |= {queued.gating_plugin}
        queued.was_flushed = False
        if self.held is not None:
            self.held(queued, status)
        self._park(queued, event)
        return False

    # -- in place, and ways out ----------------------------------------------------------------------------------------

    def reorder(self, queued: QueuedPodInfo) -> None:
        """The pod, which is active or backing off, changed."""
        sort_key = queued.profile.sort_key(queued)
        if queued.heap is self.active:
            self.active.reorder(queued, sort_key)
        else:
            self.backoff.reorder(queued, sort_key)

    def pop(self) -> QueuedPodInfo | None:
        queued = self.active.pop()
        if queued is not None:
            del self.by_key[queued.key]
        return queued

    def pop_early(self, event: str) -> QueuedPodInfo | None:
        """From those that still back off."""
        queued = self.backoff.pop_early()
        if queued is not None:
            del self.by_key[queued.key]
            self.incoming[ACTIVE][event] += 1
        return queued

    def remove(self, key: PodKey) -> None:
        queued = self.by_key.pop(key, None)
        if queued is not None:
            self._leave(queued)

    def _leave(self, queued: QueuedPodInfo) -> None:
        if queued.heap is not None:
            queued.heap.remove(queued)
        else:
            self.unschedulable.remove(queued.key)
