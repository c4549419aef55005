"""Preemption, carried out: victims are evicted while the preemptor waits outside the queue.

All victims but the last are evicted at once, the last one when these are done. Until then, and until all of them are
seen to leave, the preemptor is *preempting* and not let into the queue again, so that it does not preempt twice; it is
called when that is over. If an eviction fails, it is let in at once. A victim that waits for a permit, or for its
volumes, is rejected there instead of deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kubesched.framework.effects import Done, EvictPod, Failed, PatchPodStatus, RecordEvent
from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.model.core import PodCondition
from kubesched.k8s.model.meta import PodKey
from kubesched.k8s.model.scheduling import AnyGroup, CompositePodGroup
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.engine.bind import Bindings
from kubesched.scheduler.engine.observations import (
    EvictionFailed,
    Observers,
    PreemptionEnded,
    PreemptionStarted,
    VictimEvicted,
    VictimRejected,
)
from kubesched.scheduler.engine.outbox import Outbox
from kubesched.scheduler.engine.preemption.candidates import Preemption
from kubesched.scheduler.engine.preemption.group_victims import GroupPreemption
from kubesched.scheduler.queue import SchedulingQueue

if TYPE_CHECKING:
    from kubesched.scheduler.engine.metrics.loop_metrics import LoopMetrics

VictimNote = Callable[[PodInfo, str], str]
"""(preemptor, the node) -> what a victim there is told."""

_PLUGIN = "DefaultPreemption"
_WHOLE_CLUSTER = "cluster"
"""Stands for the node where victims of a group are."""


def preempted_by(preemptor: PodInfo, node_name: str) -> str:
    return f"Preempted by pod {preemptor.pod.metadata.uid} on node {node_name}"


class Preemptor(NamedTuple):
    """For whom pods are evicted: a pod, or a group, whose pods wait for it together."""

    pod: PodInfo
    """The pod, or one of the group's."""
    uid: str
    """The pod's, or the group's."""
    group: AnyGroup | None = None

    @property
    def kind(self) -> str:
        """As victims are told."""
        if self.group is None:
            return "pod"
        return "compositepodgroup" if isinstance(self.group, CompositePodGroup) else "podgroup"


