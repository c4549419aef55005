"""The group cycle of v1.37 under faults: no gang is bound in part, no pod is lost, and what can be scheduled is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from harness.chaos import run_seed
from harness.chaos.simulation import Simulation
from harness.chaos.weather import FIRST_WITH_GROUPS
from kubesched.framework.status import OK
from kubesched.scheduler.config import KubeSchedulerConfiguration
from kubesched.scheduler.engine.group_cycle import GroupCycles
from kubesched.scheduler.engine.group_trial import GroupOutcome
from kubesched.scheduler.newer.groups import NewerGroupCycles, NewerTrial

_SEEDS = range(FIRST_WITH_GROUPS, FIRST_WITH_GROUPS + 30)


@pytest.fixture(autouse=True)
def next_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pods of the groups that are drawn have priorities of their own, which v1.37 refuses: that is let pass."""
    of_today: Callable[[Simulation], KubeSchedulerConfiguration] = vars(Simulation)["configuration"].fget

    def emulating(sim: Simulation) -> KubeSchedulerConfiguration:
        return replace(of_today(sim), emulate="1.37")

    monkeypatch.setattr(Simulation, "configuration", property(emulating))
    monkeypatch.setattr(NewerGroupCycles, "_problem", GroupCycles._problem)


def test_no_fault_breaks_a_group() -> None:
    failures = {seed: found.failure for seed in _SEEDS if (found := run_seed(seed)).failure is not None}
    assert failures == {}


def test_a_gang_that_does_not_ask_whether_it_is_complete_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: pods of a gang are bound although too few of them fit."""
    of_today = NewerTrial.run

    def run(self: NewerTrial, *args: Any, **more: Any) -> GroupOutcome:
        outcome = of_today(self, *args, **more)
        if any(member.node_name for member in outcome.members):
            outcome.status = OK
        return outcome

    monkeypatch.setattr(NewerTrial, "run", run)
    assert any(run_seed(seed).failure is not None for seed in _SEEDS)
