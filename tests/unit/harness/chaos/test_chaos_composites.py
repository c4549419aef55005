"""Groups of groups under faults: no tree is bound in part, no pod is lost, and what can be scheduled is. Bugs planted
in what only they need are found."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.chaos.checks import content, gangs, places
from harness.chaos.many import try_seed
from harness.chaos.weather import FIRST_WITH_COMPOSITES
from kubesched.framework.events import ClusterEvent
from kubesched.framework.status import OK, Status
from kubesched.k8s.model.meta import PodKey
from kubesched.k8s.model.scheduling import AnyGroup, CompositePodGroup
from kubesched.scheduler.cluster.group_forest import GroupForest
from kubesched.scheduler.newer.composites import CompositeCycles, Outcomes
from kubesched.scheduler.newer.queue import GroupQueue

Plant = Callable[[pytest.MonkeyPatch], None]
_SEEDS = range(FIRST_WITH_COMPOSITES, FIRST_WITH_COMPOSITES + 300)


def test_no_fault_breaks_a_tree() -> None:
    failures = {seed: found.failure for seed in _SEEDS[:40] if (found := try_seed(seed)).failure is not None}
    assert failures == {}


def what_fits_is_bound_although_its_parent_does_not_fit(patch: pytest.MonkeyPatch) -> None:
    of_today = CompositeCycles._decide_for_those_below

    def decide(self: CompositeCycles, key: str, outcomes: Outcomes, _above: Status) -> None:
        of_today(self, key, outcomes, OK)
        for child in self._cluster.forest.children(key) if self._cluster.forest is not None else ():
            if outcomes[child.group_key].members:
                outcomes[child.group_key].status = OK

    patch.setattr(CompositeCycles, "_decide_for_those_below", decide)


def a_parent_that_comes_calls_nobody(patch: pytest.MonkeyPatch) -> None:
    of_today = GroupQueue.call_group

    def call(self: GroupQueue, group: str, keys: list[PodKey], event: ClusterEvent, now_s: float) -> None:
        if not isinstance(self._forest.get(group), CompositePodGroup):
            of_today(self, group, keys, event, now_s)

    patch.setattr(GroupQueue, "call_group", call)


def a_parent_that_goes_takes_its_pods_along(patch: pytest.MonkeyPatch) -> None:
    of_today = GroupQueue.group_gone

    def gone(self: GroupQueue, group: AnyGroup, now_s: float) -> None:
        entry = self._entries.get(group.group_key)
        if isinstance(group, CompositePodGroup) and entry is not None:
            self._take_out(entry)
        else:
            of_today(self, group, now_s)

    patch.setattr(GroupQueue, "group_gone", gone)


def children_that_go_are_still_counted(patch: pytest.MonkeyPatch) -> None:
    """A group has the parent that it had first, though it was written anew with another."""
    of_today = GroupForest._link

    def link(self: GroupForest, key: str) -> None:
        if key not in self._parents:
            of_today(self, key)

    patch.setattr(GroupForest, "_link", link)


@pytest.mark.parametrize(
    ("plant", "invariants"),
    [
        (what_fits_is_bound_although_its_parent_does_not_fit, {gangs.INVARIANT, "no exception"}),
        (a_parent_that_comes_calls_nobody, {content.SCHEDULED}),
        (a_parent_that_goes_takes_its_pods_along, {places.INVARIANT, "no exception"}),
        (children_that_go_are_still_counted, {content.SCHEDULED, places.INVARIANT, gangs.INVARIANT, "no exception"}),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_a_planted_bug_is_found(plant: Plant, invariants: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    for seed in _SEEDS:
        failure = try_seed(seed).failure
        if failure is not None:
            assert failure.invariant in invariants
            return
    pytest.fail("not found")
