"""Trials: what they answer, and that nothing is left of one that was taken back."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kubesched
from harness.trials import act_at_random, hold, miscounted, owned, random_cluster, state, state_hash
from kubesched import LoadedWorld, TrialError
from kubesched.testing import make, strategies
from kubesched.testing.make import Manifest


def small_world(*more: Manifest, **options: Any) -> LoadedWorld:
    nodes = [make.node(name, allocatable={"cpu": "2", "memory": "4Gi", "pods": "10"}) for name in ("a", "b", "c")]
    pods = [owned(make.pod(f"web-{n}", requests={"cpu": "1"}, on="ab"[n % 2])) for n in range(4)]
    return kubesched.world([*nodes, *pods, *more], **options)


def test_evicted_pods_find_other_nodes_and_are_back_afterwards() -> None:
    world = small_world()
    before = state(world)
    with world.trial() as trial:
        trial.cordon("a")
        trial.evict("web-0", "web-2")
        settled = trial.settle()
        assert settled.placed == {"default/web-0": "c", "default/web-2": "c"}
        assert settled.pending == ()
        assert str(settled) == "2 pods placed, 0 pending."
    assert state(world) == before


def test_a_pod_that_finds_no_node_says_why_and_can_be_explained() -> None:
    world = small_world()
    with world.trial() as trial:
        trial.delete_node("c")
        trial.drain("a")
        settled = trial.settle()
        assert [one.pod for one in settled.pending] == ["default/web-0", "default/web-2"]
        first = settled.pending[0]
        assert first.message.startswith("0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable")
        assert first.plugins == ("NodeResourcesFit", "NodeUnschedulable")
        assert "cpu" in str(first.explain())
    with pytest.raises(TrialError, match="the trial has ended"):
        first.explain()


def test_preempted_pods_wait_again_if_somebody_makes_them_anew() -> None:
    world = small_world()
    with world.trial() as trial:
        trial.delete_node("c")
        settled_full = trial.settle()
        assert settled_full.placed == {}
        pod = make.pod("important", requests={"cpu": "2"}, priority=10)
        trial.add_pod(pod)
        settled = trial.settle()
        assert set(settled.placed) == {"default/important"}
        assert len(settled.preempted) == 2
        assert [one.pod for one in settled.pending] == list(settled.preempted)


def test_a_pod_without_a_controller_is_gone() -> None:
    world = small_world(make.pod("alone", on="c"))
    with world.trial() as trial:
        trial.evict("alone")
        assert "default/alone" not in (*world.placed, *world.pending)
    assert world.placed["default/alone"] == "c"


def test_a_new_node_takes_what_waits_and_commit_keeps_it() -> None:
    big = make.node("big", allocatable={"cpu": "9", "memory": "9Gi", "pods": "10"})
    world = small_world(make.pod("large", requests={"cpu": "8"}))
    with world.trial() as trial:
        assert [one.pod for one in trial.settle().pending] == ["default/large"]
        trial.add_node(big)
        assert trial.settle().placed == {"default/large": "big"}
        trial.commit()
    assert world.placed["default/large"] == "big"
    assert "big" in world.nodes


def test_an_inner_trial_ends_before_the_outer_one() -> None:
    world = small_world()
    with world.trial() as outer:
        outer.cordon("c")
        with outer.trial() as inner:
            with pytest.raises(TrialError, match="within this one"):
                outer.settle()
            inner.delete_node("b")
        assert world.nodes == ["a", "b", "c"]
        outer.evict("web-0")
        assert outer.settle().placed == {"default/web-0": "a"}


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda trial: trial.cordon("d"), "there is no node d"),
        (lambda trial: trial.evict("web-9"), "there is no pod default/web-9"),
        (lambda trial: trial.add_node(make.node("a")), "there is a node a already"),
        (lambda trial: trial.add_pod(make.pod("web-0")), "there is a pod default/web-0 already"),
        (lambda trial: trial.add_pod(make.node("d")), "one manifest of kind Pod"),
    ],
)
def test_what_cannot_be_done_is_one_error(act: Any, message: str) -> None:
    with small_world().trial() as trial, pytest.raises(TrialError, match=message):
        act(trial)


def test_copies_come_until_one_finds_no_node() -> None:
    world = small_world()
    with world.trial() as trial:
        nodes, failed = trial.fill(make.pod("copy", requests={"cpu": "500m"}), most=100)
        assert nodes == ["c"] * 4
        assert failed is not None
        assert "3 Insufficient cpu" in failed.message


def test_workloads_get_the_pods_that_are_missing() -> None:
    web = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db", "namespace": "shop"},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "db"}},
            "template": {
                "metadata": {"labels": {"app": "db"}},
                "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
            },
        },
    }
    world = small_world(web)
    assert world.pending == ["shop/db-0", "shop/db-1", "shop/db-2"]
    with world.trial() as trial:
        assert len(trial.settle().placed) == 2


@given(strategies.clusters(max_nodes=6, max_pods=10), st.integers(0, 2**16))
def test_nothing_is_left_of_a_trial_that_is_taken_back(objects: list[Manifest], seed: int) -> None:
    world = kubesched.world([owned(item) if item["kind"] == "Pod" else item for item in objects], seed=seed)
    random = Random(seed)
    before = state(world)
    for number in range(1, 4):
        with world.trial() as trial:
            for step in range(random.randrange(1, 6)):
                act_at_random(trial, random, 10 * number + step)
        assert state(world) == before
        assert miscounted(world) == []


@given(strategies.clusters(max_nodes=6, max_pods=10), st.integers(0, 2**16))
def test_a_trial_after_others_decides_as_on_a_fresh_cluster(objects: list[Manifest], seed: int) -> None:
    given_objects = [owned(item) if item["kind"] == "Pod" else item for item in objects]
    used, fresh = (kubesched.world(given_objects, seed=seed) for _ in range(2))
    random = Random(seed)
    for number in range(2):
        with used.trial() as trial:
            for step in range(4):
                act_at_random(trial, random, 10 * number + step)
    later = random.getrandbits(32)
    results = []
    for world in (used, fresh):
        same = Random(later)
        with world.trial() as trial:
            for step in range(4):
                act_at_random(trial, same, 1000 + step)
            results.append((trial.settle(), world.placed, world.pending))
            trial.commit()
    assert results[0] == results[1]
    assert state(used) == state(fresh)


def test_many_random_trials_on_one_world_leave_its_hash_as_it_was() -> None:
    """`make trials` holds 10,000 of them."""
    objects = random_cluster(12, Random(3))
    world, fresh = (kubesched.world(objects, seed=3) for _ in range(2))
    before = state_hash(world)
    for number in range(40):
        hold(world, str(number))
        assert state_hash(world) == before
    assert hold(world, "last") == hold(fresh, "last")


def test_the_hash_tells_states_apart() -> None:
    world = kubesched.world(random_cluster(12, Random(3)), seed=3)
    before = state_hash(world)
    with world.trial() as trial:
        trial.settle()
        trial.commit()
    assert state_hash(world) != before
