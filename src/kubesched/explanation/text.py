"""The readable answer, for people who want to know why a pod is pending, or why it went where it went.

The first line is the answer: the cause, and what to do. Then come the nodes that fit with their scores, those that do
not with what they lack, what would make the pod fit, and what evictions would do.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from kubesched.explanation.changes import Change, ChangeKind
from kubesched.explanation.evidence import nominated_pods_by_row
from kubesched.explanation.findings.finding import CauseKind, Shortage
from kubesched.explanation.groups import GroupedNode, RejectedNodes
from kubesched.explanation.layout import (
    WHAT_WOULD_HELP,
    Style,
    Tone,
    counted,
    listed,
    numbered,
    score_table,
    wrapped,
)
from kubesched.framework.status import Code
from kubesched.scheduler.engine.postfilter import for_event

if TYPE_CHECKING:
    from kubesched.explanation.answer import Explanation
    from kubesched.scheduler.engine.preemption import Candidate, Preemption
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
    lines = [style.heading(f"Nodes that fit, best first (scores are 0 to {top}, times the plugin's weight)")]
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
        title = f"Nodes that do not fit ({n_nodes}), each with every reason against it"
        return [style.heading(title), *_each(explanation, style)]
    n_groups = style.most(GROUPS_SHOWN)
    shown = _rows(groups[:n_groups], style, in_full=not explanation.fits)
    lines = [style.heading(f"Nodes that do not fit ({n_nodes}), the nearest first"), *_table(shown, style)]
    rest = groups[len(groups[:n_groups]) :]
    if rest:
        n_more = sum(len(group.nodes) for group in rest)
        lines.append(f"  and {counted(n_more, 'more node')} for {counted(len(rest), 'other reason')} (-o wide)")
    return lines


def _rows(groups: Sequence[RejectedNodes], style: Style, *, in_full: bool) -> Iterator[tuple[int, str, str]]:
    """(how many nodes, their names, the reasons against them); the nearest nodes one by one where they differ."""
    for group in groups:
        parts = _nearest_apart(group, style) if in_full and group is groups[0] else [group]
        for part in parts:
            yield len(part.nodes), names_cell(part.names), part.summary()


def _nearest_apart(group: RejectedNodes, style: Style) -> list[RejectedNodes]:
    """The nearest nodes of a group on their own, as far as their amounts differ, and the rest of it."""
    if not any(isinstance(finding, Shortage) for finding in group.findings):
        return [group]
    n_apart = style.most(NEAREST_SHOWN)
    parts: list[list[GroupedNode]] = []
    for at, node in enumerate(group.nodes):  # by distance, so that those with the same amounts stand together
        if parts and parts[-1][0].findings == node.findings:
            parts[-1].append(node)
        elif n_apart is None or len(parts) < n_apart:
            parts.append([node])
        else:
            parts.append(list(group.nodes[at:]))
            break
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


CANDIDATES_SHOWN = 2
VICTIMS_SHOWN = 4
CHANGES_SHOWN = 4


def evictions(explanation: Explanation, style: Style) -> list[str]:
    decision = explanation.decision
    if decision is None or decision.post_filter is None:
        return []
    preemption = decision.preemption
    if preemption is None:
        return [_why_none(explanation)]
    title = f"Evictions that would make it fit (pods of a priority below {explanation.pod.priority})"
    lines = [style.heading(title)]
    candidates = sorted(preemption.candidates, key=lambda candidate: _order(candidate, preemption))
    for candidate in candidates[: style.most(CANDIDATES_SHOWN)]:
        lines.extend(wrapped(_told(candidate, preemption, style), indent=2, hanging=2, width=style.width))
    n_more = len(candidates) - len(candidates[: style.most(CANDIDATES_SHOWN)])
    return [*lines, f"  and on {counted(n_more, 'more node')}"] if n_more else lines


def nominated_pods(explanation: Explanation, style: Style) -> list[str]:
    """Pods that the pod must leave room for."""
    nominees = nominated_pods_by_row(explanation.cluster, explanation.pod)
    if explanation.decision is None or not nominees:
        return []
    names = explanation.cluster.table.names
    lines = [style.heading("Counted as if they ran there already (nominated, and of no lower priority)")]
    for row, pods in list(nominees.items())[: style.most(CANDIDATES_SHOWN)]:
        told = [f"{pod.key} (priority {pod.priority})" for pod in pods]
        lines.extend(wrapped(f"{names[row]}: {', '.join(told)}", indent=2, hanging=2, width=style.width))
    n_more = len(nominees) - len(lines) + 1
    return [*lines, f"  and on {counted(n_more, 'more node')}"] if n_more > 0 else lines


def _why_none(explanation: Explanation) -> str:
    if explanation.pod.spec.preemption_policy == "Never":
        return "It may not evict other pods: its preemptionPolicy is Never"
    if explanation.pod.pod.status.nominated_node_name:
        return f"No eviction is due now; it is nominated to {explanation.pod.pod.status.nominated_node_name}"
    return (
        f"Preemption would not help: no lower-priority pods (below {explanation.pod.priority}) "
        "whose eviction would free enough"
    )


def _order(candidate: Candidate, preemption: Preemption) -> tuple[bool, bool, str]:
    is_as_good = any(candidate.node_name == other.node_name for other in preemption.equally_good)
    return candidate.node_name != preemption.node_name, not is_as_good, candidate.node_name


def _told(candidate: Candidate, preemption: Preemption, style: Style) -> str:
    victims = [f"{pod.key} (priority {pod.priority}{_state(pod.pod.is_terminating)})" for pod in candidate.victims]
    text = f"{candidate.node_name}: {listed(victims, style.most(VICTIMS_SHOWN))}"
    if candidate.n_budget_violations == 1:
        text += "; breaks a disruption budget"
    elif candidate.n_budget_violations:
        text += f"; breaks disruption budgets {candidate.n_budget_violations} times"
    if candidate.node_name == preemption.node_name:
        n_others = len(preemption.equally_good) - 1
        text += " <- chosen" if n_others < 1 else f" <- chosen, or one of {counted(n_others, 'other')} as good"
    return text


def _state(is_terminating: bool) -> str:
    return ", terminating" if is_terminating else ""


def smallest_changes(explanation: Explanation, style: Style) -> list[str]:
    decision = explanation.decision
    if explanation.fits or decision is None or decision.error or decision.prefilter is None:
        return []
    changes = explanation.changes
    if not changes:
        return ["No single small change that would make it fit was found"]
    shown = [_change_told(change) for change in changes[: style.most(CHANGES_SHOWN)]]
    lines = [style.heading(WHAT_WOULD_HELP), *numbered(shown, style)]
    n_more = len(changes) - len(shown)
    return [*lines, f"  and {counted(n_more, 'more change')} (-o wide)"] if n_more else lines


def _change_told(change: Change) -> str:
    together = "together: " if change.kind is ChangeKind.COMBINED else ""
    where = "" if change.kind is ChangeKind.ADD_NODE or _names(change.description, change.node) else change.node
    told = f"{together}{change.description}" + (f" (then it fits on {where})" if where else "")
    return f"{told}; {change.cost}" if change.cost else told


def _names(description: str, node: str) -> bool:
    """Whether the sentence already says on which node."""
    return node in description.replace(",", " ").split()


LINES_AIMED_AT = 25
"""However large the cluster is. Lists get shorter until that is so, or nothing more can be left out."""
MOST_BREVITY = 4


def render(explanation: Explanation, style: Style | None = None) -> str:
    """The whole answer, without a newline at its end."""
    chosen = style or Style()
    if not chosen.wide:
        for brevity in range(MOST_BREVITY):
            text = _render(explanation, replace(chosen, brevity=brevity))
            if text.count("\n") < LINES_AIMED_AT:
                return text
    return _render(explanation, replace(chosen, brevity=MOST_BREVITY))


def _render(explanation: Explanation, chosen: Style) -> str:
    preamble = [explanation.preamble] if explanation.preamble else []
    if explanation.refusal:
        return "\n".join([*preamble, chosen.painted(Tone.BAD, explanation.refusal)])
    sections = [
        [*preamble, _first_line(explanation, chosen)],
        *_about_nodes(explanation.judged, chosen),
        [*evictions(explanation.judged, chosen), *_event(explanation)],
    ]
    if explanation.cause.kind is CauseKind.TERMINATING:
        sections = sections[:1]
    return "\n\n".join("\n".join(lines) for lines in sections if lines)


def _about_nodes(explanation: Explanation, style: Style) -> list[list[str]]:
    return [
        fitting_nodes(explanation, style),
        rejected_nodes(explanation, style),
        smallest_changes(explanation, style),
        nominated_pods(explanation, style),
    ]


def _first_line(explanation: Explanation, style: Style) -> str:
    cause = explanation.cause
    if cause.kind in (CauseKind.FITS, CauseKind.BOUND):
        return style.first_line(explanation.headline, Tone.GOOD, names=cause.nodes)
    return style.first_line(explanation.headline, Tone.BAD, cause.sentence, cause.nodes)


def _event(explanation: Explanation) -> list[str]:
    """What kube-scheduler writes into the pod's event."""
    if explanation.gate is not None:
        return [f"{explanation.gate.plugin}: {', '.join(explanation.gate.reasons)}"]
    decision = explanation.decision
    if decision is None or decision.node_name:
        return []
    return [f"FailedScheduling: {for_event(decision.message)}"]
