"""In-tree volumes seen as volumes of the CSI drivers that took their place.

Volume sources such as `awsElasticBlockStore` are served by CSI drivers today. Scheduling looks at three things of the
translated volume: the driver's name and the volume's handle (for limits per node), and its node affinity, where zones
of the old kind become the driver's own topology label.

The zone stands in the volume's node affinity, or, in older volumes, in its labels alone (several zones joined by `__`).
The affinity counts more. Keys of the beta kind (`failure-domain.beta.kubernetes.io/…`) are replaced, because new nodes
no longer carry such labels.

Azure File and vSphere volumes have a driver too, but the scheduler never translates them: `is_migrated` is False.

Next: `kubesched.scheduler.plugins.node_volume_limits` and `kubesched.scheduler.plugins.volume_binding` ask these
questions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from kubesched.k8s.errors import KubeschedError
from kubesched.k8s.model.core import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from kubesched.k8s.model.storage import CSINode, PersistentVolume, PersistentVolumeSpec, VolumeNodeAffinity
from kubesched.k8s.model.volumes import AWSElasticBlockStoreVolumeSource, AzureDiskVolumeSource, Volume

ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION = "failure-domain.beta.kubernetes.io/region"
ZONE_DELIMITER = "__"


def translate_zones(
    affinity: VolumeNodeAffinity | None, labels: Mapping[str, str], topology_key: str
) -> VolumeNodeAffinity | None:
    """The node affinity with the driver's topology key in the place of the zone's."""
    terms = _terms(affinity)
    zone_key = _zone_key(terms, labels)
    if _has_values(terms, zone_key):
        terms = _with_key_replaced(terms, zone_key, topology_key)
    elif zone_key in labels:
        terms = _with_zones_added(terms, labels[zone_key].split(ZONE_DELIMITER), topology_key)
    if zone_key == BETA_ZONE and _has_values(terms, BETA_REGION):
        terms = _with_key_replaced(terms, BETA_REGION, REGION)
    return affinity if not terms else VolumeNodeAffinity(NodeSelector(terms))


def _terms(affinity: VolumeNodeAffinity | None) -> tuple[NodeSelectorTerm, ...]:
    if affinity is None or affinity.required is None:
        return ()
    return affinity.required.node_selector_terms


def _expressions(terms: tuple[NodeSelectorTerm, ...], key: str) -> Iterator[NodeSelectorRequirement]:
    for term in terms:
        for expression in term.match_expressions or ():
            if expression.key == key:
                yield expression


def _zone_key(terms: tuple[NodeSelectorTerm, ...], labels: Mapping[str, str]) -> str:
    """Which of the two zone labels this volume goes by."""
    for key in (ZONE, BETA_ZONE):
        if any(True for _ in _expressions(terms, key)):
            return key
    return BETA_ZONE if BETA_ZONE in labels and ZONE not in labels else ZONE


def _has_values(terms: tuple[NodeSelectorTerm, ...], key: str) -> bool:
    return any(expression.values for expression in _expressions(terms, key))


def _with_key_replaced(terms: tuple[NodeSelectorTerm, ...], old: str, new: str) -> tuple[NodeSelectorTerm, ...]:
    def renamed(expression: NodeSelectorRequirement) -> NodeSelectorRequirement:
        return replace(expression, key=new) if expression.key == old else expression

    return tuple(
        replace(term, match_expressions=tuple(renamed(expression) for expression in term.match_expressions or ()))
        for term in terms
    )


def _with_zones_added(
    terms: tuple[NodeSelectorTerm, ...], zones: list[str], topology_key: str
) -> tuple[NodeSelectorTerm, ...]:
    known = tuple(sorted({zone.strip() for zone in zones} - {""}))
    if not known:
        return terms
    added = NodeSelectorRequirement(topology_key, "In", known)
    return tuple(
        replace(term, match_expressions=(*(term.match_expressions or ()), added))
        for term in terms or (NodeSelectorTerm(),)
    )


MIGRATED_PLUGINS_ANNOTATION = "storage.alpha.kubernetes.io/migrated-plugins"

_UNSPECIFIED = "UNSPECIFIED"
_EBS_VOLUME = re.compile(r"vol-[^/]*")


class TranslationError(KubeschedError, ValueError):
    """An in-tree volume has no counterpart under its CSI driver."""


@dataclass(frozen=True, slots=True)
class InTreePlugin:
    """A volume plugin of old and its successor. `field` is its volume source in pods and persistent volumes."""

    name: str
    driver: str
    field: str
    is_migrated: bool = True
    topology_key: str | None = None


@dataclass(frozen=True, slots=True)
class CSIVolume:
    """A persistent volume as its CSI driver knows it."""

    driver: str
    handle: str
    node_affinity: VolumeNodeAffinity | None


IN_TREE_PLUGINS = (
    InTreePlugin(
        "kubernetes.io/gce-pd", "pd.csi.storage.gke.io", "gce_persistent_disk", topology_key="topology.gke.io/zone"
    ),
    InTreePlugin(
        "kubernetes.io/aws-ebs",
        "ebs.csi.aws.com",
        "aws_elastic_block_store",
        topology_key="topology.ebs.csi.aws.com/zone",
    ),
    InTreePlugin(
        "kubernetes.io/cinder",
        "cinder.csi.openstack.org",
        "cinder",
        topology_key="topology.cinder.csi.openstack.org/zone",
    ),
    InTreePlugin("kubernetes.io/azure-disk", "disk.csi.azure.com", "azure_disk"),
    InTreePlugin("kubernetes.io/azure-file", "file.csi.azure.com", "azure_file", is_migrated=False),
    InTreePlugin("kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com", "vsphere_volume", is_migrated=False),
    InTreePlugin("kubernetes.io/portworx-volume", "pxd.portworx.com", "portworx_volume"),
)

_PLUGINS_BY_NAME = {plugin.name: plugin for plugin in IN_TREE_PLUGINS}


def plugin_named(name: str) -> InTreePlugin | None:
    return _PLUGINS_BY_NAME.get(name)


def plugin_of(source: Volume | PersistentVolumeSpec) -> InTreePlugin | None:
    """The in-tree plugin of a pod's volume or a persistent volume; None if it is of another kind."""
    for plugin in IN_TREE_PLUGINS:
        if getattr(source, plugin.field) is not None:
            return plugin
    return None


