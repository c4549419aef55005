"""Runs a workload from the first operation to the last, and says what came of it.

Next: `run` for what operations share, `report` for how results are shown.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kubesched.simulator.bench import making_steps, pod_steps
from kubesched.simulator.bench.driver import Progress
from kubesched.simulator.bench.measurement import current_mb, peak_mb
from kubesched.simulator.bench.operations import (
    AllocResourceClaimsOp,
    ArrivePodsOp,
    BarrierOp,
    ChurnOp,
    CreateAnyOp,
    CreateNamespacesOp,
    CreateNodesOp,
    CreatePodSetsOp,
    CreatePodsOp,
    CreateResourceDriverOp,
    DeletePodsOp,
    Operation,
    SleepOp,
    StartCollectingMetricsOp,
    StopCollectingMetricsOp,
    UpdateAnyOp,
)
from kubesched.simulator.bench.run import BenchRun, BenchSettings, NotPlacedError
from kubesched.simulator.bench.workload_file import BenchWorkload

STEPS: dict[type[Operation], Callable[[BenchRun, int, Any], None]] = {
    AllocResourceClaimsOp: making_steps.alloc_resource_claims,
    ArrivePodsOp: pod_steps.arrive_pods,
    BarrierOp: pod_steps.wait_at_barrier,
    ChurnOp: making_steps.start_churn,
    CreateAnyOp: making_steps.create_any,
    CreateNamespacesOp: making_steps.create_namespaces,
    CreateNodesOp: making_steps.create_nodes,
    CreatePodSetsOp: pod_steps.create_pod_sets,
    CreatePodsOp: pod_steps.create_pods,
    CreateResourceDriverOp: making_steps.create_resource_driver,
    DeletePodsOp: pod_steps.delete_pods,
    SleepOp: pod_steps.sleep,
    StartCollectingMetricsOp: pod_steps.start_collecting_metrics,
    StopCollectingMetricsOp: pod_steps.stop_collecting_metrics,
    UpdateAnyOp: making_steps.update_any,
}


@dataclass(frozen=True, slots=True)
class BenchResult:
    """What one workload came to. `problem` says which pods were not placed that should have been."""

    workload: str
    nodes: int
    pods: int
    scheduled: int
    attempts: int
    pods_per_s: float
    p50_us: float
    p90_us: float
    p99_us: float
    peak_mb: float
    current_mb: float
    problem: str = ""


def run_workload(
    workload: BenchWorkload, settings: BenchSettings | None = None, progress: Progress | None = None
) -> BenchResult:
    """Raises WorkloadError where the workload cannot be run as it is written."""
    run = BenchRun(workload, settings or BenchSettings(), progress)
    problem = ""
    try:
        run_operations(run)
    except NotPlacedError as missing:
        problem = str(missing)
    finally:
        run.measurement.close()
        gc.unfreeze()
    return _result(run, problem)


def run_operations(run: BenchRun) -> None:
    """Raises NotPlacedError where pods were not placed that should have been."""
    for number, operation in enumerate(run.workload.operations):
        STEPS[type(operation)](run, number, operation)


def _result(run: BenchRun, problem: str) -> BenchResult:
    found = run.measurement
    return BenchResult(
        workload=run.workload.title,
        nodes=run.n_nodes,
        pods=found.n_pods,
        scheduled=found.n_scheduled,
        attempts=found.n_attempts,
        pods_per_s=found.pods_per_s,
        p50_us=found.percentile_us(50),
        p90_us=found.percentile_us(90),
        p99_us=found.percentile_us(99),
        peak_mb=peak_mb(),
        current_mb=current_mb(),
        problem=problem,
    )
