"""Claims: those that are made for a pod, and the volume controller, which gives claims their volumes.

Claims for a pod's ephemeral volumes, and those from resource claim templates, belong to the pod and go with it; those
that a pod group names belong to the group.

A volume claim is bound to the volume that was written for it (by the scheduler, or by hand), or at once to the smallest
that suits, or gets a new one. Claims of a class that waits for the first consumer wait until the scheduler chose.

A new volume is as big as asked for, and reachable from where the claim's pod goes. From where follows the driver's
topology keys, if its CSINode has them; else the keys that the class restricts; else the node's zone. One that is made
before its pod has a place goes to the first topology that the class allows, or can be reached from everywhere.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from kubesched.k8s.model.core import (
    Node,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Pod,
    PodResourceClaim,
    PodResourceClaimStatus,
)
from kubesched.k8s.model.csi_migration import ZONE
from kubesched.k8s.model.meta import ObjectMeta, OwnerReference, ResourceList
from kubesched.k8s.model.resource import ResourceClaim, ResourceClaimTemplate
from kubesched.k8s.model.scheduling import GROUP, GROUP_VERSION, PodGroup
from kubesched.k8s.model.storage import (
    BIND_COMPLETED_ANNOTATION,
    BOUND_BY_CONTROLLER_ANNOTATION,
    NO_PROVISIONER,
    SELECTED_NODE_ANNOTATION,
    CSINode,
    ObjectReference,
    Offer,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
    StorageClass,
    VolumeNodeAffinity,
    class_of_claim,
    class_of_volume,
    is_bound_to,
    is_fully_bound,
    suitable_volumes,
    waits_for_first_consumer,
)
from kubesched.k8s.model.volumes import CSIPersistentVolumeSource
from kubesched.k8s.workloads.actions import NameSource, Plan
from kubesched.k8s.workloads.templates import owner_reference

POD_CLAIM_ANNOTATION = "resource.kubernetes.io/pod-claim-name"


def sync_pod_claims(
    pod: Pod,
    claim_keys: Container[str],
    templates: Mapping[str, ResourceClaimTemplate],
    names: NameSource,
    group: PodGroup | None = None,
) -> Plan:
    """`claim_keys` are the volume claims that exist, `templates` the resource claim templates by key, `group` is the
    pod group that the pod names, if it exists."""
    plan = Plan()
    if pod.is_terminal or pod.is_terminating:
        return plan
    _make_volume_claims(plan, pod, claim_keys)
    _make_resource_claims(plan, pod, templates, names, group)
    return plan


def sync_group_claims(
    group: PodGroup,
    templates: Mapping[str, ResourceClaimTemplate],
    names: NameSource,
    api_version: str = f"{GROUP}/{GROUP_VERSION}",
) -> Plan:
    """The claims of a group from templates: made once, for all of its pods. `api_version` is the group's."""
    plan = Plan()
    if group.metadata.deletion_timestamp is not None:
        return plan
    owner = OwnerReference("PodGroup", group.name, group.metadata.uid, api_version, controller=True)
    made = _claims_from_templates(plan, group, owner, group.spec.resource_claims or (), templates, names)
    if made:
        statuses = (*(group.status.resource_claim_statuses or ()), *made)
        plan.update(replace(group, status=replace(group.status, resource_claim_statuses=statuses)))
    return plan


def needs_claims(pod: Pod) -> bool:
    """Says no quickly for most pods."""
    return bool(pod.spec.resource_claims) or any(volume.ephemeral is not None for volume in pod.spec.volumes or ())


def _make_volume_claims(plan: Plan, pod: Pod, claim_keys: Container[str]) -> None:
    for volume in pod.spec.volumes or ():
        if volume.ephemeral is None or volume.ephemeral.volume_claim_template is None:
            continue
        template = volume.ephemeral.volume_claim_template
        metadata = ObjectMeta(
            name=f"{pod.name}-{volume.name}",
            namespace=pod.namespace,
            labels=template.metadata.labels,
            annotations=template.metadata.annotations,
            owner_references=(owner_reference(pod),),
        )
        claim = PersistentVolumeClaim(metadata=metadata, spec=template.spec)
        if claim.key not in claim_keys:
            plan.create(claim)


