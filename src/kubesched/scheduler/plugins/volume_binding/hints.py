"""When a pod that VolumeBinding rejected deserves another try."""

from __future__ import annotations

from kubesched.framework.events import ActionType, ClusterEvent, EventResource, Hint, RegisteredEvent
from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.model.csi_migration import MIGRATED_PLUGINS_ANNOTATION
from kubesched.k8s.model.storage import CSIDriver, CSINode, CSIStorageCapacity, PersistentVolumeClaim, StorageClass
from kubesched.k8s.model.volume_claims import claims_of
from kubesched.scheduler.plugins.volume_binding.capacity_index import volume_limit


def after_storage_class_changed(pod: PodInfo, old: object | None, new: object | None) -> Hint:  # noqa: ARG001
    """Of a class, only the topologies it allows can change for the better."""
    if not isinstance(old, StorageClass) or not isinstance(new, StorageClass):
        return Hint.QUEUE
    return Hint.QUEUE if (old.allowed_topologies or ()) != (new.allowed_topologies or ()) else Hint.SKIP


def after_claim_changed(pod: PodInfo, old: object | None, new: object | None) -> Hint:  # noqa: ARG001
    if not isinstance(new, PersistentVolumeClaim):
        return Hint.QUEUE
    return Hint.QUEUE if any(use.key == new.key for use in claims_of(pod.pod)) else Hint.SKIP


def after_csi_node_changed(pod: PodInfo, old: object | None, new: object | None) -> Hint:  # noqa: ARG001
    """Which in-tree plugins a node has migrated decides how their volumes are judged there."""
    if not isinstance(old, CSINode) or not isinstance(new, CSINode):
        return Hint.QUEUE
    return Hint.QUEUE if _migrated_plugins(old) != _migrated_plugins(new) else Hint.SKIP


def after_csi_driver_changed(pod: PodInfo, old: object | None, new: object | None) -> Hint:
    """The driver of one of the pod's own CSI volumes no longer has its capacity looked at."""
    if not isinstance(old, CSIDriver) or not isinstance(new, CSIDriver):
        return Hint.QUEUE
    stopped = bool(old.spec.storage_capacity) and not new.spec.storage_capacity
    is_used = any(volume.csi is not None and volume.csi.driver == new.name for volume in pod.spec.volumes or ())
    return Hint.QUEUE if stopped and is_used else Hint.SKIP


def after_capacity_changed(pod: PodInfo, old: object | None, new: object | None) -> Hint:  # noqa: ARG001
    if not isinstance(old, CSIStorageCapacity) or not isinstance(new, CSIStorageCapacity):
        return Hint.QUEUE
    before, now = volume_limit(old), volume_limit(new)
    grew = now is not None and (before is None or now.value > before.value)
    return Hint.QUEUE if grew else Hint.SKIP


def _migrated_plugins(csi_node: CSINode) -> str:
    return (csi_node.metadata.annotations or {}).get(MIGRATED_PLUGINS_ANNOTATION, "")


_ADDED_OR_UPDATED = ActionType.ADD | ActionType.UPDATE

REGISTERED_EVENTS = (
    RegisteredEvent(ClusterEvent(EventResource.STORAGE_CLASS, _ADDED_OR_UPDATED), after_storage_class_changed),
    RegisteredEvent(ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, _ADDED_OR_UPDATED), after_claim_changed),
    RegisteredEvent(ClusterEvent(EventResource.PERSISTENT_VOLUME, _ADDED_OR_UPDATED)),
    RegisteredEvent(ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)),
    RegisteredEvent(ClusterEvent(EventResource.CSI_NODE, _ADDED_OR_UPDATED), after_csi_node_changed),
    RegisteredEvent(ClusterEvent(EventResource.CSI_DRIVER, ActionType.UPDATE), after_csi_driver_changed),
    RegisteredEvent(ClusterEvent(EventResource.CSI_STORAGE_CAPACITY, _ADDED_OR_UPDATED), after_capacity_changed),
)
"""The changes that can undo a rejection, each with the hint that looks closer."""
