"""The scheduling queue: which pod is tried next, and when a pod that failed is tried again.

```
      add ──▶ active ──pop──▶ in flight ──done──▶ (bound)
               ▲  ▲ ▲             │ add_unschedulable
     backoff over │ └── gates ──┐ ▼
               │  └──────────── unschedulable, gated
            backoff ◀── an event that a hint answers with QUEUE
```

A state machine: no clock, no input or output; the caller hands in the time. What happens to objects comes as
`ClusterEvent`s (`changes` makes them). The rules are kube-scheduler's with queueing hints. `QueueContents` is a
read-only view: counts for metrics, pods for debugging.

Next: `sub_queues` for where pods wait and for events during an attempt, `hints` for what an event means.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import floor, inf
from typing import ClassVar

from kubesched.framework.events import (
    FORCE_ACTIVATE,
    PLUGINS_RELOADED,
    UNSCHEDULABLE_TIMEOUT,
    UNSCHEDULED_POD_ADD,
    UNSCHEDULED_POD_UPDATE,
    ClusterEvent,
)
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import Status
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import PodKey
from kubesched.k8s.model.scheduling import AnyGroup
from kubesched.scheduler.queue.changes import pod_events
from kubesched.scheduler.queue.hints import ClusterChange, HintFailure, HintTable, MeasuredHint, Requeue
from kubesched.scheduler.queue.profile import QueueProfile, QueueSettings
from kubesched.scheduler.queue.queued_pod import NO_PLUGINS, QueuedPodInfo
from kubesched.scheduler.queue.sub_queues import (
    ACTIVE,
    BACKOFF,
    GATED,
    UNSCHEDULABLE,
    Held,
    InFlightPods,
    Moved,
    SubQueues,
)

SCHEDULE_ATTEMPT_FAILURE = "ScheduleAttemptFailure"
BACKOFF_COMPLETE = "BackoffComplete"
POP_FROM_BACKOFF = "PopFromBackoffQ"
LEFTOVER_CHECK_S = 30.0
"""How often pods that are unschedulable for too long are flushed."""

_ADDED = UNSCHEDULED_POD_ADD.label
_UPDATED = UNSCHEDULED_POD_UPDATE.label


class SchedulingQueue:
    """Pods whose scheduler name has no profile are ignored."""

    sub_queues_type: ClassVar[type[SubQueues]] = SubQueues
    hints_type: ClassVar[type[HintTable]] = HintTable

    def __init__(
        self,
        settings: QueueSettings,
        profiles: Mapping[str, QueueProfile],
        measured_hint: MeasuredHint | None = None,
    ) -> None:
        self._settings = settings
        self._profiles = profiles
        self._pods = self.sub_queues_type(settings)
        self._in_flight = InFlightPods()
        self._hints = self.hints_type({name: profile.events for name, profile in profiles.items()}, measured_hint)
        self._leftovers_checked_at_s = -inf
        self.contents = QueueContents(self._pods, self._in_flight, self._hints)
        """To look at: counts for metrics, pods for debugging."""

    def listen(self, moved: Moved | None, held: Held | None, hint_failed: Callable[[HintFailure], None] | None) -> None:
        """Notified of moves between sub-queues, of pods that are gated, and of hints that fail."""
        self._pods.moved = moved
        self._pods.held = held
        self._hints.failed = hint_failed

    # -- facts about unscheduled pods ----------------------------------------------------------------------------------

    def add(self, info: PodInfo, now_s: float) -> None:
        """A pod without a node was added."""
        profile = self._profiles.get(info.pod.spec.scheduler_name)
        if profile is None:
            return
        queued = QueuedPodInfo(info, profile, now_s)
        known = self._pods.by_key.get(queued.key)
        if queued.uid in self._in_flight.by_uid or (known is not None and known.uid == queued.uid):
            self.update(None, info, now_s)
            return
        if known is not None:  # of the same name, and gone: there can be only one
            self._pods.remove(queued.key)
        self._pods.to_active(queued, _ADDED, now_s)

    def update(self, old: Pod | None, info: PodInfo, now_s: float) -> None:
        """A pod without a node changed. Without `old`, it changed from what the queue knows."""
        profile = self._profiles.get(info.pod.spec.scheduler_name)
        if profile is None:
            return
        if self.update_in_flight(old, info):
            return
        queued = self._pods.by_key.get(info.key)
        if queued is None:
            self._pods.to_active(QueuedPodInfo(info, profile, now_s), _UPDATED, now_s)
            return
        before = old or queued.info.pod
        queued.info = info
        queued.uid = info.uid
        if queued.hold is not None:
            queued.hold = None
            self._pods.unschedulable.call(queued.key)
        if queued.heap is not None:
            self._pods.reorder(queued)
        else:
            self._pods.unschedulable.changed(queued)
            self._reconsider(queued, before, info.pod, now_s)

    def update_in_flight(self, old: Pod | None, info: PodInfo) -> bool:
        """A pod that is being tried changed: what that means is seen when it comes back. False if it is not."""
        flying = self._in_flight.by_uid.get(info.uid)
        if flying is None:
            return False
        before = old or flying.info.pod
        for event in pod_events(before, info.pod):
            self._record(event, before, info.pod)
        return True

    def delete(self, info: PodInfo) -> None:
        """A pod is gone, or has a node. One that is in flight stays so until the caller is done with it."""
        self._pods.remove(info.key)

    # -- attempts ------------------------------------------------------------------------------------------------------

    def pop(self, now_s: float) -> QueuedPodInfo | None:
        """The pod to try now, which is in flight from here on; None if there is none to try."""
        queued = self._pods.pop()
        if queued is None and self._settings.pop_from_backoff:
            queued = self._pods.pop_early(POP_FROM_BACKOFF, now_s)
        if queued is None:
            return None
        queued.attempts += 1
        self._in_flight.start(queued)
        return queued

    def peek(self) -> QueuedPodInfo | None:
        """The pod that `pop` would give; None if that is one that still backs off, or none."""
        return self._pods.active.peek()

    def pop_specific(self, key: PodKey, now_s: float) -> QueuedPodInfo | None:
        """This pod, wherever it waits, as if it had been activated and were next; None if it does not wait, or is held
        back."""
        queued = self._pods.by_key.get(key)
        if queued is None:
            return None
        if queued.heap is not self._pods.active:
            self.activate((key,), now_s)
        if queued.heap is not self._pods.active:
            return None
        self._pods.remove(key)
        queued.attempts += 1
        self._in_flight.start(queued)
        return queued

    @property
    def n_in_flight(self) -> int:
        return len(self._in_flight)

    def done(self, uid: str) -> None:
        """The attempt needs the queue no more: the pod will be bound, or is gone."""
        self._in_flight.end(uid)

    def add_unschedulable(self, queued: QueuedPodInfo, *, is_error: bool, now_s: float) -> None:
        """The attempt failed. The caller has set the plugins that rejected the pod; after an error, there are none."""
        if self._attempt_failed(queued, is_error, now_s):
            how = self._judge_flight(queued)
            self._in_flight.end(queued.uid)
            self._pods.requeue(queued, how, SCHEDULE_ATTEMPT_FAILURE, now_s)

    def add_failed_member(self, queued: QueuedPodInfo, *, is_error: bool, pops_early: bool, now_s: float) -> None:
        """The same for a member of a pod group: it is tried again with its group after its backoff, whatever changes;
        or, if it `pops_early`, when there is nothing else to do."""
        if self._attempt_failed(queued, is_error, now_s):
            queued.pops_early = pops_early
            self._in_flight.end(queued.uid)
            self._pods.requeue(queued, Requeue.AFTER_BACKOFF, SCHEDULE_ATTEMPT_FAILURE, now_s)

    def _attempt_failed(self, queued: QueuedPodInfo, is_error: bool, now_s: float) -> bool:
        """Counts the failure; False if the pod does not come back."""
        if is_error:
            queued.unschedulable_plugins = queued.pending_plugins = NO_PLUGINS
        if queued.key in self._pods.by_key:  # another pod of that name came in the meantime
            self._in_flight.end(queued.uid)
            return False
        if queued.is_rejected:
            queued.unschedulable_count += 1
            queued.consecutive_errors = 0
        else:
            queued.consecutive_errors += 1
        queued.queued_at_s = now_s
        queued.backoff_until_s = self._pods.backoff.expiry_s(queued)
        queued.flushed_at_s = -inf
        queued.was_flushed = False
        return True

    def activate(self, keys: Iterable[PodKey], now_s: float) -> None:
        """A plugin wants these pods tried again, backoff or not. Those in flight will be when they come back."""
        for key in keys:
            queued = self._pods.by_key.get(key)
            if queued is None:
                for flying in self._in_flight.named(key):
                    self._record(FORCE_ACTIVATE, None, flying.info.pod)
            elif queued.heap is not self._pods.active:
                from_backoff = queued.heap is not None
                self._pods.to_active(queued, FORCE_ACTIVATE.label, now_s, from_backoff=from_backoff)

    def reconsider_gated(self, keys: Iterable[PodKey], now_s: float) -> None:
        """What held these pods back may be over. Those that are not gated stay where they are."""
        for key in keys:
            queued = self._pods.by_key.get(key)
            if queued is not None and queued.is_gated:
                self._pods.unschedulable.remove(key)
                self._pods.requeue(queued, Requeue.AFTER_BACKOFF, FORCE_ACTIVATE.label, now_s)

    def is_held_with(self, key: PodKey, together: str) -> bool:
        """Whether the pod is held back with all others that are held with this word."""
        queued = self._pods.by_key.get(key)
        return queued is not None and queued.hold is not None and queued.hold.together == together

    def reconsider_held(self, keys: Iterable[PodKey], event: ClusterEvent, now_s: float) -> None:
        """Pods that are held back until they are called: those that are not any more are tried again. Of those that
        are held together, one is asked."""
        lasting: dict[str, bool] = {}
        label = event.label
        for key in keys:
            queued = self._pods.by_key.get(key)
            if queued is None or not queued.is_gated:
                continue
            hold = queued.hold
            if hold is not None:
                word = hold.together
                lasts = lasting.get(word) if word else None
                if lasts is None:
                    lasts = lasting[word] = hold.lasts()
                if lasts:
                    continue
                queued.gating_plugin = ""  # which was asked just now
            self._pods.unschedulable.remove(key)
            self._pods.requeue(queued, Requeue.AFTER_BACKOFF, label, now_s)

    def group_attempted(self, group: str, status: Status, now_s: float) -> None:
        """An attempt of a pod group is over, and came to this. Each of its pods comes back by itself."""

    def call_group(self, group: str, keys: Iterable[PodKey], event: ClusterEvent, now_s: float) -> None:
        """Something came that may make the group complete, of which these pods have no node."""
        self.reconsider_held(keys, event, now_s)

    def group_gone(self, group: AnyGroup, now_s: float) -> None:
        """A group is gone. What that means for its pods they learn when they are to enter the queue again."""

    def hold_may_be_over(self, keys: Iterable[PodKey]) -> None:
        """Pods that were held back until they are called: the next change asks them."""
        for key in keys:
            self._pods.unschedulable.call(key)

    # -- facts about everything else -----------------------------------------------------------------------------------

    def move_all(
        self,
        event: ClusterEvent,
        old: object | None,
        new: object | None,
        now_s: float,
        *,
        only: Callable[[PodInfo], bool] | None = None,
    ) -> None:
        """Something changed: moves the pods for which it is worth another attempt. With `only`, of the pods that wait
        none but these; those in flight see the change in any case."""
        if not self._pods.unschedulable.by_key and not self._in_flight.by_uid:
            return
        match = self._hints.match(event)
        if not match.is_of_interest:
            return
        pool = self._pods.unschedulable
        if not pool.by_plugin and not self._in_flight.by_uid and not match.is_wildcard:
            return  # who waits is held until it is called
        change = ClusterChange(match, old, new)
        waiting = list(pool) if match.is_wildcard else pool.concerned(change)
        if only is not None:
            waiting = [queued for queued in waiting if only(queued.info)]
        if waiting:
            self._move(waiting, change, now_s)
        self._in_flight.record(change)

    def on_assigned_pod(self, old: Pod | None, new: Pod | None, now_s: float) -> None:
        """A pod with a node came (no `old`, or one without a node), changed or went (no `new`)."""
        if not self._pods.unschedulable.by_plugin and not self._in_flight.by_uid:
            return
        if old is not None and not old.spec.node_name:
            old = None
        for event in pod_events(old, new):
            self.move_all(event, old, new, now_s)

    # -- time ----------------------------------------------------------------------------------------------------------

    def flush(self, now_s: float) -> None:
        """Moves pods whose backoff is over, at every full second; and those that are unschedulable for too long, at
        every full half minute. How often it is called in between makes no difference."""
        self._pods.backoff_completed(BACKOFF_COMPLETE, now_s)
        check_s = floor(now_s / LEFTOVER_CHECK_S) * LEFTOVER_CHECK_S
        if check_s <= self._leftovers_checked_at_s:
            return
        self._leftovers_checked_at_s = check_s
        left = self._pods.unschedulable.waiting_longer_than(self._settings.max_unschedulable_s, check_s)
        for queued in left:
            queued.was_flushed = True
            queued.flushed_at_s = check_s
        if left:
            timeout = ClusterChange(self._hints.match(UNSCHEDULABLE_TIMEOUT), None, None)
            self._move(left, timeout, now_s)
            self._in_flight.record(timeout)

    def next_deadline_s(self) -> float | None:
        """When `flush` may have something to do, not later; None if it never will."""
        backoff_s = self._pods.backoff.next_deadline_s()
        if not self._pods.unschedulable:
            return backoff_s
        left_from_s = self._pods.unschedulable.oldest_s + self._settings.max_unschedulable_s
        check_s = (floor(left_from_s / LEFTOVER_CHECK_S) + 1) * LEFTOVER_CHECK_S
        check_s = max(check_s, self._leftovers_checked_at_s + LEFTOVER_CHECK_S)
        return check_s if backoff_s is None else min(check_s, backoff_s)

    # -- other plugins -------------------------------------------------------------------------------------------------

    def take_profiles(self, profiles: Mapping[str, QueueProfile], now_s: float) -> None:
        """Plugins were replaced: pods are sorted again, and all that wait for a change deserve another attempt."""
        self._profiles = profiles
        self._hints.register({name: profile.events for name, profile in profiles.items()})
        for queued in (*self._pods.by_key.values(), *self._in_flight):
            queued.profile = profiles[queued.info.pod.spec.scheduler_name]
            queued.hold = None
            if queued.heap is not None:
                self._pods.reorder(queued)
        self.move_all(PLUGINS_RELOADED, None, None, now_s)

    # -- what a change means -------------------------------------------------------------------------------------------

    def _move(self, waiting: Sequence[QueuedPodInfo], change: ClusterChange, now_s: float) -> None:
        match = change.match
        is_wildcard, plugins = match.is_wildcard, match.plugins
        judge = self._hints.judge_all(change)
        for queued in waiting:
            hold = queued.hold
            if hold is not None and hold.lasts():
                continue
            gate = queued.gating_plugin
            if gate and not is_wildcard and gate not in plugins:
                continue  # who holds it back does not care
            if gate and queued.is_still_gated:
                continue  # asked before the hints, which cost more
            how = judge(queued)
            if how is not Requeue.SKIP:
                self._pods.unschedulable.remove(queued.key)
                self._pods.requeue(queued, how, match.label, now_s)

    def _reconsider(self, queued: QueuedPodInfo, before: Pod, after: Pod, now_s: float) -> None:
        """The pod, which waits for a change, changed itself."""
        for event in pod_events(before, after):
            change = ClusterChange(self._hints.match(event), before, after)
            how = self._hints.judge(queued, change)
            if how is not Requeue.SKIP:
                self._pods.requeue(queued, how, change.match.label, now_s)
                if queued.heap is not None:
                    return

    def _judge_flight(self, queued: QueuedPodInfo) -> Requeue:
        """What happened while the pod was tried, taken together."""
        changes = self._in_flight.changes_since_start(queued.uid)
        if not queued.is_rejected or changes is None:
            return Requeue.AFTER_BACKOFF
        best = Requeue.SKIP
        for change in changes:
            how = self._hints.judge(queued, change)
            if how is Requeue.IMMEDIATELY:
                return how
            if how is Requeue.AFTER_BACKOFF:
                best = how
                if not queued.pending_plugins:
                    return best
        return best

    def _record(self, event: ClusterEvent, old: object | None, new: object | None) -> None:
        match = self._hints.match(event)
        if match.is_of_interest:
            self._in_flight.record(ClusterChange(match, old, new))


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
