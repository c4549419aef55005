"""Who else acts on the cluster: the volume controller with its provisioner, and the kubelets.

Each acts when a step says so, on one object; in a run whose faults are over, on all of them.
"""

from __future__ import annotations

from msgspec.structs import replace

from harness.chaos.api_server import ApiServerModel
from harness.chaos.manifest import volume_of
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.storage import (
    BIND_COMPLETED_ANNOTATION,
    SELECTED_NODE_ANNOTATION,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    is_fully_bound,
)
from kubesched.scheduler.plugins.volume_binding.binding import reference_to


def bind_claim(server: ApiServerModel, claim: PersistentVolumeClaim) -> bool:
    """Finishes what the scheduler began: binds the claim to the volume that names it, or to one made for it."""
    if is_fully_bound(claim):
        return False
    volume = _volume_for(server, claim) or _provision(server, claim)
    if volume is None:
        return False
    server.write(replace(volume, status=replace(volume.status, phase="Bound")))
    annotations = {**(claim.metadata.annotations or {}), BIND_COMPLETED_ANNOTATION: "yes"}
    server.write(
        replace(
            claim,
            metadata=replace(claim.metadata, annotations=annotations),
            spec=replace(claim.spec, volume_name=volume.name),
            status=replace(claim.status, phase="Bound"),
        )
    )
    return True


def give_up_claim(server: ApiServerModel, claim: PersistentVolumeClaim) -> bool:
    """How a provisioner says that it could not make the volume there: it takes the node back."""
    annotations = dict(claim.metadata.annotations or {})
    if annotations.pop(SELECTED_NODE_ANNOTATION, None) is None or is_fully_bound(claim):
        return False
    server.write(replace(claim, metadata=replace(claim.metadata, annotations=annotations)))
    return True


def reap_pod(server: ApiServerModel, pod: Pod) -> bool:
    """The kubelet has stopped the pod: it is gone for good."""
    if not pod.is_terminating:
        return False
    server.delete(pod)
    return True


def act_on_everything(server: ApiServerModel) -> bool:
    """Whether anything was left to do."""
    did = [bind_claim(server, claim) for claim in list(server.all(PersistentVolumeClaim).values())]
    did += [reap_pod(server, pod) for pod in list(server.all(Pod).values())]
    return any(did)


def _volume_for(server: ApiServerModel, claim: PersistentVolumeClaim) -> PersistentVolume | None:
    uid = claim.metadata.uid
    for volume in server.all(PersistentVolume).values():
        if volume.spec.claim_ref is not None and volume.spec.claim_ref.uid == uid:
            return volume
    return None


def _provision(server: ApiServerModel, claim: PersistentVolumeClaim) -> PersistentVolume | None:
    node_name = (claim.metadata.annotations or {}).get(SELECTED_NODE_ANNOTATION)
    class_name = claim.spec.storage_class_name or ""
    storage_class = server.find(StorageClass, class_name)
    if not node_name or storage_class is None or storage_class.provisioner.endswith("no-provisioner"):
        return None
    volume = volume_of(f"made-{claim.metadata.uid}", node_name, class_name)
    if server.find(PersistentVolume, volume.name) is not None:
        return None
    server.create(replace(volume, spec=replace(volume.spec, claim_ref=reference_to(claim))))
    return server.find(PersistentVolume, volume.name)
