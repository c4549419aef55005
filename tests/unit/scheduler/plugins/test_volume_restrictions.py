"""VolumeRestrictions: disks that do not go to two pods of a node, and claims that go to one pod only."""

from __future__ import annotations

import pytest
from storage_clusters import StorageCluster, claim, node, pod, rejections

from kubesched.framework import OK, CycleState, Hint, PreFilterResult, Status
from kubesched.framework.status import SKIP
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.volumes import (
    AWSElasticBlockStoreVolumeSource,
    CinderVolumeSource,
    GCEPersistentDiskVolumeSource,
    ISCSIVolumeSource,
    RBDVolumeSource,
    Volume,
)
from kubesched.scheduler.plugins.volume_restrictions import (
    DISK_CONFLICT,
    READ_WRITE_ONCE_POD_CONFLICT,
    VolumeRestrictions,
    after_claim_added,
    after_pod_deleted,
)

ONCE = ("ReadWriteOncePod",)
DISK_TAKEN = Status.unschedulable(DISK_CONFLICT)
CLAIM_TAKEN = Status.unschedulable(READ_WRITE_ONCE_POD_CONFLICT)


def gce(name: str = "disk", *, read_only: bool = False) -> Volume:
    return Volume("v", gce_persistent_disk=GCEPersistentDiskVolumeSource(name, read_only=read_only))


def ebs(name: str = "vol-1", *, read_only: bool = False) -> Volume:
    return Volume("v", aws_elastic_block_store=AWSElasticBlockStoreVolumeSource(name, read_only=read_only))


def iscsi(iqn: str = "iqn-1", *, read_only: bool = False, lun: int = 0) -> Volume:
    return Volume("v", iscsi=ISCSIVolumeSource("portal", iqn, lun, read_only))


def rbd(*monitors: str, image: str = "image", pool: str = "rbd", read_only: bool = False) -> Volume:
    return Volume("v", rbd=RBDVolumeSource(monitors, image, pool, read_only))


def answer(cluster: StorageCluster, incoming: Pod) -> PreFilterResult | dict[str, Status]:
    plugin, cycle, info = VolumeRestrictions(None, cluster), CycleState(), cluster.info(incoming)
    result = plugin.pre_filter(cycle, info, cluster.nodes)
    if result.status != OK:
        return result
    return rejections(plugin.filter(cycle, info, cluster.nodes), cluster.nodes.names)


@pytest.mark.parametrize(
    ("wanted", "used", "is_taken"),
    [
        pytest.param(gce(), gce(), True, id="a GCE disk for writing twice"),
        pytest.param(gce(read_only=True), gce(), True, id="a GCE disk that one writes"),
        pytest.param(gce(read_only=True), gce(read_only=True), False, id="a GCE disk that both read"),
        pytest.param(gce(), gce("other"), False, id="two GCE disks"),
        pytest.param(ebs(), ebs(), True, id="an EBS volume twice"),
        pytest.param(ebs(read_only=True), ebs(read_only=True), True, id="an EBS volume that both read"),
        pytest.param(ebs(), ebs("vol-2"), False, id="two EBS volumes"),
        pytest.param(iscsi(), iscsi(lun=7), True, id="an iSCSI target by its iqn alone"),
        pytest.param(iscsi(read_only=True), iscsi(read_only=True), False, id="an iSCSI target that both read"),
        pytest.param(iscsi(), iscsi("iqn-2"), False, id="two iSCSI targets"),
        pytest.param(rbd("a", "b"), rbd("b", "c"), True, id="an RBD image with one monitor in common"),
        pytest.param(rbd("a"), rbd("b"), False, id="an RBD image with no monitor in common"),
        pytest.param(rbd("a"), rbd("a", pool="other"), False, id="an RBD image of another pool"),
        pytest.param(rbd("a"), rbd("a", image="other"), False, id="another RBD image"),
        pytest.param(rbd("a", read_only=True), rbd("a", read_only=True), False, id="an RBD image that both read"),
        pytest.param(gce("x"), ebs("x"), False, id="disks of two kinds with one name"),
    ],
)
def test_a_node_is_out_where_a_disk_is_in_use_in_a_way_that_excludes_ours(
    wanted: Volume, used: Volume, is_taken: bool
) -> None:
    cluster = StorageCluster(node("busy"), node("idle"), pod("user", used, on="busy"), pod("none", on="idle"))
    assert answer(cluster, pod("p", wanted)) == ({"busy": DISK_TAKEN} if is_taken else {})


