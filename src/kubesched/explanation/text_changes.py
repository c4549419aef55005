"""What evictions would do for a pod that does not fit, and the smallest changes that would make it fit, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubesched.explanation.changes import ChangeKind
from kubesched.explanation.failing import nominated_pods_by_row
from kubesched.explanation.layout import Style, counted, listed, wrapped

if TYPE_CHECKING:
    from kubesched.explanation.answer import Explanation
    from kubesched.scheduler.engine.preemption import Candidate, Preemption

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
    lines = [f"Evictions that would make it fit (pods of a priority below {explanation.pod.priority})"]
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
    lines = ["Counted as if they ran there already (nominated, and of no lower priority)"]
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
    lines = ["What would make it fit, each tried out, the most acceptable first"]
    for number, change in enumerate(changes[: style.most(CHANGES_SHOWN)], 1):
        together = "together: " if change.kind is ChangeKind.COMBINED else ""
        where = "" if change.kind is ChangeKind.ADD_NODE or _names(change.description, change.node) else change.node
        told = f"{number}. {together}{change.description}" + (f" (then it fits on {where})" if where else "")
        cost = f"; {change.cost}" if change.cost else ""
        lines.extend(wrapped(told + cost, indent=2, hanging=3, width=style.width))
    n_more = len(changes) - len(changes[: style.most(CHANGES_SHOWN)])
    return [*lines, f"  and {counted(n_more, 'more change')} (-o wide)"] if n_more else lines


def _names(description: str, node: str) -> bool:
    """Whether the sentence already says on which node."""
    return node in description.replace(",", " ").split()
