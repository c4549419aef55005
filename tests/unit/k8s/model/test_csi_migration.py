"""In-tree volumes as volumes of their CSI drivers."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kubesched.k8s.model.core import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from kubesched.k8s.model.csi_migration import (
    BETA_REGION,
    BETA_ZONE,
    IN_TREE_PLUGINS,
    REGION,
    ZONE,
    TranslationError,
    inline_handle,
    is_migrated_on,
    plugin_named,
    plugin_of,
    translate,
    translate_zones,
)
from kubesched.k8s.model.meta import ObjectMeta
from kubesched.k8s.model.storage import CSINode, PersistentVolume, PersistentVolumeSpec, VolumeNodeAffinity
from kubesched.k8s.model.volumes import (
    AWSElasticBlockStoreVolumeSource,
    AzureDiskVolumeSource,
    AzureFileVolumeSource,
    CinderVolumeSource,
    GCEPersistentDiskVolumeSource,
    PortworxVolumeSource,
    Volume,
    VsphereVirtualDiskVolumeSource,
)

CSI = "topology.example.com/zone"

GCE = GCEPersistentDiskVolumeSource("disk")
CINDER = CinderVolumeSource("c-1")
PORTWORX = PortworxVolumeSource("p-1")


def ebs(volume_id: str) -> AWSElasticBlockStoreVolumeSource:
    return AWSElasticBlockStoreVolumeSource(volume_id)


def azure(kind: str | None) -> AzureDiskVolumeSource:
    return AzureDiskVolumeSource("disk", "/subscriptions/x/disks/disk", kind)


def affinity(*terms: Mapping[str, tuple[str, ...]]) -> VolumeNodeAffinity:
    """A term is its labels with the values they may have."""
    return VolumeNodeAffinity(
        NodeSelector(
            tuple(
                NodeSelectorTerm(tuple(NodeSelectorRequirement(key, "In", values) for key, values in term.items()))
                for term in terms
            )
        )
    )


@pytest.mark.parametrize(
    ("volume", "handle"),
    [
        pytest.param(
            Volume("v", gce_persistent_disk=GCE), "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/disk", id="GCE"
        ),
        pytest.param(Volume("v", aws_elastic_block_store=ebs("vol-1")), "vol-1", id="EBS by its bare id"),
        pytest.param(Volume("v", aws_elastic_block_store=ebs("aws://z1/vol-1")), "vol-1", id="EBS with a zone"),
        pytest.param(Volume("v", aws_elastic_block_store=ebs("aws:///vol-1")), "vol-1", id="EBS with an empty zone"),
        pytest.param(Volume("v", aws_elastic_block_store=ebs("odd/id")), "odd/id", id="EBS with any other id"),
        pytest.param(Volume("v", azure_disk=azure(None)), "/subscriptions/x/disks/disk", id="Azure Disk"),
        pytest.param(Volume("v", azure_disk=azure("managed")), "/subscriptions/x/disks/disk", id="managed Azure Disk"),
        pytest.param(Volume("v", cinder=CINDER), "c-1", id="Cinder"),
        pytest.param(Volume("v", portworx_volume=PORTWORX), "p-1", id="Portworx"),
    ],
)
def test_a_pods_own_volume_has_the_drivers_handle(volume: Volume, handle: str) -> None:
    assert inline_handle(volume) == handle


@pytest.mark.parametrize(
    ("volume", "message"),
    [
        pytest.param(
            Volume("v", aws_elastic_block_store=ebs("aws://z1/disk-1")),
            "failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume (aws://z1/disk-1)",
            id="EBS with another kind of id",
        ),
        pytest.param(
            Volume("v", azure_disk=azure("Dedicated")),
            "kind(Dedicated) is not supported in csi migration",
            id="an unmanaged Azure disk",
        ),
    ],
)
def test_a_volume_that_the_driver_does_not_know_is_an_error(volume: Volume, message: str) -> None:
    with pytest.raises(TranslationError) as caught:
        inline_handle(volume)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("labels", "handle"),
    [
        pytest.param({}, "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/disk", id="no zone"),
        pytest.param({ZONE: "us-east1-a"}, "projects/UNSPECIFIED/zones/us-east1-a/disks/disk", id="a zone"),
        pytest.param(
            {ZONE: "us-east1-a", BETA_ZONE: "us-east1-b"},
            "projects/UNSPECIFIED/zones/us-east1-b/disks/disk",
            id="the beta zone first",
        ),
        pytest.param(
            {ZONE: "us-east1-a__us-east1-b"}, "projects/UNSPECIFIED/regions/us-east1/disks/disk", id="a region"
        ),
    ],
)
def test_a_gce_disk_is_named_by_its_zone_or_region(labels: Mapping[str, str], handle: str) -> None:
    volume = PersistentVolume(ObjectMeta("pv", labels=dict(labels)), PersistentVolumeSpec(gce_persistent_disk=GCE))
    assert translate(volume).handle == handle


@pytest.mark.parametrize(
    ("zones", "message"),
    [
        pytest.param(
            "us-east1-a__eu-west1-b",
            "failed to get region from zones: multiple or no regions gotten from zones, "
            "got: map[eu-west1:{} us-east1:{}]",
            id="two regions",
        ),
        pytest.param(
            "a__b",
            "failed to get region from zones: zone in unexpected format, expected: {locale}-{region}-{zone}, got: a",
            id="zones of another form",
        ),
    ],
)
def test_a_gce_disk_of_several_zones_must_have_one_region(zones: str, message: str) -> None:
    volume = PersistentVolume(ObjectMeta("pv", labels={ZONE: zones}), PersistentVolumeSpec(gce_persistent_disk=GCE))
    with pytest.raises(TranslationError) as caught:
        translate(volume)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("before", "labels", "after"),
    [
        pytest.param(None, {}, None, id="no zone at all"),
        pytest.param(None, {ZONE: "b__a"}, affinity({CSI: ("a", "b")}), id="zones from the label"),
        pytest.param(None, {BETA_ZONE: "a"}, affinity({CSI: ("a",)}), id="a zone from the beta label"),
        pytest.param(None, {ZONE: "__"}, None, id="a label that names no zone"),
        pytest.param(affinity({ZONE: ("a",)}), {ZONE: "b"}, affinity({CSI: ("a",)}), id="the affinity counts first"),
        pytest.param(
            affinity({BETA_ZONE: ("a",), BETA_REGION: ("r",)}),
            {},
            affinity({CSI: ("a",), REGION: ("r",)}),
            id="beta keys are replaced",
        ),
        pytest.param(
            affinity({ZONE: ("a",), BETA_REGION: ("r",)}),
            {},
            affinity({CSI: ("a",), BETA_REGION: ("r",)}),
            id="a beta region beside a stable zone stays",
        ),
        pytest.param(
            affinity({"disk": ("x",)}, {"disk": ("y",)}),
            {ZONE: "a"},
            affinity({"disk": ("x",), CSI: ("a",)}, {"disk": ("y",), CSI: ("a",)}),
            id="a zone from the label goes to every term",
        ),
        pytest.param(affinity({"disk": ("x",)}), {}, affinity({"disk": ("x",)}), id="other labels stay"),
    ],
)
def test_zones_become_the_drivers_topology(
    before: VolumeNodeAffinity | None, labels: Mapping[str, str], after: VolumeNodeAffinity | None
) -> None:
    assert translate_zones(before, labels, CSI) == after


def test_portworx_and_azure_volumes_keep_their_affinity() -> None:
    zoned = affinity({ZONE: ("a",)})
    for spec in (
        PersistentVolumeSpec(portworx_volume=PORTWORX, node_affinity=zoned),
        PersistentVolumeSpec(azure_disk=azure(None), node_affinity=zoned),
    ):
        assert translate(PersistentVolume(ObjectMeta("pv"), spec)).node_affinity == zoned


def test_azure_file_and_vsphere_have_a_driver_but_are_never_translated() -> None:
    for spec in (
        PersistentVolumeSpec(azure_file=AzureFileVolumeSource("secret")),
        PersistentVolumeSpec(vsphere_volume=VsphereVirtualDiskVolumeSource("path")),
    ):
        plugin = plugin_of(spec)
        assert plugin is not None
        assert not plugin.is_migrated
        with pytest.raises(TranslationError):
            translate(PersistentVolume(ObjectMeta("pv"), spec))


def test_a_node_lists_the_plugins_it_has_migrated() -> None:
    ebs_plugin, cinder_plugin = plugin_named("kubernetes.io/aws-ebs"), plugin_named("kubernetes.io/cinder")
    assert ebs_plugin is not None
    assert cinder_plugin is not None
    annotations = {"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/gce-pd,kubernetes.io/aws-ebs"}
    csi_node = CSINode(ObjectMeta("n", annotations=annotations))
    assert is_migrated_on(ebs_plugin, csi_node)
    assert not is_migrated_on(cinder_plugin, csi_node)
    assert not is_migrated_on(ebs_plugin, CSINode(ObjectMeta("n")))
    assert not is_migrated_on(ebs_plugin, None)


def test_every_plugin_names_a_source_of_pods_and_volumes() -> None:
    for plugin in IN_TREE_PLUGINS:
        assert plugin.field in Volume.__struct_fields__
        assert plugin.field in PersistentVolumeSpec.__struct_fields__
