"""A report as HTML for notebooks: what became of each workload, what waits and why, and how full the nodes are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kubesched.explanation.html import block, html_table, paragraph
from kubesched.explanation.layout import counted, listed, readable
from kubesched.k8s.model.requests import CPU, MEMORY
from kubesched.simulator.report_text import headline, total_section

if TYPE_CHECKING:
    from kubesched.simulator.report import SimulationReport
    from kubesched.simulator.sequence import PlacedSequence

_ROWS_SHOWN = 12
_NAMES_SHOWN = 3


def report_html(report: SimulationReport) -> str:
    first, *rest = headline(report)
    is_waiting = bool(report.summary["states"].get("Pending"))
    return block(
        paragraph(first, "head bad" if is_waiting else "head good"),
        *(paragraph(line, "dim") for line in rest),
        _workloads(report),
        _pending(report),
        _nodes(report),
        *(paragraph(line, "dim") for line in total_section(report)),
    )


def _workloads(report: SimulationReport) -> str:
    states: dict[tuple[str, str], Counter[str]] = {}
    for row in report.pods.to_rows():
        owner = (str(row["namespace"]), str(row["workload"] or f"Pod {row['name']}"))
        states.setdefault(owner, Counter())[str(row["state"])] += 1
    for row in report.not_created.to_rows():
        states.setdefault((str(row["namespace"]), str(row["workload"])), Counter())["Pending"] += int(row["pods"] or 0)
    rows = [
        (*owner, ", ".join(f"{n} {state}" for state, n in sorted(counts.items())))
        for owner, counts in sorted(states.items(), key=lambda entry: (-entry[1]["Pending"], entry[0]))
    ]
    return _cut(["namespace", "workload", "pods"], rows)


def _pending(report: SimulationReport) -> str:
    by_message: dict[str, list[str]] = {}
    for row in report.pending:
        by_message.setdefault(row["message"], []).append(f"{row['namespace']}/{row['name']}")
    rows = [
        (len(pods), listed(pods, _NAMES_SHOWN), message)
        for message, pods in sorted(by_message.items(), key=lambda entry: -len(entry[1]))
    ]
    return _cut(["pending", "pods", "why"], rows)


def _nodes(report: SimulationReport) -> str:
    used = {(row["node"], row["resource"]): row for row in report.utilisation.to_rows()}
    rows = []
    for row in report.nodes.to_rows():
        shares = []
        for resource in (CPU, MEMORY):
            found = used.get((row["name"], resource))
            whole = 0 if found is None else int(found["allocatable"] or 0)
            asked = 0 if found is None else int(found["requested"] or 0)
            shares.append(f"{asked / whole:.0%} of {readable(resource, whole)}" if whole else "-")
        rows.append((str(row["name"]), str(row["state"]), row["pods"], *shares))
    return _cut(["node", "state", "pods", "cpu requested", "memory requested"], rows)


def _cut(header: list[str], rows: Sequence[Sequence[object]]) -> str:
    more = len(rows) - _ROWS_SHOWN
    told = paragraph(f"and {counted(more, 'more row')}", "dim") if more > 0 else ""
    return html_table(header, rows[:_ROWS_SHOWN]) + told


def sequence_html(placed: PlacedSequence) -> str:
    rows = [(step.pod, step.node or "-", step.feasible, step.message if not step.node else "") for step in placed.steps]
    return block(paragraph(placed.headline, "head"), _cut(["pod", "node", "feasible nodes", "why not"], rows))
