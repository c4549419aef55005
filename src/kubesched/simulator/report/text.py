"""The report as text: what became of each workload, what waits and why, preemptions, and how full the nodes are.

The wide form has every pod. Next: `sections`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubesched.explanation.layout import Style, counted
from kubesched.simulator.report.sections import (
    blocked_drains,
    node_section,
    pending_section,
    pod_section,
    preemption_section,
    total_section,
    warning_section,
    workload_section,
)
from kubesched.simulator.report.spans import readable_span

if TYPE_CHECKING:
    from kubesched.simulator.report.report import SimulationReport


def render_report(report: SimulationReport, style: Style | None = None) -> str:
    """Without a newline at its end."""
    chosen = style or Style()
    sections = [
        _headline(report),
        pod_section(report) if chosen.wide else workload_section(report, chosen),
        pending_section(report, chosen),
        preemption_section(report, chosen),
        blocked_drains(report),
        warning_section(report, chosen),
        node_section(report, chosen),
        total_section(report),
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines)


def _headline(report: SimulationReport) -> list[str]:
    summary = report.summary
    states = ", ".join(f"{n} {state}" for state, n in summary["states"].items()) or "none"
    how_long = readable_span(report.ended_s)
    why = f"it had {len(report.pods):,} pods, the most that are kept" if report.is_full else "more was to come"
    end = f"cut short at {how_long}: {why}" if report.is_cut_short else f"over after {how_long}"
    return [
        f"{counted(summary['pods'], 'pod')} on {counted(summary['nodes'], 'node')}: {states}.",
        f"The run was {end}. Seed {summary['seed']}, ties by {_tie(summary['tie_break'])}.",
    ]


def _tie(tie_break: str) -> str:
    return "name" if tie_break == "name" else "chance"
