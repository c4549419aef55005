"""What is on the page of each report: its tables, and the plots that these tables give.

A plot belongs to a table's name, so that whatever report has such a table has its plot.
Next: `html_report`, which makes the page.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isfinite
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Protocol

from kubesched.explanation.layout import Style, Tone, listed
from kubesched.planning.html_plots import (
    MOST_TILES,
    Bar,
    Difference,
    Hit,
    Tile,
    bars,
    flow,
    forest,
    levels,
    matrix,
    node_map,
    shares,
    signed,
)
from kubesched.planning.html_report import ReportPage
from kubesched.simulator.column_table import Cell, ColumnKind, ColumnTable
from kubesched.simulator.report_tables import GONE

if TYPE_CHECKING:
    from kubesched.explanation.answer import Explanation
    from kubesched.simulator.report import SimulationReport

INT, FLOAT, TEXT = ColumnKind.INT64, ColumnKind.FLOAT64, ColumnKind.UTF8
_WIDTH = 120
_NAMES_SHOWN = 6


class TabledReport(Protocol):
    @property
    def assumptions(self) -> tuple[str, ...]: ...
    @property
    def tables(self) -> Mapping[str, ColumnTable]: ...
    def render(self, style: Style) -> str: ...


def page_of(report: Any) -> ReportPage:
    """Of any report of planning."""
    return planning_page(report.command, report)


def planning_page(command: str, report: TabledReport) -> ReportPage:
    return page(command, report.render, report.tables, report.assumptions)


def page(
    command: str,
    render: Callable[[Style], str],
    tables: Mapping[str, ColumnTable],
    assumptions: tuple[str, ...] = (),
) -> ReportPage:
    """The headline is the first line of the text, good or bad as on a terminal."""
    tones: list[Tone] = []

    def noted(tone: Tone, text: str) -> str:
        tones.append(tone)
        return text

    headline, _, text = render(Style(width=_WIDTH, paint=noted)).partition("\n")
    tone = tones[0].value if tones and tones[0] in (Tone.GOOD, Tone.BAD) else ""
    drawn = [plot for name, draw in _PLOTS.items() if name in tables for plot in draw(tables[name]) if plot]
    shown = {name: _worst_first(name, found) for name, found in tables.items()}
    return ReportPage(command, headline, tone, _unassumed(text, assumptions), tuple(drawn), shown, assumptions)


def _unassumed(text: str, assumptions: tuple[str, ...]) -> str:
    """Without the assumptions, which have a place of their own."""
    lines = text.splitlines()
    at = next((i for i, line in enumerate(lines) if line.strip(":") == "Assumptions"), len(lines))
    return "\n".join(lines[:at] if assumptions else lines)


def _worst_first(name: str, found: ColumnTable) -> ColumnTable:
    if name != "cases":
        return found
    rows: list[Any] = sorted(found.named(), key=attrgetter("missing", "hit"), reverse=True)
    return ColumnTable(found.kinds, rows)


# -- the tables of reports that have none ------------------------------------------------------------------------------


def simulation_page(command: str, report: SimulationReport) -> ReportPage:
    from kubesched.simulator.report_text import render_report

    kinds = {"namespace": TEXT, "name": TEXT, "workload": TEXT, "message": TEXT, "attempts": INT, "created_s": FLOAT}
    tables = {
        "autoscaler": report.autoscaler,
        "pending": ColumnTable(kinds, [tuple(row.values()) for row in report.pending]),
        "not_created": report.not_created,
        "preemptions": report.preemptions,
        "nodes": report.nodes,
        "pods": report.pods,
        "events": report.events,
        "timeline": report.timeline,
    }
    return page(command, lambda style: render_report(report, style), tables)


def explanation_tables(explanation: Explanation | None) -> dict[str, ColumnTable]:
    """The nodes that fit with their scores, the best first; those that do not, by the reasons against them."""
    if explanation is None:
        return {}
    judged = explanation.judged
    groups = [(len(one.nodes), listed(one.names, _NAMES_SHOWN), one.summary()) for one in judged.groups]
    rejected = ColumnTable({"nodes": INT, "names": TEXT, "why_not": TEXT}, groups)
    changes = ColumnTable({"change": TEXT, "cost": TEXT}, [(one.description, one.cost) for one in explanation.changes])
    tables = {"changes_that_make_it_fit": changes, "rejected": rejected}
    scored = None if judged.decision is None else judged.decision.scored
    if scored is None:
        return tables
    names = scored.nodes.names
    order = sorted(range(len(names)), key=lambda at: (-int(scored.total[at]), names[at]))
    rows: list[tuple[Cell, ...]] = [
        (names[at], int(scored.total[at]), *(int(one.weighted[at]) for one in scored.by_plugin)) for at in order
    ]
    kinds = {"node": TEXT, "total": INT, **{one.plugin: INT for one in scored.by_plugin}}
    return {"scores": ColumnTable(kinds, rows), **tables}


# -- plots, by the table's name ----------------------------------------------------------------------------------------


def _node_plots(found: ColumnTable) -> list[str]:
    rows = [row for row in found.to_rows() if row.get("state") != GONE]
    if len(rows) <= MOST_TILES:
        title = "Nodes before (pale) and after" if "fate" in found.kinds else "Nodes: what is requested of each"
        return [node_map(title, [_tile(row) for row in rows])]
    plots = []
    for resource, unit in (("cpu", "milli"), ("memory", "bytes")):
        asked, whole = f"{resource}_requested_{unit}", f"{resource}_allocatable_{unit}"
        full = [(str(row["name"]), float(row[asked] or 0) / float(row[whole] or 1)) for row in rows if row[whole]]
        plots.append(shares(f"Requested {resource}, by node", full))
    return plots


def _tile(row: dict[str, Any]) -> Tile:
    shares, before = {}, {}
    for resource, unit in (("cpu", "milli"), ("memory", "bytes")):
        whole = row[f"{resource}_allocatable_{unit}"] or 0
        if whole:
            shares[resource] = (row[f"{resource}_requested_{unit}"] or 0) / whole
            if f"{resource}_before_{unit}" in row:
                before[resource] = (row[f"{resource}_before_{unit}"] or 0) / whole
    fate = row.get("fate") or ""
    if "offer" in row:
        row["zone"] = str(row["offer"]).partition("/")[2].partition("/")[0]  # as `Option.name` has it
    groups = [f"{name} {row[name]}" for name in ("pool", "zone") if row.get(name)]
    return Tile(row["name"], ", ".join(groups), shares, before, "" if fate == "stays" else fate)


def _timeline_plots(found: ColumnTable) -> list[str]:
    at = [float(one or 0) for one in found["at_s"]]
    plots = []
    for title, names in (("Pods over time", ("running", "pending")), ("Nodes over time", ("upgraded", "nodes"))):
        series = [(name, [float(n or 0) for n in found[name]]) for name in names if name in found.kinds]
        plots += [levels(title, at, series)] if any(any(values) for _, values in series) else []
    return plots


def _loss_plots(found: ColumnTable) -> list[str]:
    """Of the workloads that lose pods in a case."""
    rows = found.named()
    if "missing" not in found.kinds:
        return []
    lossy = {(row.namespace, row.workload) for row in rows if row.missing}
    hits = [
        Hit(f"{row.namespace} {row.workload}", row.case, row.missing, row.had)
        for row in rows
        if (row.namespace, row.workload) in lossy
    ]
    return [matrix("Pods that are missing, by workload and by what fails", hits)]


def _move_plots(found: ColumnTable) -> list[str]:
    return [flow("Where pods go", [(row.source, row.target) for row in found.named()])]


def _dry_run_plots(found: ColumnTable) -> list[str]:
    if "target" not in found.kinds:
        return []
    return [flow("Where pods go", [(row.node, row.target or "nowhere") for row in found.named()])]


def _machine_plots(found: ColumnTable) -> list[str]:
    shown = [
        Bar(f"{row.count} x {row.shape} {row.zone}", row.count * row.price, f"{row.count * row.price:,.4g}")
        for row in found.named()
    ]
    return [bars("Cost of an hour, by machine", sorted(shown, key=lambda bar: -bar.amount))]


def _case_plots(found: ColumnTable) -> list[str]:
    rows = _worst_first("cases", found).named()
    lost = [Bar(row.case, row.missing, f"{row.missing:,}", "bad") for row in rows]
    return [bars("Pods without a node, by what fails", lost)]


def _step_plots(found: ColumnTable) -> list[str]:
    rows = found.named()
    if not rows:
        return []
    saved = [0.0, *(float(row.saved_so_far or 0) for row in rows)]
    evicted = [0.0, *(float(row.evicted_so_far or 0) for row in rows)]
    by_step = [Bar(f"{row.step}: {row.delete}", row.evictions, f"{row.evictions:,}") for row in rows]
    line = levels("Saved, by pods evicted", evicted, [("saved", saved)], "pods evicted")
    return [line if saved[-1] else "", bars("Evictions, step by step", by_step)]


def _try_plots(found: ColumnTable) -> list[str]:
    moves = [Bar(f"{row.order}, surge {row.max_surge}", row.moves, f"{row.moves:,}") for row in found.named()]
    return [bars("Pods moved, by order and surge", moves) if len(moves) > 1 else ""]


def _resource_plots(found: ColumnTable) -> list[str]:
    full = [(row.resource, row.requested / row.allocatable) for row in found.named() if row.allocatable]
    return [shares("Requested on all nodes together", full)]


def _run_plots(found: ColumnTable) -> list[str]:
    rows = found.named()
    waiting = [Bar(f"{row.configuration}, seed {row.seed}", row.pending, f"{row.pending:,}", "bad") for row in rows]
    used = [Bar(f"{row.configuration}, seed {row.seed}", row.nodes_used, f"{row.nodes_used:,}") for row in rows]
    return [bars("Pending at the end, by run", waiting), bars("Nodes used, by run", used)]


def _metric_plots(found: ColumnTable) -> list[str]:
    rows = [row for row in found.named() if isfinite(row.low) and isfinite(row.high) and (row.low or row.high)]
    several = len({row.variant for row in rows}) > 1
    differences = [
        Difference(
            f"{row.variant}: {row.metric}" if several else row.metric,
            row.difference,
            row.low,
            row.high,
            signed(row.difference),
        )
        for row in rows
    ]
    return [forest("Difference from the baseline, with its interval", differences)]


def _fit_plots(found: ColumnTable) -> list[str]:
    several = len(set(found["pod"])) > 1
    shown = [
        Bar(f"{row.pod}, {row.nodes}" if several else row.nodes, row.fits, f"{row.fits:,}") for row in found.named()
    ]
    return [bars("Copies that fit", shown) if len(shown) > 1 else ""]


def _by_node_plots(found: ColumnTable) -> list[str]:
    by_pod: dict[str, list[Bar]] = {}
    for row in found.named():
        by_pod.setdefault(row.pod, []).append(Bar(row.node, row.fits, f"{row.fits:,}"))
    return [bars(f"Copies of {pod} that fit, by node", shown) for pod, shown in by_pod.items()]


def _remedy_plots(found: ColumnTable) -> list[str]:
    several = len(set(found["pod"])) > 1
    shown = [
        Bar(f"{row.pod}: {row.remedy}" if several else row.remedy, row.more, f"+{row.more:,}", "good")
        for row in found.named()
    ]
    return [bars("How many more would fit", shown)]


def _score_plots(found: ColumnTable) -> list[str]:
    return [bars("Score of each node that fits", [Bar(row.node, row.total, f"{row.total:,}") for row in found.named()])]


def _rejected_plots(found: ColumnTable) -> list[str]:
    shown = [Bar(row.why_not, row.nodes, f"{row.nodes:,}", "bad") for row in found.named()]
    return [bars("Nodes that do not fit, by reason", shown) if any(bar.amount > 1 for bar in shown) else ""]


_PLOTS: dict[str, Callable[[ColumnTable], list[str]]] = {
    "machines": _machine_plots,
    "nodes": _node_plots,
    "timeline": _timeline_plots,
    "cases": _case_plots,
    "workloads": _loss_plots,
    "moves": _move_plots,
    "steps": _step_plots,
    "pods": _dry_run_plots,
    "tries": _try_plots,
    "resources": _resource_plots,
    "runs": _run_plots,
    "metrics": _metric_plots,
    "fits": _fit_plots,
    "by_node": _by_node_plots,
    "remedies": _remedy_plots,
    "scores": _score_plots,
    "rejected": _rejected_plots,
}
