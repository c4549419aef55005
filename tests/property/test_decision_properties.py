"""What holds for every decision, on any cluster."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

import kubesched
from kubesched.framework.status import Status
from kubesched.k8s.model import manifests
from kubesched.scheduler.build import build_schedulers
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.config import default
from kubesched.scheduler.engine.cycle import Decision, ProfileScheduler
from kubesched.scheduler.engine.preemption import victims
from kubesched.scheduler.engine.row_check import NodeSteps
from kubesched.scheduler.engine.score import ByName
from kubesched.testing import make, strategies
from kubesched.testing.make import Manifest


def _scheduler(objects: list[Manifest]) -> ProfileScheduler:
    cluster = Cluster.from_objects(manifests.from_dicts(objects).objects)
    return build_schedulers(cluster, default(), ByName(), percentage=100)["default-scheduler"]


def _decide(objects: list[Manifest]) -> Decision:
    scheduler = _scheduler(objects)
    return scheduler.decide(next(iter(scheduler.cluster.pending.values())), complete=True)


@settings(max_examples=120, deadline=None)
@given(strategies.clusters())
def test_scores_are_between_0_and_100_before_weights(objects: list[Manifest]) -> None:
    decision = _decide(objects)
    assert decision.error == ""
    if decision.scored is None:
        return
    event(f"feasible nodes: {len(decision.scored.nodes)}")
    for scores in decision.scored.by_plugin:
        assert np.all(scores.weighted % scores.weight == 0)
        assert np.all((scores.weighted // scores.weight >= 0) & (scores.weighted // scores.weight <= 100))


@settings(max_examples=120, deadline=None)
@given(strategies.clusters(), st.randoms(use_true_random=False))
def test_permuting_the_objects_permutes_the_answer(objects: list[Manifest], chance: random.Random) -> None:
    key = strategies.pending_key(objects)
    shuffled = list(objects)
    chance.shuffle(shuffled)
    assume(shuffled != objects)
    assert kubesched.explain(shuffled, key).to_dict() == kubesched.explain(objects, key).to_dict()


@settings(max_examples=200, deadline=None)
@given(strategies.clusters(max_nodes=3))
def test_victims_are_of_lower_priority_and_none_of_them_could_stay(objects: list[Manifest]) -> None:
    event(f"preemption: {_check_victims(objects)}")


def _check_victims(objects: list[Manifest]) -> bool:
    """Whether there were any to check."""
    scheduler = _scheduler(objects)
    pending = next(iter(scheduler.cluster.pending.values()))
    preemption = scheduler.decide(pending).preemption
    if preemption is None:
        return False
    for candidate in preemption.candidates:
        assert candidate.victims
        assert all(victim.priority < pending.priority for victim in candidate.victims)
        keys = {str(victim.key) for victim in candidate.victims}
        assert _fits_on(objects, candidate.node_name, keys)
        for spared in keys:
            assert not _fits_on(objects, candidate.node_name, keys - {spared}), f"{spared} could have stayed"
    return True


@settings(max_examples=100, deadline=None)
@given(strategies.clusters(max_nodes=3))
def test_trials_on_the_table_and_on_imagined_nodes_agree(objects: list[Manifest]) -> None:
    imagined = _decide(objects)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(victims, "node_steps", lambda profile, cycle, pod: NodeSteps(profile, cycle.skip_filter, None))
        on_the_table = _decide(objects)
    event(f"preemption: {imagined.preemption is not None}")
    assert imagined.message == on_the_table.message
    if imagined.preemption is not None or on_the_table.preemption is not None:
        assert _victims_by_node(imagined) == _victims_by_node(on_the_table)


def _victims_by_node(decision: Decision) -> dict[str, list[str]]:
    assert decision.preemption is not None
    return {found.node_name: [victim.key for victim in found.victims] for found in decision.preemption.candidates}


@settings(max_examples=60, deadline=None)
@given(strategies.clusters())
def test_deciding_changes_nothing(objects: list[Manifest]) -> None:
    scheduler = _scheduler(objects)
    pending = next(iter(scheduler.cluster.pending.values()))
    first = scheduler.decide(pending, complete=True)
    second = scheduler.decide(pending, complete=True)
    assert first.best == second.best
    assert first.message == second.message
    on_rows = [[pod.key for pod in scheduler.cluster.table.pods.on(row)] for row in range(len(scheduler.cluster.nodes))]
    fresh = Cluster.from_objects(manifests.from_dicts(objects).objects)
    assert on_rows == [[pod.key for pod in fresh.table.pods.on(row)] for row in range(len(fresh.nodes))]


def test_the_victims_property_sees_a_victim_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted bug: whoever was taken away once is never brought back."""
    objects = [
        make.node("n0", cpu=2),
        make.pod("small", on="n0", cpu=1),
        make.pod("large", on="n0", cpu=1),
        make.pod("pending", cpu=1, priority=1),
    ]
    real = victims.ImaginedTrial.status

    def merciless(trial: victims.ImaginedTrial) -> Status:
        return Status.unschedulable("planted") if trial.pods else real(trial)

    assert _check_victims(objects)
    monkeypatch.setattr(victims.ImaginedTrial, "status", merciless)
    with pytest.raises(AssertionError, match="could have stayed"):
        _check_victims(objects)


def _fits_on(objects: list[Manifest], node_name: str, without: set[str]) -> bool:
    left = [
        o
        for o in objects
        if o["kind"] != "Pod" or f"{o['metadata']['namespace']}/{o['metadata']['name']}" not in without
    ]
    answer = kubesched.explain(left, strategies.pending_key(objects)).to_dict()
    return bool(answer["nodes"].get(node_name, {}).get("fit"))


def _key(manifest: Manifest) -> str:
    return f"{manifest['metadata']['namespace']}/{manifest['metadata']['name']}"
