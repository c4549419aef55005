"""A decision that took long, as kube's trace lines: when it began, and its steps that took more than their share."""

from __future__ import annotations

import time
from collections.abc import Iterator

from kubesched.scheduler.engine.metrics.traces import LONG_S, Trace


def trace_text(trace: Trace, number: int, began_at_s: float, *, all_steps: bool) -> str:
    """`began_at_s` is in seconds since 1970. `all_steps`: also those that took less than their share."""
    head = f"Trace[{number}]: "
    total_ms = int(trace.total_s * 1000)
    lines = [
        f'{head}"{trace.name}" namespace:{trace.namespace},name:{trace.pod_name} '
        f"({_at(began_at_s, '%d-%b-%Y %H:%M:%S')}) (total time: {total_ms}ms):"
    ]
    lines += [f"{head}{step}" for step in _steps(trace, began_at_s, all_steps)]
    lines.append(f"{head}[{trace.total_s * 1000:.6g}ms] [{trace.total_s * 1000:.6g}ms] END")
    return "\n".join(lines) + "\n"


def _steps(trace: Trace, began_at_s: float, all_steps: bool) -> Iterator[str]:
    share_s = LONG_S / (len(trace.steps) + 1)
    last_s = 0.0
    for step in trace.steps:
        took_s = step.after_s - last_s
        last_s = step.after_s
        if all_steps or took_s >= share_s:
            yield f'---"{step.name}" {int(took_s * 1000)}ms ({_at(began_at_s + step.after_s, "%H:%M:%S")})'


def _at(at_s: float, form: str) -> str:
    return f"{time.strftime(form, time.localtime(at_s))}.{int(at_s * 1000) % 1000:03d}"
