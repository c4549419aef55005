"""Results as people read them, and as programs do."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from kubesched.simulator.bench.runner import BenchResult

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