class Evictions:
    """Evictions under way, by the uid of the preemptor: a pod's, or a group's."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._placed = cluster.placed
        self.under_way: dict[str, int] = {}
        """How many must be answered before the last victim is asked to go."""
        self.last_victim: dict[str, PodKey] = {}
        self.leaving: dict[str, list[PodInfo]] = {}
        """Victims that were evicted, and that the informer may not have shown as leaving yet."""

    def is_preempting(self, uid: str) -> bool:
        """Whether victims still have to be asked to go, or are not yet seen to. The last one has gone before its
        eviction is answered, when the informer is faster: then nothing is left to wait for."""
        last = self.last_victim.get(uid)
        if last is not None:
            known = self._placed.get(last) or self._cluster.pending.get(last)
            return known is not None and not known.pod.is_terminating
        return uid in self.under_way or (uid in self.leaving and self._is_awaited(uid))

    def _is_awaited(self, uid: str) -> bool:
        for victim in self.leaving[uid]:
            known = self._placed.get(victim.key)
            if known is not None and known.uid == victim.uid and not known.pod.is_terminating:
                return True
        del self.leaving[uid]
        return False

    def forget(self, uid: str) -> None:
        """The preemptor is gone."""
        self.under_way.pop(uid, None)
        self.last_victim.pop(uid, None)
        self.leaving.pop(uid, None)


class PreemptionExecutor:
    """Has victims evicted, and calls their preemptors when that is over."""

    def __init__(
        self,
        cluster: Cluster,
        queue: SchedulingQueue,
        outbox: Outbox,
        bindings: Bindings,
        evictions: Evictions,
        metrics: LoopMetrics,
        observers: Observers,
    ) -> None:
        self._cluster = cluster
        self._placed = cluster.placed
        self._queue = queue
        self._outbox = outbox
        self._bindings = bindings
        self._evictions = evictions
        self._metrics = metrics
        self.note: VictimNote = preempted_by
        """What victims are told: in today's words, unless somebody puts others in their place."""
        self._observers = observers
        self._started_s: dict[str, float] = {}
        self._awaited_by: dict[PodKey, list[Preemptor]] = {}
        """By victim, its preemptors."""

    def start(self, pod: PodInfo, preemption: Preemption) -> None:
        self._clear_lower_nominations(pod, preemption.node_name)
        self._start(Preemptor(pod, pod.uid), preemption.victims, preemption.node_name)

    def start_for_group(self, pod: PodInfo, preemption: GroupPreemption) -> None:
        """The same for a group that the pod belongs to."""
        group = preemption.pod_group
        self._start(Preemptor(pod, group.metadata.uid or group.group_key, group), preemption.victims, _WHOLE_CLUSTER)

    def _start(self, preemptor: Preemptor, all_victims: Sequence[PodInfo], node_name: str) -> None:
        victims = [victim for victim in all_victims if not victim.pod.is_terminating]
        victims = [victim for victim in victims if not self._was_rejected(preemptor, victim, node_name)]
        if self._observers.steps is not None:
            self._observers.steps(PreemptionStarted(preemptor.pod, node_name, len(all_victims), len(victims)))
        if victims:
            for victim in victims:
                self._awaited_by.setdefault(victim.key, []).append(preemptor)
            self._started_s[preemptor.uid] = self._metrics.preemption_started(len(all_victims))
            self._evict(preemptor, victims[:-1], victims[-1], node_name)

    def pod_leaves(self, key: PodKey, now_s: float) -> None:
        """A pod, perhaps a victim, is gone, not where it was, or about to go."""
        waiting = self._awaited_by.get(key)
        if waiting is None:
            return
        is_gone = key not in self._placed and key not in self._cluster.pending
        if is_gone:
            del self._awaited_by[key]
        free: list[PodKey] = []
        for preemptor in waiting:
            if not self._evictions.is_preempting(preemptor.uid):
                free += self._waiting_pods(preemptor)
        if not free:
            return
        if is_gone:
            self._queue.reconsider_gated(free, now_s)  # what wanted to move them meanwhile may not come again
        else:
            self._queue.hold_may_be_over(free)

    def _waiting_pods(self, preemptor: Preemptor) -> list[PodKey]:
        """Those that wait for the evictions: the preemptor, or all pods of its group without a node."""
        if preemptor.group is None:
            return [preemptor.pod.key]
        members = self._cluster.group_members(preemptor.group.group_key)
        return [] if members is None else [info.key for info in members.unscheduled_pods()]

    def _call_if_free(self, preemptor: Preemptor) -> None:
        if not self._evictions.is_preempting(preemptor.uid):
            self._queue.hold_may_be_over(self._waiting_pods(preemptor))

    def forget(self, uid: str) -> None:
        """The preemptor is gone."""
        self._evictions.forget(uid)
        self._started_s.pop(uid, None)

    def _evict(self, preemptor: Preemptor, first: list[PodInfo], last: PodInfo, node_name: str) -> None:
        evictions, uid = self._evictions, preemptor.uid
        name = preemptor.pod.spec.scheduler_name
        message = f"{name}: preempting to accommodate a higher priority {preemptor.kind}"
        condition = PodCondition("DisruptionTarget", "True", "PreemptionByScheduler", message)
        evictions.under_way[uid] = len(first)

        def first_answered(answer: object, now_s: float) -> None:
            if uid not in evictions.under_way:
                return
            if isinstance(answer, Failed) and not answer.is_gone:
                self._finish(preemptor, node_name, failed=True, now_s=now_s)
                return
            evictions.under_way[uid] -= 1
            if evictions.under_way[uid] == 0:
                send_last()

        def last_answered(answer: object, now_s: float) -> None:
            failed = isinstance(answer, Failed) and not answer.is_gone
            if not failed and uid in evictions.under_way:
                evictions.leaving[uid] = [*first, last]
            self._finish(preemptor, node_name, failed=failed, now_s=now_s)
            self._call_if_free(preemptor)
            if not any(victim.uid == self._uid_on_node(victim.key) for victim in (*first, last)):
                # no victim's leaving is still to come that would call it
                self._queue.reconsider_gated(self._waiting_pods(preemptor), now_s)

        def send_last() -> None:
            evictions.last_victim[uid] = last.key
            self._call_if_free(preemptor)
            self._send(preemptor, last, node_name, condition, last_answered)

        for victim in first:
            self._send(preemptor, victim, node_name, condition, first_answered)
        if not first:
            send_last()

    def _finish(self, preemptor: Preemptor, node_name: str, *, failed: bool, now_s: float) -> None:
        self._evictions.last_victim.pop(preemptor.uid, None)
        if self._evictions.under_way.pop(preemptor.uid, None) is None:
            return
        if self._observers.steps is not None:
            self._observers.steps(PreemptionEnded(preemptor.pod, node_name, is_error=failed))
        self._metrics.preemption_ended(is_error=failed, started_s=self._started_s.pop(preemptor.uid))
        if failed:
            self._queue.activate(self._waiting_pods(preemptor), now_s)

    def _uid_on_node(self, key: PodKey) -> str | None:
        known = self._placed.get(key)
        return None if known is None else known.uid

    def _send(
        self,
        preemptor: Preemptor,
        victim: PodInfo,
        node_name: str,
        condition: PodCondition,
        answered: Callable[[object, float], None],
    ) -> None:
        def evicted(answer: object, now_s: float) -> None:
            if isinstance(answer, Done):
                self._record(preemptor, victim, self._note(preemptor, node_name))
            self._tell(preemptor.pod, victim, node_name, answer)
            answered(answer, now_s)

        self._outbox.send(EvictPod(victim.key, victim.pod.metadata.uid, condition, preemptor.pod.key), evicted)

    def _note(self, preemptor: Preemptor, node_name: str) -> str:
        if preemptor.group is None:
            return self.note(preemptor.pod, node_name)
        return f"Preempted by {preemptor.kind} {preemptor.group.metadata.uid} on node {node_name}"

    def _tell(self, preemptor: PodInfo, victim: PodInfo, node_name: str, answer: object) -> None:
        """What became of an eviction."""
        failure = answer if isinstance(answer, Failed) else None
        if failure is not None and not failure.is_gone:
            if self._observers.trouble is not None:
                self._observers.trouble(EvictionFailed(preemptor, victim, failure.message))
        elif self._observers.steps is not None:
            self._observers.steps(VictimEvicted(preemptor, victim, node_name, was_gone=failure is not None))

    def _was_rejected(self, preemptor: Preemptor, victim: PodInfo, node_name: str) -> bool:
        extension_point = self._bindings.preempt(victim, _PLUGIN)
        if not extension_point:
            return False
        if self._observers.steps is not None:
            self._observers.steps(VictimRejected(preemptor.pod, victim, node_name, extension_point))
        self._record(preemptor, victim, f"{self._note(preemptor, node_name)} (in kube-scheduler memory).")
        return True

    def _record(self, preemptor: Preemptor, victim: PodInfo, note: str) -> None:
        self._outbox.send(
            RecordEvent(
                pod=victim.key,
                uid=victim.pod.metadata.uid,
                type="Normal",
                reason="Preempted",
                action="Preempting",
                note=note,
                scheduler_name=preemptor.pod.spec.scheduler_name,
                related=preemptor.pod.key,
            )
        )

    def clear_nomination(self, pod: PodInfo) -> None:
        self._cluster.nominations.remove(pod)
        self._outbox.send(PatchPodStatus(pod.key, pod.pod.metadata.uid, nominated_node_name=""))

    def _clear_lower_nominations(self, preemptor: PodInfo, node_name: str) -> None:
        """Pods of lower priority that were nominated to this node have to look elsewhere."""
        for other in self._cluster.nominations.on(node_name):
            if other.priority < preemptor.priority:
                self.clear_nomination(other)
