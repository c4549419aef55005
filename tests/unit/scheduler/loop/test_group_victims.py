"""Victims of group preemption: which pods leave together, who is more important, and whom a budget protects."""

from __future__ import annotations

import msgspec
import pytest
from group_worlds import budget, group, node, pod

from kubesched.framework.pod_info import PodInfo, PodSignature
from kubesched.k8s.model.core import Pod, PodDisruptionBudget
from kubesched.k8s.model.meta import KubeObject
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.engine.preemption.group_victims import (
    VictimUnit,
    most_important_first,
    split_by_budgets,
    units_of,
)
from kubesched.scheduler.engine.preemption.victims import Budgets


def _info(made: Pod) -> PodInfo:
    return PodInfo(made, PodSignature(made, label_class=0, affinity_class=-1))


def _unit(priority: int, *starts: str | None, grouped: bool = False) -> VictimUnit:
    pods = []
    for number, start in enumerate(starts):
        made = pod(f"p{number}", "v" if grouped else "", priority=priority)
        made = msgspec.structs.replace(made, status=msgspec.structs.replace(made.status, start_time=start))
        pods.append((_info(made), 0))
    return VictimUnit(priority, pods)


_EARLY, _LATE = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


@pytest.mark.parametrize(
    ("more", "less"),
    [
        pytest.param(_unit(2, _LATE), _unit(1, _EARLY), id="priority"),
        pytest.param(_unit(2, _LATE), _unit(1, _EARLY, _EARLY, grouped=True), id="priority before anything else"),
        pytest.param(_unit(1, _LATE, grouped=True), _unit(1, _EARLY), id="a group before a pod"),
        pytest.param(_unit(1, _EARLY), _unit(1, _LATE), id="the older pod"),
        pytest.param(_unit(1, _LATE, _LATE, grouped=True), _unit(1, _EARLY, grouped=True), id="the larger group"),
        pytest.param(_unit(1, _LATE, _EARLY, grouped=True), _unit(1, _LATE, _LATE, grouped=True), id="the older group"),
        pytest.param(_unit(1, _EARLY), _unit(1, None), id="one that has not started comes last"),
    ],
)
def test_more_important_units_come_first(more: VictimUnit, less: VictimUnit) -> None:
    assert most_important_first([less, more]) == [more, less]
    assert most_important_first([more, less]) == [more, less]


def test_v1_36_takes_the_start_of_the_pod_that_it_met_first() -> None:
    older, other = _unit(1, _LATE, _EARLY, grouped=True), _unit(1, _EARLY, _LATE, grouped=True)
    assert most_important_first([older, other]) == [older, other]
    assert most_important_first([older, other], by_first_start=True) == [other, older]


def _labelled(*names: str, app: str = "a") -> VictimUnit:
    return VictimUnit(1, [(_info(pod(name, labels={"app": app})), 0) for name in names])


@pytest.mark.parametrize(
    ("budgets", "units", "n_breaking"),
    [
        pytest.param([], [_labelled("p")], 0, id="no budgets"),
        pytest.param([budget(0, "other")], [_labelled("p")], 0, id="of others"),
        pytest.param([budget(1)], [_labelled("p")], 0, id="enough"),
        pytest.param([budget(0)], [_labelled("p")], 1, id="nothing left"),
        pytest.param([budget(1)], [_labelled("p", "q")], 1, id="a unit of which one pod is too many"),
        pytest.param([budget(2)], [_labelled("p", "q")], 0, id="a unit for which it is enough"),
        pytest.param([budget(1)], [_labelled("p"), _labelled("q")], 1, id="units share a budget"),
        pytest.param([budget(0, disrupted=("p",))], [_labelled("p")], 0, id="counted by the API server already"),
        pytest.param([budget(0, "")], [_labelled("p")], 0, id="an empty selector matches nothing"),
        pytest.param([budget(1), budget(0)], [_labelled("p")], 1, id="one of several"),
    ],
)
def test_units_that_break_a_budget(
    budgets: list[PodDisruptionBudget], units: list[VictimUnit], n_breaking: int
) -> None:
    breaking, harmless = split_by_budgets(Budgets(budgets), units)
    assert (len(breaking), len(harmless)) == (n_breaking, len(units) - n_breaking)


def _on(name: str, group_name: str = "") -> Pod:
    return pod(name, group_name, priority=10, nodeName=f"n{name[-1]}")


_WHOLE = group("whole", priority=50, disruptionMode="PodGroup")
_LOOSE = group("loose", priority=50, disruptionMode="Pod")


@pytest.mark.parametrize(
    ("objects", "units"),
    [
        pytest.param([], [], id="no pods"),
        pytest.param([_on("a-0"), _on("b-1")], [(10, ["a-0"]), (10, ["b-1"])], id="singles"),
        pytest.param([_WHOLE, _on("a-0", "whole"), _on("b-1", "whole")], [(50, ["a-0", "b-1"])], id="whole"),
        pytest.param([_LOOSE, _on("a-0", "loose"), _on("b-1", "loose")], [(10, ["a-0"]), (10, ["b-1"])], id="loose"),
        pytest.param([_on("a-0", "none"), _on("b-1", "none")], [(10, ["a-0"]), (10, ["b-1"])], id="no such group"),
        pytest.param(
            [_WHOLE, _LOOSE, _on("a-0", "whole"), _on("b-0", "loose"), _on("c-1"), _on("d-1", "whole")],
            [(50, ["a-0", "d-1"]), (10, ["b-0"]), (10, ["c-1"])],
            id="all of them",
        ),
    ],
)
def test_pods_that_leave_together(objects: list[KubeObject], units: list[tuple[int, list[str]]]) -> None:
    cluster = Cluster.from_objects([node("n0"), node("n1"), *objects])
    found = [(unit.priority, [info.name for info, _ in unit.pods]) for unit in units_of(cluster)]
    assert found == units
