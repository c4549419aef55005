"""What is known of a group's room before it is tried holds whatever is tried, and changes no decision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from racked_groups import racked_cluster

from kubesched.framework.groups import GroupCycle
from kubesched.framework.nodes import IntArray, RowSets
from kubesched.k8s.model.scheduling import PodGroup
from kubesched.scheduler.build import build_loop
from kubesched.scheduler.config.defaults import with_gates
from kubesched.scheduler.config.load import default
from kubesched.scheduler.engine import placements
from kubesched.scheduler.engine.group_trial import GroupTrial
from kubesched.scheduler.engine.score import ByName
from kubesched.testing.world import World

_GATES = ("GenericWorkload", "GangScheduling", "TopologyAwareWorkloadScheduling")


def _world(seed: int, *, keeps_classes: bool = True) -> World:
    world = World(build_loop(with_gates(default(), dict.fromkeys(_GATES, True)), ByName(), keeps_classes=keeps_classes))
    made = racked_cluster(seed)
    for item in made.there:
        world.objects.create(item)
    world.run()
    for group, pods in made.groups:
        for item in (group, *pods):
            world.objects.create(item)
        world.run(for_s=15)
    return world


def _outcome(world: World) -> tuple[object, ...]:
    pods = {pod.name: (pod.spec.node_name, pod.status.conditions) for pod in world.pods.values()}
    return pods, {key: group.status.conditions for key, group in world.objects.of(PodGroup).items()}


@pytest.mark.parametrize("first", range(0, 100, 20))
def test_bounds_change_no_decision(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(first, first + 20):
        known = _outcome(_world(seed)), _outcome(_world(seed, keeps_classes=False))
        with monkeypatch.context() as patched:
            patched.setattr(placements, "_counted", lambda *_: None)
            tried = _outcome(_world(seed))
        assert known == (tried, tried), seed


@pytest.mark.parametrize("first", range(1000, 1100, 20))
def test_bounds_hold(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many pods find a node as was said at least, and at most: and the first so many at least."""
    bounds = placements._bounds
    n_exact = 0

    def checked(scheduler: Any, trial: GroupTrial, group: GroupCycle, book: Any, parts: RowSets) -> Any:
        nonlocal n_exact
        found = bounds(scheduler, trial, group, book, parts)
        if found is None:
            return None
        low, high = found
        for part, rows in enumerate(_parts(parts)):
            within = None if len(rows) == len(book.cluster.nodes) else rows
            outcome = trial.run(group, group.pods, within=within, post_filter=False, reasons=False)
            placed = [bool(member.node_name) for member in outcome.members]
            assert low[part] <= sum(placed) <= high[part], (seed, group.key, part)
            assert all(placed[: low[part]]), (seed, group.key, part)
            n_exact += int(low[part] == high[part])
        return found

    monkeypatch.setattr(placements, "_bounds", checked)
    for seed in range(first, first + 20):
        _world(seed)
    assert n_exact > 50, "too little is known"


def _parts(parts: RowSets) -> Sequence[IntArray]:
    return np.split(parts.rows, np.cumsum(np.bincount(parts.numbers))[:-1])
