"""The nodes in an explanation's text: those that fit with their scores, those that do not with what they lack."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kubesched.explanation.amounts import readable
from kubesched.explanation.findings.finding import Shortage
from kubesched.explanation.findings.resources import lacking
from kubesched.explanation.layout import Style, counted, listed, score_table, table, wrapped
from kubesched.framework.status import Code, Status
from kubesched.scheduler.plugins.node_affinity import NodeAffinity
from kubesched.scheduler.plugins.node_resources_fit import NodeResourcesFit

if TYPE_CHECKING:
    from kubesched.explanation.explain import Explanation
    from kubesched.scheduler.engine.score import PluginScores, ScoreOutcome

SHOWN = 10


def fitting_nodes(explanation: Explanation, style: Style) -> list[str]:
    decision = explanation.decision
    if decision is None or decision.scored is None:
        return []
    scored = decision.scored
    names = scored.nodes.names
    order = sorted(range(len(names)), key=lambda position: (-int(scored.total[position]), names[position]))
    shown = order[: style.most(SHOWN)]
    weights = ", ".join(f"{scores.plugin} x{scores.weight}" for scores in scored.by_plugin if scores.weight != 1)
    top = explanation.highest_score
    lines = [f"Nodes that fit, best first (scores are 0 to {top}, times the plugin's weight)"]
    lines.extend(
        score_table(
            ["NODE", "TOTAL", *(scores.plugin for scores in scored.by_plugin)],
            [_row(scored, position, style) for position in shown],
            indent=2,
            width=style.width,
        )
    )
    if len(shown) < len(order):
        lowest = int(np.min(scored.total))
        lines.append(f"  and {counted(len(order) - len(shown), 'more node')}, down to a total of {lowest}")
    if weights:
        lines.append(f"  weights other than 1: {weights}")
    return lines


def _row(scored: ScoreOutcome, position: int, style: Style) -> list[str]:
    cells = [_cell(scores, position, style) for scores in scored.by_plugin]
    return [scored.nodes.names[position], str(int(scored.total[position])), *cells]


def _cell(scores: PluginScores, position: int, style: Style) -> str:
    weighted, raw = int(scores.weighted[position]), int(scores.raw[position])
    is_told = style.wide and raw * scores.weight != weighted
    return f"{weighted} (raw {raw})" if is_told else str(weighted)


NODES_SHOWN = 5
LINES_SHOWN = 5


def rejected_nodes(explanation: Explanation, style: Style) -> list[str]:
    groups = _groups(explanation)
    if not groups:
        return []
    n_nodes = sum(map(len, groups.values()))
    if style.wide:
        return [f"Nodes that do not fit ({n_nodes}), each with all that speaks against it", *_each(explanation, style)]
    lines = [f"Nodes that do not fit ({n_nodes})"]
    for status, rows in sorted(groups.items(), key=lambda entry: (-len(entry[1]), entry[0].reasons)):
        reasons = ", ".join(sorted(status.reasons)) or "rejected without a reason"
        plugin = f" ({status.plugin})" if status.plugin else ""
        lines.extend(
            wrapped(f"{counted(len(rows), 'node')}: {reasons}{plugin}", indent=2, hanging=2, width=style.width)
        )
        lines.extend(_details(explanation, status, rows, style))
    return lines


def _groups(explanation: Explanation) -> dict[Status, list[int]]:
    """Rows by what the scheduler has against them: the first plugin's reasons."""
    decision = explanation.decision
    if decision is None or decision.filtered is None:
        return {}
    filtered = decision.filtered
    found: dict[Status, list[int]] = {}
    searched = filtered.nodes.rows.tolist()
    for position, row in enumerate(searched):
        if not filtered.fits[position]:
            found.setdefault(filtered.status(position), []).append(row)
    if len(searched) < len(explanation.cluster.table.names):
        left_out = sorted(set(range(len(explanation.cluster.table.names))) - set(searched))
        found.setdefault(decision.diagnosis_of_absent(), []).extend(left_out)
    return found