def _make_resource_claims(
    plan: Plan,
    pod: Pod,
    templates: Mapping[str, ResourceClaimTemplate],
    names: NameSource,
    group: PodGroup | None,
) -> None:
    """What a pod asks for in the same words as its group is the group's claim, once that is made."""
    shared = () if group is None else group.spec.resource_claims or ()
    own = [entry for entry in pod.spec.resource_claims or () if entry not in shared]
    made = _claims_from_templates(plan, pod, owner_reference(pod), own, templates, names)
    if group is not None:
        of_group = {status.name: status for status in group.status.resource_claim_statuses or ()}
        known = {status.name for status in pod.status.resource_claim_statuses or ()}
        wanted = [entry.name for entry in pod.spec.resource_claims or () if entry in shared and entry.name not in known]
        made += [of_group[name] for name in wanted if name in of_group]
    if made:
        statuses = (*(pod.status.resource_claim_statuses or ()), *made)
        plan.update(replace(pod, status=replace(pod.status, resource_claim_statuses=statuses)))


def _claims_from_templates(
    plan: Plan,
    user: Pod | PodGroup,
    owner: OwnerReference,
    entries: Iterable[PodResourceClaim],
    templates: Mapping[str, ResourceClaimTemplate],
    names: NameSource,
) -> list[PodResourceClaimStatus]:
    """Those that are not made yet, and whose template exists."""
    known = {status.name for status in user.status.resource_claim_statuses or ()}
    made: list[PodResourceClaimStatus] = []
    for entry in entries:
        template = templates.get(f"{user.namespace}/{entry.resource_claim_template_name or ''}")
        if entry.name in known or template is None:
            continue
        metadata = ObjectMeta(
            name=names.name(f"{user.name}-{entry.name}-"),
            namespace=user.namespace,
            labels=template.spec.metadata.labels,
            annotations={**(template.spec.metadata.annotations or {}), POD_CLAIM_ANNOTATION: entry.name},
            owner_references=(owner,),
        )
        plan.create(ResourceClaim(metadata=metadata, spec=template.spec.spec))
        made.append(PodResourceClaimStatus(entry.name, metadata.name))
    return made


PROVISIONED_BY_ANNOTATION = "pv.kubernetes.io/provisioned-by"
_IN_TREE = "kubernetes.io/"


def can_provision(storage_class: StorageClass) -> bool:
    return storage_class.provisioner not in ("", NO_PROVISIONER)


def provisioned_volume(
    claim: PersistentVolumeClaim, storage_class: StorageClass, node: Node | None, csi_node: CSINode | None
) -> PersistentVolume:
    """A volume for the claim; `node` is where its pod goes, if that is known."""
    name = f"pvc-{claim.metadata.uid}"
    provisioner = storage_class.provisioner
    is_csi = not provisioner.startswith(_IN_TREE)
    return PersistentVolume(
        metadata=ObjectMeta(name=name, annotations={PROVISIONED_BY_ANNOTATION: provisioner}),
        spec=PersistentVolumeSpec(
            capacity=_capacity(claim),
            access_modes=claim.spec.access_modes,
            storage_class_name=storage_class.name,
            volume_mode=claim.spec.volume_mode,
            volume_attributes_class_name=claim.spec.volume_attributes_class_name,
            node_affinity=_topology(storage_class, node, csi_node),
            csi=CSIPersistentVolumeSource(driver=provisioner, volume_handle=name) if is_csi else None,
        ),
        status=PersistentVolumeStatus(phase="Pending"),
    )


def _capacity(claim: PersistentVolumeClaim) -> ResourceList:
    requests = None if claim.spec.resources is None else claim.spec.resources.requests
    return dict(requests or {"storage": "1Gi"})


def _topology(storage_class: StorageClass, node: Node | None, csi_node: CSINode | None) -> VolumeNodeAffinity | None:
    allowed = storage_class.allowed_topologies or ()
    if node is None:
        first = allowed[0].match_label_expressions or () if allowed else ()
        return _affinity((expression.key, expression.values[0]) for expression in first if expression.values)
    keys = _driver_keys(storage_class.provisioner, csi_node)
    if keys is None:
        restricted = [e.key for term in allowed for e in term.match_label_expressions or ()]
        keys = tuple(dict.fromkeys(restricted)) or (ZONE,)
    return _affinity((key, node.labels[key]) for key in keys if key in node.labels)


def _driver_keys(provisioner: str, csi_node: CSINode | None) -> tuple[str, ...] | None:
    drivers = () if csi_node is None else csi_node.spec.drivers
    return next((driver.topology_keys or () for driver in drivers if driver.name == provisioner), None)


