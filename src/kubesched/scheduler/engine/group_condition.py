"""The condition of a PodGroup: whether it was scheduled, and if not, why.

Once it is True it stays so: pods that come later and do not fit say so themselves. Written only when it changes.
"""

from __future__ import annotations

from kubesched.framework.effects import PatchPodGroupStatus
from kubesched.framework.status import Status
from kubesched.k8s.model.scheduling import POD_GROUP_SCHEDULED, GroupCondition
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.engine.observations import GroupMissing, Observers
from kubesched.scheduler.engine.outbox import Outbox

_SCHEDULED = "Scheduled"
_UNSCHEDULABLE = "Unschedulable"
_SCHEDULER_ERROR = "SchedulerError"
_SHOWN_AFTER_S = 60.0
"""By then a write shows, or has failed."""


def condition_of(status: Status, type_: str = POD_GROUP_SCHEDULED) -> GroupCondition:
    """What an attempt that came to this says of its group."""
    if status.is_success:
        return GroupCondition(type_, "True", reason=_SCHEDULED)
    reason = _UNSCHEDULABLE if status.is_rejected else _SCHEDULER_ERROR
    return GroupCondition(type_, "False", reason=reason, message=status.message)


class GroupConditions:
    def __init__(
        self, cluster: Cluster, outbox: Outbox, observers: Observers, type_: str = POD_GROUP_SCHEDULED
    ) -> None:
        self._type = type_
        self._cluster = cluster
        self._outbox = outbox
        self._observers = observers
        self._scheduled_at_s: dict[str, float] = {}
        """By uid, the groups of which it was written lately: what the API server shows may be older."""

    def report(self, key: str, status: Status, now_s: float) -> None:
        """An attempt of the group came to this."""
        pod_group = self._cluster.objects.pod_groups.get(key)
        if pod_group is None:
            if self._observers.trouble is not None:
                self._observers.trouble(GroupMissing(key))
            return
        wanted = condition_of(status, self._type)
        if wanted.status != "True" and self._was_scheduled(pod_group.metadata.uid or key, now_s):
            return
        known = pod_group.condition(self._type)
        if known is not None:
            if known.status == "True" and wanted.status != "True":
                return
            told = (known.status, known.reason, known.message, known.observed_generation)
            if told == (wanted.status, wanted.reason, wanted.message, pod_group.metadata.generation):
                return
        is_turn = known is None or known.status != wanted.status
        generation = pod_group.metadata.generation
        self._outbox.send(PatchPodGroupStatus(key, pod_group.metadata.uid, wanted, generation, is_turn))
        if wanted.status == "True":
            self._scheduled_at_s[pod_group.metadata.uid or key] = now_s

    def _was_scheduled(self, uid: str, now_s: float) -> bool:
        lately = self._scheduled_at_s
        while lately and next(iter(lately.values())) < now_s - _SHOWN_AFTER_S:
            del lately[next(iter(lately))]
        return uid in lately
