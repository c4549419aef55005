"""What plugins get to look at and to ask for. Implements `framework.Handle`.

Plugins ask in the middle of some pod's cycle: that pods held by Permit are let go, that pods are tried again. What they
ask for is taken note of, and done at the next `tick`, which is due at once.

Next: `permit` for the pods that wait, `kubesched.scheduler.queue` for those that are tried again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from typing import NamedTuple

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.groups import GroupCycle, GroupFeatures, PodGroupMembers, TrySchedule
from kubesched.framework.handle import HeldPod, Objects, PreemptionLimits
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.results import NodeStatuses, PostFilterResult
from kubesched.framework.status import Status
from kubesched.k8s.model.meta import PodKey
from kubesched.k8s.model.scheduling import AnyGroup
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.cluster.view import TableView
from kubesched.scheduler.engine.bind import Bindings
from kubesched.scheduler.engine.permit import WaitingPod
from kubesched.scheduler.engine.preemption import preempt
from kubesched.scheduler.engine.preemption.execution import Evictions
from kubesched.scheduler.engine.preemption.group_victims import preempt_for_group
from kubesched.scheduler.engine.profile import Profile
from kubesched.scheduler.engine.score import TieBreak

NO_GROUPS = GroupFeatures()
_PACE_S = 0.01
"""Plugins whose pods make each other try again and again do it no more often than this."""


class PluginRequest(NamedTuple):
    name: str
    """`allow`, `reject`, `activate` or `activate_group`."""
    plugin: str = ""
    message: str = ""
    named: tuple[str, ...] = ()
    """The uid of the pod, the keys of pods, or that of the group."""


class PluginRequests:
    def __init__(self, cluster: Cluster, bindings: Bindings) -> None:
        self._cluster = cluster
        self._bindings = bindings
        self._to_activate: dict[PodKey, None] = {}
        self._groups_to_activate: dict[str, None] = {}
        self._activated_at_s = -inf
        self.carry_out: Callable[[PluginRequest], bool] = self.do
        """Who keeps a journal puts itself in between."""

    def allow(self, uid: str, plugin: str) -> bool:
        return self.carry_out(PluginRequest("allow", plugin, named=(uid,)))

    def reject(self, uid: str, plugin: str, message: str) -> bool:
        return self.carry_out(PluginRequest("reject", plugin, message, (uid,)))

    def activate(self, pods: Iterable[PodInfo]) -> None:
        self.carry_out(PluginRequest("activate", named=tuple(pod.key for pod in pods)))

    def activate_group(self, key: str) -> None:
        self.carry_out(PluginRequest("activate_group", named=(key,)))

    def do(self, request: PluginRequest) -> bool:
        """False if the pod does not wait."""
        match request.name:
            case "activate":
                self._to_activate.update((PodKey(key), None) for key in request.named)
            case "activate_group":
                self._groups_to_activate.update((key, None) for key in request.named)
            case _:
                (uid,) = request.named
                held = self._find(uid)
                if held is None:
                    return False
                if request.name == "allow":
                    held.allow(request.plugin)
                else:
                    held.reject(request.plugin, request.message)
        return True

    def next_deadline_s(self) -> float | None:
        return self._activated_at_s + _PACE_S if self._to_activate or self._groups_to_activate else None

    def take_to_activate(self, now_s: float) -> list[PodKey]:
        """The pods to be tried again now."""
        if not (self._to_activate or self._groups_to_activate) or now_s < self._activated_at_s + _PACE_S:
            return []
        for group in self._groups_to_activate:
            members = self._cluster.group_members(group)
            if members is not None:
                self._to_activate.update((info.key, None) for info in members.unscheduled_pods())
        self._groups_to_activate.clear()
        keys, self._to_activate, self._activated_at_s = list(self._to_activate), {}, now_s
        return keys

    def _find(self, uid: str) -> WaitingPod | None:
        binding = self._bindings.get(uid)
        return None if binding is None else binding.waiting


class LoopState:
    """What the loop and the plugins' handles share, and so is there before either: handles read it and leave requests,
    the loop's parts change it. Where nothing is bound it stays empty."""

    def __init__(self, cluster: Cluster) -> None:
        self.bindings = Bindings()
        self.evictions = Evictions(cluster)
        self.requests = PluginRequests(cluster, self.bindings)


class EngineHandle:
    """One per profile, and complete before its plugins are built."""

    def __init__(
        self,
        cluster: Cluster,
        tie_break: TieBreak,
        state: LoopState | None = None,
        features: GroupFeatures = NO_GROUPS,
    ) -> None:
        self._cluster = cluster
        self.group_features = features
        self._tie_break = tie_break
        self._state = LoopState(cluster) if state is None else state

    @property
    def objects(self) -> Objects:
        return self._cluster.objects

    @property
    def nodes(self) -> TableView:
        return self._cluster.nodes

    def namespace_labels(self, namespace: str) -> Mapping[str, str]:
        return self._cluster.namespace_labels(namespace)

    def is_preempting(self, uid: str) -> bool:
        return self._state.evictions.is_preempting(uid)

    def group_members(self, key: str) -> PodGroupMembers | None:
        return self._cluster.group_members(key)

    def group(self, key: str) -> AnyGroup | None:
        forest = self._cluster.forest
        return self._cluster.objects.pod_groups.get(key) if forest is None else forest.get(key)

    def root_group(self, key: str) -> str:
        return key if self._cluster.forest is None else self._cluster.forest.root_of(key)

    def child_groups(self, key: str) -> Sequence[AnyGroup]:
        return () if self._cluster.forest is None else self._cluster.forest.children(key)

    def preempt_for_group(self, cycle: CycleState, group: GroupCycle, pod_group: AnyGroup, fits: TrySchedule) -> Status:
        return preempt_for_group(self._cluster, cycle, group, pod_group, fits, self.group_features)

    def preempt(
        self, cycle: CycleState, pod: PodInfo, statuses: NodeStatuses, limits: PreemptionLimits
    ) -> PostFilterResult:
        """Asks the filters of the profile whose cycle this is."""
        return preempt(self._cluster, cycle.get(Profile), self._tie_break, cycle, pod, statuses, limits)

    def waiting_pods(self) -> Sequence[HeldPod]:
        return self._state.bindings.waiting_pods()

    def allow(self, uid: str, plugin_name: str) -> bool:
        return self._state.requests.allow(uid, plugin_name)

    def reject(self, uid: str, plugin_name: str, message: str) -> bool:
        return self._state.requests.reject(uid, plugin_name, message)

    def activate(self, pods: Iterable[PodInfo]) -> None:
        self._state.requests.activate(pods)

    def activate_group(self, key: str) -> None:
        self._state.requests.activate_group(key)
