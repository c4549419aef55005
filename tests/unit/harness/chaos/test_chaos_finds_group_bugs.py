"""What must hold of pod groups, with a bug planted in the loop that breaks it: the simulation finds it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.chaos.checks import REBUILT, content, gangs, places
from harness.chaos.many import try_seed
from harness.chaos.weather import FIRST_WITH_GROUPS
from kubesched.framework.extension_points import PermitResult
from kubesched.framework.status import OK
from kubesched.scheduler.engine.event_handlers import EventHandlers
from kubesched.scheduler.engine.group_cycle import GroupCycles
from kubesched.scheduler.engine.group_trial import GroupTrial
from kubesched.scheduler.engine.preemption.group_victims import _Away
from kubesched.scheduler.plugins.gang_scheduling import GangScheduling
from kubesched.scheduler.queue import QueuedPodInfo, SchedulingQueue

Plant = Callable[[pytest.MonkeyPatch], None]
_MOST_SEEDS = 200


def trials_are_not_taken_back(patch: pytest.MonkeyPatch) -> None:
    """A gang that did not fit keeps its places."""
    patch.setattr(GroupTrial, "take_back", lambda self: self._placed.clear())


def permit_lets_everybody_go(patch: pytest.MonkeyPatch) -> None:
    """A gang is bound as far as it fits."""
    patch.setattr(GangScheduling, "permit", lambda self, cycle, pod, node_name: PermitResult(OK))
    patch.setattr(GangScheduling, "is_complete", lambda self, key, n_scheduled: True)


def the_last_pod_calls_nobody(patch: pytest.MonkeyPatch) -> None:
    """Those that waited for it stay held back."""
    patch.setattr(EventHandlers, "_call_members", lambda self, group, event, now_s: None)


def failed_members_are_dropped(patch: pytest.MonkeyPatch) -> None:
    def drop(self: SchedulingQueue, queued: QueuedPodInfo, **_how: object) -> None:
        self.done(queued.uid)

    patch.setattr(SchedulingQueue, "add_failed_member", drop)


def victims_stay_away(patch: pytest.MonkeyPatch) -> None:
    """Those that were imagined away are not brought back."""
    patch.setattr(_Away, "bring_all", lambda self: None)


def who_stands_aside_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A gang that let others go first is never tried."""
    patch.setattr(GroupCycles, "go_on", lambda self, now_s: setattr(self, "standing", None))


@pytest.mark.parametrize(
    ("plant", "invariants"),
    [
        (trials_are_not_taken_back, {REBUILT, places.INVARIANT, "no exception"}),
        (permit_lets_everybody_go, {gangs.INVARIANT}),
        (the_last_pod_calls_nobody, {content.SCHEDULED}),
        (failed_members_are_dropped, {places.INVARIANT}),
        (victims_stay_away, {REBUILT, "no exception"}),
        (who_stands_aside_is_forgotten, {content.SCHEDULED, places.INVARIANT}),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_a_planted_bug_is_found(plant: Plant, invariants: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    for seed in range(FIRST_WITH_GROUPS, FIRST_WITH_GROUPS + _MOST_SEEDS):
        failure = try_seed(seed).failure
        if failure is not None:
            assert failure.invariant in invariants
            return
    pytest.fail("not found")
