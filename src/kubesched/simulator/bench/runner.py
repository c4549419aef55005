"""Runs a workload from the first operation to the last, and says what came of it, for people and for programs.

Next: `run` for what operations share, `steps` for each operation.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from kubesched.simulator.bench import steps
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
from kubesched.simulator.bench.run import BenchRun, BenchSettings, NotPlacedError, Progress, current_mb, peak_mb
from kubesched.simulator.bench.workload_file import BenchWorkload

STEPS: dict[type[Operation], Callable[[BenchRun, int, Any], None]] = {
    AllocResourceClaimsOp: steps.alloc_resource_claims,
    ArrivePodsOp: steps.arrive_pods,
    BarrierOp: steps.wait_at_barrier,
    ChurnOp: steps.start_churn,
    CreateAnyOp: steps.create_any,
    CreateNamespacesOp: steps.create_namespaces,
    CreateNodesOp: steps.create_nodes,
    CreatePodSetsOp: steps.create_pod_sets,
    CreatePodsOp: steps.create_pods,
    CreateResourceDriverOp: steps.create_resource_driver,
    DeletePodsOp: steps.delete_pods,
    SleepOp: steps.sleep,
    StartCollectingMetricsOp: steps.start_collecting_metrics,
    StopCollectingMetricsOp: steps.stop_collecting_metrics,
    UpdateAnyOp: steps.update_any,
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


_COLUMNS = ("workload", "nodes", "pods", "scheduled", "pods/s", "attempts", "p50", "p90", "p99", "peak")
_WIDTHS = (30, 7, 7, 10, 9, 9, 9, 9, 9, 8)


def to_record(result: BenchResult) -> dict[str, Any]:
    return {
        "workload": result.workload,
        "nodes": result.nodes,
        "pods": result.pods,
        "scheduled": result.scheduled,
        "pods_per_s": round(result.pods_per_s, 1),
        "attempts": result.attempts,
        "p50_us": round(result.p50_us, 1),
        "p90_us": round(result.p90_us, 1),
        "p99_us": round(result.p99_us, 1),
        "peak_mb": round(result.peak_mb, 1),
    }


def to_json(result: BenchResult) -> str:
    """One line."""
    return json.dumps(to_record(result))


def table_head() -> str:
    return _row(_COLUMNS)


def table_row(result: BenchResult) -> str:
    return _row(
        (
            result.workload,
            f"{result.nodes:,}",
            f"{result.pods:,}",
            f"{result.scheduled:,}",
            f"{result.pods_per_s:,.0f}",
            f"{result.attempts:,}",
            _duration(result.p50_us),
            _duration(result.p90_us),
            _duration(result.p99_us),
            f"{result.peak_mb:,.0f} MB",
        )
    )


def _row(cells: Sequence[str]) -> str:
    name, *numbers = cells
    return " ".join(
        (f"{name:<{_WIDTHS[0]}}", *(f"{cell:>{width}}" for cell, width in zip(numbers, _WIDTHS[1:], strict=True)))
    )


def _duration(micros: float) -> str:
    return f"{micros:,.0f} us" if micros < 10_000 else f"{micros / 1000:,.1f} ms"
