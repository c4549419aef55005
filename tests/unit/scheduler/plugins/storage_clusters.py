"""Small clusters with volumes for the tests of the volume plugins: builders, a handle, and answers in short form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kubesched.framework import CycleState, NodeStatuses, Objects, PodInfo, PostFilterResult, Verdicts
from kubesched.framework.handle import PreemptionLimits
from kubesched.framework.status import Code, Status
from kubesched.k8s.model.core import (
    Container,
    Node,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Pod,
    PodSpec,
)
from kubesched.k8s.model.meta import KubeObject, ObjectMeta, OwnerReference
from kubesched.k8s.model.storage import (
    CSIDriver,
    CSIDriverSpec,
    CSINode,
    CSINodeDriver,
    CSINodeSpec,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimStatus,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
    StorageClass,
    TopologySelectorLabelRequirement,
    TopologySelectorTerm,
    VolumeAttachment,
    VolumeAttachmentSource,
    VolumeAttachmentSpec,
    VolumeNodeAffinity,
    VolumeNodeResources,
)
from kubesched.k8s.model.volumes import (
    CSIPersistentVolumeSource,
    EphemeralVolumeSource,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimVolumeSource,
    Volume,
    VolumeResourceRequirements,
)
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.cluster.view import TableView
from kubesched.testing.world import QuietHandle

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
NAMESPACE = "default"
DRIVER = "disk.example.com"
WAIT = "WaitForFirstConsumer"


class StorageCluster(QuietHandle):
    """A cluster, and the handle that plugins get to it."""

    def __init__(self, *objects: KubeObject) -> None:
        self.cluster = Cluster.from_objects(objects)

    @property
    def objects(self) -> Objects:
        return self.cluster.objects

    @property
    def nodes(self) -> TableView:
        return self.cluster.nodes

    def namespace_labels(self, namespace: str) -> Mapping[str, str]:
        return self.cluster.namespace_labels(namespace)

    def is_preempting(self, uid: str) -> bool:
        return False

    def preempt(
        self, cycle: CycleState, pod: PodInfo, statuses: NodeStatuses, limits: PreemptionLimits
    ) -> PostFilterResult:
        raise NotImplementedError

    def put(self, *objects: KubeObject) -> None:
        for item in objects:
            self.cluster.put(item)

    def remove(self, *objects: KubeObject) -> None:
        for item in objects:
            self.cluster.remove(item)

    def info(self, pod: Pod) -> PodInfo:
        return self.cluster.signatures.info(pod)


def rejections(verdicts: Verdicts, names: Sequence[str]) -> dict[str, Status]:
    """By node name, every status that is not success."""
    if not verdicts.reasons and not verdicts.errors:
        return {}
    found = {name: verdicts.status(position) for position, name in enumerate(names)}
    return {name: status for name, status in found.items() if status.code is not Code.SUCCESS}


def node(name: str, **labels: str) -> Node:
    """With its hostname label; `zone` stands for the zone label."""
    zone = {ZONE: labels.pop("zone")} if "zone" in labels else {}
    return Node(metadata=ObjectMeta(name=name, labels={HOSTNAME: name, **zone, **labels}))


def labelled_node(name: str, labels: Mapping[str, str]) -> Node:
    return Node(metadata=ObjectMeta(name=name, labels=dict(labels)))


def pod(name: str, *volumes: Volume | str, on: str = "", namespace: str = NAMESPACE, **spec: Any) -> Pod:
    """A volume given by a text is the claim of that name."""
    sources = tuple(
        Volume(f"v{i}", persistent_volume_claim=PersistentVolumeClaimVolumeSource(source))
        if isinstance(source, str)
        else source
        for i, source in enumerate(volumes)
    )
    return Pod(
        metadata=ObjectMeta(name=name, namespace=namespace, uid=f"uid-{namespace}-{name}"),
        spec=PodSpec(containers=(Container("c"),), node_name=on, volumes=sources, **spec),
    )


def ephemeral(name: str) -> Volume:
    return Volume(name, ephemeral=EphemeralVolumeSource())


def claim(
    name: str,
    *,
    volume: str = "",
    storage_class: str | None = "fast",
    size: str | None = "1Gi",
    modes: tuple[str, ...] = ("ReadWriteOnce",),
    namespace: str = NAMESPACE,
    annotations: Mapping[str, str] | None = None,
    bound: bool | None = None,
    owner: str = "",
    deleting: bool = False,
    phase: str = "",
    version: str = "",
    **spec: Any,
) -> PersistentVolumeClaim:
    """Fully bound if it names a volume, unless `bound` says otherwise. `owner` is the uid of the owning pod."""
    marks = dict(annotations or {})
    if bound if bound is not None else volume:
        marks["pv.kubernetes.io/bind-completed"] = "yes"
    return PersistentVolumeClaim(
        metadata=ObjectMeta(
            name=name,
            namespace=namespace,
            uid=f"uid-{name}",
            annotations=marks or None,
            owner_references=(OwnerReference(kind="Pod", uid=owner, controller=True),) if owner else None,
            deletion_timestamp="2026-01-01T00:00:00Z" if deleting else None,
            resource_version=version,
        ),
        spec=PersistentVolumeClaimSpec(
            volume_name=volume,
            storage_class_name=storage_class,
            access_modes=modes,
            resources=VolumeResourceRequirements({"storage": size}) if size is not None else None,
            **spec,
        ),
        status=PersistentVolumeClaimStatus(phase),
    )


def on_label(key: str, *values: str) -> VolumeNodeAffinity:
    return VolumeNodeAffinity(NodeSelector((NodeSelectorTerm((NodeSelectorRequirement(key, "In", values),)),)))


def volume(
    name: str,
    *,
    storage_class: str = "fast",
    size: str = "10Gi",
    modes: tuple[str, ...] = ("ReadWriteOnce",),
    affinity: VolumeNodeAffinity | None = None,
    claim: str = "",
    claim_uid: str | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    deleting: bool = False,
    phase: str | None = None,
    driver: str = DRIVER,
    version: str = "",
    **spec: Any,
) -> PersistentVolume:
    """A CSI volume, unless `spec` names another source. `claim` is the name of the claim that it is bound to."""
    reference = None
    if claim:
        uid = f"uid-{claim}" if claim_uid is None else claim_uid
        reference = ObjectReference("PersistentVolumeClaim", NAMESPACE, claim, uid)
    source: dict[str, Any] = {} if _has_source(spec) else {"csi": CSIPersistentVolumeSource(driver, f"handle-{name}")}
    return PersistentVolume(
        metadata=ObjectMeta(
            name=name,
            labels=dict(labels) if labels else None,
            annotations=dict(annotations) if annotations else None,
            deletion_timestamp="2026-01-01T00:00:00Z" if deleting else None,
            resource_version=version,
        ),
        spec=PersistentVolumeSpec(
            capacity={"storage": size},
            access_modes=modes,
            storage_class_name=storage_class,
            claim_ref=reference,
            node_affinity=affinity,
            **source,
            **spec,
        ),
        status=PersistentVolumeStatus(phase or ("Bound" if claim else "Available")),
    )


def _has_source(spec: Mapping[str, object]) -> bool:
    return any(key in spec for key in ("gce_persistent_disk", "aws_elastic_block_store", "azure_disk", "cinder", "rbd"))


def storage_class(
    name: str = "fast", *, provisioner: str = DRIVER, mode: str | None = WAIT, **fields: Any
) -> StorageClass:
    return StorageClass(metadata=ObjectMeta(name=name), provisioner=provisioner, volume_binding_mode=mode, **fields)


def allowed(*terms: Mapping[str, tuple[str, ...]]) -> tuple[TopologySelectorTerm, ...]:
    """The topologies that a class allows: a term is its labels with the values they may have."""
    return tuple(
        TopologySelectorTerm(tuple(TopologySelectorLabelRequirement(key, values) for key, values in term.items()))
        for term in terms
    )


def csi_node(name: str, *, migrated: str = "", **limits: int | None) -> CSINode:
    """`limits` by driver, with underscores for dots: `disk_example_com=3`."""
    drivers = tuple(
        CSINodeDriver(driver.replace("_", "."), allocatable=None if count is None else VolumeNodeResources(count))
        for driver, count in limits.items()
    )
    annotations = {"storage.alpha.kubernetes.io/migrated-plugins": migrated} if migrated else None
    return CSINode(metadata=ObjectMeta(name=name, annotations=annotations), spec=CSINodeSpec(drivers))


def csi_driver(name: str = DRIVER, *, storage_capacity: bool | None = None) -> CSIDriver:
    return CSIDriver(metadata=ObjectMeta(name=name), spec=CSIDriverSpec(storage_capacity=storage_capacity))


def attachment(name: str, volume_name: str | None, on: str, driver: str = DRIVER) -> VolumeAttachment:
    source = VolumeAttachmentSource(volume_name)
    return VolumeAttachment(metadata=ObjectMeta(name=name), spec=VolumeAttachmentSpec(driver, on, source))
