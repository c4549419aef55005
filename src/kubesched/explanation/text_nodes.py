"""The nodes in an explanation's text: those that fit with their scores, those that do not by what they lack."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from kubesched.explanation.findings.finding import Shortage
from kubesched.explanation.groups import GroupedNode, RejectedNodes
from kubesched.explanation.layout import Style, counted, listed, score_table, wrapped
from kubesched.framework.status import Code

if TYPE_CHECKING:
    from kubesched.explanation.answer import Explanation
    from kubesched.scheduler.engine.score import PluginScores, ScoreOutcome

SHOWN = 8
"""Nodes that fit."""
GROUPS_SHOWN = 5
NEAREST_SHOWN = 3
"""Nodes of the nearest group that are told one by one."""
NAMES_WIDTH = 44
LEAST_WIDTH = 36
_GAP = "  "


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


# -- by what they lack -------------------------------------------------------------------------------------------------


def rejected_nodes(explanation: Explanation, style: Style) -> list[str]:
    groups = explanation.groups
    if not groups:
        return []
    n_nodes = sum(len(group.nodes) for group in groups)
    if style.wide:
        return [f"Nodes that do not fit ({n_nodes}), each with all that speaks against it", *_each(explanation, style)]
    n_groups = style.most(GROUPS_SHOWN)
    shown = _rows(groups[:n_groups], style, in_full=not explanation.fits)
    lines = [f"Nodes that do not fit ({n_nodes}), the nearest first", *_table(shown, style)]
    rest = groups[len(groups[:n_groups]) :]
    if rest:
        n_more = sum(len(group.nodes) for group in rest)
        lines.append(f"  and {counted(n_more, 'more node')} for {counted(len(rest), 'other reason')} (-o wide)")
    return lines


def _rows(groups: Sequence[RejectedNodes], style: Style, *, in_full: bool) -> Iterator[tuple[int, str, str]]:
    """(how many nodes, their names, what speaks against them); the nearest nodes one by one where they differ."""
    for group in groups:
        parts = _nearest_apart(group, style) if in_full and group is groups[0] else [group]
        for part in parts:
            yield len(part.nodes), names_cell(part.names), part.summary()


def _nearest_apart(group: RejectedNodes, style: Style) -> list[RejectedNodes]:
    """The nearest nodes of a group on their own, as far as their amounts differ, and the rest of it."""
    if not any(isinstance(finding, Shortage) for finding in group.findings):
        return [group]
    by_text: dict[str, list[GroupedNode]] = {}
    for node in group.nodes:
        by_text.setdefault(" ".join(finding.text for finding in node.findings), []).append(node)
    parts = list(by_text.values())
    n_apart = style.most(NEAREST_SHOWN)
    if n_apart is not None and len(parts) > n_apart:
        parts[n_apart:] = [[node for part in parts[n_apart:] for node in part]]
    return [replace(group, nodes=tuple(part)) for part in parts]


def names_cell(names: Sequence[str]) -> str:
    """As many names as the column holds, at least one."""
    for n in range(min(len(names), 4), 0, -1):
        text = listed(names, n)
        if len(text) <= NAMES_WIDTH:
            return text
    return f"{names[0]}{', …' if len(names) > 1 else ''}"


def _table(rows: Iterator[tuple[int, str, str]], style: Style) -> list[str]:
    """The last column takes what is left of the width, and is wrapped within it."""
    whole = list(rows)
    first = max(len("COUNT"), *(len(str(n)) for n, _, _ in whole))
    second = max(len("NODES"), *(len(names) for _, names, _ in whole))
    indent = 2 + first + len(_GAP) + second + len(_GAP)
    width = max(style.width - indent, LEAST_WIDTH)
    lines = [f"  {'COUNT':>{first}}{_GAP}{'NODES':{second}}{_GAP}WHY NOT"]
    for n, names, why in whole:
        told = textwrap.wrap(why, width, break_long_words=False, break_on_hyphens=False) or [""]
        lines.append(f"  {n:>{first}}{_GAP}{names:{second}}{_GAP}{told[0]}".rstrip())
        lines.extend(" " * indent + more for more in told[1:])
    return lines


# -- node by node ------------------------------------------------------------------------------------------------------


def _each(explanation: Explanation, style: Style) -> Iterator[str]:
    """Every node, in the order of the groups."""
    for group in explanation.groups:
        for node in group.nodes:
            yield f"  {node.name}"
            for status in group.statuses:
                reasons = ", ".join(status.reasons) or "rejected without a reason"
                helped = "" if status.code is Code.UNSCHEDULABLE else " (evictions do not help)"
                told = f"{status.plugin or 'PreFilter'}: {reasons}{helped}"
                yield from wrapped(told, indent=4, hanging=2, width=style.width)
                for finding in node.findings:
                    if finding.plugin == status.plugin and finding.text != ", ".join(sorted(status.reasons)):
                        yield from wrapped(finding.text, indent=6, hanging=2, width=style.width)
