"""The readable answer, for people who want to know why a pod is pending, or why it went where it went.

The first line is the verdict. Then come the nodes that fit with their scores, those that do not with the numbers, what
evictions would do, and the smallest changes that would make the pod fit. Next: `sections`, which write them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubesched.explanation.layout import Style, counted, listed
from kubesched.explanation.sections.changes import evictions, nominated_pods, smallest_changes
from kubesched.explanation.sections.nodes import fitting_nodes, rejected_nodes
from kubesched.scheduler.engine.postfilter import for_event

if TYPE_CHECKING:
    from kubesched.explanation.explain import Explanation
    from kubesched.scheduler.engine.cycle import Decision

TIES_SHOWN = 3


def render(explanation: Explanation, style: Style | None = None) -> str:
    """The whole answer, without a newline at its end."""
    chosen = style or Style()
    preamble = [explanation.preamble] if explanation.preamble else []
    if explanation.refusal:
        return "\n".join([*preamble, explanation.refusal])
    sections = [
        [*preamble, *_verdict(explanation)],
        fitting_nodes(explanation, chosen),
        rejected_nodes(explanation, chosen),
        nominated_pods(explanation, chosen),
        evictions(explanation, chosen),
        smallest_changes(explanation, chosen),
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines)


def _verdict(explanation: Explanation) -> list[str]:
    subject = f"Pod {explanation.pod.key}"
    if explanation.gate is not None:
        plugin, reasons = explanation.gate.plugin, ", ".join(explanation.gate.reasons)
        lines = [f"{subject} is gated: {plugin} holds it back before any node is looked at.", f"  {reasons}"]
    else:
        assert explanation.decision is not None
        lines = [f"{subject} {_outcome(explanation, explanation.decision)}"]
        if not explanation.decision.node_name:
            lines.append(f"  {for_event(explanation.decision.message)}")
    return [*lines, *_stand_in(explanation)]


def _outcome(explanation: Explanation, decision: Decision) -> str:
    n_nodes = len(explanation.cluster.table.names)
    if decision.error:
        return f"cannot be decided on: {explanation.error_cause}."
    if decision.prefilter is None:
        return "fits nowhere: there are no nodes."
    if not decision.prefilter.status.is_success:
        return f"is rejected as a whole by {decision.prefilter.status.plugin or 'PreFilter'}, before any node."
    if not decision.node_name:
        text = f"does not fit on any of {counted(n_nodes, 'node')}"
        preemption = decision.preemption
        if preemption is None or not preemption.node_name:
            return f"{text}."
        return (
            f"{text}; evicting {counted(len(preemption.victims), 'pod')} would make it fit on {preemption.node_name}."
        )
    n_fitting = 0 if decision.scored is None else len(decision.scored.nodes)
    return f"fits on {n_fitting} of {counted(n_nodes, 'node')} and would go to {_goal(decision)}."


def _goal(decision: Decision) -> str:
    if decision.nominated:
        return f"{decision.node_name}, which it is nominated to"
    if len(decision.best) == 1:
        return decision.node_name
    return f"one of {len(decision.best)} equally good ones: {listed(decision.best, TIES_SHOWN)}"


def _stand_in(explanation: Explanation) -> list[str]:
    """A note where the pod asks for a scheduler that is not configured."""
    wanted, used = explanation.pod.spec.scheduler_name, explanation.scheduler.profile.scheduler_name
    if wanted == used:
        return []
    return [f'  Note: it asks for the scheduler "{wanted}", which is not configured here; "{used}" answers for it.']
