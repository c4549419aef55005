"""The volume controller: gives claims their volumes, and has volumes made for those that find none.

A claim is bound to the volume that was written for it (by the scheduler, or by hand), or at once to the smallest that
suits, or gets a new one. Claims of a class that waits for the first consumer wait until the scheduler chose.

Next: `provisioning`, which makes volumes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from kubesched.k8s.model.core import Node
from kubesched.k8s.model.storage import CSINode, ObjectReference, PersistentVolume, PersistentVolumeClaim, StorageClass
from kubesched.k8s.model.volume_claims import (
    BIND_COMPLETED_ANNOTATION,
    BOUND_BY_CONTROLLER_ANNOTATION,
    SELECTED_NODE_ANNOTATION,
    class_of_claim,
    class_of_volume,
    is_fully_bound,
    waits_for_first_consumer,
)
from kubesched.k8s.model.volume_matching import Offer, is_bound_to, suitable_volumes
from kubesched.k8s.workloads.actions import Plan
from kubesched.k8s.workloads.provisioning import PROVISIONED_BY_ANNOTATION, can_provision, provisioned_volume

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
