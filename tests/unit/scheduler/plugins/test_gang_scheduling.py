"""GangScheduling by itself: who is held back, who waits at Permit, and what brings a pod back."""

from __future__ import annotations

from typing import Any

from small_clusters import node, pod

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.events import Hint
from kubesched.framework.groups import GroupCycle, GroupFeatures, PodGroupMembers
from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import ObjectMeta
from kubesched.k8s.model.scheduling import (
    BasicSchedulingPolicy,
    GangSchedulingPolicy,
    PodGroup,
    PodGroupSchedulingPolicy,
    PodGroupSpec,
)
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.plugins.gang_scheduling import GangScheduling
from kubesched.testing.world import QuietHandle

_MISSING = 'waiting for pods\'s pod group "g" to appear in scheduling queue'
_TOO_FEW = "waiting for minCount pods from a gang to appear in scheduling queue"


def _gang(min_count: int, name: str = "g") -> PodGroup:
    policy = PodGroupSchedulingPolicy(gang=GangSchedulingPolicy(min_count))
    return PodGroup(ObjectMeta(name, "default"), PodGroupSpec(policy))


def _member(name: str, group: str = "g", **spec: Any) -> Pod:
    return pod(name, uid=name, schedulingGroup={"podGroupName": group}, **spec)


class _Handle(QuietHandle):
    def __init__(self, *objects: PodGroup | Pod) -> None:
        self.cluster = Cluster.from_objects([node("n", status={"allocatable": {"pods": "9"}}), *objects])
        self.cluster.track_groups({"default-scheduler"})
        self.objects = self.cluster.objects
        self.allowed: list[str] = []
        self.activated: list[str] = []

    def group_members(self, key: str) -> PodGroupMembers | None:
        assert self.cluster.groups is not None
        return self.cluster.groups.get(key)

    def allow(self, uid: str, plugin_name: str) -> bool:
        self.allowed.append(uid)
        return True

    def activate_group(self, key: str) -> None:
        self.activated.append(key)

    def info(self, name: str) -> PodInfo:
        found = self.cluster.find_pod(f"default/{name}")  # type: ignore[arg-type]
        assert found is not None
        return found


def _gate(handle: _Handle, name: str) -> str:
    return GangScheduling(None, handle).pre_enqueue(handle.info(name)).message  # type: ignore[arg-type]


def test_a_pod_without_a_group_passes() -> None:
    assert _gate(_Handle(pod("p", uid="p")), "p") == ""


def test_a_pod_waits_for_its_group_to_exist() -> None:
    assert _gate(_Handle(_member("p")), "p") == _MISSING


def test_a_pod_waits_for_enough_mates() -> None:
    assert _gate(_Handle(_gang(2), _member("p")), "p") == _TOO_FEW
    assert _gate(_Handle(_gang(2), _member("p"), _member("q")), "p") == ""
    assert _gate(_Handle(_gang(2), _member("p"), _member("q", "other")), "p") == _TOO_FEW


def test_a_pod_of_another_scheduler_counts_once_it_is_bound() -> None:
    elsewhere = _member("q", schedulerName="other")
    assert _gate(_Handle(_gang(2), _member("p"), elsewhere), "p") == _TOO_FEW
    bound = _member("q", schedulerName="other", nodeName="n")
    assert _gate(_Handle(_gang(2), _member("p"), bound), "p") == ""


def test_a_basic_group_holds_nobody_back() -> None:
    basic = PodGroup(ObjectMeta("g", "default"), PodGroupSpec(PodGroupSchedulingPolicy(basic=BasicSchedulingPolicy())))
    handle = _Handle(basic, _member("p"))
    assert _gate(handle, "p") == ""
    assert GangScheduling(None, handle).permit(CycleState(), handle.info("p"), "n").status.is_success  # type: ignore[arg-type]


def _permit(handle: _Handle, name: str, *, trial: bool = False) -> str:
    cycle = CycleState()
    if trial:
        cycle.put(GroupCycle("default/g", []))
    result = GangScheduling(None, handle).permit(cycle, handle.info(name), "n")  # type: ignore[arg-type]
    assert result.timeout_s == (300.0 if result.status.is_wait else 0.0)
    return result.status.code.value


def test_pods_wait_until_the_gang_is_complete_then_all_are_allowed() -> None:
    handle = _Handle(_gang(2), _member("p"), _member("q"))
    plugin = GangScheduling(None, handle)  # type: ignore[arg-type]
    handle.cluster.assume(handle.info("p"), "n")
    assert plugin.permit(CycleState(), handle.info("p"), "n").status.is_wait
    assert (handle.activated, handle.allowed) == (["default/g"], [])
    handle.cluster.assume(handle.info("q"), "n")
    assert plugin.permit(CycleState(), handle.info("q"), "n").status.is_success
    assert handle.allowed == ["p"]


def test_a_trial_lets_nobody_go() -> None:
    handle = _Handle(_gang(2), _member("p"), _member("q"))
    handle.cluster.assume(handle.info("p"), "n")
    assert _permit(handle, "p", trial=True) == "Wait"
    handle.cluster.assume(handle.info("q"), "n")
    assert _permit(handle, "q", trial=True) == "Success"
    assert (handle.activated, handle.allowed) == ([], [])


def test_v1_36_lets_pods_go_in_a_trial() -> None:
    handle = _Handle(_gang(2), _member("p"), _member("q"))
    handle.group_features = GroupFeatures(groups=True, gangs=True, alpha=True)
    plugin = GangScheduling(None, handle)  # type: ignore[arg-type]
    trial = CycleState()
    trial.put(GroupCycle("default/g", []))
    handle.cluster.assume(handle.info("p"), "n")
    assert plugin.permit(CycleState(), handle.info("p"), "n").status.is_wait
    assert plugin.permit(trial, handle.info("q"), "n").status.is_wait
    assert handle.activated == ["default/g", "default/g"]
    handle.cluster.assume(handle.info("q"), "n")
    assert plugin.permit(trial, handle.info("q"), "n").status.is_success
    assert handle.allowed == ["p"]


def test_without_its_group_permit_is_an_error() -> None:
    handle = _Handle(_member("p"))
    status = GangScheduling(None, handle).permit(CycleState(), handle.info("p"), "n").status  # type: ignore[arg-type]
    assert status.message == 'failed to get podGroup default/g: podgroup.scheduling.k8s.io "g" not found'


def test_hints() -> None:
    added, group = (event.hint for event in GangScheduling(None, _Handle()).events_to_register())  # type: ignore[arg-type]
    handle = _Handle(_gang(2), _member("p"))
    info = handle.info("p")
    assert added is not None
    assert group is not None
    assert added(info, None, _member("q")) is Hint.QUEUE
    assert added(info, None, _member("q", "other")) is Hint.SKIP
    assert added(info, None, pod("q")) is Hint.SKIP
    assert group(info, None, _gang(2)) is Hint.QUEUE
    assert group(info, None, _gang(2, "other")) is Hint.SKIP
    elsewhere = PodGroup(ObjectMeta("g", "elsewhere"))
    assert group(info, None, elsewhere) is Hint.SKIP
