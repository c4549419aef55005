"""The volumes of a pod from Reserve to bound: assumed in memory, written in PreBind, then waited for.

To assume a volume is to set its claimRef, to assume a provisioning is to annotate the claim with the selected node;
both only in memory, on top of what is known. Unreserve reverts that. PreBind has it written by whoever drives
`bind_volumes`: it yields what is asked of the world outside (`BindVolumeToClaim`, `SelectNodeForClaim`), and both are
answered by `Written`, or by `Failed` with the API server's message. The PersistentVolume controller, or a provisioner,
then binds. That is over when every claim is bound; it has failed when one of the writes was undone meanwhile. Only
objects of the API server count there, not assumed ones, which may meanwhile be another pod's.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field

from msgspec.structs import replace

from kubesched.framework.effects import Failed, WaitUntil, Written
from kubesched.framework.extension_points import Steps
from kubesched.framework.handle import Handle, Objects
from kubesched.framework.status import OK, Status
from kubesched.k8s.model.core import Node
from kubesched.k8s.model.csi_migration import TranslationError
from kubesched.k8s.model.meta import ObjectMeta
from kubesched.k8s.model.storage import (
    BOUND_BY_CONTROLLER_ANNOTATION,
    SELECTED_NODE_ANNOTATION,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    is_bound_to,
    is_fully_bound,
)
from kubesched.scheduler.plugins.volume_binding.finding import AssumedObjects, PodVolumes
from kubesched.scheduler.plugins.volume_binding.matching import mismatch

# -- Reserve and Unreserve ---------------------------------------------------------------------------------------------


@dataclass(slots=True)
class AssumedBinding:
    """A volume with the claim written into it. `written_version` is the volume's version once that is done."""

    volume: PersistentVolume
    claim: PersistentVolumeClaim
    written_version: str | None = None


@dataclass(slots=True)
class AssumedProvision:
    """A claim with the chosen node written into it."""

    claim: PersistentVolumeClaim
    written_version: str | None = None


@dataclass(slots=True)
class Reservation:
    """All that is assumed for one pod on one node."""

    bindings: list[AssumedBinding] = field(default_factory=list)
    provisions: list[AssumedProvision] = field(default_factory=list)


class AssumedVolumes:
    """The volumes and claims assumed by one scheduler profile."""

    __slots__ = ("claims", "volumes")

    def __init__(self) -> None:
        self.volumes: AssumedObjects[PersistentVolume] = AssumedObjects("persistentvolumes")
        self.claims: AssumedObjects[PersistentVolumeClaim] = AssumedObjects("persistentvolumeclaims")

    def assume(self, objects: Objects, node_name: str, wanted: PodVolumes) -> Reservation | str:
        """Assumes everything or nothing; a message says why nothing."""
        made = Reservation()
        for volume, claim in wanted.bindings:
            bound = bound_volume(volume, claim)
            if bound is not volume and (message := self.volumes.assume(objects.persistent_volumes, bound)) is not None:
                self.revert(made)
                return message
            made.bindings.append(AssumedBinding(bound, claim))
        for claim in wanted.provisions:
            selected = claim_with_node(claim, node_name)
            message = self.claims.assume(objects.persistent_volume_claims, selected)
            if message is not None:
                self.revert(made)
                return message
            made.provisions.append(AssumedProvision(selected))
        return made

    def revert(self, reservation: Reservation, *, keep_written_claims: bool = False) -> None:
        """A volume that was written stays assumed until the watch delivers it; a claim only on request."""
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


