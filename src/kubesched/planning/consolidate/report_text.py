"""A consolidation report as text: what can be saved, the steps in their order, the nodes that stay and why."""

from __future__ import annotations

from collections import Counter

from kubesched.explanation.layout import Style, Tone, counted, listed, table, wrapped
from kubesched.planning.catalogue import HOURS_A_MONTH, NANOS
from kubesched.planning.consolidate.report import ConsolidationReport
from kubesched.planning.prices import money

_STEPS_SHOWN = 12
_KEPT_SHOWN = 8
_NAMES = {"best": "This search", "karpenter": "Karpenter", "cluster-autoscaler": "Cluster Autoscaler"}


def headline(report: ConsolidationReport) -> str:
    if not report.steps:
        return f"None of {counted(report.n_nodes, 'node')} can go."
    n_removed = len(report.removed)
    n_new = sum(len(step.launch) for step in report.steps)
    what = f"{n_removed} of {counted(report.n_nodes, 'node')} can go"
    what += f", if {counted(n_new, 'new node')} {'comes' if n_new == 1 else 'come'}" if n_new else ""
    evictions = counted(report.evictions, "eviction")
    if not report.currency:
        return f"{what}, with {evictions}."
    share = report.saving / report.cost if report.cost else 0.0
    monthly = report.saving * HOURS_A_MONTH / NANOS
    saved = f"{money(report.saving, report.currency)} ({share:.1%}; {monthly:,.0f} {report.currency} a month)"
    return f"{what}: that saves {saved}, with {evictions}."


def render_consolidation(report: ConsolidationReport, style: Style) -> str:
    """Without a newline at its end."""
    tone = Tone.GOOD if report.steps else Tone.BAD
    sections = [
        [style.painted(tone, headline(report)), *_beside(report)],
        _step_section(report, style),
        _kept_section(report, style),
        [style.heading("Assumptions"), *(f"  {text}" for text in report.assumptions)],
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines)


def _beside(report: ConsolidationReport) -> list[str]:
    left = report.cost - report.saving - report.bound
    lines = []
    if left > 0:
        lines.append(f"At most {money(left, report.currency)} more could be saved by any policy and any scheduler.")
    for name, saving in report.others.items():
        lines.append(f"{_NAMES[name]} would save {money(saving, report.currency)}.")
    if report.stopped in ("time", "interrupted"):
        why = "the time was over" if report.stopped == "time" else "it was interrupted"
        lines.append(f"This is the best so far: {why} before all was tried.")
    return lines


def _step_section(report: ConsolidationReport, style: Style) -> list[str]:
    if not report.steps:
        return []
    most = style.most(_STEPS_SHOWN)
    rows = []
    for number, (step, turn, (evicted, saved)) in enumerate(
        zip(report.steps, report.rounds, report.curve, strict=True), 1
    ):
        launched = ", ".join(one.name for one in step.launch) or "-"
        cells = [str(number), str(turn), ", ".join(step.delete), launched, str(step.evictions), str(step.waves)]
        rows.append([*cells, str(evicted), money(saved, report.currency)])
    header = ["STEP", "ROUND", "DRAIN AND DELETE", "LAUNCH BEFORE", "EVICTIONS", "WAVES", "SO FAR", "SAVED SO FAR"]
    lines = [style.heading("Steps"), *table(header, rows[:most], indent=2, n_left=4)]
    if most is not None and len(rows) > most:
        lines.append(f"  and {len(rows) - most} more (-o wide shows all)")
    closed = [name for step in report.steps for name in step.cordon]
    if closed:
        text = f"Cordon {listed(sorted(closed), None if style.wide else 8)} first, so that nobody moves there."
        lines += wrapped(text, indent=2, hanging=0, width=style.width)
    staying = sorted(set(closed).difference(report.removed))
    if staying:
        text = f"Uncordon {listed(staying, None if style.wide else 8)} in the end: they stay."
        lines += wrapped(text, indent=2, hanging=0, width=style.width)
    waited = [key for step in report.steps for key in step.waited]
    lost = [key for step in report.steps for key in step.lost]
    for names, what in ((waited, "wait until the drained node is gone"), (lost, "are lost: nobody recreates them")):
        if names:
            lines += wrapped(f"{listed(names, 5)} {what}.", indent=2, hanging=0, width=style.width)
    if style.wide:
        lines += ["", style.heading("Moves"), *_moves(report)]
    return lines


def _moves(report: ConsolidationReport) -> list[str]:
    rows = [
        [str(number), move.pod, move.source, move.target]
        for number, step in enumerate(report.steps, 1)
        for move in step.moves
    ]
    return table(["STEP", "POD", "FROM", "TO"], rows, indent=2, n_left=4)


def _kept_section(report: ConsolidationReport, style: Style) -> list[str]:
    if not report.kept:
        return []
    counts = Counter(one.reason.identifier for one in report.kept)
    lines = [style.heading("Nodes that stay")]
    lines += [f"  {n} {reason}" for reason, n in counts.most_common()] if len(report.kept) > _KEPT_SHOWN else []
    for one in report.kept[: style.most(_KEPT_SHOWN)]:
        told = f"{one.node}: {one.reason.identifier}: {one.reason}"
        lines += wrapped(told, indent=2, hanging=2, width=style.width)
    more = len(report.kept) - (style.most(_KEPT_SHOWN) or len(report.kept))
    return [*lines, *([f"  and {more} more (-o wide shows all)"] if more > 0 else [])]
