"""Volumes promised to pods that are on their way to a node: made by `reserve`, taken back by `unreserve`.

A volume is promised by writing the claim into it, a new volume by writing the chosen node into the claim; both only in
memory, on top of what is known (`assumed`). `binding` has them written for good.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from msgspec.structs import replace

from kubesched.framework.handle import Objects
from kubesched.k8s.model.meta import ObjectMeta
from kubesched.k8s.model.storage import ObjectReference, PersistentVolume, PersistentVolumeClaim
from kubesched.k8s.model.volume_claims import BOUND_BY_CONTROLLER_ANNOTATION, SELECTED_NODE_ANNOTATION
from kubesched.k8s.model.volume_matching import is_bound_to
from kubesched.scheduler.plugins.volume_binding.assumed import AssumedObjects
from kubesched.scheduler.plugins.volume_binding.findings import PodVolumes


@dataclass(slots=True)
class PromisedBinding:
    """A volume with the claim written into it. `written_version` is the volume's version once that is done."""

    volume: PersistentVolume
    claim: PersistentVolumeClaim
    written_version: str | None = None


@dataclass(slots=True)
class PromisedProvision:
    """A claim with the chosen node written into it."""

    claim: PersistentVolumeClaim
    written_version: str | None = None


@dataclass(slots=True)
class Reservation:
    """All that one pod was promised on one node."""

    bindings: list[PromisedBinding] = field(default_factory=list)
    provisions: list[PromisedProvision] = field(default_factory=list)


class Promises:
    """All promises of one scheduler profile."""

    __slots__ = ("claims", "volumes")

    def __init__(self) -> None:
        self.volumes: AssumedObjects[PersistentVolume] = AssumedObjects("persistentvolumes")
        self.claims: AssumedObjects[PersistentVolumeClaim] = AssumedObjects("persistentvolumeclaims")

    def make(self, objects: Objects, node_name: str, wanted: PodVolumes) -> Reservation | str:
        """Promises everything or nothing; a message says why nothing."""
        made = Reservation()
        for volume, claim in wanted.bindings:
            bound = bound_volume(volume, claim)
            if bound is not volume and (message := self.volumes.assume(objects.persistent_volumes, bound)) is not None:
                self.take_back(made)
                return message
            made.bindings.append(PromisedBinding(bound, claim))
        for claim in wanted.provisions:
            selected = claim_with_node(claim, node_name)
            message = self.claims.assume(objects.persistent_volume_claims, selected)
            if message is not None:
                self.take_back(made)
                return message
            made.provisions.append(PromisedProvision(selected))
        return made

    def take_back(self, reservation: Reservation, *, keep_written_claims: bool = False) -> None:
        """A volume that was written stays promised until it is seen; a claim only on request."""
        for binding in reservation.bindings:
            if binding.written_version is None:
                self.volumes.restore(binding.volume)
        for provision in reservation.provisions:
            if provision.written_version is None or not keep_written_claims:
                self.claims.restore(provision.claim)


def bound_volume(volume: PersistentVolume, claim: PersistentVolumeClaim) -> PersistentVolume:
    """The volume with the claim written into it; the volume itself if there is nothing to write."""
    spec, metadata = volume.spec, volume.metadata
    known = spec.claim_ref
    if known is None or (known.name, known.namespace, known.uid) != (claim.name, claim.namespace, claim.metadata.uid):
        spec = replace(spec, claim_ref=reference_to(claim))
    if not is_bound_to(volume, claim) and BOUND_BY_CONTROLLER_ANNOTATION not in (metadata.annotations or {}):
        metadata = _annotated(metadata, BOUND_BY_CONTROLLER_ANNOTATION, "yes")
    if spec is volume.spec and metadata is volume.metadata:
        return volume
    return replace(volume, spec=spec, metadata=metadata)


def claim_with_node(claim: PersistentVolumeClaim, node_name: str) -> PersistentVolumeClaim:
    return replace(claim, metadata=_annotated(claim.metadata, SELECTED_NODE_ANNOTATION, node_name))


def reference_to(claim: PersistentVolumeClaim) -> ObjectReference:
    return ObjectReference(
        kind="PersistentVolumeClaim",
        namespace=claim.namespace,
        name=claim.name,
        uid=claim.metadata.uid,
        api_version="v1",
        resource_version=claim.metadata.resource_version,
    )


def _annotated(metadata: ObjectMeta, key: str, value: str) -> ObjectMeta:
    return replace(metadata, annotations={**(metadata.annotations or {}), key: value})
