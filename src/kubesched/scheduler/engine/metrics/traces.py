"""A trace of a decision that took long: its steps and when each was done, under kube-scheduler's names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kubesched.framework.pod_info import PodInfo
from kubesched.scheduler.engine.metrics.extension_point_watch import ExtensionPointMark

LONG_S = 0.1
"""A decision that takes longer leaves a trace."""

_STEPS = {"Filter": "Computing predicates done", "Score": "Prioritizing done"}


@dataclass(frozen=True, slots=True)
class TraceStep:
    name: str
    after_s: float
    """Since the beginning of the trace."""


@dataclass(frozen=True, slots=True)
class Trace:
    """`started_s` is a reading of the loop's clock."""

    name: str
    namespace: str
    pod_name: str
    started_s: float
    total_s: float
    steps: tuple[TraceStep, ...]

    def __str__(self) -> str:
        head = f'"{self.name}" namespace:{self.namespace},name:{self.pod_name} (total time: {_ms(self.total_s)})'
        return "\n".join([head, *(f'---"{step.name}" {_ms(step.after_s)}' for step in self.steps)])


def trace_of(pod: PodInfo, started_s: float, ended_s: float, marks: Sequence[ExtensionPointMark]) -> Trace | None:
    """The trace of a decision, or None if it was quick. Looking for victims is no part of it."""
    if ended_s - started_s <= LONG_S:
        return None
    runs = {
        extension_point: run for extension_point, *run in marks
    }  # of an extension point that was run again after a pause, the last run counts
    if "PostFilter" in runs:
        ended_s = runs["PostFilter"][0]
        if ended_s - started_s <= LONG_S:
            return None
    steps = tuple(
        TraceStep(name, runs[extension_point][1] - started_s)
        for extension_point, name in _STEPS.items()
        if extension_point in runs
    )
    return Trace("Scheduling", pod.namespace, pod.name, started_s, ended_s - started_s, steps)


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f}ms"
