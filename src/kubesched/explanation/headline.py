"""The first line: what is with the pod, why, and what to do, in one sentence or two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kubesched.explanation.cause import Cause
from kubesched.explanation.cause_of_nodes import cause_of_nodes
from kubesched.explanation.cause_of_pod import cause_of_pod
from kubesched.explanation.failing import nominated_pods_by_row
from kubesched.explanation.findings.finding import CauseKind
from kubesched.explanation.groups import RejectedNodes
from kubesched.explanation.layout import all_of, counted, listed

if TYPE_CHECKING:
    from kubesched.explanation.answer import Explanation
    from kubesched.scheduler.engine.cycle import Decision

TIES_SHOWN = 3
VICTIMS_SHOWN = 3


def cause_and_groups(
    explanation: Explanation, groups: Sequence[RejectedNodes]
) -> tuple[Cause, tuple[RejectedNodes, ...]]:
    """The cause, and the groups in the order in which they help: the nodes that the cause speaks of first."""
    of_pod = cause_of_pod(explanation)
    decision = explanation.decision
    if decision is None or explanation.fits or not groups:
        return of_pod or _fits(explanation), tuple(groups)
    names = explanation.cluster.table.names
    nominated: dict[str, list[str]] = {
        names[row]: [str(pod.key) for pod in pods]
        for row, pods in nominated_pods_by_row(explanation.cluster, explanation.pod).items()
    }
    cause, verdict = cause_of_nodes(explanation.cluster, explanation.pod, groups, nominated)
    ordered = (*verdict.left, *(group for group in groups if group not in verdict.left))
    return of_pod or _with_preemption(explanation, cause), ordered


def headline_of(explanation: Explanation) -> str:
    cause = explanation.cause
    subject = f"Pod {explanation.pod.key}"
    if cause.kind is CauseKind.REFUSED_CONFIGURATION:
        return cause.text
    if cause.kind is CauseKind.FITS:
        return f"{subject} {cause.text}."
    if cause.kind is CauseKind.ERROR:
        return f"{subject} cannot be decided on: {cause.sentence}"
    return f"{subject} is pending: {cause.sentence}"


def _fits(explanation: Explanation) -> Cause:
    decision = explanation.decision
    assert decision is not None
    n_nodes = len(explanation.cluster.table.names)
    n_fitting = 0 if decision.scored is None else len(decision.scored.nodes)
    text = f"fits on {n_fitting} of {counted(n_nodes, 'node')} and would go to {_goal(decision)}"
    return Cause(CauseKind.FITS, text, nodes=(decision.node_name,))


def _goal(decision: Decision) -> str:
    if decision.nominated:
        return f"{decision.node_name}, which it is nominated to"
    if len(decision.best) == 1:
        return decision.node_name
    return f"one of {len(decision.best)} equally good ones: {listed(decision.best, TIES_SHOWN)}"


def _with_preemption(explanation: Explanation, cause: Cause) -> Cause:
    """What preemption does about it, where it does something."""
    decision, pod = explanation.decision, explanation.pod
    assert decision is not None
    preemption = decision.preemption
    if pod.spec.preemption_policy == "Never":
        return replace(cause, text=f"{cause.text}; its preemptionPolicy is Never, so that it evicts nobody")
    is_waiting = preemption is not None and all(victim.pod.is_terminating for victim in preemption.victims)
    if preemption is not None and preemption.node_name and not is_waiting:
        victims = [f"{victim.key} (priority {victim.priority})" for victim in preemption.victims]
        remedy = f"Preemption evicts {listed(victims, VICTIMS_SHOWN)} from {preemption.node_name}, then it fits."
        return replace(cause, remedy=remedy, fields={**cause.fields, "preemption": preemption.node_name})
    nominated = pod.pod.status.nominated_node_name
    row = explanation.cluster.table.rows.get(nominated)
    if row is None:
        return cause
    going = [other.key for other in explanation.cluster.table.pods.on(row) if other.pod.is_terminating]
    if not going:
        return cause
    return Cause(
        CauseKind.WAITS_FOR_EVICTIONS,
        f"it is nominated to {nominated} and waits for {counted(len(going), 'pod')} to terminate there: "
        f"{listed(going, VICTIMS_SHOWN)}",
        f"It is scheduled when {all_of(going[:1]) if len(going) == 1 else 'they'} "
        f"{'is' if len(going) == 1 else 'are'} gone; finalizers or a long grace period may hold them.",
        (nominated, *(name for name in cause.nodes if name != nominated)),
        cause.evidence,
        {"nominatedNode": nominated, "terminating": going},
    )
