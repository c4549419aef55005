"""DynamicResources: what is given up when no node fits, and how nodes are ranked when some do."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from device_clusters import (
    Attempt,
    DeviceCluster,
    alternative,
    claim,
    device_class,
    first_of,
    held,
    node,
    pod,
    request,
    slice_on,
)

from kubesched.framework import CycleState, Status
from kubesched.framework.nodes import RowArray
from kubesched.framework.status import Code
from kubesched.scheduler.plugins.dynamic_resources.effects import DeallocateClaim, DeleteResourceClaim
from kubesched.scheduler.plugins.dynamic_resources.state import StateNotFoundError
from kubesched.testing.make import Manifest


class Rejections:
    """The statuses of nodes, as the engine gives them to PostFilter."""

    absent = Status.unresolvable()

    def __init__(self, statuses: Mapping[str, Status]) -> None:
        self._statuses = statuses

    def status_of(self, node_name: str) -> Status:
        return self._statuses.get(node_name, self.absent)

    def explicit(self) -> Mapping[str, Status]:
        return self._statuses

    def resolvable_rows(self) -> RowArray:
        return np.zeros(0, dtype=np.intp)


def post_filter(attempt: Attempt, **others: Status) -> Status:
    """`others`: statuses of other plugins, which come first."""
    statuses = {name: attempt.status(name) for name in attempt.cluster.nodes.names} | others
    return attempt.cluster.plugin.post_filter(attempt.cycle, attempt.pod, Rejections(statuses)).status


def test_without_a_prefilter_there_is_nothing_to_find() -> None:
    world = DeviceCluster(node("n"), pod())
    status = world.plugin.post_filter(CycleState(), world.pod(), Rejections({})).status
    assert (status.code, status.message) == (Code.ERROR, "not found")
    with pytest.raises(StateNotFoundError, match="not found"):
        world.plugin.score(CycleState(), world.pod(), world.nodes)


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        pytest.param([pod()], "no new claims to deallocate", id="no claims"),
        pytest.param([pod("no")], "no new claims to deallocate", id="rejected by PreFilter"),
        pytest.param([pod("mine"), claim("mine", request())], "still not schedulable", id="nothing was allocated"),
        pytest.param(
            [pod("mine"), held("mine", "a/d", nodes="a", by=("other",))],
            "still not schedulable",
            id="others use it too",
        ),
    ],
)
def test_nothing_is_given_up_where_that_cannot_help(objects: list[Manifest], message: str) -> None:
    world = DeviceCluster(node("n"), device_class(), *objects)
    status = post_filter(world.attempt())
    assert (status.code, status.message) == (Code.UNSCHEDULABLE, message)
    assert world.plugin.take_effects() == []


@pytest.mark.parametrize("users", [(), ("p",)], ids=["used by nobody", "used by the pod alone"])
def test_an_allocation_that_keeps_the_pod_away_is_given_up(users: tuple[str, ...]) -> None:
    world = DeviceCluster(node("n"), device_class(), pod("mine"), held("mine", "a/d", nodes="a", by=users))
    status = post_filter(world.attempt())
    assert (status.code, status.message) == (Code.UNSCHEDULABLE, "deallocation of ResourceClaim completed")
    (effect,) = world.plugin.take_effects()
    assert effect == DeallocateClaim("default/mine", "uid-mine", "1")
    assert effect.applied_to(world.claim("mine")).status.allocation is None


def test_an_allocation_is_kept_where_other_plugins_rejected_the_nodes() -> None:
    world = DeviceCluster(node("n"), device_class(), pod("mine"), held("mine", "a/d", nodes="a"))
    status = post_filter(world.attempt(), n=Status.unschedulable("Insufficient cpu"))
    assert status.message == "still not schedulable"
    assert world.plugin.take_effects() == []


def test_a_special_claim_of_an_earlier_attempt_is_deleted() -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "uid-default-p", "controller": True}
    old = held("old", "n/d0", nodes="n", by=("p",))
    old["metadata"] |= {
        "ownerReferences": [owner],
        "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
    }
    classes = device_class(extendedResourceName="example.com/gpu")
    world = DeviceCluster(node("n"), classes, old, pod(requests={"example.com/gpu": 1}))
    assert post_filter(world.attempt()).message == "deletion of ResourceClaim completed"
    assert world.plugin.take_effects() == [DeleteResourceClaim("default/old", "uid-old")]


# -- score -------------------------------------------------------------------------------------------------------------

ONE_OR_TWO = first_of("f", alternative("two", 2), alternative("one", 1))


def test_nodes_score_by_the_rank_of_what_they_offer() -> None:
    world = DeviceCluster(
        node("rich"),
        node("poor"),
        node("none"),
        slice_on("rich", "d0", "d1"),
        slice_on("poor", "d0"),
        device_class(),
        pod("mine"),
        claim("mine", ONE_OR_TWO),
    )
    attempt = world.attempt()
    assert attempt.scores() == {"rich": 8, "poor": 7}
    part = world.nodes.take(world.nodes.rows[:2])
    raw = world.plugin.score(attempt.cycle, attempt.pod, part)
    normalized = world.plugin.normalize_score(attempt.cycle, attempt.pod, part, raw)
    assert dict(zip(part.names, normalized.tolist(), strict=True)) == {"rich": 100, "poor": 87}


def test_requests_without_alternatives_score_nothing() -> None:
    world = DeviceCluster(node("n"), slice_on("n", "d"), device_class(), pod("mine"), claim("mine", request()))
    assert world.attempt().scores() == {"n": 0}


def test_ranks_of_several_claims_add_up_with_what_was_allocated_before() -> None:
    before = held("before", "n/d9", requests=[ONE_OR_TWO])
    before["status"]["allocation"]["devices"]["results"][0]["request"] = "f/one"
    objects = [node("n"), slice_on("n", "d0", "d1", "d2"), device_class(), before]
    world = DeviceCluster(*objects, pod("before", "mine", "more"), claim("mine", ONE_OR_TWO), claim("more", ONE_OR_TWO))
    assert world.attempt().scores() == {"n": 7 + 8 + 7}
    world = DeviceCluster(*objects, pod("before"))
    assert world.attempt().scores() == {"n": 0}, "nothing was allocated in this cycle"
