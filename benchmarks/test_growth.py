"""How the cost of a decision grows with the cluster. Run by `make bench`, not by `make test`: it looks at the clock.

Asserts ratios on one machine, never seconds, and generous ones: twice the nodes may cost at most four times as much.
"""

from __future__ import annotations

import pytest

from kubesched.simulator.bench.runner import run_workload
from kubesched.simulator.bench.workload_file import load_workloads, resized, select_workloads

N_NODES = 1000
N_PODS = 500
MOST = 4.0


def _cost_us(family: str, n_nodes: int) -> float:
    """Of a decision, in the best of three runs: what else the machine does makes it only slower."""
    (workload,) = select_workloads(load_workloads(()), [family], ())
    results = [run_workload(resized(workload, n_nodes, N_PODS)) for _ in range(3)]
    assert all(result.scheduled == N_PODS and not result.problem for result in results)
    return min(result.p50_us for result in results)


@pytest.mark.parametrize(
    "family",
    [
        "basic",
        "node-affinity",
        "affinity",
        "anti-affinity",
        "preferred-affinity",
        "topology-spreading",
        "preemption-basic",
        "mixed-churn",
    ],
)
def test_a_decision_costs_at_most_linearly_more_on_more_nodes(family: str) -> None:
    assert _cost_us(family, 2 * N_NODES) < MOST * _cost_us(family, N_NODES)
