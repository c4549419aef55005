"""A plan as text: what to buy and for how much in the first line, then how near to the optimum, node by node."""

from __future__ import annotations

from collections import Counter

from kubesched.explanation.layout import Style, Tone, counted, listed, readable, table, wrapped
from kubesched.planning.catalogue import price_text
from kubesched.planning.plan.report import EXHAUSTED, PROVEN, PlanReport

_NODES_SHOWN = 12
_PENDING_SHOWN = 8
_REASONS_SHOWN = 4


def render_plan(report: PlanReport, style: Style | None = None) -> str:
    """Without a newline at its end."""
    chosen = style or Style()
    tone = Tone.GOOD if report.answer == "yes" else Tone.BAD
    sections = [
        [*_first(report, chosen, tone), *_nearness(report, chosen)],
        _mix(report),
        _use(report),
        _nodes(report, chosen),
        _pending(report, chosen),
        _unplaceable(report, chosen),
        _alternatives(report),
        ["Notes", *(line for note in report.notes for line in wrapped(note, indent=2, hanging=0, width=chosen.width))]
        if report.notes
        else [],
        [
            chosen.heading("Assumptions"),
            *(line for text in report.assumptions for line in wrapped(text, indent=2, hanging=0, width=chosen.width)),
        ],
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines)


def headline(report: PlanReport) -> str:
    pods = "1 pod has" if report.n_pods == 1 else f"all {report.n_pods} pods have"
    if report.answer == "yes" and not report.mix:
        return f"Buy nothing: {pods} room on the nodes that are there."
    if report.answer == "yes":
        money = (
            ""
            if report.objective == "nodes"
            else f" for {report.money(report.cost)} an hour ({report.a_month(report.cost)} a month)"
        )
        how = "the scheduler places" if report.verified == "scheduler" else "there is room for"
        what = "1 pod" if report.n_pods == 1 else f"all {report.n_pods} pods"
        return f"Buy {counted(report.n_nodes, 'node')}{money}: {how} {what}."
    if report.unplaceable:
        n = sum(len(one.pods) for one in report.unplaceable)
        return f"No plan: no machine of the catalogue can hold {counted(n, 'pod')} of {report.n_pods}."
    if report.answer == "undecided":
        n = len(report.pending)
        return f"Undecided: no plan was found in time; {counted(n, 'pod')} of {report.n_pods} left over."
    if report.mix:
        return (
            f"No plan within the limits: {counted(report.n_nodes, 'node')} take {report.n_pods - len(report.pending)} "
            f"of {report.n_pods} pods."
        )
    return f"No plan: {counted(len(report.pending), 'pod')} of {report.n_pods} found no node whatever was added."


def _first(report: PlanReport, style: Style, tone: Tone) -> list[str]:
    return [style.painted(tone, headline(report))]


def _nearness(report: PlanReport, style: Style) -> list[str]:
    if report.answer != "yes" or not report.mix:
        return []
    if report.level == PROVEN:
        text = f"Proven: no set of machines does it for less than {report.money(report.bound)}."
    elif report.level == EXHAUSTED:
        text = "Optimal for this scheduler: every cheaper mix that could hold the pods was tried, and refused."
    else:
        text = (
            f"At most {100 * report.gap:.1f} % above the optimum: nothing below {report.money(report.bound)} can do it "
            f"({report.bound_kind} bound)."
        )
    if report.stopped:
        why = "the time was over" if report.stopped == "time" else "it was interrupted"
        text += f" The best so far: {why} before the search was through."
    return wrapped(text, indent=0, hanging=0, width=style.width)


