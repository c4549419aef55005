"""DefaultPreemption: what it makes of the engine's answer. How victims are found is tested with the engine."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kubesched.framework import OK, CycleState, Handle, Hint, NominatingMode, PostFilterResult, Status
from kubesched.framework.extension_points import extension_points_of
from kubesched.framework.groups import GroupFeatures
from kubesched.framework.handle import Objects, PreemptionLimits
from kubesched.framework.nodes import NodeTable
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.results import NodeStatuses
from kubesched.k8s.model.core import Pod, PodSpec, SchedulingGroup
from kubesched.k8s.model.meta import KubeObject, ObjectMeta
from kubesched.k8s.model.scheduling import AnyGroup, PodGroup
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.config import DefaultPreemptionArgs
from kubesched.scheduler.engine.postfilter import Diagnosis
from kubesched.scheduler.engine.prefilter import PreFilterOutcome
from kubesched.scheduler.plugins.default_preemption import DefaultPreemption
from kubesched.testing.world import QuietHandle


class Answering(QuietHandle):
    """A handle whose preemption always has this answer, and remembers the limits it was given."""

    def __init__(self, result: PostFilterResult) -> None:
        self.result = result
        self.limits: PreemptionLimits | None = None
        self._cluster = Cluster()

    def put(self, item: KubeObject) -> None:
        self._cluster.put(item)

    @property
    def objects(self) -> Objects:
        return self._cluster.objects

    @property
    def nodes(self) -> NodeTable:
        return self._cluster.nodes

    def namespace_labels(self, namespace: str) -> Mapping[str, str]:
        return {}

    def group(self, key: str) -> AnyGroup | None:
        return self._cluster.objects.pod_groups.get(key)

    def is_preempting(self, uid: str) -> bool:
        return uid == "preempting"

    def preempt(
        self, cycle: CycleState, pod: PodInfo, statuses: NodeStatuses, limits: PreemptionLimits
    ) -> PostFilterResult:
        self.limits = limits
        return self.result


def _ask(result: PostFilterResult) -> tuple[PostFilterResult, Answering]:
    handle = Answering(result)
    typed: Handle = handle
    cluster = Cluster()
    pod = cluster.signatures.info(Pod())
    plugin = DefaultPreemption(DefaultPreemptionArgs(), typed)
    return plugin.post_filter(CycleState(), pod, Diagnosis(cluster.nodes, PreFilterOutcome())), handle


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        pytest.param(
            PostFilterResult(OK, NominatingMode.OVERRIDE, "a"),
            PostFilterResult(OK, NominatingMode.OVERRIDE, "a"),
            id="success is passed on without a word",
        ),
        pytest.param(
            PostFilterResult(Status.unschedulable("no."), NominatingMode.OVERRIDE),
            PostFilterResult(Status.unschedulable("preemption: no."), NominatingMode.OVERRIDE),
            id="a reason says where it comes from",
        ),
        pytest.param(
            PostFilterResult(Status.error("broken")),
            PostFilterResult(Status.error("preemption: broken")),
            id="so does an error",
        ),
    ],
)
def test_the_answer_says_that_it_is_about_preemption(result: PostFilterResult, expected: PostFilterResult) -> None:
    answer, handle = _ask(result)
    assert answer == expected
    assert handle.limits is not None
    assert (handle.limits.min_candidate_nodes_percentage, handle.limits.min_candidate_nodes_absolute) == (10, 100)


def test_it_takes_part_before_the_queue_and_after_the_filters() -> None:
    assert extension_points_of(DefaultPreemption) == {"preEnqueue", "postFilter"}


def test_a_pod_whose_victims_are_asked_to_go_stays_outside() -> None:
    plugin = DefaultPreemption(DefaultPreemptionArgs(), Answering(PostFilterResult(OK)))
    signatures = Cluster().signatures
    assert plugin.pre_enqueue(signatures.info(Pod(ObjectMeta(uid="other")))) == OK
    held = plugin.pre_enqueue(signatures.info(Pod(ObjectMeta(uid="preempting"))))
    assert held == Status.unresolvable("waiting for the preemption for this pod to be finished")


def test_a_deleted_pod_is_for_the_other_plugins_to_judge() -> None:
    cluster = Cluster()
    plugin = DefaultPreemption(DefaultPreemptionArgs(), Answering(PostFilterResult(OK)))
    (registered,) = plugin.events_to_register()
    assert registered.hint is not None
    assert registered.hint(cluster.signatures.info(Pod()), Pod(), None) is Hint.SKIP


def _held(uid: str, group: str, *, group_uid: str = "", preempts_whole: bool = True) -> str:
    """What a pod of a group is told, of which there may be a PodGroup."""
    handle = Answering(PostFilterResult(OK))
    handle.group_features = GroupFeatures(groups=True, gangs=True, preemption=preempts_whole)
    if group_uid:
        handle.put(PodGroup(ObjectMeta(group, "d", group_uid)))
    member = Pod(ObjectMeta("p", "d", uid), PodSpec(scheduling_group=SchedulingGroup(group)))
    plugin = DefaultPreemption(DefaultPreemptionArgs(), handle)
    return plugin.pre_enqueue(Cluster().signatures.info(member)).message


def test_a_pod_whose_groups_victims_are_asked_to_go_stays_outside() -> None:
    assert _held("p", "g", group_uid="preempting") == "waiting for the preemption for this pod group to be finished"
    assert _held("p", "g", group_uid="g") == ""
    assert _held("preempting", "g", group_uid="g") == ""  # only the group preempts


def test_a_pod_whose_group_is_missing_is_let_in() -> None:
    assert _held("preempting", "g") == ""


def test_without_preemption_by_groups_a_member_waits_for_its_own_victims() -> None:
    waiting = "waiting for the preemption for this pod to be finished"
    assert _held("preempting", "g", group_uid="g", preempts_whole=False) == waiting
    assert _held("p", "g", group_uid="preempting", preempts_whole=False) == ""
