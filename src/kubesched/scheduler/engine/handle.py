"""What plugins get to look at. Implements `framework.Handle`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.handle import HeldPod, Objects, PreemptionLimits
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.results import NodeStatuses, PostFilterResult
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.cluster.view import TableView
from kubesched.scheduler.engine.plugin_requests import NOBODY_TO_ASK, PluginRequests
from kubesched.scheduler.engine.preemption import preempt
from kubesched.scheduler.engine.profile import Profile
from kubesched.scheduler.engine.select import TieBreak


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
