"""Fleets: machines on which a scheduler that spreads pods loses little."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from plan_oracle import catalogue, pod, shape

import kubesched
from kubesched.k8s.loaded_cluster import read_objects
from kubesched.k8s.model.core import Node
from kubesched.older.config.emulation import GivenConfiguration
from kubesched.planning.catalogue_files import catalogue_from
from kubesched.planning.new_nodes import manifest_of
from kubesched.planning.plan.fleets import Rehearsal
from kubesched.planning.plan.judge import MixJudge
from kubesched.planning.plan.reading import read_problem
from kubesched.planning.plan.request import planned_world
from kubesched.planning.plan.scoring import rehearsed_scores
from kubesched.scheduler.config import KubeSchedulerConfiguration
from kubesched.scheduler.config.plugin_args import API_VERSION
from kubesched.simulator.loading import SIMULATED_KINDS, load
from kubesched.testing import make


def test_large_machines_are_bought_where_pods_are_spread() -> None:
    """By the hour and cpu the small machine is cheaper by a little; evenly filled, it has no room for a large pod that
    comes late."""
    chance = Random(1)
    pods = [pod(f"small-{k}", 250, 256) for k in range(240)] + [pod(f"large-{k}", 3000, 3072) for k in range(20)]
    chance.shuffle(pods)
    machines = catalogue(
        {**shape("small", 8, 16, 0.396), "allocatable": {"cpu": 8, "memory": "16Gi", "pods": 110}},
        {**shape("large", 64, 128, 3.2), "allocatable": {"cpu": 64, "memory": "128Gi", "pods": 400}},
    )
    report = kubesched.plan(pods, machines, from_scratch=True, time_limit_s=600)
    assert report.answer == "yes"
    assert "large" in {one.shape for one in report.mix}
    only_small = kubesched.plan(pods, catalogue(machines["shapes"][0]), from_scratch=True, time_limit_s=600)
    assert report.cost < only_small.cost
    assert report.gap < 0.08 < only_small.gap


def test_fleets_are_as_large_in_each_zone_where_zones_matter() -> None:
    labels = {"app": "web"}
    spread = {
        "maxSkew": 1,
        "topologyKey": make.ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": labels},
        "minDomains": 2,
    }
    pods = [pod(f"web-{k}", 1000, labels=labels, spec={"topologySpreadConstraints": [spread]}) for k in range(12)]
    offers = [{"zone": zone, "price": 0.2} for zone in "ab"]
    machine = {"name": "four", "allocatable": {"cpu": 4, "memory": "16Gi", "pods": 20}, "offers": offers}
    report = kubesched.plan(pods, catalogue(machine), from_scratch=True)
    assert report.answer == "yes"
    assert {one.zone: one.count for one in report.mix} == {"a": 2, "b": 2}


def late_large_pods() -> list[make.Manifest]:
    """Many small pods and some that take three eighths of the only machine, as they come."""
    chance = Random(2)
    pods = [pod(f"small-{k}", 250, 512) for k in range(200)] + [pod(f"large-{k}", 3000, 6144) for k in range(30)]
    chance.shuffle(pods)
    return pods


EIGHT = catalogue({**shape("eight", 8, 16, 0.4), "allocatable": {"cpu": 8, "memory": "16Gi", "pods": 110}})


def test_nodes_that_are_filled_in_turn_keep_room_for_late_large_pods() -> None:
    """Soft taints, and nothing else, make the difference: the same nodes without them leave pods pending."""
    pods = late_large_pods()
    evenly = kubesched.plan(pods, EIGHT, from_scratch=True, time_limit_s=600)
    in_turn = kubesched.plan(pods, EIGHT, from_scratch=True, fill="in-turn", time_limit_s=600)
    assert in_turn.answer == evenly.answer == "yes"
    assert in_turn.gap < 0.09 < 0.15 < evenly.gap
    assert {one.turn for one in evenly.mix} == {1} < {one.turn for one in in_turn.mix}
    assert "TURN" in str(in_turn) and "TURN" not in str(evenly)
    assert any(note.startswith("With --fill in-turn (soft taints on ") for note in evenly.notes)
    nodes = [item for item in in_turn.new_objects if isinstance(item, Node)]
    assert len({node.name for node in nodes}) == len(nodes) == in_turn.n_nodes
    assert {taint.effect for node in nodes for taint in node.spec.taints or ()} == {"PreferNoSchedule"}
    for bare, n_pending in ((False, 0), (True, 1)):
        taken = [replace(node, spec=replace(node.spec, taints=None)) if bare else node for node in nodes]
        with kubesched.world([*map(manifest_of, taken), *pods]).trial() as trial:
            assert min(1, len(trial.settle().pending)) == n_pending


def test_turns_do_not_add_to_what_is_to_be_had() -> None:
    """An offer of which 12 can be had is one offer in every turn."""
    offers = [{"zone": "a", "price": 0.4, "available": 12}, {"zone": "b", "price": 0.5}]
    machine = {**EIGHT["shapes"][0], "offers": offers}
    del machine["price"]
    report = kubesched.plan(late_large_pods(), catalogue(machine), from_scratch=True, fill="in-turn", time_limit_s=600)
    assert report.answer == "yes"
    in_zone = {zone: sum(one.count for one in report.mix if one.zone == zone) for zone in "ab"}
    assert 0 < in_zone["a"] <= 12 and in_zone["b"] > 0


# -- rehearsals --------------------------------------------------------------------------------------------------------


def configured(*, balanced: int = 1, **strategy: object) -> KubeSchedulerConfiguration:
    """With a scoringStrategy, and the weight of NodeResourcesBalancedAllocation."""
    profile = {
        "plugins": {"multiPoint": {"enabled": [{"name": "NodeResourcesBalancedAllocation", "weight": balanced}]}},
        "pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": strategy}}] if strategy else [],
    }
    document = {"apiVersion": API_VERSION, "kind": "KubeSchedulerConfiguration", "profiles": [profile]}
    return GivenConfiguration.read(document, None, None, None).as_of_today().config


def rehearsed(*turns: int, config: KubeSchedulerConfiguration | None = None) -> tuple[float, float]:
    """What the rehearsal leaves on so many machines in each turn, as a share of the demand over two orders; and what
    the scheduler leaves over the same, in large pods."""
    pods = late_large_pods()
    options = tuple(catalogue_from(EIGHT).options())
    config = config or configured()
    planned = planned_world(load(read_objects(pods, SIMULATED_KINDS)), options, config, from_scratch=True)
    scheduler = planned.world.scheduler_of(next(iter(planned.world.cluster.pending.values())))
    assert scheduler is not None
    judge = MixJudge(planned.in_turns(len(turns)), orders=2)
    orders = [judge.arrivals(order) for order in range(2)]
    scores = rehearsed_scores(config, scheduler.profile.score)
    assert scores is not None
    rehearsal = Rehearsal(read_problem(planned).model, orders, len(turns), scores)
    left = rehearsal.left([np.array(turns, dtype=np.int64)], 0)
    pending = [key for order in range(2) for key in judge.try_once(turns, "together", 0, order).pending]
    return float(left[0]), sum(1 if "large" in key else 250 / 3000 for key in pending)


@pytest.mark.parametrize("turns", [(19,), (9, 5, 3)])
def test_a_rehearsal_comes_near_to_the_scheduler(turns: tuple[int, ...]) -> None:
    """Ties are broken by chance, so that the two differ by a pod or two."""
    worth = 3000 / (200 * 250 + 30 * 3000)
    share, n_pending = rehearsed(*turns)
    assert n_pending > 0
    assert abs(share / worth - n_pending) <= 2
    assert rehearsed(60) == (0.0, 0)


_CURVE = {"shape": [{"utilization": 0, "score": 0}, {"utilization": 70, "score": 10}, {"utilization": 100, "score": 4}]}


@pytest.mark.parametrize(
    "strategy",
    [
        {"type": "MostAllocated", "balanced": 1},
        {"type": "MostAllocated", "balanced": 6},
        {"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": _CURVE},
    ],
)
def test_a_rehearsal_knows_configured_scores(strategy: dict[str, Any]) -> None:
    worth = 3000 / (200 * 250 + 30 * 3000)
    share, n_pending = rehearsed(17, config=configured(**strategy))
    assert n_pending > 0
    assert abs(share / worth - n_pending) <= 2


def test_a_rehearsal_does_not_pretend_to_know_scores_of_other_resources() -> None:
    strategy: dict[str, Any] = {
        "type": "MostAllocated",
        "resources": [{"name": "cpu", "weight": 3}, {"name": "memory", "weight": 1}],
    }
    assert rehearsed_scores(configured(**strategy), []) is None
    strategy["resources"] = [{"name": "nvidia.com/gpu", "weight": 1}]
    assert rehearsed_scores(configured(**strategy), []) is None


def test_a_rehearsal_with_other_scores_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: taints of later turns are forgotten."""
    monkeypatch.setattr("kubesched.planning.plan.fleets._NO_TAINT", 0)
    with pytest.raises(AssertionError):
        test_a_rehearsal_comes_near_to_the_scheduler((9, 5, 3))