# -- PreBind: how far the binding has come -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BindingCheck:
    """Asked again and again: True once all is bound, False as long as it is not, a message if it never will be."""

    handle: Handle
    assumed: AssumedVolumes
    reservation: Reservation
    node_name: str

    def __call__(self) -> bool | str:
        table = self.handle.nodes
        row = table.row_of(self.node_name)
        if row is None:
            return f'failed to get node "{self.node_name}": node "{self.node_name}" not found'
        node = table.at(row).node
        for binding in self.reservation.bindings:
            state = self._check_binding(binding, node)
            if state is not True:
                return state
        for provision in self.reservation.provisions:
            state = self._check_provision(provision, node)
            if state is not True:
                return state
        return True

    def _check_binding(self, binding: AssumedBinding, node: Node) -> bool | str:
        volume = self.handle.objects.persistent_volumes.get(binding.volume.name)
        if volume is None:
            return f"failed to check binding: {self.assumed.volumes.not_found(binding.volume.name)}"
        claim = self.handle.objects.persistent_volume_claims.get(binding.claim.key)
        if claim is None:
            return f"failed to check binding: {self.assumed.claims.not_found(binding.claim.key)}"
        if _is_older(volume, binding.written_version):
            return False
        message = self._unreachable(volume, node, "failed to translate pv to csi: ")
        if message is not None:
            return message
        if volume.spec.claim_ref is None or not volume.spec.claim_ref.uid:
            return f'ClaimRef got reset for pv "{volume.name}"'
        return is_fully_bound(claim)

    def _check_provision(self, provision: AssumedProvision, node: Node) -> bool | str:
        claim = self.handle.objects.persistent_volume_claims.get(provision.claim.key)
        if claim is None:
            return f"failed to check provisioning pvc: {self.assumed.claims.not_found(provision.claim.key)}"
        if _is_older(claim, provision.written_version):
            return False
        if claim.metadata.annotations is None:
            return f'selectedNode annotation reset for PVC "{claim.name}"'
        if claim.metadata.annotations.get(SELECTED_NODE_ANNOTATION) != self.node_name:
            # How a provisioner says that it could not make the volume.
            return f'provisioning failed for PVC "{claim.name}"'
        if claim.spec.volume_name:
            volume = self.handle.objects.persistent_volumes.get(claim.spec.volume_name)
            if volume is None:
                return False
            message = self._unreachable(volume, node, "")
            if message is not None:
                return message
        return is_fully_bound(claim)

    def _unreachable(self, volume: PersistentVolume, node: Node, prefix: str) -> str | None:
        try:
            message = mismatch(volume, node, self.handle.objects.csi_nodes.get(node.name))
        except TranslationError as error:
            return f"{prefix}could not translate pv: {error}"
        if message is None:
            return None
        return f'pv "{volume.name}" node affinity doesn\'t match node "{node.name}": {message}'


def _is_older(item: PersistentVolume | PersistentVolumeClaim, written_version: str | None) -> bool:
    """Whether the object is not yet known as it was written. Versions that are no numbers are not compared."""
    known = item.metadata.resource_version
    if not written_version or not written_version.isdecimal() or not known.isdecimal():
        return False
    return int(known) < int(written_version)


# -- PreBind -----------------------------------------------------------------------------------------------------------


Progress = Callable[[], bool | str]
"""True once all claims are bound, False while some are not; a message when they never will be."""


def bind_volumes(
    assumed: AssumedVolumes, reservation: Reservation, node_name: str, timeout_s: float, progress: Progress
) -> Steps:
    failure = yield from _write(reservation, node_name)
    if failure is not None:
        assumed.revert(reservation, keep_written_claims=True)
        return Status.error(failure.message)
    answer = yield WaitUntil(
        lambda: progress() is not False,
        timeout_s,
        watched=(PersistentVolume, PersistentVolumeClaim),
        looks_at_once=False,
    )
    if isinstance(answer, Failed):
        return Status.error(f"binding volumes: {answer.message}")
    state = progress()
    return Status.error(f"binding volumes: {state}") if isinstance(state, str) else OK


def _write(reservation: Reservation, node_name: str) -> Generator[object, object, Failed | None]:
    """Volumes first, then claims; nothing written is undone, the next attempt goes on from there."""
    for binding in reservation.bindings:
        answer = yield _volume_write(binding)
        if isinstance(answer, Failed):
            return answer
        binding.written_version = answer.resource_version if isinstance(answer, Written) else ""
    for provision in reservation.provisions:
        answer = yield _claim_write(provision, node_name)
        if isinstance(answer, Failed):
            return answer
        provision.written_version = answer.resource_version if isinstance(answer, Written) else ""
    return None


def _volume_write(binding: AssumedBinding) -> BindVolumeToClaim:
    metadata = binding.volume.metadata
    return BindVolumeToClaim(
        volume_name=metadata.name,
        resource_version=metadata.resource_version,
        claim=binding.volume.spec.claim_ref or reference_to(binding.claim),
        is_ours=BOUND_BY_CONTROLLER_ANNOTATION in (metadata.annotations or {}),
    )


def _claim_write(provision: AssumedProvision, node_name: str) -> SelectNodeForClaim:
    metadata = provision.claim.metadata
    return SelectNodeForClaim(metadata.namespace, metadata.name, metadata.resource_version, node_name)


@dataclass(frozen=True, slots=True)
class BindVolumeToClaim:
    """Write the claim into the persistent volume's `spec.claimRef`, if the volume is still of this version.

    `is_ours` asks for the annotation that marks a binding as the controller's and not the user's.
    """

    volume_name: str
    resource_version: str
    claim: ObjectReference
    is_ours: bool


@dataclass(frozen=True, slots=True)
class SelectNodeForClaim:
    """Annotate the claim with the node its volume is to be made for, if the claim is still of this version."""

    namespace: str
    claim_name: str
    resource_version: str
    node_name: str
