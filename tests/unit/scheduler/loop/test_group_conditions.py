"""The condition of a PodGroup: what is written after an attempt, by what it said before."""

from __future__ import annotations

import msgspec
import pytest
from group_worlds import GANGS, PREEMPTION, add, bound, group, group_world, members, node, pod, shown, told
from msgspec.structs import replace

from kubesched.framework.effects import PatchPodGroupStatus
from kubesched.framework.status import OK, Status
from kubesched.k8s.model.scheduling import POD_GROUP_SCHEDULED, GroupCondition, PodGroup, PodGroupStatus
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.engine.group_cycle import GroupConditions, condition_of
from kubesched.scheduler.engine.observations import GroupMissing, Observers
from kubesched.scheduler.engine.outbox import Outbox

_NO = Status.unschedulable("no")
_BROKEN = Status.error("broken")


def _group(before: Status | None, generation: int = 1) -> PodGroup:
    made = group()
    conditions: tuple[GroupCondition, ...] = ()
    if before is not None:
        conditions = (
            replace(condition_of(before), observed_generation=1, last_transition_time="2026-01-01T00:00:00Z"),
        )
    metadata = replace(made.metadata, generation=generation)
    return replace(made, metadata=metadata, status=PodGroupStatus(conditions=conditions))


def _written(before: Status | None, status: Status, generation: int = 1) -> tuple[GroupCondition, int, bool] | None:
    """The condition, its generation, and whether its time moves."""
    outbox = Outbox()
    cluster = Cluster.from_objects([_group(before, generation)])
    GroupConditions(cluster, outbox, Observers()).report("d/g", status, 0.0)
    sent = [one.action for one in outbox.take()]
    if not sent:
        return None
    (patch,) = sent
    assert isinstance(patch, PatchPodGroupStatus)
    return patch.condition, patch.generation, patch.is_turn


@pytest.mark.parametrize(
    ("before", "status", "is_turn"),
    [
        pytest.param(None, OK, True, id="scheduled"),
        pytest.param(None, _NO, True, id="unschedulable"),
        pytest.param(None, _BROKEN, True, id="broken"),
        pytest.param(_NO, OK, True, id="scheduled at last"),
        pytest.param(_BROKEN, OK, True, id="scheduled after an error"),
        pytest.param(_NO, _BROKEN, False, id="an error after no room"),
        pytest.param(_BROKEN, _NO, False, id="no room after an error"),
        pytest.param(_NO, Status.unschedulable("still no"), False, id="another reason"),
    ],
)
def test_what_is_written(before: Status | None, status: Status, is_turn: bool) -> None:
    assert _written(before, status) == (condition_of(status), 1, is_turn)


@pytest.mark.parametrize(
    ("before", "status"),
    [
        pytest.param(OK, _NO, id="it was scheduled"),
        pytest.param(OK, _BROKEN, id="it was scheduled, and now something broke"),
        pytest.param(OK, OK, id="it was scheduled, and more pods are"),
        pytest.param(_NO, _NO, id="nothing is new"),
    ],
)
def test_what_is_not_written(before: Status, status: Status) -> None:
    assert _written(before, status) is None


def test_the_generation_is_that_of_the_group() -> None:
    assert _written(OK, OK, generation=7) == (condition_of(OK), 7, False)


def test_of_a_group_that_is_missing_nothing_is_written() -> None:
    missing: list[object] = []
    observers = Observers()
    observers.trouble = missing.append
    outbox = Outbox()
    GroupConditions(Cluster.from_objects([]), outbox, observers).report("d/g", OK, 0.0)
    assert outbox.take() == []
    assert missing == [GroupMissing("d/g")]


def test_more_pods_of_a_group_that_was_scheduled_change_nothing() -> None:
    world = group_world(*GANGS)
    add(world, node(), group(gang=2), *members(n=2))
    world.run(for_s=1)
    assert shown(world) == ("True", "Scheduled", "")
    add(world, pod("g-2", "g"), pod("g-3", "g"))
    world.run(for_s=1)
    assert shown(world) == ("True", "Scheduled", "")
    assert len(bound(world)) == 4


def test_a_pod_that_fits_nowhere_keeps_its_nomination() -> None:
    """Where nobody looked for victims for it, what was found before is left."""
    world = group_world(*PREEMPTION)
    add(world, node(cpu="1"), group(gang=1))
    status = {"nominatedNodeName": "elsewhere"}
    made = pod("g-0", "g", cpu="2")
    add(world, replace(made, status=msgspec.convert(status, type(made.status))))
    world.run(for_s=1)
    assert told(world, "g-0").startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert world.pods["d/g-0"].status.nominated_node_name == "elsewhere"  # type: ignore[index]


def test_only_the_condition_for_scheduling_counts() -> None:
    other = GroupCondition("DisruptionTarget", "True", reason="PreemptionByScheduler")
    made = replace(_group(None), status=PodGroupStatus(conditions=(other,)))
    assert made.condition(POD_GROUP_SCHEDULED) is None
