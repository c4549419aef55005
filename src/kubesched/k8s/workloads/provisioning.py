"""New volumes: as big as asked for, and reachable from where the claim's pod goes.

Where a volume can be reached from follows the driver's topology keys, if its CSINode has them; else the keys that the
class restricts; else the node's zone. A volume that is made before its pod has a place goes to the first topology
that the class allows, or can be reached from everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable

from kubesched.k8s.model.amounts import ResourceList
from kubesched.k8s.model.core import Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from kubesched.k8s.model.csi_topology import ZONE
from kubesched.k8s.model.meta import ObjectMeta
from kubesched.k8s.model.storage import (
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
    StorageClass,
    VolumeNodeAffinity,
)
from kubesched.k8s.model.volume_matching import NO_PROVISIONER
from kubesched.k8s.model.volumes import CSIPersistentVolumeSource

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
