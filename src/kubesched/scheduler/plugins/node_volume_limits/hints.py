"""When a pod that NodeVolumeLimits rejected deserves another try."""

from __future__ import annotations

from kubesched.framework.events import Hint
from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.model import csi_migration, volume_claims
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.csi_migration import InTreePlugin
from kubesched.k8s.model.storage import CSINode, PersistentVolumeClaim, VolumeAttachment
from kubesched.k8s.model.volumes import Volume
from kubesched.scheduler.plugins.node_volume_limits.attachable import has_attachable_volumes


def after_csi_node_updated(pod: PodInfo, old: object | None, new: object | None) -> Hint:  # noqa: ARG001
    """A driver attaches more than before; a driver that names no limit counts as 0 here."""
    if not isinstance(old, CSINode) or not isinstance(new, CSINode):
        return Hint.QUEUE
    before = _limits(old)
    grew = any(limit > before.get(driver, 0) for driver, limit in _limits(new).items())
    return Hint.QUEUE if grew else Hint.SKIP


def after_pod_deleted(pod: PodInfo, old: object | None, new: object | None) -> Hint:  # noqa: ARG001
    """A pod that held volumes on a node, or was about to, is gone."""
    if not isinstance(old, Pod):
        return Hint.QUEUE
    had_node = bool(old.spec.node_name or old.status.nominated_node_name)
    return Hint.QUEUE if had_node and has_attachable_volumes(old) else Hint.SKIP


def after_claim_added(pod: PodInfo, old: object | None, new: object | None) -> Hint:  # noqa: ARG001
    if not isinstance(new, PersistentVolumeClaim):
        return Hint.QUEUE
    is_ours = any(use.key == new.key for use in volume_claims.claims_of(pod.pod))
    return Hint.QUEUE if is_ours else Hint.SKIP


def after_attachment_deleted(pod: PodInfo, old: object | None, new: object | None) -> Hint:  # noqa: ARG001
    """Any attachment may have stood in the way of a claim; one of the same driver in that of an in-tree volume."""
    if not isinstance(old, VolumeAttachment):
        return Hint.QUEUE
    for volume in pod.spec.volumes or ():
        if volume.persistent_volume_claim is not None:
            return Hint.QUEUE
        plugin = csi_migration.plugin_of(volume)
        if plugin is None:
            continue
        if plugin.driver == old.spec.attacher or not _is_translatable(plugin, volume):
            return Hint.QUEUE
    return Hint.SKIP


def _is_translatable(plugin: InTreePlugin, volume: Volume) -> bool:
    if not plugin.is_migrated:
        return True
    try:
        csi_migration.inline_handle(volume)
    except csi_migration.TranslationError:
        return False
    return True


def _limits(csi_node: CSINode) -> dict[str, int]:
    return {
        driver.name: driver.allocatable.count or 0 if driver.allocatable is not None else 0
        for driver in csi_node.spec.drivers
    }