# -- by reason ---------------------------------------------------------------------------------------------------------


def _details(explanation: Explanation, status: Status, rows: list[int], style: Style) -> list[str]:
    if status.plugin == NodeResourcesFit.name:
        return _shortage_table(explanation, lacking(status.reasons), rows)
    groups = sorted(_alike(explanation, status, rows), key=lambda group: group.order)
    lines: list[str] = []
    for group in groups[:LINES_SHOWN]:
        told = f"{group.text}: " if group.text else ""
        lines.extend(wrapped(told + listed(group.nodes, NODES_SHOWN), indent=4, hanging=2, width=style.width))
    n_more = sum(len(group.nodes) for group in groups[LINES_SHOWN:])
    return [*lines, f"    and {counted(n_more, 'more node')} alike"] if n_more else lines


@dataclass(frozen=True, slots=True)
class _Alike:
    """Nodes of which the same is true."""

    text: str
    distance: float
    nodes: list[str]

    @property
    def order(self) -> tuple[int, float, str]:
        """Large groups first, then those that are closest to fitting."""
        return -len(self.nodes), self.distance, self.nodes[0]


def _alike(explanation: Explanation, status: Status, rows: list[int]) -> list[_Alike]:
    plugin = status.plugin or NodeAffinity.name  # it is node affinity that leaves nodes out of the search
    reasons = ("", *status.reasons)
    names = explanation.cluster.table.names
    texts: dict[str, _Alike] = {}
    for row in rows:
        findings = () if explanation.numbers is None else explanation.numbers.by(plugin, row)
        findings = tuple(finding for finding in findings if finding.reason in reasons)
        text = "; ".join(finding.text for finding in findings)
        group = texts.setdefault(text, _Alike(text, sum(finding.distance for finding in findings), []))
        group.nodes.append(names[row])
    for group in texts.values():
        group.nodes.sort()
    return list(texts.values())


def _shortage_table(explanation: Explanation, resources: Sequence[str], rows: list[int]) -> list[str]:
    """The nodes first where least is missing."""
    numbers = explanation.numbers
    assert numbers is not None
    shortages = {row: [numbers.shortages.shortage(row, resource) for resource in resources] for row in rows}
    order = sorted(rows, key=lambda row: sum(shortage.distance for shortage in shortages[row]))
    names = explanation.cluster.table.names
    shown = [_cells(names[row], shortage) for row in order[:NODES_SHOWN] for shortage in shortages[row]]
    header = ["NODE", "RESOURCE", "REQUESTED", "FREE", "USED", "ALLOCATABLE", "MISSING"]
    lines = table(header, shown, indent=4, n_left=2)
    n_more = len(rows) - NODES_SHOWN
    verb = "lacks" if n_more == 1 else "lack"
    return [*lines, f"    and {counted(n_more, 'more node')} that {verb} at least as much"] if n_more > 0 else lines


def _cells(node: str, shortage: Shortage) -> list[str]:
    amounts = (shortage.requested, shortage.free, shortage.used, shortage.allocatable, shortage.missing)
    return [node, shortage.resource, *(readable(shortage.resource, units) for units in amounts)]


# -- node by node ------------------------------------------------------------------------------------------------------


def _each(explanation: Explanation, style: Style) -> Iterator[str]:
    assert explanation.failures is not None and explanation.numbers is not None
    for name, row in sorted(explanation.cluster.table.rows.items()):
        statuses = explanation.failures.statuses(row)
        if statuses:
            yield f"  {name}"
        for status in statuses:
            reasons = ", ".join(status.reasons) or "rejected without a reason"
            helped = "" if status.code is Code.UNSCHEDULABLE else " (evictions do not help)"
            told = f"{status.plugin or 'PreFilter'}: {reasons}{helped}"
            yield from wrapped(told, indent=4, hanging=2, width=style.width)
            for finding in explanation.numbers.by(status.plugin, row):
                yield from wrapped(finding.text, indent=6, hanging=2, width=style.width)