def _mix(report: PlanReport) -> list[str]:
    if not report.mix:
        return []
    rows = []
    for one in report.mix:
        cost = [price_text(one.price), price_text(one.price * one.count)] if one.price else ["-", "-"]
        rows.append([one.shape, one.zone or "-", one.capacity_type or "-", one.pool or "-", str(one.count), *cost])
    header = ["MACHINE", "ZONE", "TYPE", "POOL", "NODES", "EACH", "COST"]
    shown = [k for k in range(len(header)) if k in (0, 4, 5, 6) or any(row[k] != "-" for row in rows)]
    n_left = sum(k < 4 for k in shown)
    lines = table([header[k] for k in shown], [[row[k] for k in shown] for row in rows], indent=2, n_left=n_left)
    if report.single_type is not None and report.n_nodes:
        name, count, alone = report.single_type
        if alone > report.cost:
            lines.append(f"  One kind of machine alone would be {count} x {name} for {report.money(alone)}.")
    if report.ideal_cost is not None and report.ideal_cost < report.cost and report.verified == "scheduler":
        ideal = report.money(report.ideal_cost)
        lines.append(f"  Packed by hand, {ideal} would do: the rest is the scheduler's way of placing.")
    return lines


def _use(report: PlanReport) -> list[str]:
    if not report.nodes:
        return []
    requested: Counter[str] = Counter()
    allocatable: Counter[str] = Counter()
    for node in report.nodes:
        requested.update(node.requested)
        allocatable.update(node.allocatable)
    parts = []
    for name in ("cpu", "memory", *sorted(set(requested) - {"cpu", "memory", "pods"})):
        if allocatable[name]:
            share = 100 * requested[name] // allocatable[name]
            parts.append(f"{name} {readable(name, requested[name])} of {readable(name, allocatable[name])} ({share} %)")
    return [f"Requested on the new nodes: {', '.join(parts)}"] if parts else []


def _nodes(report: PlanReport, style: Style) -> list[str]:
    if not report.nodes:
        return []
    most = style.most(_NODES_SHOWN)
    shown = report.nodes if most is None else report.nodes[:most]
    rows = []
    for node in shown:
        used = [
            f"{100 * node.requested.get(name, 0) // node.allocatable[name]} %" if node.allocatable.get(name) else "-"
            for name in ("cpu", "memory")
        ]
        rows.append([node.name, str(len(node.pods)), *used])
    lines = table(["NODE", "PODS", "CPU", "MEMORY"], rows, indent=2)
    hidden = len(report.nodes) - len(shown)
    return [*lines, f"  and {counted(hidden, 'node')} more"] if hidden else lines


def _pending(report: PlanReport, style: Style) -> list[str]:
    if not report.pending or report.answer == "yes":
        return []
    most = style.most(_PENDING_SHOWN)
    shown = list(report.pending.items())
    shown = shown if most is None else shown[:most]
    lines = [line for key, text in shown for line in wrapped(f"{key}: {text}", indent=2, hanging=2, width=style.width)]
    hidden = len(report.pending) - len(shown)
    return ["Without a node", *lines, *([f"  and {counted(hidden, 'pod')} more"] if hidden else [])]


def _unplaceable(report: PlanReport, style: Style) -> list[str]:
    lines: list[str] = []
    for one in report.unplaceable:
        more = f" and {len(one.pods) - 1} more like it" if len(one.pods) > 1 else ""
        lines.append(f"{one.pods[0]}{more} fits on no machine:")
        for reason, names in list(one.reasons.items())[: style.most(_REASONS_SHOWN)]:
            kinds = list(dict.fromkeys(names))
            lines += wrapped(f"{reason}: {listed(kinds, style.most(6))}", indent=2, hanging=2, width=style.width)
    return lines


def _alternatives(report: PlanReport) -> list[str]:
    if not report.alternatives:
        return []
    rows = []
    for one in report.alternatives:
        mix = ", ".join(f"{n} x {name}" for name, n in one.mix.items())
        rows.append([mix, str(one.nodes), str(one.types), report.money(one.cost)])
    return ["Alternatives", *table(["MIX", "NODES", "TYPES", "COST"], rows, indent=2)]
