"""What an outage report holds: failure cases, and what each did to the pods of every workload.

Next: `outage_runs` and `outage_trials`, which find out; `outage_text` for the report as text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from kubesched.explanation.layout import Style
from kubesched.k8s.model.requests import PODS
from kubesched.planning.html_report import ReportAsPage
from kubesched.planning.statistics import Share
from kubesched.simulator.column_table import ColumnKind, ColumnTable
from kubesched.simulator.options import SimulationOptions

OF_THE_NODE = ("DaemonSet ", "Node ")
"""Workloads whose pods live and die with their node."""
_NO_CONTROLLER = "it has no controller that would replace it"
_NODE_KEEPS_IT = "its pod on the failed node is Terminating, and a StatefulSet starts no second one until that is gone"

INT, FLOAT, TEXT = ColumnKind.INT64, ColumnKind.FLOAT64, ColumnKind.UTF8


@dataclass(frozen=True, slots=True)
class FailureCase:
    """Nodes that fail together: `zone=a`."""

    name: str
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OutageRules:
    """What happens beside the failure itself, and who counts."""

    gone: bool = False
    """The failed nodes are deleted."""
    force_delete_after_s: float | None = None
    """For how long a pod is Terminating on a failed node until somebody deletes it by force; None: forever."""
    priority_at_least: int | None = None


@dataclass(frozen=True, slots=True)
class WorkloadLoss:
    """What a failure did to the pods of one workload."""

    namespace: str
    workload: str
    """`Deployment web`; `Pod x` for a pod of nobody."""
    priority: int
    had: int
    """How many ran before."""
    hit: int
    """How many of them were on the failed nodes."""
    left: int
    """How many run in the end."""
    lowest: int
    """How few ran at the worst moment."""
    replaced_s: float | None
    """From the failure until the last replacement ran; None if none did."""
    reason: str
    """Why those that are missing were not replaced; empty if none is."""
    requests: Mapping[str, int]
    """What the missing pods ask for together."""

    @property
    def missing(self) -> int:
        return max(0, self.had - self.left)


@dataclass(frozen=True, slots=True)
class CaseResult:
    case: FailureCase
    workloads: tuple[WorkloadLoss, ...]
    """Those that lost pods, the worst first."""
    preempted: int
    """Pods that had to make way for the replacements."""
    placed_if_gone: int
    """How many of the missing pods would run if the failed nodes were deleted."""

    @property
    def missing(self) -> int:
        return sum(loss.missing for loss in self.workloads)

    @property
    def hit(self) -> int:
        return sum(loss.hit for loss in self.workloads)

    @property
    def last_replacement_s(self) -> float | None:
        """From the failure until the last replacement ran; None if there was none."""
        return max((loss.replaced_s for loss in self.workloads if loss.replaced_s is not None), default=None)


@dataclass(frozen=True, repr=False)
class OutageReport(ReportAsPage):
    """Each failure case with what it did. `survives` is the answer; `str()` is the report as text."""

    command: ClassVar[str] = "kubesched outage"

    results: tuple[CaseResult, ...]
    every: str | None
    n_nodes: int
    options: SimulationOptions
    rules: OutageRules
    assumptions: tuple[str, ...]
    n_at_random: int = 0
    """With failures at random: how many nodes failed together in each."""
    n_unplayed: int = 0
    """Cases that were asked for and are not among the results, because it was stopped."""
    stopped: str = ""
    """Why: `time`, `interrupted`, or nothing."""

    @property
    def lossy(self) -> Share:
        """How many of the cases leave pods without a node. With failures at random, its interval tells how likely that
        is for any other."""
        return Share(sum(1 for result in self.results if result.missing), len(self.results))

    @property
    def missing(self) -> tuple[WorkloadLoss, ...]:
        """What lacks room in the worst case, for whoever plans nodes: workloads, how many pods, what they ask for."""
        return tuple(loss for loss in self.ranked[0].workloads if loss.missing) if self.results else ()

    @property
    def tables(self) -> dict[str, ColumnTable]:
        """`cases`: a row for each; `workloads`: a row for each workload that a case hit."""
        cases = [(*_key(r), r.missing, r.preempted, r.last_replacement_s, r.placed_if_gone) for r in self.results]
        workloads = [(result.case.name, *_cells(loss)) for result in self.results for loss in result.workloads]
        return {"cases": ColumnTable(_CASE_COLUMNS, cases), "workloads": ColumnTable(_WORKLOAD_COLUMNS, workloads)}

    @property
    def survives(self) -> bool:
        """Whether every case leaves each workload with as many pods as before."""
        return not any(result.missing for result in self.results)

    @cached_property
    def ranked(self) -> list[CaseResult]:
        """The worst case first."""
        return sorted(self.results, key=lambda result: (-result.missing, -result.hit, result.case.name))

    def to_dict(self) -> dict[str, Any]:
        return {
            "survives": self.survives,
            "seed": self.options.seed,
            "priority_at_least": self.rules.priority_at_least,
            "force_delete_after_s": self.rules.force_delete_after_s,
            "cases_not_played": self.n_unplayed,
            "stopped": self.stopped or None,
            **({"random": self._random_record()} if self.n_at_random else {}),
            "missing": _total(self.missing),
            "cases": [_case_record(result) for result in self.results],
            "assumptions": list(self.assumptions),
        }

    def _random_record(self) -> dict[str, Any]:
        low, high = self.lossy.interval
        return {
            "nodes": self.n_at_random,
            "trials": self.lossy.trials,
            "lossy": self.lossy.count,
            "interval": [low, high],
        }

    @property
    def headline(self) -> str:
        from kubesched.planning.outage_text import headline

        return headline(self)

    def render(self, style: Style) -> str:
        from kubesched.planning.outage_text import render_outage

        return render_outage(self, style)

    def __str__(self) -> str:
        return self.render(Style())

    def __repr__(self) -> str:
        return f"<OutageReport: {self.headline}>"


def _case_record(result: CaseResult) -> dict[str, Any]:
    return {
        "case": result.case.name,
        "nodes": list(result.case.nodes),
        "hit": result.hit,
        "missing": result.missing,
        "preempted": result.preempted,
        "last_replacement_s": result.last_replacement_s,
        "placed_if_gone": result.placed_if_gone,
        "workloads": [
            {
                "namespace": loss.namespace,
                "workload": loss.workload,
                "priority": loss.priority,
                "had": loss.had,
                "hit": loss.hit,
                "left": loss.left,
                "lowest": loss.lowest,
                "missing": loss.missing,
                "reason": loss.reason or None,
                "requests": dict(loss.requests),
            }
            for loss in result.workloads
        ],
    }


_CASE_COLUMNS = {
    "case": TEXT,
    "nodes": INT,
    "hit": INT,
    "missing": INT,
    "preempted": INT,
    "last_replacement_s": FLOAT,
    "placed_if_gone": INT,
}
_WORKLOAD_COLUMNS = {
    "case": TEXT,
    "namespace": TEXT,
    "workload": TEXT,
    "priority": INT,
    "had": INT,
    "hit": INT,
    "left": INT,
    "lowest": INT,
    "missing": INT,
    "replaced_s": FLOAT,
    "reason": TEXT,
}


def _key(result: CaseResult) -> tuple[str, int, int]:
    return result.case.name, len(result.case.nodes), result.hit


def _cells(loss: WorkloadLoss) -> tuple[str | int | float | None, ...]:
    amounts = (loss.priority, loss.had, loss.hit, loss.left, loss.lowest, loss.missing)
    return loss.namespace, loss.workload, *amounts, loss.replaced_s, loss.reason or None


def _total(losses: tuple[WorkloadLoss, ...]) -> dict[str, Any]:
    requests: Counter[str] = Counter()
    for loss in losses:
        requests.update(loss.requests)
    return {"pods": sum(loss.missing for loss in losses), "requests": dict(requests)}


def worst_first(losses: Iterable[WorkloadLoss]) -> list[WorkloadLoss]:
    """Those that were hit, or are not whole."""
    return sorted(
        (loss for loss in losses if loss.hit or loss.missing),
        key=lambda loss: (-loss.missing, -loss.priority, loss.namespace, loss.workload),
    )


def asked_together(requests: Mapping[str, int], n_missing: int) -> dict[str, int]:
    return {name: n * n_missing for name, n in requests.items() if n and name != PODS} if n_missing else {}


def why_missing(workload: str, messages: Iterable[str]) -> str:
    """What is most often said of those that wait; without any, why nobody replaces them."""
    counts = Counter(messages)
    if counts:
        return counts.most_common(1)[0][0]
    if workload.startswith("Pod "):
        return _NO_CONTROLLER
    return _NODE_KEEPS_IT if workload.startswith("StatefulSet ") else "it was not replaced in time"
