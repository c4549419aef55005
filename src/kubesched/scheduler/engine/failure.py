"""What happens when a pod could not be scheduled: the event, the condition, the nomination, and back to the queue.

What such a pod held, or was nominated to, is free again: others that may fit there are moved (`nomination_over`).
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from kubesched.framework.effects import PatchPodStatus, RecordEvent
from kubesched.framework.events import ASSIGNED_POD_DELETE
from kubesched.framework.groups import GroupFeatures
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.results import NominatingMode, PostFilterResult
from kubesched.framework.status import OK, Status
from kubesched.k8s.model.core import Pod, PodCondition
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.engine.cycle import Decision
from kubesched.scheduler.engine.observations import (
    AttemptFailed,
    Observers,
    PodNotRequeued,
    PodRequeued,
    PodSkipped,
    PodStatusTold,
)
from kubesched.scheduler.engine.outbox import Outbox
from kubesched.scheduler.engine.postfilter import for_event
from kubesched.scheduler.engine.profile import Profile
from kubesched.scheduler.queue import QueuedPodInfo, SchedulingQueue

UNSCHEDULABLE = "Unschedulable"
SCHEDULER_ERROR = "SchedulerError"
_NOMINATION_OVER = PostFilterResult(OK, NominatingMode.OVERRIDE)


class Told(NamedTuple):
    """What the pod's event says of a failed attempt."""

    reason: str
    """Of the condition."""
    message: str
    """Of the condition."""
    note: str
    """Of the event, which is cut to what an event holds."""
    is_probe: bool = False
    """The condition is written again with the time, even if it is the same."""


class FailureWords:
    """How failed attempts are reported. Schedulers of other versions replace the wording."""

    def of_decision(self, decision: Decision) -> Told:
        """No node was found, or something broke over it."""
        message = decision.message
        return Told(SCHEDULER_ERROR if decision.error else UNSCHEDULABLE, message, message)

    def of_status(self, pod: PodInfo, status: Status) -> Told:
        """The pod had its node already, and an extension point after that rejected it there, or failed."""
        if status.is_rejected:
            message = f"0/1 nodes are available: 1 {status.message}."
            return Told(UNSCHEDULABLE, message, message)
        return Told(SCHEDULER_ERROR, status.message, status.message)


def nomination_over(queue: SchedulingQueue, pod: Pod, node_name: str, now_s: float) -> None:
    """The pod was nominated to this node, whether that was written or not, and no longer counts there: no change of
    the pod will tell the others."""
    if pod.status.nominated_node_name != node_name:
        pod = replace(pod, status=replace(pod.status, nominated_node_name=node_name))
    place_freed(queue, pod, now_s)


def place_freed(queue: SchedulingQueue, pod: Pod, now_s: float) -> None:
    """A pod no longer counts on the node it was nominated to: those that had to leave it the place may try."""
    queue.move_all(ASSIGNED_POD_DELETE, pod, None, now_s, only=lambda info: info.priority <= pod.priority)


def place_of_assumed_freed(queue: SchedulingQueue, assumed: PodInfo, *, itself_too: bool, now_s: float) -> None:
    """What a failed binding held is free again: for others, and unless it was rejected for the pod itself."""
    only = None if itself_too else lambda info: info.uid != assumed.uid
    queue.move_all(ASSIGNED_POD_DELETE, assumed.pod, None, now_s, only=only)


