"""VolumeBinding, Filter: where a volume for a claim can be made."""

from __future__ import annotations

import pytest
from storage_clusters import (
    HOSTNAME,
    ZONE,
    StorageCluster,
    allowed,
    claim,
    csi_driver,
    node,
    pod,
    rejections,
    storage_class,
)

from kubesched.framework import OK, CycleState, Status
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import KubeObject, LabelSelector, ObjectMeta
from kubesched.k8s.model.storage import (
    CSIStorageCapacity,
    TopologySelectorTerm,
)
from kubesched.scheduler.plugins.volume_binding import VolumeBinding

BIND_CONFLICT = "node(s) didn't find available persistent volumes to bind"
NO_SPACE = "node(s) did not have enough free storage"
NODES = (node("a1", zone="a"), node("a2", zone="a"), node("b1", zone="b"))


def answer(incoming: Pod, *objects: KubeObject) -> dict[str, Status]:
    cluster = StorageCluster(*NODES, *objects)
    plugin, cycle, info = VolumeBinding(None, cluster), CycleState(), cluster.info(incoming)
    result = plugin.pre_filter(cycle, info, cluster.nodes)
    assert (result.status, result.node_names) == (OK, None)
    return rejections(plugin.filter(cycle, info, cluster.nodes), cluster.nodes.names)


def out(reason: str, *names: str) -> dict[str, Status]:
    return dict.fromkeys(names, Status.unresolvable(reason))


@pytest.mark.parametrize(
    ("terms", "names"),
    [
        pytest.param(None, (), id="any node"),
        pytest.param(allowed({ZONE: ("a",)}), ("b1",), id="one zone"),
        pytest.param(allowed({ZONE: ("a",)}, {HOSTNAME: ("b1",)}), (), id="one of two terms"),
        pytest.param(allowed({ZONE: ("a",), HOSTNAME: ("a1", "b1")}), ("a2", "b1"), id="all of two labels"),
        pytest.param(allowed({}), ("a1", "a2", "b1"), id="an empty term"),
        pytest.param(allowed({ZONE: ()}), ("a1", "a2", "b1"), id="a term without values"),
    ],
)
def test_a_new_volume_can_be_made_where_the_class_allows_it(
    terms: tuple[TopologySelectorTerm, ...] | None, names: tuple[str, ...]
) -> None:
    found = answer(pod("p", "c"), claim("c"), storage_class(allowed_topologies=terms))
    assert found == out(BIND_CONFLICT, *names)


@pytest.mark.parametrize("provisioner", ["", "kubernetes.io/no-provisioner"])
def test_no_volume_can_be_made_without_a_provisioner(provisioner: str) -> None:
    found = answer(pod("p", "c"), claim("c"), storage_class(provisioner=provisioner))
    assert found == out(BIND_CONFLICT, "a1", "a2", "b1")


def room(
    zone: str | None, *, capacity: str | None = None, largest: str | None = None, of_class: str = "fast"
) -> CSIStorageCapacity:
    return CSIStorageCapacity(
        metadata=ObjectMeta(name=f"room-{zone}-{capacity}-{largest}-{of_class}", namespace="kube-system"),
        storage_class_name=of_class,
        node_topology=None if zone is None else LabelSelector({ZONE: zone}),
        capacity=capacity,
        maximum_volume_size=largest,
    )


TRACKED = csi_driver(storage_capacity=True)


@pytest.mark.parametrize(
    ("objects", "names"),
    [
        pytest.param((room("a", capacity="1Gi"), TRACKED), ("b1",), id="room in one zone"),
        pytest.param((room("a", capacity="1023Mi"), TRACKED), ("a1", "a2", "b1"), id="not enough room"),
        pytest.param((room("a", capacity="1Gi", largest="1Mi"), TRACKED), ("a1", "a2", "b1"), id="a smaller maximum"),
        pytest.param((room("a", capacity="1Mi", largest="1Gi"), TRACKED), ("b1",), id="a larger maximum"),
        pytest.param((room("a"), TRACKED), ("a1", "a2", "b1"), id="a capacity that says nothing"),
        pytest.param((room(None, capacity="9Gi"), TRACKED), ("a1", "a2", "b1"), id="a capacity for no node"),
        pytest.param((room("a", capacity="9Gi", of_class="x"), TRACKED), ("a1", "a2", "b1"), id="another class"),
        pytest.param((room("a", capacity="9Gi"), room("b", capacity="9Gi"), TRACKED), (), id="room in both zones"),
        pytest.param((room("a", capacity="1Gi"), csi_driver(storage_capacity=False)), (), id="capacity not tracked"),
        pytest.param((room("a", capacity="1Gi"), csi_driver()), (), id="capacity not spoken of"),
        pytest.param((room("a", capacity="1Gi"),), (), id="no CSIDriver"),
    ],
)
def test_a_new_volume_needs_room_where_the_driver_tracks_it(
    objects: tuple[KubeObject, ...], names: tuple[str, ...]
) -> None:
    assert answer(pod("p", "c"), claim("c"), storage_class(), *objects) == out(NO_SPACE, *names)


def test_a_claim_that_asks_for_no_size_needs_no_room() -> None:
    assert answer(pod("p", "c"), claim("c", size=None), storage_class(), TRACKED) == {}


def test_the_first_claim_that_cannot_have_a_volume_gives_the_reason() -> None:
    """The smallest first; a node outside the allowed topology is not asked for room."""
    narrow = storage_class("narrow", allowed_topologies=allowed({ZONE: ("a",)}))
    objects = (claim("c", size="2Gi"), claim("d", size="1Gi", storage_class="narrow"), storage_class(), narrow, TRACKED)
    assert answer(pod("p", "c", "d"), *objects) == {**out(NO_SPACE, "a1", "a2"), **out(BIND_CONFLICT, "b1")}
