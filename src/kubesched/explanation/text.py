"""The readable answer, for people who want to know why a pod is pending, or why it went where it went.

The first line is the answer: the cause, and what to do. Then come the nodes that fit with their scores, those that do
not with what they lack, what evictions would do, and what would make the pod fit. Next: `text_nodes`, `text_changes`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from kubesched.explanation.layout import Style
from kubesched.explanation.text_changes import evictions, nominated_pods, smallest_changes
from kubesched.explanation.text_nodes import fitting_nodes, rejected_nodes
from kubesched.scheduler.engine.postfilter import for_event

if TYPE_CHECKING:
    from kubesched.explanation.answer import Explanation

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
        return "\n".join([*preamble, explanation.refusal])
    sections = [
        [*preamble, explanation.headline],
        fitting_nodes(explanation, chosen),
        rejected_nodes(explanation, chosen),
        smallest_changes(explanation, chosen),
        nominated_pods(explanation, chosen),
        [*evictions(explanation, chosen), *_event(explanation)],
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines)


def _event(explanation: Explanation) -> list[str]:
    """What kube-scheduler writes into the pod's event."""
    if explanation.gate is not None:
        return [f"{explanation.gate.plugin}: {', '.join(explanation.gate.reasons)}"]
    decision = explanation.decision
    if decision is None or decision.node_name:
        return []
    return [f"FailedScheduling: {for_event(decision.message)}"]