def _affinity(labels: Iterable[tuple[str, str]]) -> VolumeNodeAffinity | None:
    wanted = tuple(NodeSelectorRequirement(key, "In", (value,)) for key, value in labels)
    return VolumeNodeAffinity(NodeSelector((NodeSelectorTerm(match_expressions=wanted),))) if wanted else None


BOUND = "Bound"
AVAILABLE = "Available"
RELEASED = "Released"


@dataclass(frozen=True, slots=True)
class StorageState:
    """What there is: volumes and classes by name, nodes and what their drivers say."""

    volumes: Mapping[str, PersistentVolume]
    classes: Mapping[str, StorageClass]
    nodes: Mapping[str, Node]
    csi_nodes: Mapping[str, CSINode]


def sync_volume(volume: PersistentVolume, claim: PersistentVolumeClaim | None) -> Plan:
    """`claim` is the one that the volume names, if it exists. A volume of a claim that is gone is not used again."""
    plan = Plan()
    reference = volume.spec.claim_ref
    if reference is None or not reference.uid:
        if volume.status.phase not in (AVAILABLE, BOUND):
            plan.update(_in_phase(volume, AVAILABLE))
    elif claim is None or claim.metadata.uid != reference.uid:
        if PROVISIONED_BY_ANNOTATION in (volume.metadata.annotations or {}):
            plan.delete(volume)
        elif volume.status.phase != RELEASED:
            plan.update(_in_phase(volume, RELEASED))
    return plan


def sync_claim(claim: PersistentVolumeClaim, state: StorageState) -> Plan:
    plan = Plan()
    if is_fully_bound(claim):
        return plan
    volume = _meant_for(claim, state)
    if volume is None and not claim.spec.volume_name:
        storage_class = state.classes.get(class_of_claim(claim))
        node_name = (claim.metadata.annotations or {}).get(SELECTED_NODE_ANNOTATION, "")
        is_delayed = storage_class is not None and waits_for_first_consumer(storage_class)
        if is_delayed and not node_name:
            return plan
        if not is_delayed:
            volume = _smallest(claim, state)
        if volume is None and storage_class is not None and can_provision(storage_class):
            node = state.nodes.get(node_name)
            volume = provisioned_volume(claim, storage_class, node, state.csi_nodes.get(node_name))
            plan.create(volume)
    if volume is not None:
        _bind(plan, claim, volume)
    return plan


def _meant_for(claim: PersistentVolumeClaim, state: StorageState) -> PersistentVolume | None:
    """The volume that names the claim, or that the claim names."""
    if claim.spec.volume_name:
        named = state.volumes.get(claim.spec.volume_name)
        free = named is not None and (named.spec.claim_ref is None or is_bound_to(named, claim))
        return named if free else None
    found = [volume for volume in state.volumes.values() if is_bound_to(volume, claim)]
    same_class = [volume for volume in found if class_of_volume(volume) == class_of_claim(claim)]
    return min(same_class, key=lambda volume: volume.name, default=None)


def _smallest(claim: PersistentVolumeClaim, state: StorageState) -> PersistentVolume | None:
    offers = [Offer.of(volume) for volume in state.volumes.values()]
    suitable = suitable_volumes(claim, offers)
    return offers[suitable.free[0]].volume if suitable.free else None


def _bind(plan: Plan, claim: PersistentVolumeClaim, volume: PersistentVolume) -> None:
    bound = _in_phase(
        replace(volume, spec=replace(volume.spec, claim_ref=_reference(claim))),
        BOUND,
    )
    if bound != volume:
        plan.update(bound)
    annotations = {**(claim.metadata.annotations or {}), BIND_COMPLETED_ANNOTATION: "yes"}
    if not claim.spec.volume_name:
        annotations[BOUND_BY_CONTROLLER_ANNOTATION] = "yes"
    plan.update(
        replace(
            claim,
            metadata=replace(claim.metadata, annotations=annotations),
            spec=replace(claim.spec, volume_name=volume.name),
            status=replace(claim.status, phase=BOUND),
        )
    )


def _reference(claim: PersistentVolumeClaim) -> ObjectReference:
    return ObjectReference(
        kind="PersistentVolumeClaim",
        namespace=claim.namespace,
        name=claim.name,
        uid=claim.metadata.uid,
        api_version="v1",
    )


def _in_phase(volume: PersistentVolume, phase: str) -> PersistentVolume:
    return replace(volume, status=replace(volume.status, phase=phase))
