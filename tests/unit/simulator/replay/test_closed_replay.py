"""A recording in which our decisions take effect."""

from __future__ import annotations

from pathlib import Path

import pytest
from recorded_runs import configuration, manifests, recorded_run, write

from kubesched.simulator.replay.closed import closed_replay


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("closed") / "run.jsonl.gz", recorded_run(manifests(9), until_s=300.0))


def test_every_pod_that_came_is_scheduled_again(recording: Path) -> None:
    found = closed_replay(recording, configuration())
    assert found.replayed.n_pods == found.recorded.n_pods > 100
    assert found.replayed.n_bound == found.recorded.n_bound
    assert found.replayed.n_pending == 0
    assert found.headline.startswith(f"{found.recorded.n_bound} of {found.recorded.n_pods} pods got a node")


def test_pods_run_for_as_long_as_they_did(recording: Path) -> None:
    found = closed_replay(recording, configuration())
    for uid, then in found.recorded_lives.items():
        ours = found.replayed_lives[uid]
        if then.bound_s is not None and then.ended_s is not None and ours.ended_s is not None:
            assert ours.bound_s is not None
            assert ours.ended_s - ours.bound_s == pytest.approx(then.ended_s - then.bound_s)


def test_the_same_seed_gives_the_same_outcome(recording: Path) -> None:
    assert closed_replay(recording, configuration(), seed=1).to_dict() == (
        closed_replay(recording, configuration(), seed=1).to_dict()
    )


def test_a_scheduler_that_packs_uses_fewer_nodes(recording: Path) -> None:
    packed = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "plugins": {"multiPoint": {"disabled": [{"name": "NodeResourcesBalancedAllocation"}]}},
                "pluginConfig": [
                    {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}},
                ],
            }
        ],
    }
    found = closed_replay(recording, configuration(packed))
    assert found.replayed.n_bound == found.recorded.n_bound
    assert found.n_same_node < found.replayed.n_bound
    assert "RECORDED" in str(found)
