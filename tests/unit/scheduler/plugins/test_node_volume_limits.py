"""NodeVolumeLimits: how many volumes of a CSI driver a node still takes."""

from __future__ import annotations

import pytest
from storage_clusters import (
    StorageCluster,
    attachment,
    claim,
    csi_node,
    ephemeral,
    node,
    pod,
    rejections,
    storage_class,
    volume,
)

from kubesched.framework import OK, CycleState, Status
from kubesched.framework.status import SKIP
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.volumes import (
    AWSElasticBlockStoreVolumeSource,
    AzureFileVolumeSource,
    GCEPersistentDiskVolumeSource,
    RBDVolumeSource,
    Volume,
)
from kubesched.scheduler.plugins.node_volume_limits import NodeVolumeLimits

FULL = Status.unschedulable("node(s) exceed max volume count")
BASE = (node("n"), storage_class(), storage_class("other", provisioner="other.example.com"))
LIMIT_2 = csi_node("n", disk_example_com=2)
USED_2 = (
    claim("a", volume="pv-a"),
    claim("b", volume="pv-b"),
    volume("pv-a", claim="a"),
    volume("pv-b", claim="b"),
    pod("user", "a", "b", on="n"),
)


def gce(name: str) -> Volume:
    return Volume("inline", gce_persistent_disk=GCEPersistentDiskVolumeSource(name))


def ebs(name: str) -> Volume:
    return Volume("inline", aws_elastic_block_store=AWSElasticBlockStoreVolumeSource(name))


def answer(incoming: Pod, *objects: KubeObject) -> Status:
    """For the one node `n`."""
    cluster = StorageCluster(*BASE, *objects)
    return ask(NodeVolumeLimits(None, cluster), cluster, incoming)


def ask(plugin: NodeVolumeLimits, cluster: StorageCluster, incoming: Pod) -> Status:
    cycle, info = CycleState(), cluster.info(incoming)
    result = plugin.pre_filter(cycle, info, cluster.nodes)
    assert result.status == OK
    return rejections(plugin.filter(cycle, info, cluster.nodes), cluster.nodes.names).get("n", OK)


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param((LIMIT_2, *USED_2), FULL, id="full with the volumes of pods"),
        pytest.param((csi_node("n", disk_example_com=3), *USED_2), OK, id="one left"),
        pytest.param((csi_node("n", disk_example_com=0),), FULL, id="a limit of none at all"),
        pytest.param((csi_node("n", disk_example_com=None), *USED_2), OK, id="a driver without a limit"),
        pytest.param((csi_node("n", other_example_com=0), *USED_2), OK, id="a limit for another driver"),
        pytest.param(USED_2, OK, id="no CSINode"),
        pytest.param((csi_node("n", disk_example_com=1), *USED_2), FULL, id="over-full already"),
    ],
)
def test_a_pod_needs_room_for_its_volume(objects: tuple[KubeObject, ...], expected: Status) -> None:
    new = (claim("new", volume="pv-new"), volume("pv-new", claim="new"))
    assert answer(pod("p", "new"), *objects, *new) == expected


def test_a_volume_that_is_on_the_node_already_needs_no_more_room() -> None:
    assert answer(pod("p", "a"), LIMIT_2, *USED_2) == OK
    over_full = csi_node("n", disk_example_com=1)
    assert answer(pod("p", "a", "b"), over_full, *USED_2) == OK


def test_two_claims_on_one_handle_count_once() -> None:
    pods = (pod("u1", "a", on="n"), pod("u2", "a", on="n"))
    objects = (claim("a", volume="pv-a"), volume("pv-a", claim="a"), claim("new", volume="pv-n"), volume("pv-n"))
    assert answer(pod("p", "new"), LIMIT_2, *objects, *pods) == OK


