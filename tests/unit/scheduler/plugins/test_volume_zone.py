"""VolumeZone: nodes that are not in the zone or region that a bound volume's labels name."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from storage_clusters import StorageCluster, claim, labelled_node, pod, rejections, storage_class, volume

from kubesched.framework import OK, CycleState, Hint, Status
from kubesched.framework.status import SKIP
from kubesched.k8s.model.core import Pod
from kubesched.scheduler.plugins.volume_zone import (
    ZONE_CONFLICT,
    VolumeZone,
    after_claim_changed,
    after_storage_class_added,
    after_volume_changed,
)

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
BETA_ZONE, BETA_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
ELSEWHERE = Status.unresolvable(ZONE_CONFLICT)


def pre_filter(cluster: StorageCluster, incoming: Pod) -> Status:
    return VolumeZone(None, cluster).pre_filter(CycleState(), cluster.info(incoming), cluster.nodes).status


@pytest.mark.parametrize(
    ("volume_labels", "node_labels", "is_out"),
    [
        pytest.param({ZONE: "z1"}, {ZONE: "z1"}, False, id="the same zone"),
        pytest.param({ZONE: "z1"}, {ZONE: "z2"}, True, id="another zone"),
        pytest.param({ZONE: "z1"}, {}, False, id="a node without any such label"),
        pytest.param({ZONE: "z1"}, {REGION: "r"}, True, id="a node with a region and no zone"),
        pytest.param({ZONE: "z1__z2"}, {ZONE: "z2"}, False, id="one of two zones"),
        pytest.param({ZONE: "z1__ z2 "}, {ZONE: "z2"}, False, id="zones with blanks around"),
        pytest.param({ZONE: "z1__"}, {ZONE: "z9"}, False, id="an empty zone makes the label void"),
        pytest.param({BETA_ZONE: "z1"}, {ZONE: "z1"}, False, id="a beta label met by a stable one"),
        pytest.param({BETA_ZONE: "z1"}, {ZONE: "z2"}, True, id="a beta label missed by a stable one"),
        pytest.param({BETA_ZONE: "z1"}, {BETA_ZONE: "z2", ZONE: "z1"}, True, id="a node's beta label counts first"),
        pytest.param({ZONE: "z1"}, {BETA_ZONE: "z1"}, True, id="a stable label is not met by a beta one"),
        pytest.param({BETA_REGION: "r"}, {REGION: "r"}, False, id="a beta region met by a stable one"),
        pytest.param({ZONE: "z1", REGION: "r"}, {ZONE: "z1", REGION: "s"}, True, id="the right zone, another region"),
        pytest.param({ZONE: "z1", "disk": "ssd"}, {ZONE: "z1"}, False, id="labels of other kinds do not count"),
    ],
)
def test_a_node_is_out_unless_it_is_where_the_volume_is(
    volume_labels: Mapping[str, str], node_labels: Mapping[str, str], is_out: bool
) -> None:
    cluster = StorageCluster(
        labelled_node("n", node_labels), claim("data", volume="pv"), volume("pv", claim="data", labels=volume_labels)
    )
    plugin, cycle, incoming = VolumeZone(None, cluster), CycleState(), cluster.info(pod("p", "data"))
    if plugin.pre_filter(cycle, incoming, cluster.nodes).status == SKIP:
        assert not is_out
        return
    found = rejections(plugin.filter(cycle, incoming, cluster.nodes), cluster.nodes.names)
    assert found == ({"n": ELSEWHERE} if is_out else {})


@pytest.mark.parametrize(
    ("claim_name", "expected"),
    [
        pytest.param("zoned", OK, id="bound to a volume with a zone"),
        pytest.param("plain", SKIP, id="bound to a volume without"),
        pytest.param("void", SKIP, id="bound to a volume with a label that means nothing"),
        pytest.param("waiting", SKIP, id="waiting for its first consumer"),
        pytest.param("", Status.unresolvable("PersistentVolumeClaim had no name"), id="without a name"),
        pytest.param("gone", Status.unresolvable('persistentvolumeclaim "gone" not found'), id="missing"),
        pytest.param("lost", Status.unresolvable('persistentvolume "pv-gone" not found'), id="of a missing volume"),
        pytest.param(
            "classless",
            Status.unresolvable("PersistentVolumeClaim had no pv name and storageClass name"),
            id="without volume and class",
        ),
        pytest.param(
            "unknown",
            Status.unresolvable('storageclass.storage.k8s.io "nowhere" not found'),
            id="of a missing class",
        ),
        pytest.param(
            "modeless", Status.unresolvable('VolumeBindingMode not set for StorageClass "odd"'), id="of an odd class"
        ),
        pytest.param("late", Status.unresolvable("PersistentVolume had no name"), id="that should be bound"),
    ],
)
def test_a_claim_that_should_have_a_volume_and_has_none_rejects_the_pod(claim_name: str, expected: Status) -> None:
    cluster = StorageCluster(
        labelled_node("n", {ZONE: "z1"}),
        volume("pv-zoned", labels={ZONE: "z1"}),
        volume("pv-plain"),
        volume("pv-void", labels={ZONE: "z1____z2"}),
        storage_class("wait"),
        storage_class("now", mode="Immediate"),
        storage_class("odd", mode=None),
        claim("zoned", volume="pv-zoned"),
        claim("plain", volume="pv-plain"),
        claim("void", volume="pv-void"),
        claim("waiting", storage_class="wait"),
        claim("lost", volume="pv-gone"),
        claim("classless", storage_class=None),
        claim("unknown", storage_class="nowhere"),
        claim("modeless", storage_class="odd"),
        claim("late", storage_class="now"),
    )
    assert pre_filter(cluster, pod("p", claim_name)) == expected


def test_the_class_in_the_old_annotation_counts_first() -> None:
    old = claim("data", storage_class="now", annotations={"volume.beta.kubernetes.io/storage-class": "wait"})
    cluster = StorageCluster(storage_class("wait"), storage_class("now", mode="Immediate"), old)
    assert pre_filter(cluster, pod("p", "data")) == SKIP


def test_a_pod_without_claims_is_not_looked_at() -> None:
    assert pre_filter(StorageCluster(), pod("p")) == SKIP


@pytest.mark.parametrize(
    ("before", "after", "hint"),
    [
        pytest.param(None, {}, Hint.QUEUE, id="a new volume"),
        pytest.param({ZONE: "z1"}, {ZONE: "z2"}, Hint.QUEUE, id="another zone"),
        pytest.param({ZONE: "z1"}, {}, Hint.QUEUE, id="no zone any more"),
        pytest.param({ZONE: "z1"}, {ZONE: "z1", "disk": "ssd"}, Hint.SKIP, id="the same zone"),
        pytest.param({ZONE: "z1__z2"}, {ZONE: "z2__z1"}, Hint.SKIP, id="the same zones in another order"),
    ],
)
def test_a_volume_brings_us_back_if_its_zones_changed(
    before: Mapping[str, str] | None, after: Mapping[str, str], hint: Hint
) -> None:
    incoming = StorageCluster().info(pod("p", "data"))
    old = None if before is None else volume("pv", labels=before)
    assert after_volume_changed(incoming, old, volume("pv", labels=after)) is hint


def test_a_claim_brings_us_back_if_it_is_ours() -> None:
    incoming = StorageCluster().info(pod("p", "data"))
    assert after_claim_changed(incoming, None, claim("data")) is Hint.QUEUE
    assert after_claim_changed(incoming, None, claim("other")) is Hint.SKIP
    assert after_claim_changed(incoming, None, claim("data", namespace="other")) is Hint.SKIP


def test_a_new_class_brings_us_back_if_its_claims_wait() -> None:
    incoming = StorageCluster().info(pod("p", "data"))
    assert after_storage_class_added(incoming, None, storage_class()) is Hint.QUEUE
    assert after_storage_class_added(incoming, None, storage_class(mode="Immediate")) is Hint.SKIP
    assert after_storage_class_added(incoming, None, storage_class(mode=None)) is Hint.SKIP
