"""VolumeBinding: which changes bring a rejected pod back."""

from __future__ import annotations

import pytest
from storage_clusters import (
    ZONE,
    StorageCluster,
    allowed,
    claim,
    csi_driver,
    csi_node,
    ephemeral,
    pod,
    storage_class,
)

from kubesched.framework import Hint
from kubesched.k8s.model.meta import ObjectMeta
from kubesched.k8s.model.storage import CSIDriver, CSINode, CSIStorageCapacity, StorageClass
from kubesched.k8s.model.volumes import CSIVolumeSource, Volume
from kubesched.scheduler.plugins.volume_binding import (
    after_capacity_changed,
    after_claim_changed,
    after_csi_driver_changed,
    after_csi_node_changed,
    after_storage_class_changed,
)

INCOMING = StorageCluster().info(
    pod("p", "data", ephemeral("tmp"), Volume("own", csi=CSIVolumeSource("disk.example.com")))
)


@pytest.mark.parametrize(
    ("before", "after", "hint"),
    [
        pytest.param(None, storage_class(), Hint.QUEUE, id="a new class"),
        pytest.param(storage_class(), storage_class(), Hint.SKIP, id="nothing that counts"),
        pytest.param(
            storage_class(), storage_class(allowed_topologies=allowed({ZONE: ("a",)})), Hint.QUEUE, id="topologies"
        ),
        pytest.param(storage_class(), storage_class(allowed_topologies=()), Hint.SKIP, id="no topologies either way"),
    ],
)
def test_a_class_brings_us_back_if_it_is_new_or_allows_other_nodes(
    before: StorageClass | None, after: StorageClass, hint: Hint
) -> None:
    assert after_storage_class_changed(INCOMING, before, after) is hint


@pytest.mark.parametrize(
    ("name", "namespace", "hint"),
    [
        pytest.param("data", "default", Hint.QUEUE, id="one that we name"),
        pytest.param("p-tmp", "default", Hint.QUEUE, id="one of our ephemeral volume"),
        pytest.param("other", "default", Hint.SKIP, id="another"),
        pytest.param("data", "other", Hint.SKIP, id="one of another namespace"),
    ],
)
def test_a_claim_brings_us_back_if_it_is_ours(name: str, namespace: str, hint: Hint) -> None:
    assert after_claim_changed(INCOMING, claim(name), claim(name, namespace=namespace)) is hint


@pytest.mark.parametrize(
    ("before", "after", "hint"),
    [
        pytest.param(None, csi_node("n"), Hint.QUEUE, id="a new one"),
        pytest.param(csi_node("n"), csi_node("n", migrated="x"), Hint.QUEUE, id="a migrated plugin"),
        pytest.param(csi_node("n", migrated="x"), csi_node("n", migrated="x", a=1), Hint.SKIP, id="other changes"),
    ],
)
def test_a_csi_node_brings_us_back_if_it_migrated_a_plugin(before: CSINode | None, after: CSINode, hint: Hint) -> None:
    assert after_csi_node_changed(INCOMING, before, after) is hint


TRACKED, UNTRACKED = csi_driver(storage_capacity=True), csi_driver(storage_capacity=False)


@pytest.mark.parametrize(
    ("before", "after", "hint"),
    [
        pytest.param(TRACKED, UNTRACKED, Hint.QUEUE, id="no longer tracked"),
        pytest.param(TRACKED, csi_driver(), Hint.QUEUE, id="no longer spoken of"),
        pytest.param(UNTRACKED, TRACKED, Hint.SKIP, id="tracked from now on"),
        pytest.param(TRACKED, TRACKED, Hint.SKIP, id="tracked as before"),
        pytest.param(
            csi_driver("x", storage_capacity=True), csi_driver("x"), Hint.SKIP, id="a driver that the pod does not name"
        ),
    ],
)
def test_a_driver_of_the_pods_own_volume_brings_us_back_if_its_room_no_longer_counts(
    before: CSIDriver, after: CSIDriver, hint: Hint
) -> None:
    assert after_csi_driver_changed(INCOMING, before, after) is hint


def room(capacity: str | None = None, largest: str | None = None) -> CSIStorageCapacity:
    return CSIStorageCapacity(ObjectMeta("room"), "fast", None, capacity, largest)


@pytest.mark.parametrize(
    ("before", "after", "hint"),
    [
        pytest.param(None, room(), Hint.QUEUE, id="a new one"),
        pytest.param(room("1Gi"), room("2Gi"), Hint.QUEUE, id="more room"),
        pytest.param(room("2Gi"), room("1Gi"), Hint.SKIP, id="less room"),
        pytest.param(room("1Gi"), room("1024Mi"), Hint.SKIP, id="the same room, written otherwise"),
        pytest.param(room(), room("1Gi"), Hint.QUEUE, id="room where nothing was said"),
        pytest.param(room("1Gi"), room(), Hint.SKIP, id="nothing said any more"),
        pytest.param(room("1Gi", "1Gi"), room("9Gi", "1Gi"), Hint.SKIP, id="more room, but not for one volume"),
    ],
)
def test_a_capacity_brings_us_back_if_a_larger_volume_can_be_made(
    before: CSIStorageCapacity | None, after: CSIStorageCapacity, hint: Hint
) -> None:
    assert after_capacity_changed(INCOMING, before, after) is hint