def test_every_driver_has_its_own_limit() -> None:
    limits = csi_node("n", disk_example_com=2, other_example_com=0)
    objects = (claim("a"), claim("b", storage_class="other"))
    assert answer(pod("p", "a"), limits, *objects) == OK
    assert answer(pod("p", "a", "b"), limits, *objects) == FULL


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param((attachment("x", "pv-x", "n"), attachment("y", "pv-y", "n")), FULL, id="two attachments"),
        pytest.param((attachment("x", "pv-x", "n"), attachment("y", "pv-x", "n")), OK, id="one volume twice"),
        pytest.param((attachment("x", "pv-x", "n"), attachment("y", "pv-y", "m")), OK, id="one of them elsewhere"),
        pytest.param((attachment("x", "pv-x", "n"), attachment("y", "gone", "n")), OK, id="one of a missing volume"),
        pytest.param((attachment("x", "pv-x", "n"), attachment("y", None, "n")), OK, id="one without a volume"),
        pytest.param((attachment("x", "pv-x", "n"), attachment("y", "pv-y", "n", "")), OK, id="one by nobody"),
        pytest.param((attachment("x", "pv-x", "n"), attachment("y", "pv-y", "n", "o")), OK, id="one by another driver"),
        pytest.param(
            (attachment("x", "pv-x", "n"), claim("x", volume="pv-x"), pod("u", "x", on="n")),
            OK,
            id="one that a pod uses",
        ),
    ],
)
def test_attachments_count_beside_the_volumes_of_pods(objects: tuple[KubeObject, ...], expected: Status) -> None:
    volumes = (volume("pv-x"), volume("pv-y"), claim("new", volume="pv-new"), volume("pv-new"))
    assert answer(pod("p", "new"), LIMIT_2, *volumes, *objects) == expected


def test_a_volume_that_only_an_attachment_names_counts_again_for_its_pod() -> None:
    objects = (claim("a", volume="pv-a"), volume("pv-a"), attachment("x", "pv-a", "n"))
    assert answer(pod("p", "a"), csi_node("n", disk_example_com=1), *objects) == FULL


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param((claim("new"),), FULL, id="unbound, by its class"),
        pytest.param((claim("new", volume="gone"),), FULL, id="of a volume that is not there, by its class"),
        pytest.param((claim("new", storage_class=None),), OK, id="unbound without a class"),
        pytest.param((claim("new", storage_class="gone"),), OK, id="unbound of a class that is not there"),
        pytest.param((claim("new", storage_class="other"),), OK, id="unbound of another driver"),
        pytest.param((claim("new", volume="pv"), volume("pv", rbd=RBDVolumeSource())), OK, id="of no CSI driver"),
    ],
)
def test_a_claim_counts_under_its_driver(objects: tuple[KubeObject, ...], expected: Status) -> None:
    assert answer(pod("p", "new"), LIMIT_2, *USED_2, *objects) == expected


def test_claims_of_two_pods_without_volumes_are_two() -> None:
    objects = (claim("a"), claim("b"), claim("new"), pod("user", "a", "b", on="n"))
    assert answer(pod("p", "new"), LIMIT_2, *objects) == FULL
    assert answer(pod("p", "a"), LIMIT_2, *objects) == OK


def test_a_claim_that_an_existing_pod_lost_does_not_count() -> None:
    assert answer(pod("p", "new"), LIMIT_2, claim("new"), pod("user", "gone", "lost", on="n")) == OK


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        pytest.param(csi_node("n", pd_csi_storage_gke_io=1), FULL, id="a GCE disk, full"),
        pytest.param(csi_node("n", pd_csi_storage_gke_io=2), OK, id="a GCE disk, one left"),
        pytest.param(csi_node("n", ebs_csi_aws_com=0), OK, id="a limit for another migrated plugin"),
    ],
)
def test_in_tree_volumes_count_under_the_driver_they_were_migrated_to(limits: KubeObject, expected: Status) -> None:
    used = pod("user", gce("x"), on="n")
    assert answer(pod("p", gce("y")), limits, used) == expected
    assert answer(pod("p", gce("x")), limits, used) == OK
    bound = (claim("c", volume="pv"), volume("pv", gce_persistent_disk=GCEPersistentDiskVolumeSource("y")))
    assert answer(pod("p", "c"), limits, used, *bound) == expected
    to_come = (claim("c", storage_class="gce"), storage_class("gce", provisioner="kubernetes.io/gce-pd"))
    assert answer(pod("p", "c"), limits, used, *to_come) == expected


