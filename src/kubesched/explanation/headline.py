"""The first line: what is with the pod, why, and what to do, in one sentence or two.

What keeps a pod from being looked at at all comes first: its scheduler, gates, class, claims and devices.

Next: `cause_of_nodes`, for pods that every node was looked at for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING

from kubesched.explanation.cause import Cause, claim_causes
from kubesched.explanation.cause_of_nodes import cause_of_nodes
from kubesched.explanation.evidence import nominated_pods_by_row
from kubesched.explanation.findings.finding import CauseKind
from kubesched.explanation.groups import RejectedNodes
from kubesched.explanation.layout import all_of, any_of, counted, listed
from kubesched.explanation.placement import cause_of_place
from kubesched.framework.status import Status
from kubesched.scheduler.plugins.dynamic_resources import DynamicResources
from kubesched.scheduler.plugins.node_affinity import NodeAffinity
from kubesched.scheduler.plugins.node_volume_limits import NodeVolumeLimits
from kubesched.scheduler.plugins.scheduling_gates import SchedulingGates
from kubesched.scheduler.plugins.volume_binding import VolumeBinding
from kubesched.scheduler.plugins.volume_restrictions import VolumeRestrictions
from kubesched.scheduler.plugins.volume_zone import VolumeZone

if TYPE_CHECKING:
    from kubesched.explanation.answer import Explanation
    from kubesched.scheduler.engine.cycle import Decision
    from kubesched.scheduler.engine.preemption.candidates import Preemption

_NAMES_SHOWN = 4
_SYSTEM_CLASSES = ("system-cluster-critical", "system-node-critical")
_OF_VOLUMES = (VolumeBinding.name, VolumeZone.name, VolumeRestrictions.name, NodeVolumeLimits.name)


@dataclass(frozen=True, slots=True)
class WaitingGroup:
    """The group that a pod waits with."""

    key: str
    why: str
    """Of the group, without its name."""
    is_incomplete: bool
    """Pods of it do not exist, or it does not itself: then no pod of it is looked at."""
    exists: bool = True


def cause_of_pod(explanation: Explanation) -> Cause | None:
    """What stands in the way before any node does; None if nothing does."""
    if explanation.refusal:
        return Cause(CauseKind.REFUSED_CONFIGURATION, explanation.refusal)
    leaving = _terminating(explanation)
    if leaving is not None:
        return leaving
    if explanation.is_stand_in:
        return _foreign_scheduler(explanation)
    if explanation.gate is not None:
        return _gate(explanation, explanation.gate)
    missing = missing_priority_class(explanation) or missing_runtime_class(explanation)
    if missing is not None:
        return missing
    group = explanation.waiting_group
    if group is not None and (group.is_incomplete or explanation.fits):
        return _group(explanation, group)
    decision = explanation.decision
    assert decision is not None
    if decision.error and "CEL" in decision.error:
        remedy = "Correct the selector of the claim or of its device class."
        return Cause(CauseKind.DEVICE_CLAIM, f"its devices cannot be selected: {_one_line(decision.error)}", remedy)
    if decision.error:
        return Cause(CauseKind.ERROR, f"{explanation.error_cause}: {_one_line(decision.error)}")
    if decision.prefilter is None:
        return Cause(CauseKind.NO_NODES, "there are no nodes", "Add a node.")
    if not decision.prefilter.status.is_success:
        return _rejection(explanation, decision.prefilter.status)
    return None


def _terminating(explanation: Explanation) -> Cause | None:
    """A pod that is being deleted is not scheduled any more; in a namespace that is, none can be bound."""
    pod = explanation.pod.pod
    if explanation.placed_on:
        return None
    if pod.is_terminating:
        holders = list(pod.metadata.finalizers or ())
        text = "it is being deleted, and so is not scheduled any more"
        remedy = "It goes within its grace period."
        if holders:
            text += f"; it still has the {'finalizer' if len(holders) == 1 else 'finalizers'} {all_of(holders)}"
            remedy = "It goes when whoever set that has removed it."
        return Cause(CauseKind.TERMINATING, text, remedy, fields={"finalizers": holders})
    namespace = explanation.cluster.objects.namespaces.get(pod.namespace)
    if namespace is None or namespace.metadata.deletion_timestamp is None:
        return None
    return Cause(
        CauseKind.TERMINATING,
        f"its namespace {pod.namespace} is being deleted, and an API server binds no pod in such a namespace",
        "It is deleted with the namespace; create it in another one.",
        fields={"namespace": pod.namespace},
    )


def _foreign_scheduler(explanation: Explanation) -> Cause:
    wanted, used = explanation.pod.spec.scheduler_name, explanation.scheduler.profile.scheduler_name
    meant = f"Did you mean {used}? " if get_close_matches(wanted, [used], 1, 0.88) else ""
    return Cause(
        CauseKind.FOREIGN_SCHEDULER,
        f'its scheduler "{wanted}" is not configured here',
        f'{meant}Check that it is running. Nodes are shown as "{used}" sees them.',
        fields={"schedulerName": wanted, "answeredBy": used},
    )


def _gate(explanation: Explanation, gate: Status) -> Cause:
    reasons = ", ".join(gate.reasons)
    if gate.plugin != SchedulingGates.name:
        if gate.plugin == DynamicResources.name:
            return _unready_devices(explanation, reasons)
        return Cause(CauseKind.GATES, f"{gate.plugin} holds it back before any node is looked at: {reasons}")
    gates = [gate.name for gate in explanation.pod.spec.scheduling_gates or ()]
    them = "it" if len(gates) == 1 else "them"
    hold = f"gate {gates[0]} holds" if len(gates) == 1 else f"gates {all_of(gates)} hold"
    return Cause(
        CauseKind.GATES,
        f"the scheduling {hold} it back before any node is looked at",
        f"It is scheduled when whoever set {them} has removed {them} (spec.schedulingGates); {_once_open(explanation)}",
        () if explanation.without_gates is None else explanation.without_gates.cause.nodes,
        fields={"gates": gates},
    )


def _group(explanation: Explanation, group: WaitingGroup) -> Cause:
    name = group.key.partition("/")[2]
    asked = f"See kubesched explain {group.key.replace('/', '/podgroup/', 1)} for what would"
    alone = f"; by itself it {_fits(explanation).text}" if explanation.fits else ""
    remedy = f"{asked} help." if group.is_incomplete else f"{asked} make it fit{alone}."
    fields = {"podGroup": group.key}
    return Cause(CauseKind.POD_GROUP, f"its PodGroup {name} {group.why}", remedy if group.exists else "", fields=fields)


def _once_open(explanation: Explanation) -> str:
    """What would become of the pod without its gates."""
    without = explanation.without_gates
    assert without is not None
    if without.fits:
        return f"it then {without.cause.text}."
    return f"it would not fit then either: {without.cause.sentence}"


def _unready_devices(explanation: Explanation, reasons: str) -> Cause:
    """A claim that is named does not exist, or one that a template stands for was not made."""
    objects, pod = explanation.cluster.objects, explanation.pod
    for use in pod.spec.resource_claims or ():
        template = use.resource_claim_template_name
        if template and f"{pod.namespace}/{template}" not in objects.resource_claim_templates:
            text = f"its resource claim template {template} does not exist in namespace {pod.namespace}"
            return Cause(CauseKind.DEVICE_CLAIM, text, "Create the template, or correct its name.")
    is_to_be_made = any(use.resource_claim_template_name for use in pod.spec.resource_claims or ())
    remedy = "Create the claim, or correct its name in spec.resourceClaims."
    if is_to_be_made:
        remedy = "kube-controller-manager makes it from its template; see its log and the events."
    return Cause(CauseKind.DEVICE_CLAIM, f"its resource claims are not ready: {reasons}", remedy)


def missing_priority_class(explanation: Explanation) -> Cause | None:
    """An API server refuses a pod whose class does not exist; one that has its priority was admitted once."""
    spec = explanation.pod.spec
    name = spec.priority_class_name
    classes = explanation.cluster.objects.priority_classes
    if not name or name in classes or name in _SYSTEM_CLASSES or spec.priority is not None:
        return None
    near = get_close_matches(name, sorted(classes), 1, 0.6)
    known = f"; there is {any_of(sorted(classes)[:_NAMES_SHOWN])}" if classes else ""
    return Cause(
        CauseKind.MISSING_PRIORITY_CLASS,
        f"its PriorityClass {name} does not exist, so that no API server admits it{known}",
        f"Did you mean {near[0]}? Correct priorityClassName, or create the class."
        if near
        else "Create the class, or correct priorityClassName.",
        fields={"priorityClassName": name},
    )


def missing_runtime_class(explanation: Explanation) -> Cause | None:
    """An API server refuses a pod whose runtime class does not exist; one with a uid was admitted once."""
    pod, classes = explanation.pod.pod, explanation.cluster.objects.runtime_classes
    name = pod.spec.runtime_class_name
    if not name or name in classes or not classes or pod.metadata.uid:
        return None
    there = any_of(sorted(classes)[:_NAMES_SHOWN])
    return Cause(
        CauseKind.MISSING_RUNTIME_CLASS,
        f"its RuntimeClass {name} does not exist, so that no API server admits it; there is {there}",
        "Create the class, or correct runtimeClassName.",
        fields={"runtimeClassName": name},
    )


# -- rejected as a whole -----------------------------------------------------------------------------------------------


def _rejection(explanation: Explanation, status: Status) -> Cause:
    if status.plugin in _OF_VOLUMES:
        cause = next(claim_causes(explanation), None)
        if cause is not None:
            return cause
    if status.plugin == DynamicResources.name:
        return _devices(explanation, status)
    if status.plugin == NodeAffinity.name:
        return Cause(
            CauseKind.NODE_AFFINITY,
            "its required node affinity names nodes, but no node that all of its terms agree on",
            "Correct the node names in the required node affinity.",
        )
    plugin = status.plugin or "PreFilter"
    return Cause(CauseKind.PLUGIN, f"{plugin} rejects it before any node is looked at: {', '.join(status.reasons)}")


def _devices(explanation: Explanation, status: Status) -> Cause:
    reason = ", ".join(status.reasons)
    known = sorted(explanation.cluster.objects.device_classes)
    remedy = ""
    if "device class" in reason:
        remedy = f"There is {listed(known, _NAMES_SHOWN)}; correct the claim." if known else "Create the DeviceClass."
    elif "being allocated" in reason:
        remedy = "Wait: another pod is getting it."
    return Cause(CauseKind.DEVICE_CLAIM, f"its devices cannot be allocated anywhere: {reason}", remedy)


def _one_line(text: str) -> str:
    return " ".join(text.split())


TIES_SHOWN = 3
VICTIMS_SHOWN = 3


def cause_and_groups(
    explanation: Explanation, groups: Sequence[RejectedNodes]
) -> tuple[Cause, tuple[RejectedNodes, ...]]:
    """The cause, and the groups in the order in which they help: the nodes that the cause speaks of first."""
    of_pod = cause_of_pod(explanation)
    decision = explanation.decision
    if explanation.placed_on and decision is not None:
        return cause_of_place(explanation, groups), tuple(groups)
    if decision is None or explanation.fits or not groups:
        return of_pod or _fits(explanation), tuple(groups)
    names = explanation.cluster.table.names
    nominated: dict[str, list[str]] = {
        names[row]: [str(pod.key) for pod in pods]
        for row, pods in nominated_pods_by_row(explanation.cluster, explanation.pod).items()
    }
    cause, verdict = cause_of_nodes(explanation.cluster, explanation.pod, groups, nominated)
    told = set(cause.nodes)
    left = sorted(verdict.left, key=lambda group: told.isdisjoint(group.names))
    ordered = (*left, *(group for group in groups if group not in left))
    return of_pod or _with_preemption(explanation, cause), ordered


def headline_of(explanation: Explanation) -> str:
    cause = explanation.cause
    subject = f"Pod {explanation.pod.key}"
    if cause.kind is CauseKind.REFUSED_CONFIGURATION:
        return cause.text
    if cause.kind is CauseKind.FITS:
        return f"{subject} {cause.text}."
    if cause.kind is CauseKind.BOUND:
        return f"{subject} {cause.sentence}"
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


def _budgets_broken(preemption: Preemption) -> str:
    """Evictions by preemption go against disruption budgets where there is no other way."""
    chosen = next((c for c in preemption.candidates if c.node_name == preemption.node_name), None)
    if chosen is None or not chosen.n_budget_violations:
        return ""
    return f", against {'a disruption budget' if chosen.n_budget_violations == 1 else 'disruption budgets'}"


def _with_preemption(explanation: Explanation, cause: Cause) -> Cause:
    """What preemption does about it, where it does something."""
    decision, pod = explanation.decision, explanation.pod
    assert decision is not None
    preemption = decision.preemption
    if pod.spec.preemption_policy == "Never":
        return replace(cause, text=f"{cause.text}; its preemptionPolicy is Never, so it evicts no pods")
    is_waiting = preemption is not None and all(victim.pod.is_terminating for victim in preemption.victims)
    if preemption is not None and preemption.node_name and not is_waiting:
        victims = [f"{victim.key} (priority {victim.priority})" for victim in preemption.victims]
        broken = _budgets_broken(preemption)
        remedy = (
            f"Preemption evicts {listed(victims, VICTIMS_SHOWN)} from {preemption.node_name}{broken}, then it fits."
        )
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
