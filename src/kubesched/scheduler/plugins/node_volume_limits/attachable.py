"""Which volumes of which CSI driver a pod, or an attachment, brings to a node.

A volume is known by its driver and its handle, so that two pods that use one volume count it once. A claim that is not
bound yet counts under the driver of its storage class, with the claim itself in the place of the handle. In-tree
volumes count under the driver they were migrated to, on nodes that have a CSINode object.
"""

from __future__ import annotations

from typing import NamedTuple

from kubesched.framework.handle import Objects
from kubesched.framework.status import Status
from kubesched.k8s.model import csi_migration, volume_claims
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.storage import PersistentVolumeClaim, VolumeAttachment
from kubesched.k8s.model.volume_claims import ClaimUse
from kubesched.k8s.model.volumes import Volume


class VolumeIdentity(NamedTuple):
    """A volume as its driver knows it. `is_claim` marks a claim that has no volume yet."""

    driver: str
    handle: str
    is_claim: bool = False


Volumes = frozenset[VolumeIdentity]


def has_attachable_volumes(pod: Pod) -> bool:
    """Whether any volume of the pod may be one of a CSI driver."""
    return any(
        volume.persistent_volume_claim is not None
        or volume.ephemeral is not None
        or csi_migration.plugin_of(volume) is not None
        for volume in pod.spec.volumes or ()
    )


def volumes_of_pod(objects: Objects, pod: Pod, *, has_csi_node: bool, is_new: bool) -> Volumes | Status:
    """The volumes that the pod brings to a node, or why that cannot be said.

    A new pod cannot run without its claims; a claim that an existing pod has lost just does not count.
    """
    found: set[VolumeIdentity] = set()
    for volume in pod.spec.volumes or ():
        use = volume_claims.claim_of(pod, volume)
        if use is None:
            answer = _inline_volume(volume) if has_csi_node else None
        else:
            answer = _claimed_volume(objects, pod, use, has_csi_node=has_csi_node, is_new=is_new)
        if isinstance(answer, Status):
            return answer
        if answer is not None:
            found.add(answer)
    return frozenset(found)


def volume_of_attachment(objects: Objects, attachment: VolumeAttachment) -> VolumeIdentity | None:
    """The volume that an attachment puts on its node; None if it is of no CSI driver, or cannot be told."""
    spec = attachment.spec
    if not spec.attacher or spec.source.persistent_volume_name is None:
        return None
    volume = objects.persistent_volumes.get(spec.source.persistent_volume_name)
    if volume is None or volume.spec.csi is None:
        return None
    return VolumeIdentity(spec.attacher, volume.spec.csi.volume_handle)


def _inline_volume(volume: Volume) -> VolumeIdentity | Status | None:
    plugin = csi_migration.plugin_of(volume)
    if plugin is None or not plugin.is_migrated:
        return None
    try:
        handle = csi_migration.inline_handle(volume)
    except csi_migration.TranslationError as problem:
        return Status.error(f"converting volume({volume.name}) from inline to csi: {problem}")
    return VolumeIdentity(plugin.driver, handle)


def _claimed_volume(
    objects: Objects, pod: Pod, use: ClaimUse, *, has_csi_node: bool, is_new: bool
) -> VolumeIdentity | Status | None:
    if not use.name:
        return Status.error("PersistentVolumeClaim had no name")
    claim = objects.persistent_volume_claims.get(use.key)
    if claim is None:
        if not is_new:
            return None
        return Status.unresolvable(f"looking up PVC {use.key}: {volume_claims.claim_not_found(use.name)}")
    if use.is_ephemeral and (message := volume_claims.foreign_claim_message(pod, claim)) is not None:
        return Status.error(message)
    return _volume_of_claim(objects, claim, has_csi_node=has_csi_node)


def _volume_of_claim(objects: Objects, claim: PersistentVolumeClaim, *, has_csi_node: bool) -> VolumeIdentity | None:
    """None for volumes that no CSI driver attaches, or that cannot be told."""
    volume = objects.persistent_volumes.get(claim.spec.volume_name) if claim.spec.volume_name else None
    if volume is None:
        return _volume_to_come(objects, claim, has_csi_node=has_csi_node)
    if volume.spec.csi is not None:
        return _identity(volume.spec.csi.driver, volume.spec.csi.volume_handle)
    plugin = csi_migration.plugin_of(volume.spec)
    if plugin is None or not plugin.is_migrated or not has_csi_node:
        return None
    try:
        translated = csi_migration.translate(volume)
    except csi_migration.TranslationError:
        return None
    return _identity(translated.driver, translated.handle)


def _volume_to_come(objects: Objects, claim: PersistentVolumeClaim, *, has_csi_node: bool) -> VolumeIdentity | None:
    """A claim without a volume will get one from the provisioner of its storage class."""
    storage_class = objects.storage_classes.get(volume_claims.class_of_claim(claim))
    if storage_class is None or not storage_class.provisioner:
        return None
    plugin = csi_migration.plugin_named(storage_class.provisioner)
    if plugin is None:
        return VolumeIdentity(storage_class.provisioner, claim.key, is_claim=True)
    if not plugin.is_migrated or not has_csi_node:
        return None
    return VolumeIdentity(plugin.driver, claim.key, is_claim=True)


def _identity(driver: str, handle: str) -> VolumeIdentity | None:
    return VolumeIdentity(driver, handle) if driver and handle else None