def test_volumes_of_plugins_that_are_not_migrated_do_not_count() -> None:
    azure_file = Volume("inline", azure_file=AzureFileVolumeSource("secret"))
    limits = csi_node("n", file_csi_azure_com=0)
    assert answer(pod("p", azure_file), limits) == OK
    to_come = (claim("c", storage_class="file"), storage_class("file", provisioner="kubernetes.io/azure-file"))
    assert answer(pod("p", "c"), limits, *to_come) == OK


def test_what_cannot_be_said_about_the_pods_volumes_rejects_the_node() -> None:
    missing = 'looking up PVC default/gone: persistentvolumeclaim "gone" not found'
    assert answer(pod("p", "gone"), LIMIT_2) == Status.unresolvable(missing)
    assert answer(pod("p", "gone")) == Status.unresolvable(missing)
    foreign = Status.error("PVC default/p-tmp was not created for pod default/p (pod is not owner)")
    assert answer(pod("p", ephemeral("tmp")), LIMIT_2, claim("p-tmp")) == foreign
    assert answer(pod("p", ""), LIMIT_2) == Status.error("PersistentVolumeClaim had no name")


def test_an_in_tree_volume_that_cannot_be_translated_is_an_error_only_where_there_is_a_csi_node() -> None:
    message = (
        "converting volume(inline) from inline to csi: failed to translate Kubernetes ID to EBS Volume ID "
        "Invalid format for AWS volume (aws://z/x)"
    )
    assert answer(pod("p", ebs("aws://z/x")), LIMIT_2) == Status.error(message)
    assert answer(pod("p", ebs("aws://z/x"))) == OK


def test_a_pod_on_the_node_whose_volumes_cannot_be_told_breaks_the_check() -> None:
    stranger = (pod("user", ephemeral("tmp"), on="n"), claim("user-tmp"), claim("new"))
    message = "PVC default/user-tmp was not created for pod default/user (pod is not owner)"
    assert answer(pod("p", "new"), LIMIT_2, *stranger) == Status.error(message)


def test_an_ephemeral_volume_counts_by_its_claim() -> None:
    incoming = pod("p", ephemeral("tmp"))
    own = claim("p-tmp", owner=incoming.metadata.uid)
    assert answer(incoming, csi_node("n", disk_example_com=0), own) == FULL
    assert answer(incoming, csi_node("n", disk_example_com=1), own) == OK


@pytest.mark.parametrize(
    "incoming",
    [
        pytest.param(pod("p"), id="no volumes"),
        pytest.param(pod("p", Volume("v", rbd=RBDVolumeSource())), id="volumes of no CSI driver"),
    ],
)
def test_pods_without_attachable_volumes_are_not_looked_at(incoming: Pod) -> None:
    cluster = StorageCluster(*BASE, LIMIT_2)
    result = NodeVolumeLimits(None, cluster).pre_filter(CycleState(), cluster.info(incoming), cluster.nodes)
    assert result.status == SKIP


def test_a_dry_run_without_a_pod_sees_its_volumes_gone() -> None:
    cluster = StorageCluster(*BASE, LIMIT_2, *USED_2, claim("new"))
    plugin, cycle, incoming = NodeVolumeLimits(None, cluster), CycleState(), cluster.info(pod("p", "new"))
    plugin.pre_filter(cycle, incoming, cluster.nodes)
    assert rejections(plugin.filter(cycle, incoming, cluster.nodes), cluster.nodes.names) == {"n": FULL}
    user = cluster.nodes.at(0).pods[0]
    cluster.cluster.table.remove_pod(user)
    assert rejections(plugin.filter(cycle, incoming, cluster.nodes), cluster.nodes.names) == {}
    cluster.cluster.table.add_pod(user, 0)
    assert rejections(plugin.filter(cycle, incoming, cluster.nodes), cluster.nodes.names) == {"n": FULL}
