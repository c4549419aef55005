"""VolumeRestrictions and VolumeZone of old."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.nodes import NodeInfo
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import OK, Status
from kubesched.k8s.model import volume_claims
from kubesched.k8s.model.storage import PersistentVolumeClaim
from kubesched.older.config.generations import VolumeTrouble
from kubesched.older.plugins.rejection import OlderPlugin, Reason, ReasonedFilter
from kubesched.scheduler.plugins.volume_restrictions import conflicts

DISK_TAKEN = Reason("node(s) had no available disk")
WRONG_ZONE = Status.unresolvable("node(s) had no available volume zone")

_BETA_LABELS = ("failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region")
_STABLE_LABELS = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")
_ZONE_DELIMITER = "__"


class OlderVolumeRestrictions(ReasonedFilter):
    def reasons(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> Sequence[Reason]:
        volumes = pod.spec.volumes or ()
        taken = any(conflicts(volume, other.pod) for volume in volumes for other in node.pods)
        return (DISK_TAKEN,) if taken else ()


class OlderVolumeZone(OlderPlugin):
    """A node with zone labels must be in the zones of the pod's volumes."""

    def filter_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        keys = _BETA_LABELS + (_STABLE_LABELS if self.generation.stable_volume_zones else ())
        here = {key: node.node.labels[key] for key in keys if key in node.node.labels}
        if not here:
            return OK
        for volume in pod.spec.volumes or ():
            if volume.persistent_volume_claim is not None:
                status = self._check(pod, volume.persistent_volume_claim.claim_name, keys, here)
                if not status.is_success:
                    return status
        return OK

    def _check(self, pod: PodInfo, name: str, keys: Sequence[str], here: Mapping[str, str]) -> Status:
        if not name:
            return self._trouble("PersistentVolumeClaim had no name")
        claim = self.handle.objects.persistent_volume_claims.get(f"{pod.namespace}/{name}")
        if claim is None:
            return self._trouble(volume_claims.claim_not_found(name))
        volume_name = claim.spec.volume_name
        if not volume_name:
            return self._check_unbound(claim)
        volume = self.handle.objects.persistent_volumes.get(volume_name)
        if volume is None:
            return self._trouble(volume_claims.volume_not_found(volume_name))
        labels = volume.metadata.labels or {}
        for key in keys:
            zones = _zones(labels[key]) if key in labels else None
            if zones is not None and here.get(key, "") not in zones:
                return WRONG_ZONE
        return OK

    def _check_unbound(self, claim: PersistentVolumeClaim) -> Status:
        """A claim that waits for its first consumer may go anywhere; any other should have been bound."""
        class_name = volume_claims.class_of_claim(claim)
        storage_class = self.handle.objects.storage_classes.get(class_name)
        if storage_class is not None:
            if storage_class.volume_binding_mode is None:
                return self._trouble(f'VolumeBindingMode not set for StorageClass "{class_name}"')
            if volume_claims.waits_for_first_consumer(storage_class):
                return OK
        return self._trouble(self._unbound_message(claim, class_name, has_class=storage_class is not None))

    def _unbound_message(self, claim: PersistentVolumeClaim, class_name: str, *, has_class: bool) -> str:
        if self.generation.unbound_zone_message:
            return self.generation.unbound_zone_message.format(claim=claim.name)
        if not class_name:
            return "PersistentVolumeClaim had no pv name and storageClass name"
        if has_class:
            return "PersistentVolume had no name"
        if self.generation.zone_of_broken_volume is VolumeTrouble.ERROR:
            return f'StorageClass "{class_name}" claimed by PersistentVolumeClaim "{claim.name}" not found'
        return volume_claims.storage_class_not_found(class_name)

    def _trouble(self, message: str) -> Status:
        if self.generation.zone_of_broken_volume is VolumeTrouble.ERROR:
            return Status.error(message)
        return Status.unresolvable(message)


def _zones(text: str) -> set[str] | None:
    """The zones of a volume's label; None if it makes no sense, and is then left out."""
    found = [zone.strip() for zone in text.split(_ZONE_DELIMITER)]
    return set(found) if all(found) else None