def is_migrated_on(plugin: InTreePlugin, csi_node: CSINode | None) -> bool:
    """Whether the node says that its kubelet serves this plugin's volumes through the CSI driver."""
    if csi_node is None or not plugin.is_migrated:
        return False
    migrated = (csi_node.metadata.annotations or {}).get(MIGRATED_PLUGINS_ANNOTATION, "")
    return plugin.name in migrated.split(",")


def inline_handle(volume: Volume) -> str:
    """The CSI handle of a pod's own in-tree volume of a migrated plugin."""
    if volume.gce_persistent_disk is not None:
        return f"projects/{_UNSPECIFIED}/zones/{_UNSPECIFIED}/disks/{volume.gce_persistent_disk.pd_name}"
    return _handle_of_source(volume)


def translate(volume: PersistentVolume) -> CSIVolume:
    """A persistent volume of a migrated plugin as its CSI driver knows it."""
    plugin = plugin_of(volume.spec)
    if plugin is None or not plugin.is_migrated:
        raise TranslationError(f'could not find in-tree plugin translation logic for "{volume.name}"')
    if volume.spec.gce_persistent_disk is not None:
        handle = _gce_handle(volume, volume.spec.gce_persistent_disk.pd_name)
    else:
        handle = _handle_of_source(volume.spec)
    affinity = volume.spec.node_affinity
    if plugin.topology_key is not None:
        affinity = translate_zones(affinity, volume.metadata.labels or {}, plugin.topology_key)
    return CSIVolume(plugin.driver, handle, affinity)


def _handle_of_source(source: Volume | PersistentVolumeSpec) -> str:
    """For the plugins whose handle follows from the source alone."""
    if source.aws_elastic_block_store is not None:
        return _ebs_handle(source.aws_elastic_block_store)
    if source.azure_disk is not None:
        return _azure_disk_handle(source.azure_disk)
    if source.cinder is not None:
        return source.cinder.volume_id
    if source.portworx_volume is not None:
        return source.portworx_volume.volume_id
    raise TranslationError("the volume is of no migrated in-tree plugin")


def _ebs_handle(source: AWSElasticBlockStoreVolumeSource) -> str:
    """`vol-…` as it is; of `aws://zone/vol-…` only the last part."""
    prefix = "aws://"
    if not source.volume_id.startswith(prefix):
        return source.volume_id
    location = source.volume_id.removeprefix(prefix).partition("#")[0].partition("?")[0]
    volume_id = location.partition("/")[2].strip("/")
    if _EBS_VOLUME.fullmatch(volume_id) is None:
        raise TranslationError(
            f"failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume ({source.volume_id})"
        )
    return volume_id


def _azure_disk_handle(source: AzureDiskVolumeSource) -> str:
    if source.kind is not None and source.kind.lower() != "managed":
        raise TranslationError(f"kind({source.kind}) is not supported in csi migration")
    return source.disk_uri


def _gce_handle(volume: PersistentVolume, disk_name: str) -> str:
    """A disk of one zone is named by the zone, one of several zones by their region."""
    labels = volume.metadata.labels or {}
    zones = (labels.get(BETA_ZONE) or labels.get(ZONE) or "").split(ZONE_DELIMITER)
    if len(zones) > 1:
        return f"projects/{_UNSPECIFIED}/regions/{_gce_region(zones)}/disks/{disk_name}"
    return f"projects/{_UNSPECIFIED}/zones/{zones[0] or _UNSPECIFIED}/disks/{disk_name}"


def _gce_region(zones: list[str]) -> str:
    prefix = "failed to get region from zones: "
    regions = set()
    for zone in zones:
        parts = zone.split("-")
        if len(parts) != 3:
            raise TranslationError(
                f"{prefix}zone in unexpected format, expected: {{locale}}-{{region}}-{{zone}}, got: {zone}"
            )
        regions.add("-".join(parts[:2]))
    if len(regions) != 1:
        found = " ".join(f"{region}:{{}}" for region in sorted(regions))
        raise TranslationError(f"{prefix}multiple or no regions gotten from zones, got: map[{found}]")
    return regions.pop()
