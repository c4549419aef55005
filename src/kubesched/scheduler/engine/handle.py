"""What plugins get to look at and to ask for. Implements `framework.Handle`.

Plugins ask in the middle of some pod's cycle: that pods held by Permit are let go, that pods are tried again. What they
ask for is taken note of, and done at the next `tick`, which is due at once.

Next: `permit` for the pods that wait, `kubesched.scheduler.queue` for those that are tried again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.handle import HeldPod, Objects, PreemptionLimits
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.results import NodeStatuses, PostFilterResult
from kubesched.k8s.model.meta import PodKey
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.cluster.view import TableView
from kubesched.scheduler.engine.permit import WaitingPod
from kubesched.scheduler.engine.preemption import preempt
from kubesched.scheduler.engine.profile import Profile
from kubesched.scheduler.engine.score import TieBreak
from kubesched.scheduler.queue import SchedulingQueue

_PACE_S = 0.01
"""Plugins whose pods make each other try again and again do it no more often than this."""


class PluginRequests:
    def __init__(self, waiting: Callable[[], list[WaitingPod]], queue: SchedulingQueue | None) -> None:
        self._waiting = waiting
        self._queue = queue
        self._to_activate: dict[PodKey, None] = {}
        self._activated_at_s = -inf

    def waiting_pods(self) -> Sequence[WaitingPod]:
        return self._waiting()

    def allow(self, uid: str, plugin: str) -> bool:
        held = self._find(uid)
        if held is not None:
            held.allow(plugin)
        return held is not None

    def reject(self, uid: str, plugin: str, message: str) -> bool:
        held = self._find(uid)
        if held is not None:
            held.reject(plugin, message)
        return held is not None

    def activate(self, pods: Iterable[PodInfo]) -> None:
        if self._queue is not None:
            self._to_activate.update((pod.key, None) for pod in pods)

    def next_deadline_s(self) -> float | None:
        return self._activated_at_s + _PACE_S if self._to_activate else None

    def tick(self, now_s: float) -> None:
        if self._to_activate and self._queue is not None and now_s >= self._activated_at_s + _PACE_S:
            keys, self._to_activate, self._activated_at_s = list(self._to_activate), {}, now_s
            self._queue.activate(keys, now_s)

    def _find(self, uid: str) -> WaitingPod | None:
        return next((held for held in self._waiting() if held.info.uid == uid), None)


NOBODY_TO_ASK = PluginRequests(list, None)
"""For schedulers that decide without a loop: nothing waits, nothing is tried again."""


class EngineHandle:
    """One per profile: preemption asks the profile's own filters."""

    def __init__(self, cluster: Cluster, tie_break: TieBreak) -> None:
        self._cluster = cluster
        self._tie_break = tie_break
        self.profile: Profile | None = None
        """Set once the profile's plugins, which are built with this handle, stand."""
        self.preempting: Callable[[str], bool] = _nobody
        """Set where preemption is carried out."""
        self.requests: PluginRequests = NOBODY_TO_ASK
        """Set where pods are bound."""

    @property
    def objects(self) -> Objects:
        return self._cluster.objects

    @property
    def nodes(self) -> TableView:
        return self._cluster.nodes

    def namespace_labels(self, namespace: str) -> Mapping[str, str]:
        return self._cluster.namespace_labels(namespace)

    def is_preempting(self, uid: str) -> bool:
        return self.preempting(uid)

    def preempt(
        self, cycle: CycleState, pod: PodInfo, statuses: NodeStatuses, limits: PreemptionLimits
    ) -> PostFilterResult:
        assert self.profile is not None
        return preempt(self._cluster, self.profile, self._tie_break, cycle, pod, statuses, limits)

    def waiting_pods(self) -> Sequence[HeldPod]:
        return self.requests.waiting_pods()

    def allow(self, uid: str, plugin_name: str) -> bool:
        return self.requests.allow(uid, plugin_name)

    def reject(self, uid: str, plugin_name: str, message: str) -> bool:
        return self.requests.reject(uid, plugin_name, message)

    def activate(self, pods: Iterable[PodInfo]) -> None:
        self.requests.activate(pods)


def _nobody(_uid: str) -> bool:
    return False
