"""The first line: what is with the pod, why, and what to do, in one sentence or two.

What keeps a pod from being looked at at all comes first: its scheduler, gates, class, claims and devices.

Next: `cause_of_nodes`, for pods that every node was looked at for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING

from kubesched.explanation.cause import Cause
from kubesched.explanation.cause_of_nodes import cause_of_nodes
from kubesched.explanation.evidence import nominated_pods_by_row
from kubesched.explanation.findings.finding import CauseKind
from kubesched.explanation.groups import RejectedNodes
from kubesched.explanation.layout import all_of, any_of, counted, listed
from kubesched.explanation.placement import cause_of_place
from kubesched.framework.status import Status
from kubesched.k8s.model.storage import PersistentVolumeClaim
from kubesched.k8s.model.volume_claims import (
    NO_PROVISIONER,
    ClaimUse,
    claims_of,
    class_of_claim,
    is_fully_bound,
    requested_storage,
    waits_for_first_consumer,
)
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

_NAMES_SHOWN = 4
_SYSTEM_CLASSES = ("system-cluster-critical", "system-node-critical")
_OF_VOLUMES = (VolumeBinding.name, VolumeZone.name, VolumeRestrictions.name, NodeVolumeLimits.name)


def cause_of_pod(explanation: Explanation) -> Cause | None:
    """What stands in the way before any node does; None if nothing does."""
    if explanation.refusal:
        return Cause(CauseKind.REFUSED_CONFIGURATION, explanation.refusal)
    if explanation.is_stand_in:
        return _foreign_scheduler(explanation)
    if explanation.gate is not None:
        return _gate(explanation, explanation.gate)
    missing = missing_priority_class(explanation)
    if missing is not None:
        return missing
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


def _foreign_scheduler(explanation: Explanation) -> Cause:
    wanted, used = explanation.pod.spec.scheduler_name, explanation.scheduler.profile.scheduler_name
    meant = f"Did you mean {used}? " if get_close_matches(wanted, [used], 1, 0.88) else ""
    return Cause(
        CauseKind.FOREIGN_SCHEDULER,
        f'it asks for the scheduler "{wanted}", which is not configured here: only that one places it',
        f'{meant}See whether "{wanted}" runs; below is what "{used}" would decide.',
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
        f"It is scheduled when whoever set {them} has removed {them} (spec.schedulingGates).",
        fields={"gates": gates},
    )


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


# -- claims ------------------------------------------------------------------------------------------------------------


def claim_causes(explanation: Explanation) -> Iterator[Cause]:
    """For each claim of the pod that cannot be used on any node, why."""
    objects = explanation.cluster.objects
    for use in claims_of(explanation.pod.pod):
        claim = objects.persistent_volume_claims.get(use.key)
        if claim is None:
            yield _missing_claim(explanation, use)
        elif claim.status.phase == "Lost":
            yield _claim(
                claim,
                f"has lost its volume {claim.spec.volume_name}, which does not exist",
                "Restore the volume, or delete the claim and let it be made anew (its data is gone).",
            )
        elif claim.metadata.deletion_timestamp is not None:
            yield _claim(claim, "is being deleted", "Create it again when it is gone.")
        elif is_fully_bound(claim):
            if claim.spec.volume_name not in objects.persistent_volumes:
                text = f"is bound to volume {claim.spec.volume_name}, which does not exist"
                yield _claim(claim, text, "Restore the volume, or delete the claim.")
        else:
            cause = _unbound(explanation, claim)
            if cause is not None:
                yield cause


def _missing_claim(explanation: Explanation, use: ClaimUse) -> Cause:
    fields = {"claim": use.key}
    if use.is_ephemeral:
        text = f"claim {use.name} for its ephemeral volume does not exist yet"
        return Cause(CauseKind.CLAIM, text, "kube-controller-manager creates it; see its events.", fields=fields)
    claims = explanation.cluster.objects.persistent_volume_claims
    others = [key.partition("/")[2] for key in claims if key.startswith(f"{use.namespace}/")]
    near = get_close_matches(use.name, others, 1, 0.6)
    hint = f"; there is {near[0]}" if near else ""
    text = f"claim {use.name} does not exist in namespace {use.namespace}{hint}"
    remedy = "Create it, or correct the name in the pod's volumes."
    return Cause(CauseKind.CLAIM, text, remedy, fields=fields)


def _unbound(explanation: Explanation, claim: PersistentVolumeClaim) -> Cause | None:
    """Why a claim has no volume; None for one that gets it where the pod goes."""
    objects = explanation.cluster.objects
    class_name = class_of_claim(claim)
    size = f"({requested_storage(claim)}, {', '.join(claim.spec.access_modes or ())})"
    if claim.spec.volume_name:
        volume = objects.persistent_volumes.get(claim.spec.volume_name)
        state = "does not exist"
        if volume is not None:
            ref = volume.spec.claim_ref
            owner = "" if ref is None else f"{ref.namespace}/{ref.name}"
            is_taken = bool(owner) and owner != claim.key
            state = f"belongs to claim {owner}" if is_taken else "is not bound to it yet"
        text = f"names volume {claim.spec.volume_name}, which {state}"
        return _claim(claim, text, "Correct spec.volumeName of the claim, or free the volume.")
    if not class_name:
        text = f"is not bound: it has no storage class, and no volume without one suits it {size}"
        return _claim(claim, text, "Give it a storageClassName, or mark a class as the default and create it again.")
    storage_class = objects.storage_classes.get(class_name)
    if storage_class is None:
        known = sorted(objects.storage_classes)
        near = get_close_matches(class_name, known, 1, 0.5)
        there = f"; there is {any_of(known[:_NAMES_SHOWN])}" if known else "; there is none"
        text = f"is not bound: its storage class {class_name} does not exist{there}"
        meant = f"Did you mean {near[0]}? " if near else ""
        return _claim(claim, text, f"{meant}Create the class, or the claim anew with another.")
    if waits_for_first_consumer(storage_class):
        return None
    if storage_class.provisioner in ("", NO_PROVISIONER):
        n_free = sum(
            volume.spec.storage_class_name == class_name and volume.spec.claim_ref is None
            for volume in objects.persistent_volumes.values()
        )
        text = f"is not bound: class {class_name} has no provisioner, and none of its {counted(n_free, 'free volume')}"
        return _claim(claim, f"{text} suits it {size}", f"Create a PersistentVolume of class {class_name}.")
    text = f"is not bound: {storage_class.provisioner} has not made a volume of class {class_name} for it yet {size}"
    return _claim(claim, text, "See the events of the claim and the log of the provisioner.")


def _claim(claim: PersistentVolumeClaim, text: str, remedy: str) -> Cause:
    fields = {"claim": claim.key, "storageClass": class_of_claim(claim), "volume": claim.spec.volume_name}
    return Cause(CauseKind.CLAIM, f"claim {claim.name} {text}", remedy, fields=fields)


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
    if explanation.placed_on and decision is not None and not explanation.is_stand_in:
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