class FailureHandler:
    """Ends a pod's attempt that failed, or came to nothing."""

    def __init__(self, cluster: Cluster, queue: SchedulingQueue, outbox: Outbox, observers: Observers) -> None:
        self._cluster = cluster
        self._observers = observers
        self._queue = queue
        self._outbox = outbox
        self.words = FailureWords()
        self.groups: GroupFeatures | None = None
        """What is on about pod groups, if anything is: their members are requeued in another way."""

    def is_skipped(self, info: PodInfo) -> bool:
        """Whether there is nothing to decide for the pod: it is being deleted, or already has its node."""
        is_terminating = info.pod.metadata.deletion_timestamp is not None
        if not is_terminating and not self._cluster.is_assumed(info.key):
            return False
        if self._observers.steps is not None:
            self._observers.steps(PodSkipped(info))
        if is_terminating:
            self._warn(info, f"skip schedule deleting pod: {info.key}")
        return True

    def is_still_wanted(self, queued: QueuedPodInfo) -> bool:
        """Brings a pod whose cycle paused up to date; False if it is gone or going, and its attempt over."""
        latest = self._cluster.pending.get(queued.key)
        if latest is not None and latest.uid == queued.uid:
            queued.info = latest
            if not self.is_skipped(latest):
                return True
        self._queue.done(queued.uid)
        return False

    def send_requests(self, profile: Profile) -> None:
        """What plugins ask for outside of a binding cycle, without waiting for it."""
        for plugin in profile.emitters:
            for action in plugin.take_effects():
                self._outbox.send(action)

    def no_node(
        self, queued: QueuedPodInfo, decision: Decision, now_s: float, *, nominated: PostFilterResult | None = None
    ) -> None:
        """The decision is that the pod goes nowhere. `nominated` goes before what PostFilter says."""
        self.handle(
            queued,
            told=self.words.of_decision(decision),
            is_error=bool(decision.error),
            plugins=frozenset() if decision.diagnosis is None else decision.diagnosis.unschedulable_plugins(),
            post_filter=nominated or decision.post_filter,
            now_s=now_s,
        )

    def handle(
        self,
        queued: QueuedPodInfo,
        *,
        told: Told,
        is_error: bool,
        plugins: frozenset[str],
        post_filter: PostFilterResult | None,
        now_s: float,
    ) -> None:
        """`plugins` rejected the pod; `post_filter` says what becomes of its nomination. Without, it is over."""
        observers = self._observers
        tell = observers.trouble if is_error else observers.steps
        if tell is not None:
            tell(AttemptFailed(queued.info, told.note, is_error, has_nodes=len(self._cluster.nodes) > 0))
        if not self._is_still_pending(queued):
            return
        info = queued.info
        queued.unschedulable_plugins = plugins
        queued.pending_plugins = frozenset()
        self._requeue(queued, is_error=is_error, now_s=now_s)
        if observers.steps is not None:
            where = self._queue.contents.place_of(queued)
            observers.steps(PodRequeued(info, where, queued.attempts, queued.unschedulable_plugins))
        post_filter = post_filter or _NOMINATION_OVER
        self._nominate(info, self._nominated_after(info, post_filter), now_s)
        self._report(queued, told, post_filter)

    def _nominated_after(self, info: PodInfo, post_filter: PostFilterResult) -> str:
        """The node that the pod is nominated to from now on. A nomination that is not written yet is kept only if
        somebody looked at it: where PostFilter broke, it would be kept forever, unseen."""
        if post_filter.mode is NominatingMode.OVERRIDE:
            return post_filter.node_name
        is_looked_at = post_filter.status.is_rejected
        return self._cluster.nominations.node_for(info) if is_looked_at else info.pod.status.nominated_node_name

    def put_back(self, queued: QueuedPodInfo, now_s: float) -> None:
        """The attempt failed through no fault of the pod: it is tried again, and nothing is reported."""
        if self._is_still_pending(queued):
            self._requeue(queued, is_error=True, now_s=now_s)

    def _requeue(self, queued: QueuedPodInfo, *, is_error: bool, now_s: float) -> None:
        if self.groups is None or queued.info.pod.spec.scheduling_group is None:
            self._queue.add_unschedulable(queued, is_error=is_error, now_s=now_s)
        else:
            self._queue.add_failed_member(queued, is_error=is_error, pops_early=self.groups.alpha, now_s=now_s)

    def _is_still_pending(self, queued: QueuedPodInfo) -> bool:
        """Brings the pod up to date. False if it was deleted or bound elsewhere, or replaced by another of its name."""
        latest = self._cluster.pending.get(queued.info.key)
        if latest is None or latest.uid != queued.info.uid:
            if self._observers.steps is not None:
                found = latest or self._cluster.find_pod(queued.info.key)
                self._observers.steps(PodNotRequeued(queued.info, None if found is None else found.pod))
            self._queue.done(queued.info.uid)
            return False
        queued.info = latest
        return True

    def attempt_broke(self, queued: QueuedPodInfo, status: Status, now_s: float) -> None:
        """The same for an attempt that something unforeseen ended, however far it came."""
        if self._queue.contents.find(queued.key) is not None:
            return
        assumed = self._cluster.find_pod(queued.key)
        if assumed is not None:
            self._cluster.forget(assumed)
        self.attempt_ended(queued, status, now_s)

    def attempt_ended(self, queued: QueuedPodInfo, status: Status, now_s: float, *, is_withheld: bool = False) -> None:
        """The same for one that had its node already: by a status that rejects the pod there, or an error."""
        if is_withheld:
            self.put_back(queued, now_s)
            return
        self.handle(
            queued,
            told=self.words.of_status(queued.info, status),
            is_error=not status.is_rejected,
            plugins=frozenset({status.plugin}) if status.is_rejected else frozenset(),
            post_filter=None,
            now_s=now_s,
        )

    def _nominate(self, info: PodInfo, node_name: str, now_s: float) -> None:
        nominations, status = self._cluster.nominations, info.pod.status
        if not node_name and not nominations.node_by_uid:
            return  # as mostly
        before = nominations.node_of(info)
        if node_name:
            nominations.add(info, node_name)
        else:
            nominations.remove(info)
        if before and before != node_name and not status.nominated_node_name:
            nomination_over(self._queue, info.pod, before, now_s)  # it was never written

    def _report(self, queued: QueuedPodInfo, told: Told, post_filter: PostFilterResult) -> None:
        info = queued.info
        self._warn(info, for_event(told.note))
        condition = PodCondition("PodScheduled", "False", told.reason, told.message)
        status = info.pod.status
        unchanged = not told.is_probe and condition in (status.conditions or ())
        observers = self._observers
        if observers.steps is not None:
            nominated_node = post_filter.node_name if post_filter.mode is NominatingMode.OVERRIDE else None
            observers.steps(PodStatusTold(info, condition, nominated_node))
        is_news = post_filter.node_name != status.nominated_node_name
        nominated = post_filter.node_name if post_filter.mode is NominatingMode.OVERRIDE and is_news else None
        if not unchanged or nominated is not None:
            written = None if unchanged else condition
            self._outbox.send(PatchPodStatus(info.key, info.pod.metadata.uid, written, nominated, told.is_probe))

    def _warn(self, info: PodInfo, note: str) -> None:
        self._outbox.send(
            RecordEvent(
                pod=info.key,
                uid=info.pod.metadata.uid,
                type="Warning",
                reason="FailedScheduling",
                action="Scheduling",
                note=note,
                scheduler_name=info.pod.spec.scheduler_name,
            )
        )
