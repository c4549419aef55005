"""What an outage report holds: failure cases, and what each did to the pods of every workload; and the report as text.

The text says first whether the cluster survives, then case by case what is missing and why.

Next: `outage` and `outage_trials`, which find out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

from kubesched.explanation.layout import Style, Tone, all_of, counted, listed, readable, table, wrapped
from kubesched.k8s.model.requests import PODS
from kubesched.planning.provenance import UNASKED, AnsweredReport, Provenance
from kubesched.planning.several_runs import RunVerdicts
from kubesched.planning.statistics import Share
from kubesched.simulator.column_table import ColumnKind, ColumnTable
from kubesched.simulator.gauges import Gauge, gauge
from kubesched.simulator.options import SimulationOptions
from kubesched.simulator.report_text import readable_span

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
    by_run: tuple[int, ...] = ()
    """With several seeds or orders: how many are missing in each run. All else is of the worst."""

    @property
    def missing(self) -> int:
        return sum(loss.missing for loss in self.workloads)

    @property
    def at_best(self) -> int:
        """How many are missing in the run that leaves the fewest."""
        return min(self.by_run, default=self.missing)

    @property
    def share(self) -> str:
        """` in 3 of 10 runs`, if not in all."""
        n = sum(1 for missing in self.by_run if missing)
        return f" in {n} of {len(self.by_run)} runs" if 0 < n < len(self.by_run) else ""

    @property
    def hit(self) -> int:
        return sum(loss.hit for loss in self.workloads)

    @property
    def last_replacement_s(self) -> float | None:
        """From the failure until the last replacement ran; None if there was none."""
        return max((loss.replaced_s for loss in self.workloads if loss.replaced_s is not None), default=None)


@dataclass(frozen=True, repr=False)
class OutageReport(AnsweredReport):
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
    asked: Provenance = field(default=UNASKED, compare=False, repr=False)

    @property
    def verdicts(self) -> RunVerdicts:
        """Of each run: whether it survives all cases."""
        by_run = [one.by_run for one in self.results if one.by_run]
        n_runs = max(map(len, by_run), default=0)
        return RunVerdicts(tuple(not any(one[run] for one in by_run if run < len(one)) for run in range(n_runs)))

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
        cases = [
            (*_key(r), r.missing, r.preempted, r.last_replacement_s, r.placed_if_gone, r.at_best) for r in self.results
        ]
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
            **self._about(),
            "survives": self.survives,
            **self.verdicts.record(),
            "priorityAtLeast": self.rules.priority_at_least,
            "forceDeleteAfterSeconds": self.rules.force_delete_after_s,
            "casesNotPlayed": self.n_unplayed,
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
    def gauges(self) -> tuple[Gauge, ...]:
        survives = None if self.n_unplayed and self.survives else float(self.survives)
        missing = tuple(({"case": one.case.name}, float(one.missing)) for one in self.results)
        return (
            gauge("kubesched_outage_survives", "Whether every case leaves each workload with its pods.", survives),
            Gauge("kubesched_outage_missing_pods", "Pods that are not replaced after the failure.", missing),
            gauge("kubesched_outage_cases_not_simulated", "Cases left out because it was stopped.", self.n_unplayed),
        )

    @property
    def headline(self) -> str:

        return headline(self)

    def render(self, style: Style) -> str:

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
        "lastReplacementSeconds": result.last_replacement_s,
        "placedIfGone": result.placed_if_gone,
        **({"missingByRun": list(result.by_run)} if result.by_run else {}),
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
    "at_best": INT,
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


_CASES_SHOWN = 10
_WORKLOADS_SHOWN = 8


def render_outage(report: OutageReport, chosen: Style) -> str:
    """Without a newline at its end."""
    tone = Tone.GOOD if report.survives else Tone.BAD
    sections = [
        [chosen.painted(tone, headline(report)), *_needed(report), *_unplayed(report)],
        _case_section(report, chosen),
        *(_workload_section(result, chosen) for result in _told(report, chosen)),
        [chosen.heading("Assumptions"), *(f"  {text}" for text in report.assumptions)],
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines)


def headline(report: OutageReport) -> str:
    results = report.results
    if report.n_unplayed and report.survives:
        n_played = sum(len(result.by_run) or 1 for result in results)
        what = "case" if report.asked.runs is None or len(report.asked.runs) == 1 else "simulation"
        played = f"{_why_stopped(report)} after {n_played} of {counted(n_played + report.n_unplayed, what)}"
        return f"Not known: {played}{', none of which leaves pods without a node' if results else ''}."
    if not results:
        return "No case was asked for."
    least = report.rules.priority_at_least
    who = "" if least is None else f" with priority {least} or more"
    everywhere = report.verdicts.everywhere
    if len(results) == 1:
        result = results[0]
        if not result.missing:
            told = f"all {result.hit} pods{who} on it are replaced{everywhere}"
            return f"Survives the loss of {result.case.name}: {told}."
        return f"Does not survive the loss of {result.case.name}{result.share}: {_lack(result)}{who}."
    if report.n_at_random:
        return _share_of_losses(report, who)
    what = f"any one of {len(results)} {report.every}s" if report.every else f"each of {len(results)} cases"
    if report.survives:
        told = f"every pod{who} is replaced{everywhere}"
        return f"Survives the loss of {what}: {told}. The largest loss is {_largest(report)}."
    n_bad, worst = sum(1 for result in results if result.missing), report.ranked[0]
    return (
        f"Not N+1{report.verdicts.nowhere}: {n_bad} of {len(results)} cases leave pods{who} without a node. "
        f"Worst is {worst.case.name}{worst.share}: {_lack(worst)}."
    )


def _share_of_losses(report: OutageReport, who: str) -> str:
    lossy = report.lossy
    low, high = lossy.interval
    nodes = counted(report.n_at_random, "node")
    told = f"{lossy.count} of {lossy.trials} random failures of {nodes} leave pods{who} without a node"
    chance = f"the chance is {low:.1%} to {high:.1%} (95 % interval)"
    worst = f" Worst is {report.ranked[0].case.name}: {_lack(report.ranked[0])}." if lossy.count else ""
    return f"{told}: {chance}.{worst}"


def _lack(result: CaseResult) -> str:
    verb = "is" if result.missing == 1 else "are"
    return f"{result.missing} of {counted(result.hit, 'pod')} on it {verb} not replaced"


def _largest(report: OutageReport) -> str:
    return f"{report.ranked[0].case.name} with {counted(report.ranked[0].hit, 'pod')}"


def _needed(report: OutageReport) -> list[str]:
    """What room the worst case lacks."""
    total: Counter[str] = Counter()
    for loss in report.missing:
        total.update(loss.requests)
    amounts = [f"{readable(name, n)} {name}" for name, n in total.items() if n]
    return [f"The missing pods ask for {all_of(amounts)} together."] if amounts else []


def _why_stopped(report: OutageReport) -> str:
    return "stopped: time" if report.stopped == "time" else "interrupted"


def _unplayed(report: OutageReport) -> list[str]:
    if not report.n_unplayed or report.survives:
        return []
    why = "Out of time (stopped: time)" if report.stopped == "time" else "Interrupted"
    return [f"{why}: {counted(report.n_unplayed, 'more case')} {_were(report.n_unplayed)} not simulated."]


def _were(n: int) -> str:
    return "was" if n == 1 else "were"


def _case_section(report: OutageReport, style: Style) -> list[str]:
    if len(report.results) == 1:
        return []
    most, is_several = style.most(_CASES_SHOWN), any(result.by_run for result in report.results)
    rows = [
        [
            result.case.name,
            str(len(result.case.nodes)),
            str(result.hit),
            str(result.missing),
            str(result.preempted),
            "-" if result.last_replacement_s is None else readable_span(result.last_replacement_s),
            *([str(result.at_best)] if is_several else []),
        ]
        for result in report.ranked[:most]
    ]
    header = ["CASE", "NODES", "PODS HIT", "NOT REPLACED", "PREEMPTED", "LAST REPLACEMENT"]
    lines = table([*header, *(["AT BEST"] if is_several else [])], rows, indent=2)
    more = len(report.ranked) - len(rows)
    return [style.heading("Cases"), *lines, *([f"  and {more} more (-o wide shows all)"] if more else [])]


def _told(report: OutageReport, style: Style) -> list[CaseResult]:
    """The cases whose workloads are listed: all bad ones if asked for, else the worst."""
    bad = [result for result in report.ranked if result.missing]
    return bad if style.wide else bad[:1]


def _workload_section(result: CaseResult, style: Style) -> list[str]:
    missed = [loss for loss in result.workloads if loss.missing]
    lines = [style.heading(f"Not replaced after the loss of {result.case.name}")]
    most = style.most(_WORKLOADS_SHOWN)
    for loss in missed[:most]:
        lines.append(
            f"  {loss.namespace} {loss.workload}: {loss.left} of {loss.had} run in the end, "
            f"{loss.lowest} at the worst moment."
        )
        lines.extend(wrapped(loss.reason, indent=4, hanging=0, width=style.width))
    if most is not None and len(missed) > most:
        names = [f"{loss.namespace} {loss.workload}" for loss in missed[most:]]
        lines.append(f"  also {listed(names, 3)} (-o wide shows all)")
    if result.placed_if_gone:
        told = (
            f"{result.placed_if_gone} of them would run if the failed nodes were deleted (--gone): they would no "
            "longer count as domains of topology spread constraints, and their pods would no longer be Terminating."
        )
        lines.extend(wrapped(told, indent=2, hanging=0, width=style.width))
    return lines