@pytest.mark.parametrize(
    ("volumes", "expected"),
    [
        pytest.param((), SKIP, id="no volumes"),
        pytest.param((Volume("v", cinder=CinderVolumeSource("x")),), SKIP, id="a disk of another kind"),
        pytest.param(("shared",), SKIP, id="a claim that may be shared"),
        pytest.param(("free",), SKIP, id="an exclusive claim that nobody uses"),
        pytest.param(
            ("shared", "gone"),
            Status.unresolvable('persistentvolumeclaim "gone" not found'),
            id="a claim that does not exist",
        ),
    ],
)
def test_filter_is_left_out_where_nothing_can_conflict(volumes: tuple[str | Volume, ...], expected: Status) -> None:
    cluster = StorageCluster(node("a"), claim("shared"), claim("free", modes=ONCE), pod("u", "shared", on="a"))
    assert answer(cluster, pod("p", *volumes)) == PreFilterResult(expected)


def test_every_node_is_out_while_another_pod_has_the_exclusive_claim() -> None:
    cluster = StorageCluster(node("a"), node("b"), claim("data", modes=ONCE), pod("user", "data", on="a"))
    assert answer(cluster, pod("p", "data")) == {"a": CLAIM_TAKEN, "b": CLAIM_TAKEN}


def test_a_claim_of_the_same_name_in_another_namespace_is_another_claim() -> None:
    cluster = StorageCluster(node("a"), claim("data", modes=ONCE), pod("user", "data", on="a", namespace="other"))
    assert answer(cluster, pod("p", "data")) == PreFilterResult(SKIP)


def test_a_taken_disk_is_given_as_the_reason_before_a_taken_claim() -> None:
    cluster = StorageCluster(
        node("a"), node("b"), claim("data", modes=ONCE), pod("u", "data", on="a"), pod("w", ebs(), on="b")
    )
    assert answer(cluster, pod("p", ebs(), "data")) == {"a": CLAIM_TAKEN, "b": DISK_TAKEN}


def test_removing_the_user_of_a_claim_frees_it_and_adding_it_takes_it_again() -> None:
    cluster = StorageCluster(node("a"), node("b"), claim("data", modes=ONCE), pod("user", "data", "data", on="a"))
    plugin, cycle, incoming = VolumeRestrictions(None, cluster), CycleState(), cluster.info(pod("p", "data"))
    plugin.pre_filter(cycle, incoming, cluster.nodes)
    user, row = cluster.nodes.at(0).pods[0], cluster.nodes.at(0)
    assert plugin.remove_pod(cycle, incoming, user, row) == OK
    assert rejections(plugin.filter(cycle, incoming, cluster.nodes), cluster.nodes.names) == {}
    assert plugin.add_pod(cycle, incoming, user, row) == OK
    found = rejections(plugin.filter(cycle, incoming, cluster.nodes), cluster.nodes.names)
    assert found == {"a": CLAIM_TAKEN, "b": CLAIM_TAKEN}


def test_a_removed_pod_of_another_namespace_counts_by_the_name_of_its_claim() -> None:
    """kube-scheduler compares only names here, and so do we."""
    cluster = StorageCluster(node("a"), claim("data", modes=ONCE), pod("user", "data", on="a"))
    plugin, cycle, incoming = VolumeRestrictions(None, cluster), CycleState(), cluster.info(pod("p", "data"))
    plugin.pre_filter(cycle, incoming, cluster.nodes)
    stranger = cluster.info(pod("stranger", "data", namespace="other"))
    plugin.remove_pod(cycle, incoming, stranger, cluster.nodes.at(0))
    assert rejections(plugin.filter(cycle, incoming, cluster.nodes), cluster.nodes.names) == {}


@pytest.mark.parametrize(
    ("deleted", "hint"),
    [
        pytest.param(pod("d", "data"), Hint.QUEUE, id="a user of our claim"),
        pytest.param(pod("d", "other"), Hint.SKIP, id="a user of another claim"),
        pytest.param(pod("d", "data", namespace="other"), Hint.SKIP, id="a pod of another namespace"),
        pytest.param(pod("d", ebs()), Hint.QUEUE, id="a user of our disk"),
        pytest.param(pod("d", ebs("vol-2")), Hint.SKIP, id="a user of another disk"),
        pytest.param(pod("d"), Hint.SKIP, id="a pod without volumes"),
    ],
)
def test_a_deleted_pod_brings_us_back_if_it_may_have_stood_in_our_way(deleted: Pod, hint: Hint) -> None:
    incoming = StorageCluster().info(pod("p", "data", ebs()))
    assert after_pod_deleted(incoming, deleted, None) is hint


@pytest.mark.parametrize(
    ("name", "namespace", "hint"),
    [
        pytest.param("data", "default", Hint.QUEUE, id="our claim"),
        pytest.param("data", "other", Hint.SKIP, id="a claim of another namespace"),
        pytest.param("other", "default", Hint.SKIP, id="another claim"),
    ],
)
def test_a_new_claim_brings_us_back_if_it_is_ours(name: str, namespace: str, hint: Hint) -> None:
    incoming = StorageCluster().info(pod("p", "data"))
    assert after_claim_added(incoming, None, claim(name, namespace=namespace)) is hint
