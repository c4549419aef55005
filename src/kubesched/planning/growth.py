"""`kubesched capacity --inflate replicas`: how far all workloads can grow together until something stays pending.

The factor walks up in steps, each tried from the same state with all workloads grown by it: a larger factor may fit
where a smaller one does not, so nothing between two steps is taken for granted, and the walk ends at the first step
that fails.

Next: `kubesched.planning.workload_copies`, which makes the replicas.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from math import ceil
from typing import Any

from kubesched.explanation.layout import counted, table
from kubesched.k8s.errors import KubeschedError
from kubesched.k8s.model.meta import KubeObject
from kubesched.planning.copy_admission import CopyAdmission, CopyEntry
from kubesched.planning.workload_copies import Replica, n_replicas, replicas_of, scaled_workloads, title_of
from kubesched.simulator.trial import LoadedWorld

MOST_GROWTH = 1000
"""In percent: beyond ten times as much nobody asks any more."""


class GrowthError(KubeschedError, ValueError):
    """What is asked for cannot grow, or not so."""


@dataclass(frozen=True, slots=True)
class GrowthReport:
    percent: Fraction
    """The last step at which everything was placed: 30 for 1.3 times as many replicas."""
    n_more: int
    """How many replicas that adds."""
    per_workload: dict[str, tuple[int, int]]
    """How many replicas each workload has, and has then."""
    failed_at: Fraction | None
    """The next step; None if growth was followed no further."""
    failed: str
    """The pod that stays pending then, or the workload whose replica the API server refuses."""
    message: str
    assumptions: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        stopped_by = None
        if self.failed_at is not None:
            stopped_by = {"percent": float(self.failed_at), "pod": self.failed, "message": self.message}
        return {
            "growth": {
                "percent": float(self.percent),
                "moreReplicas": self.n_more,
                "workloads": [
                    {"workload": name, "replicas": had, "grown": has} for name, (had, has) in self.per_workload.items()
                ],
                "stoppedBy": stopped_by,
            },
            "assumptions": list(self.assumptions),
        }

    def __str__(self) -> str:
        grown = f"+{_said(self.percent)}% replicas fit ({counted(self.n_more, 'more pod')})"
        if self.failed_at is None:
            lines = [f"At least {grown}, as far as growth was followed."]
        else:
            lines = [f"{grown}; at +{_said(self.failed_at)}%, {self.failed}: {self.message}"]
        rows = [[name, str(had), str(has)] for name, (had, has) in self.per_workload.items()]
        lines += table(["WORKLOAD", "REPLICAS", "GROWN"], rows, indent=2, n_left=1)
        return "\n".join([*lines, "Assumptions:", *(f"  {one}" for one in self.assumptions)])


def growth(world: LoadedWorld, *, step: Fraction = Fraction(1), quota: bool = True) -> GrowthReport:
    """How many percent more replicas all workloads can have at once, in steps of so many percent; shares of a replica
    count as one. Raises GrowthError."""
    if step <= 0:
        raise GrowthError(f"a step of {_said(step)}% is none")
    workloads = [item for item in scaled_workloads(world) if n_replicas(item)]
    if not workloads:
        raise GrowthError("there is no workload with replicas")
    had = [n_replicas(item) for item in workloads]
    reached, n_steps = Fraction(0), 0
    more, failed = [0] * len(had), ("", "")
    with world.trial() as trial:
        settled = trial.settle()
        while reached + step <= MOST_GROWTH and not failed[1]:
            n_steps += 1
            wanted = [ceil(n * step * n_steps / 100) for n in had]
            if wanted != more:
                failed = _tried(world, workloads, wanted, quota)
            if not failed[1]:
                reached, more = step * n_steps, wanted
    return GrowthReport(
        reached,
        sum(more),
        {title_of(item): (n, n + extra) for item, n, extra in zip(workloads, had, more, strict=True)},
        step * n_steps if failed[1] else None,
        *failed,
        (
            f"{counted(len(settled.placed), 'pending pod')} placed before, {len(settled.pending)} stay pending.",
            f"In steps of {_said(step)}%, each tried by itself, up to +{MOST_GROWTH}%. New replicas preempt nobody.",
        ),
    )


def _tried(world: LoadedWorld, workloads: list[KubeObject], wanted: list[int], has_quota: bool) -> tuple[str, str]:
    """Who stays pending with so many more replicas of each, and why; nobody, if both are empty."""
    bounds = {item.namespace: CopyAdmission(world, item.namespace) for item in workloads} if has_quota else {}
    with world.trial() as trial:
        for item, n_more in zip(workloads, wanted, strict=True):
            entry = CopyEntry(trial, bounds.get(item.namespace))
            _, failed = trial.place_each(entry.let_in(_more(world, item, n_more)))
            if failed is not None:
                return failed.pod, failed.message
            if entry.refusal:
                return title_of(item), entry.refusal
    return "", ""


def _more(world: LoadedWorld, item: KubeObject, n_more: int) -> Iterator[Replica]:
    return islice(replicas_of(world, item), n_more)


def _said(percent: Fraction) -> str:
    return f"{float(percent):g}"
