"""The nodes that fit, with their scores, plugin by plugin."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kubesched.explanation.layout import Style, counted, score_table

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
