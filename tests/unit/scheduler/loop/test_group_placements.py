"""Placements: which are proposed, how they are scored, and which of them a group goes to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from group_worlds import TOPOLOGY, add, bound, group, group_world, members, node, shown, told

from kubesched.framework.groups import GroupCycle, Placement, PlacementAssignments, PlacementsResult
from kubesched.framework.status import Status
from kubesched.scheduler.plugins.registry import REGISTRY
from kubesched.testing.world import World

_NAMES = ("a", "b")


class _Fake:
    """Proposes placements of one node each, and scores them by their name."""

    name = "Fake"

    def __init__(self, _args: object, handle: Any) -> None:
        self._handle = handle

    def generate_placements(self, _group: GroupCycle, parent: Placement) -> PlacementsResult:
        names = list(self._handle.nodes.names)
        return PlacementsResult(placements=[Placement(names[row], np.array([row])) for row in parent.rows.tolist()])

    def score_placement(self, _group: GroupCycle, proposed: PlacementAssignments) -> int:
        return {"a": 10, "b": 60}.get(proposed.placement.name, 0)


class _Against(_Fake):
    """Prefers the other one, and brings its scores into range itself."""

    name = "Against"

    def score_placement(self, _group: GroupCycle, proposed: PlacementAssignments) -> int:
        return {"a": 700, "b": 300}.get(proposed.placement.name, 0)

    def normalize_placement_scores(self, _group: GroupCycle, scores: Sequence[int]) -> Sequence[int]:
        return [score // 10 for score in scores]


def _placed(
    *plugins: type[_Fake], weights: Sequence[int] = (1, 1), cpus: Sequence[str] = ("4", "4"), n: int = 3
) -> World:
    named = [{"name": plugin.name, "weight": weight} for plugin, weight in zip(plugins, weights, strict=False)]
    points = {
        "placementGenerate": {"enabled": [{"name": plugins[0].name}], "disabled": [{"name": "*"}]},
        "placementScore": {"enabled": named, "disabled": [{"name": "*"}]},
    }
    registry = REGISTRY.merged_with({plugin.name: plugin for plugin in plugins})
    world = group_world(*TOPOLOGY, config={"profiles": [{"plugins": points}]}, registry=registry)
    add(world, *(node(name, cpu=cpu) for name, cpu in zip(_NAMES, cpus, strict=False)), group(gang=n), *members(n=n))
    world.run(for_s=1)
    return world


def _where(world: World) -> set[str]:
    return set(bound(world).values())


def test_a_single_placement_is_taken() -> None:
    assert _where(_placed(_Fake, cpus=["4"])) == {"a"}


def test_the_highest_score_is_taken() -> None:
    assert _where(_placed(_Fake)) == {"b"}


@pytest.mark.parametrize(("weights", "where"), [((1, 1), "b"), ((1, 2), "a")])
def test_scores_are_weighted_and_added_up(weights: tuple[int, int], where: str) -> None:
    assert _where(_placed(_Fake, _Against, weights=weights)) == {where}


def test_a_placement_that_the_group_does_not_fit_in_is_left_out() -> None:
    assert _where(_placed(_Fake, cpus=["4", "2"])) == {"a"}


def test_where_none_fits_the_first_tells_why() -> None:
    world = _placed(_Fake, cpus=["2", "2"])
    text = "0/2 placements are available, first placement status: pod group is unschedulable"
    assert shown(world) == ("False", "Unschedulable", text)
    assert told(world, "g-2").startswith("0/1 nodes are available: 1 Insufficient cpu.")


def _nothing(_plugin: Any, _group: GroupCycle, _parent: Placement) -> PlacementsResult:
    return PlacementsResult()


def _error(_plugin: Any, _group: GroupCycle, _parent: Placement) -> PlacementsResult:
    return PlacementsResult(Status.error("no map"))


def _bug(_plugin: Any, _group: GroupCycle, _parent: Placement) -> PlacementsResult:
    raise RuntimeError("no map")


@pytest.mark.parametrize(
    ("generate", "reason", "message"),
    [
        (_nothing, "Unschedulable", "no feasible placements found"),
        (_error, "SchedulerError", "no map"),
        (_bug, "SchedulerError", "no map"),
    ],
)
def test_without_placements_nothing_is_tried(generate: Callable[..., object], reason: str, message: str) -> None:
    plugin = type("Fake", (_Fake,), {"generate_placements": generate})
    world = _placed(plugin)
    assert shown(world) == ("False", reason, message)
    assert {told(world, f"g-{i}") for i in range(3)} == {message}


def _out_of_range(*_args: object) -> int:
    return 101


def _broken(*_args: object) -> int:
    raise RuntimeError("error for test")


def _broken_normalize(*_args: object) -> Sequence[int]:
    raise RuntimeError("error for test")


@pytest.mark.parametrize(
    ("methods", "message"),
    [
        (
            {"score_placement": _broken},
            'running PlacementScore plugins: plugin "Fake" failed with: error for test',
        ),
        (
            {"normalize_placement_scores": _broken_normalize},
            'running NormalizePlacementScore on PlacementScore plugins: plugin "Fake" failed with: error for test',
        ),
        (
            {"score_placement": _out_of_range},
            'applying score defaultWeights on PlacementScore plugins: plugin "Fake" returns an invalid score 101, it '
            "should in the range of [0, 100] after normalizing",
        ),
    ],
)
def test_placements_that_cannot_be_scored_are_an_error(methods: dict[str, object], message: str) -> None:
    world = _placed(type("Fake", (_Fake,), methods))
    assert shown(world) == ("False", "SchedulerError", message)
    assert bound(world) == {}


def test_without_a_generator_all_nodes_are_one_placement() -> None:
    points = {"placementGenerate": {"disabled": [{"name": "*"}]}}
    world = group_world(*TOPOLOGY, config={"profiles": [{"plugins": points}]})
    add(world, node("a", cpu="2"), node("b", cpu="2"), group(gang=4), *members(n=4))
    world.run(for_s=1)
    assert len(bound(world)) == 4
