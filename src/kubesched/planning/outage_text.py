"""An outage report as text: whether the cluster survives, then case by case what is missing and why."""

from __future__ import annotations

from collections import Counter

from kubesched.explanation.layout import Style, Tone, all_of, counted, listed, readable, table, wrapped
from kubesched.planning.outage_report import CaseResult, OutageReport
from kubesched.simulator.report_text import readable_span

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
        played = f"{_why_stopped(report)} after {len(results)} of {counted(len(results) + report.n_unplayed, 'case')}"
        return f"Not known: {played}{', none of which leaves pods without a node' if results else ''}."
    if not results:
        return "No case was asked for."
    least = report.rules.priority_at_least
    who = "" if least is None else f" with priority {least} or more"
    if len(results) == 1:
        result = results[0]
        if not result.missing:
            return f"Survives the loss of {result.case.name}: all {result.hit} pods{who} on it are replaced."
        return f"Does not survive the loss of {result.case.name}: {_lack(result)}{who}."
    if report.n_at_random:
        return _share_of_losses(report, who)
    what = f"any one of {len(results)} {report.every}s" if report.every else f"each of {len(results)} cases"
    if report.survives:
        return f"Survives the loss of {what}: every pod{who} is replaced. The largest loss is {_largest(report)}."
    n_bad, worst = sum(1 for result in results if result.missing), report.ranked[0]
    return (
        f"Not N+1: {n_bad} of {len(results)} cases leave pods{who} without a node. "
        f"Worst is {worst.case.name}: {_lack(worst)}."
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
    why = "The time was over (stopped: time)" if report.stopped == "time" else "It was interrupted"
    return [f"{why}: {counted(report.n_unplayed, 'case')} more {_were(report.n_unplayed)} not played."]


def _were(n: int) -> str:
    return "was" if n == 1 else "were"


def _case_section(report: OutageReport, style: Style) -> list[str]:
    if len(report.results) == 1:
        return []
    most = style.most(_CASES_SHOWN)
    rows = [
        [
            result.case.name,
            str(len(result.case.nodes)),
            str(result.hit),
            str(result.missing),
            str(result.preempted),
            "-" if result.last_replacement_s is None else readable_span(result.last_replacement_s),
        ]
        for result in report.ranked[:most]
    ]
    lines = table(["CASE", "NODES", "PODS HIT", "NOT REPLACED", "PREEMPTED", "LAST REPLACEMENT"], rows, indent=2)
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
