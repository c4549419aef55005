"""Pod groups as v1.37 schedules them, under faults: no gang is bound in part, no pod is lost, and what can be scheduled
is. Bugs planted in what is different there are found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from harness.chaos.checks import content, gangs, places
from harness.chaos.many import try_seed
from harness.chaos.weather import EQUAL_PRIORITIES, FIRST_WITH_GROUPS, options_for
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import OK
from kubesched.k8s.model.scheduling import AnyGroup
from kubesched.scheduler.engine.group_trial import GroupOutcome
from kubesched.scheduler.newer.groups import NewerGroupCycles, NewerTrial
from kubesched.scheduler.newer.queue import GroupQueue
from kubesched.scheduler.queue import QueuedPodInfo

Plant = Callable[[pytest.MonkeyPatch], None]
_SEEDS = [seed for seed in range(FIRST_WITH_GROUPS, FIRST_WITH_GROUPS + 400) if options_for(seed).number("next")]


def test_in_part_of_the_runs_groups_have_one_priority() -> None:
    n_equal = sum(options_for(seed).number("next") == EQUAL_PRIORITIES for seed in _SEEDS)
    assert 0.4 < n_equal / len(_SEEDS) < 0.6
    assert 100 < len(_SEEDS) < 180


def test_no_fault_breaks_a_group() -> None:
    failures = {seed: found.failure for seed in _SEEDS[:30] if (found := try_seed(seed)).failure is not None}
    assert failures == {}


def gangs_do_not_ask_whether_they_are_complete(patch: pytest.MonkeyPatch) -> None:
    """Pods of a gang are bound although too few of them fit."""
    of_today = NewerTrial.run

    def run(self: NewerTrial, *args: Any, **more: Any) -> GroupOutcome:
        outcome = of_today(self, *args, **more)
        if any(member.node_name for member in outcome.members):
            outcome.status = OK
        return outcome

    patch.setattr(NewerTrial, "run", run)


def groups_do_not_come_back(patch: pytest.MonkeyPatch) -> None:
    """What an attempt left stays where it was put for that time."""
    patch.setattr(GroupQueue, "group_attempted", lambda self, group, status, now_s: None)


def pods_without_a_group_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    """The PodGroup goes, and its pods with it."""

    def gone(self: GroupQueue, group: AnyGroup, _now_s: float) -> None:
        entry = self._entries.get(group.group_key)
        if entry is not None:
            self._take_out(entry)

    patch.setattr(GroupQueue, "group_gone", gone)


def deleted_pods_stay_in_their_group(patch: pytest.MonkeyPatch) -> None:
    def delete(self: GroupQueue, info: PodInfo) -> None:
        if self.member(info.key) is None:
            self._pods.remove(info.key)

    patch.setattr(GroupQueue, "delete", delete)


def a_refused_group_is_dropped(patch: pytest.MonkeyPatch) -> None:
    """One whose pods have different priorities."""

    def refuse(self: NewerGroupCycles, _key: str, queued: list[QueuedPodInfo], *_what: object) -> None:
        for member in queued:
            self._queue.done(member.uid)

    patch.setattr(NewerGroupCycles, "_refuse", refuse)


@pytest.mark.parametrize(
    ("plant", "invariants"),
    [
        (gangs_do_not_ask_whether_they_are_complete, {gangs.INVARIANT, content.SCHEDULED}),
        (groups_do_not_come_back, {content.SCHEDULED, "no exception"}),
        (pods_without_a_group_are_forgotten, {places.INVARIANT}),
        (deleted_pods_stay_in_their_group, {places.INVARIANT, "no exception"}),
        (a_refused_group_is_dropped, {places.INVARIANT}),
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
