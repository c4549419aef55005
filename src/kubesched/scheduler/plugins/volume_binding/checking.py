"""How far the binding of a pod's volumes has come, as the API objects tell it.

Promises do not count here: a promise may meanwhile have been made to another pod.
"""

from __future__ import annotations

from dataclasses import dataclass

from kubesched.framework.handle import Handle
from kubesched.k8s.model.core import Node
from kubesched.k8s.model.csi_migration import TranslationError
from kubesched.k8s.model.storage import PersistentVolume, PersistentVolumeClaim
from kubesched.k8s.model.volume_claims import SELECTED_NODE_ANNOTATION, is_fully_bound
from kubesched.scheduler.plugins.volume_binding.affinity import mismatch
from kubesched.scheduler.plugins.volume_binding.promises import (
    PromisedBinding,
    PromisedProvision,
    Promises,
    Reservation,
)


@dataclass(frozen=True, slots=True)
class BindingCheck:
    """Asked again and again: True once all is bound, False as long as it is not, a message if it never will be."""

    handle: Handle
    promises: Promises
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

    def _check_binding(self, binding: PromisedBinding, node: Node) -> bool | str:
        volume = self.handle.objects.persistent_volumes.get(binding.volume.name)
        if volume is None:
            return f"failed to check binding: {self.promises.volumes.not_found(binding.volume.name)}"
        claim = self.handle.objects.persistent_volume_claims.get(binding.claim.key)
        if claim is None:
            return f"failed to check binding: {self.promises.claims.not_found(binding.claim.key)}"
        if _is_older(volume, binding.written_version):
            return False
        message = self._unreachable(volume, node, "failed to translate pv to csi: ")
        if message is not None:
            return message
        if volume.spec.claim_ref is None or not volume.spec.claim_ref.uid:
            return f'ClaimRef got reset for pv "{volume.name}"'
        return is_fully_bound(claim)

    def _check_provision(self, provision: PromisedProvision, node: Node) -> bool | str:
        claim = self.handle.objects.persistent_volume_claims.get(provision.claim.key)
        if claim is None:
            return f"failed to check provisioning pvc: {self.promises.claims.not_found(provision.claim.key)}"
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
        except TranslationError as mistake:
            return f"{prefix}could not translate pv: {mistake}"
        if message is None:
            return None
        return f'pv "{volume.name}" node affinity doesn\'t match node "{node.name}": {message}'


def _is_older(item: PersistentVolume | PersistentVolumeClaim, written_version: str | None) -> bool:
    """Whether the object is not yet known as it was written. Versions that are no numbers are not compared."""
    known = item.metadata.resource_version
    if not written_version or not written_version.isdecimal() or not known.isdecimal():
        return False
    return int(known) < int(written_version)
