"""DynamicResources: whom slices are for, and pools in the middle of an update."""

from __future__ import annotations

import pytest
from device_clusters import (
    DRIVER,
    DeviceCluster,
    claim,
    device,
    device_class,
    every,
    node,
    pod,
    request,
    slice_of,
    slice_on,
)

from kubesched.framework.status import Code
from kubesched.testing.make import Manifest

NONE = "cannot allocate all claims"
RACK_1 = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "rack", "operator": "In", "values": ["1"]}]}]}
NOT_A = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["a"]}]}]}
NODES = [node("a", labels={"rack": "1"}), node("b", labels={"rack": "2"}), node("c")]


def world_of(*objects: Manifest, wanted: Manifest | None = None) -> DeviceCluster:
    return DeviceCluster(*NODES, device_class(), pod("mine"), claim("mine", wanted or request()), *objects)


@pytest.mark.parametrize(
    ("slices", "fits"),
    [
        pytest.param([slice_on("b", "d")], ["b"], id="for one node"),
        pytest.param([slice_of("s", "p", "d", allNodes=True)], ["a", "b", "c"], id="for all nodes"),
        pytest.param([slice_of("s", "p", "d", nodeSelector=RACK_1)], ["a"], id="by label"),
        pytest.param([slice_of("s", "p", "d", nodeSelector=NOT_A)], ["b", "c"], id="by name"),
        pytest.param([slice_of("s", "p", "d")], [], id="for nobody in particular"),
        pytest.param(
            [
                slice_of(
                    "s",
                    "p",
                    device("for-a", nodeName="a"),
                    device("for-rack", nodeSelector=NOT_A),
                    perDeviceNodeSelection=True,
                )
            ],
            ["a", "b", "c"],
            id="device by device",
        ),
        pytest.param(
            [slice_of("s", "p", device("d", nodeName="c"), perDeviceNodeSelection=True)],
            ["c"],
            id="device by device, for one node",
        ),
        pytest.param(
            [slice_on("a", "d"), slice_of("s", "p", "d", nodeSelector=NOT_A)], ["a", "b", "c"], id="both kinds"
        ),
    ],
)
def test_a_slice_is_seen_by_the_nodes_it_is_for(slices: list[Manifest], fits: list[str]) -> None:
    assert world_of(*slices).attempt().fits() == fits


def test_a_node_gets_the_devices_that_are_for_it() -> None:
    for_each = slice_of(
        "s", "p", *(device(f"for-{name}", nodeName=name) for name in "abc"), perDeviceNodeSelection=True
    )
    attempt = world_of(for_each).attempt()
    assert [attempt.allocation(name) for name in "abc"] == [[["p/for-a"]], [["p/for-b"]], [["p/for-c"]]]


@pytest.mark.parametrize(
    ("slices", "fits"),
    [
        pytest.param([slice_on("a", "d", total=2)], [], id="a slice is missing"),
        pytest.param(
            [slice_on("a", "d", total=2), slice_on("b", "e", pool="a", total=2)], ["a", "b"], id="spread over nodes"
        ),
        pytest.param(
            [slice_on("a", "d", name="old"), slice_on("a", name="new", generation=2)],
            [],
            id="replaced by an empty slice",
        ),
        pytest.param(
            [slice_on("a", "d", name="old"), slice_on("a", "e", name="new", generation=2, total=2)],
            [],
            id="the new generation is not complete",
        ),
        pytest.param(
            [slice_on("a", "d", name="old", total=2), slice_on("b", "e", name="new", pool="a", generation=2)],
            ["b"],
            id="the new generation is for another node",
        ),
        pytest.param(
            [slice_on("a", "d", name="old"), slice_on("b", "e", name="new", pool="a", generation=2)],
            ["a", "b"],
            id="an old generation that looks complete",
        ),
    ],
)
def test_devices_come_from_the_newest_complete_generation(slices: list[Manifest], fits: list[str]) -> None:
    assert world_of(*slices).attempt().fits() == fits


def test_all_devices_cannot_be_told_while_a_pool_is_being_updated() -> None:
    world = world_of(slice_on("a", "d", total=2), slice_on("b", "d"), wanted=every())
    attempt = world.attempt()
    assert attempt.status("a").code is Code.ERROR
    assert attempt.status("a").message == (
        f"claim default/mine, request r: asks for all devices, but resource pool {DRIVER}/a is currently being updated"
    )
    assert attempt.fits() == ["b"]


def test_counters_of_an_incomplete_pool_are_everybodys_trouble() -> None:
    counters = slice_of("counters", "p", total=2, nodeName="a", sharedCounters=[{"name": "c", "counters": {}}])
    attempt = world_of(counters, slice_on("b", "d"), wanted=every()).attempt()
    assert {attempt.status(name).code for name in "abc"} == {Code.ERROR}
    assert world_of(counters, slice_on("b", "d")).attempt().fits() == ["b"]


def test_a_slice_that_cannot_be_understood_is_an_error_on_every_node() -> None:
    wrong = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "rack", "operator": "Gt", "values": ["x"]}]}]}
    attempt = world_of(slice_of("s", "p", "d", nodeSelector=wrong), slice_on("a", "d")).attempt()
    assert {attempt.status(name).code for name in "abc"} == {Code.ERROR}
    assert attempt.status("a").message.startswith(
        "gather pool information: failed to perform node selection for slice s"
    )
    attempt = world_of(slice_on("a", device("d", memory="a lot"))).attempt()
    assert attempt.status("a").message.startswith(
        "gather pool information: ResourceSlice slice-a: quantities must match"
    )


def test_changes_are_seen_by_the_next_pod() -> None:
    world = world_of(slice_on("a", "d"))
    assert world.attempt().fits() == ["a"]
    world.put(slice_on("b", "d"))
    assert world.attempt().fits() == ["a", "b"]
    world.put(slice_on("a"))
    assert world.attempt().fits() == ["b"]
    world.put(slice_of("s", "p", "d", nodeSelector=RACK_1))
    assert world.attempt().fits() == ["a", "b"]
    world.put(node("c", labels={"rack": "1"}))
    assert world.attempt().fits() == ["a", "b", "c"]
    for name in ("slice-b", "s"):
        world.cluster.remove(world.cluster.objects.resource_slices[name])
    assert world.attempt().fits() == []
