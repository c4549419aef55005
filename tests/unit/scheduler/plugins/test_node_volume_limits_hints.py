"""NodeVolumeLimits: which changes bring a rejected pod back."""

from __future__ import annotations

import pytest
from storage_clusters import StorageCluster, attachment, claim, csi_node, ephemeral, pod

from kubesched.framework import Hint
from kubesched.k8s.model.core import Pod, PodStatus
from kubesched.k8s.model.storage import CSINode
from kubesched.k8s.model.volumes import (
    AWSElasticBlockStoreVolumeSource,
    AzureFileVolumeSource,
    GCEPersistentDiskVolumeSource,
    RBDVolumeSource,
    Volume,
)
from kubesched.scheduler.plugins.node_volume_limits import (
    after_attachment_deleted,
    after_claim_added,
    after_csi_node_updated,
    after_pod_deleted,
)

GCE = Volume("v", gce_persistent_disk=GCEPersistentDiskVolumeSource("x"))
INCOMING = StorageCluster().info(pod("p", "data", ephemeral("tmp")))


@pytest.mark.parametrize(
    ("deleted", "hint"),
    [
        pytest.param(pod("d", "x", on="n"), Hint.QUEUE, id="with a claim"),
        pytest.param(pod("d", ephemeral("x"), on="n"), Hint.QUEUE, id="with an ephemeral volume"),
        pytest.param(pod("d", GCE, on="n"), Hint.QUEUE, id="with an in-tree volume that has a driver"),
        pytest.param(pod("d", Volume("v", rbd=RBDVolumeSource()), on="n"), Hint.SKIP, id="with another volume"),
        pytest.param(pod("d", on="n"), Hint.SKIP, id="without volumes"),
        pytest.param(pod("d", "x"), Hint.SKIP, id="that never had a node"),
        pytest.param(
            Pod(pod("d", "x").metadata, pod("d", "x").spec, PodStatus(nominated_node_name="n")),
            Hint.QUEUE,
            id="that was nominated to a node",
        ),
    ],
)
def test_a_deleted_pod_brings_us_back_if_it_held_volumes(deleted: Pod, hint: Hint) -> None:
    assert after_pod_deleted(INCOMING, deleted, None) is hint


@pytest.mark.parametrize(
    ("before", "after", "hint"),
    [
        pytest.param(csi_node("n", a=1), csi_node("n", a=2), Hint.QUEUE, id="a higher limit"),
        pytest.param(csi_node("n", a=2), csi_node("n", a=1), Hint.SKIP, id="a lower limit"),
        pytest.param(csi_node("n", a=2), csi_node("n", a=2), Hint.SKIP, id="the same limit"),
        pytest.param(csi_node("n"), csi_node("n", a=2), Hint.QUEUE, id="a new driver"),
        pytest.param(csi_node("n", a=None), csi_node("n", a=2), Hint.QUEUE, id="a limit where there was none"),
        pytest.param(csi_node("n", a=2), csi_node("n", a=None), Hint.SKIP, id="no limit any more counts as none left"),
    ],
)
def test_a_csi_node_brings_us_back_if_a_limit_grew(before: CSINode, after: CSINode, hint: Hint) -> None:
    assert after_csi_node_updated(INCOMING, before, after) is hint


@pytest.mark.parametrize(
    ("name", "namespace", "hint"),
    [
        pytest.param("data", "default", Hint.QUEUE, id="one that we name"),
        pytest.param("p-tmp", "default", Hint.QUEUE, id="one of our ephemeral volume"),
        pytest.param("other", "default", Hint.SKIP, id="another"),
        pytest.param("data", "other", Hint.SKIP, id="one of another namespace"),
    ],
)
def test_a_new_claim_brings_us_back_if_it_is_ours(name: str, namespace: str, hint: Hint) -> None:
    assert after_claim_added(INCOMING, None, claim(name, namespace=namespace)) is hint


@pytest.mark.parametrize(
    ("volume", "hint"),
    [
        pytest.param("data", Hint.QUEUE, id="any claim"),
        pytest.param(ephemeral("tmp"), Hint.SKIP, id="an ephemeral volume does not count"),
        pytest.param(GCE, Hint.QUEUE, id="an in-tree volume of the driver"),
        pytest.param(
            Volume("v", azure_file=AzureFileVolumeSource("s")), Hint.SKIP, id="an in-tree volume of another driver"
        ),
        pytest.param(
            Volume("v", aws_elastic_block_store=AWSElasticBlockStoreVolumeSource("aws://z/odd")),
            Hint.QUEUE,
            id="an in-tree volume that cannot be translated",
        ),
    ],
)
def test_a_deleted_attachment_brings_us_back_if_it_may_have_taken_our_place(volume: str | Volume, hint: Hint) -> None:
    incoming = StorageCluster().info(pod("p", volume))
    assert after_attachment_deleted(incoming, attachment("x", "pv", "n", "pd.csi.storage.gke.io"), None) is hint
