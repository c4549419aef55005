"""Every family that comes along, at its small size: all pods that should be placed are."""

from __future__ import annotations

from functools import partial
from itertools import count

import pytest
from bench_files import placements

from kubesched.simulator.bench.run import BenchRun, BenchSettings
from kubesched.simulator.bench.runner import run_operations, run_workload
from kubesched.simulator.bench.workload_file import BenchWorkload, load_workloads, select_workloads

SMALL = select_workloads(load_workloads(()), (), ["small"])


def _placed(workload: BenchWorkload, *, seed: int = 0, keeps_classes: bool = True) -> dict[str, str]:
    """Each reading of the clock is as much later, so that pods come between the same others every time."""
    run = BenchRun(workload, BenchSettings(seed, keeps_classes, clock_ns=partial(next, count(0, 50_000))))
    run_operations(run)
    return placements(run)


@pytest.mark.parametrize("workload", SMALL, ids=lambda workload: workload.case)
def test_all_pods_that_should_be_placed_are(workload: BenchWorkload) -> None:
    result = run_workload(workload)
    assert result.problem == ""
    assert result.scheduled == result.pods == workload.params["measurePods"]
    assert result.attempts >= int(workload.params.get("gangs", result.pods))  # a gang is tried as a whole


@pytest.mark.parametrize("workload", SMALL, ids=lambda workload: workload.case)
def test_pods_go_to_the_same_nodes_with_and_without_the_class_cache(workload: BenchWorkload) -> None:
    with_cache = _placed(workload, seed=3)
    assert _placed(workload, seed=3, keeps_classes=False) == with_cache


def test_the_same_seed_gives_the_same_placements_and_another_one_others() -> None:
    (basic,) = (workload for workload in SMALL if workload.case == "basic")
    first = _placed(basic, seed=1)
    assert _placed(basic, seed=1) == first
    assert _placed(basic, seed=2) != first


def test_preemption_evicts_three_pods_for_each_that_comes() -> None:
    for workload in SMALL:
        if workload.case.startswith("preemption"):
            placed = _placed(workload)
            n_low = sum("/low-" in key for key in placed)
            nodes, preemptors = workload.params["initNodes"], workload.params["measurePods"]
            assert isinstance(nodes, int)
            assert isinstance(preemptors, int)
            assert n_low == 4 * nodes - 3 * preemptors


def test_gated_pods_stay_behind_their_gate() -> None:
    (gated,) = (workload for workload in SMALL if workload.case == "gated")
    placed = _placed(gated)
    assert sum(not node for key, node in placed.items() if "/gated-" in key) == gated.params["gatedPods"]
