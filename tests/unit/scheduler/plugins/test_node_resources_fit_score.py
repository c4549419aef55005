"""NodeResourcesFit's scores: the three strategies, their weights, and what does not count."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from resource_tables import GPU, ResourceTable, claim_on, device_class, filled, resource_slice

from kubesched.framework import OK
from kubesched.scheduler.config.plugin_args import (
    NodeResourcesFitArgs,
    RequestedToCapacityRatioParam,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
)
from kubesched.scheduler.plugins.node_resources_fit import NodeResourcesFit
from kubesched.scheduler.plugins.node_resources_fit.scoring import broken_linear, divide_toward_zero
from kubesched.testing import make
from kubesched.testing.make import Manifest

CPU_AND_MEMORY = (ResourceSpec("cpu", 1), ResourceSpec("memory", 1))
RISING = (UtilizationShapePoint(0, 0), UtilizationShapePoint(100, 10))
FALLING = (UtilizationShapePoint(20, 10), UtilizationShapePoint(90, 3))


def _args(kind: str, *resources: ResourceSpec, shape: tuple[UtilizationShapePoint, ...] = ()) -> NodeResourcesFitArgs:
    ratio = RequestedToCapacityRatioParam(shape) if shape else None
    return NodeResourcesFitArgs(scoring_strategy=ScoringStrategy(kind, resources or CPU_AND_MEMORY, ratio))


def _scores(table: ResourceTable, args: NodeResourcesFitArgs | None = None) -> dict[str, int]:
    plugin = NodeResourcesFit(args, table.handle)
    assert plugin.pre_score(table.cycle, table.pod, table.nodes) is OK
    return table.by_node(list(plugin.score(table.cycle, table.pod, table.nodes)))


LEAST = _args("LeastAllocated")
MOST = _args("MostAllocated")
RATIO = _args("RequestedToCapacityRatio", shape=RISING)

HALF = filled("a", used_cpu="1", used_memory="2Gi")
"""Of 4 cpus and 4Gi."""


@pytest.mark.parametrize(
    ("args", "pod", "objects", "expected"),
    [
        pytest.param(LEAST, make.pod("p", cpu="1", memory="1Gi"), filled("a"), 75, id="least: a quarter used"),
        pytest.param(LEAST, make.pod("p", cpu="1", memory="1Gi"), HALF, 37, id="least: cut, not rounded"),
        pytest.param(LEAST, make.pod("p", cpu="4", memory="1Gi"), HALF, 12, id="least: too much scores 0"),
        pytest.param(MOST, make.pod("p", cpu="1", memory="1Gi"), HALF, 62, id="most: cut, not rounded"),
        pytest.param(MOST, make.pod("p", cpu="4", memory="1Gi"), HALF, 87, id="most: too much is full"),
        pytest.param(RATIO, make.pod("p", cpu="1", memory="1Gi"), HALF, 63, id="ratio: 50 and 75, rounded"),
        pytest.param(RATIO, make.pod("p", cpu="9", memory="1Gi"), HALF, 88, id="ratio: too much is full"),
        pytest.param(
            RATIO, make.pod("p", cpu="0", memory="2Gi"), filled("a"), 50, id="ratio: a score of 0 does not count"
        ),
        pytest.param(
            LEAST,
            make.pod("p"),
            [make.node("a", cpu="1", memory="400Mi")],
            (90 + 50) // 2,
            id="a silent pod counts with the defaults",
        ),
        pytest.param(
            LEAST,
            make.pod("p", cpu="0", memory="0"),
            [make.node("a", cpu="1", memory="400Mi"), make.pod("silent", on="a")],
            (90 + 50) // 2,
            id="and so do silent pods on nodes",
        ),
        pytest.param(
            _args("LeastAllocated", ResourceSpec("cpu", 3), ResourceSpec("memory", 1)),
            make.pod("p", cpu="1", memory="1Gi"),
            HALF,
            (50 * 3 + 25) // 4,
            id="weights",
        ),
        pytest.param(
            LEAST, make.pod("p", cpu="1"), [make.node("a", cpu="0", memory="0")], 0, id="a node without anything"
        ),
        pytest.param(LEAST, make.pod("p", memory="1Gi"), [make.node("a", cpu="0", memory="4Gi")], 75, id="without cpu"),
        pytest.param(
            RATIO, make.pod("p", cpu="1"), [make.node("a", cpu="0", memory="0")], 0, id="ratio without anything"
        ),
        pytest.param(
            _args("LeastAllocated", ResourceSpec("cpu", 1), ResourceSpec(GPU, 1)),
            make.pod("p", cpu="1", memory="1Gi"),
            [make.node("a", cpu="4", allocatable={GPU: 2})],
            75,
            id="an extended resource that is not asked for does not count",
        ),
        pytest.param(
            _args("LeastAllocated", ResourceSpec("cpu", 1), ResourceSpec(GPU, 1)),
            make.pod("p", cpu="1", requests={GPU: 1}),
            [make.node("a", cpu="4", allocatable={GPU: 2})],
            62,
            id="one that is asked for does",
        ),
        pytest.param(
            _args("MostAllocated", ResourceSpec("cpu", 1), ResourceSpec(GPU, 9)),
            make.pod("p", cpu="1", requests={GPU: 1}),
            [make.node("a", cpu="4")],
            25,
            id="unless the node does not have it",
        ),
        pytest.param(
            _args("MostAllocated", ResourceSpec("ephemeral-storage", 1), ResourceSpec("pods", 9)),
            make.pod("p", requests={"ephemeral-storage": "1Gi"}),
            [make.node("a", allocatable={"ephemeral-storage": "4Gi"})],
            25,
            id="what nodes do not keep account of does not count",
        ),
        pytest.param(
            LEAST,
            make.pod("p", cpu="1", memory="1Gi", spec={"resources": {"requests": {"cpu": "3", "memory": "3Gi"}}}),
            filled("a"),
            75,
            id="pod-level requests are not looked at",
        ),
    ],
)
def test_a_node_is_scored_by_how_full_it_would_be(
    args: NodeResourcesFitArgs, pod: Manifest, objects: list[Manifest], expected: int
) -> None:
    assert _scores(ResourceTable(pod, *objects), args) == {"a": expected}


def test_least_allocated_over_cpu_and_memory_is_the_default() -> None:
    table = ResourceTable(make.pod("p", cpu="1", memory="1Gi"), *HALF, *filled("b"))
    assert _scores(table) == _scores(table, LEAST) == {"a": 37, "b": 75}


GPUS = _args("MostAllocated", ResourceSpec(GPU, 1))
ONLY_B = {
    "nodeSelectorTerms": [
        {"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["a"]}]},
        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["x"]}]},
    ]
}


@pytest.mark.parametrize(
    ("slices", "expected"),
    [
        pytest.param([resource_slice("s", "g0", "g1", "g2", "g3", nodeName="a")], {"a": 50, "b": 0}, id="one node"),
        pytest.param([resource_slice("s", "g0", "g1", allNodes=True)], {"a": 100, "b": 100}, id="all nodes"),
        pytest.param(
            [
                resource_slice(
                    "s",
                    {"name": "g0", "nodeName": "b"},
                    {"name": "g1", "allNodes": True},
                    {"name": "g2"},
                    {"name": "g3", "nodeSelector": ONLY_B},
                    {"name": "g4", "nodeSelector": ONLY_B},
                    perDeviceNodeSelection=True,
                )
            ],
            {"a": 100, "b": 50},
            id="device by device",
        ),
        pytest.param(
            [
                resource_slice("s", "g0", "g1", "g2", "g3", nodeSelector=ONLY_B),
            ],
            {"a": 0, "b": 50},
            id="by a node selector",
        ),
        pytest.param(
            [
                resource_slice("s", "g0", "g1", nodeName="b"),
                resource_slice(
                    "t",
                    "g0",
                    nodeSelector={
                        "nodeSelectorTerms": [{"matchExpressions": [{"key": "x", "operator": "In", "values": []}]}]
                    },
                ),
            ],
            {"a": 0, "b": 0},
            id="a node selector with a validation error",
        ),
    ],
)
def test_devices_count_where_they_stand_for_an_extended_resource(
    slices: list[Manifest], expected: dict[str, int]
) -> None:
    table = ResourceTable(
        make.pod("p", requests={GPU: 1}),
        make.node("a"),
        make.node("b"),
        device_class("gpus", resource=GPU),
        claim_on("s", "g1"),
        claim_on("s", "g0", adminAccess=True),
        *slices,
    )
    found = _scores(table, GPUS)
    assert found == expected


def test_a_node_that_reports_the_resource_itself_is_not_asked_for_devices() -> None:
    table = ResourceTable(
        make.pod("p", requests={GPU: 1}),
        make.node("a", allocatable={GPU: 4}),
        make.node("b"),
        device_class("gpus", resource=GPU),
        resource_slice("s", "g0", "g1", allNodes=True),
    )
    assert _scores(table, GPUS) == {"a": 25, "b": 50}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param("device.driver == 'gpu.example.com'", 25, id="all of the driver's"),
        pytest.param("device.attributes['gpu.example.com'].memory >= 40", 50, id="some"),
        pytest.param("device.capacity['gpu.example.com'].hbm.compareTo(quantity('1Gi')) > 0", 100, id="by capacity"),
        pytest.param("false", 0, id="none"),
        pytest.param("device.attributes['gpu.example.com'].nothing == 1", 0, id="no answer"),
        pytest.param("device.attributes[", 0, id="not an expression"),
    ],
)
def test_only_devices_that_the_class_picks_count(expression: str, expected: int) -> None:
    devices = [
        {"name": f"g{n}", "attributes": {"memory": {"int": 20 * n}, "name": {"string": "x"}, "v": {"version": "1.0.0"}}}
        | {"capacity": {"hbm": {"value": f"{512 * n}Mi"}}}
        for n in range(4)
    ]
    table = ResourceTable(
        make.pod("p", requests={GPU: 1}),
        make.node("a"),
        device_class("gpus", resource=GPU, expression=expression),
        resource_slice("s", *devices, allNodes=True),
    )
    plugin = NodeResourcesFit(GPUS, table.handle)
    for _ in range(2):
        assert table.by_node(list(plugin.score(table.cycle, table.pod, table.nodes))) == {"a": expected}


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        pytest.param(RISING, {0: 0, 1: 1, 50: 50, 100: 100}, id="rising"),
        pytest.param(FALLING, {0: 100, 20: 100, 21: 99, 55: 65, 90: 30, 100: 30}, id="level outside, cut toward zero"),
        pytest.param((UtilizationShapePoint(50, 7),), {0: 70, 50: 70, 51: 70, 100: 70}, id="a single point"),
    ],
)
def test_a_shape_is_made_of_straight_lines(shape: tuple[UtilizationShapePoint, ...], expected: dict[int, int]) -> None:
    table = broken_linear(shape)
    assert {percent: int(table[percent]) for percent in expected} == expected


@settings(deadline=None)
@given(st.integers(-(10**6), 10**6), st.integers(-100, 100).filter(bool))
def test_division_cuts_toward_zero(number: int, divisor: int) -> None:
    found = divide_toward_zero(np.array([number, 0]), np.array([divisor, 1]))
    assert int(found[0]) == int(number / divisor)


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from((LEAST, MOST, RATIO, _args("RequestedToCapacityRatio", shape=FALLING))),
    st.lists(st.tuples(*[st.integers(0, 5)] * 4), min_size=1, max_size=4),
    st.integers(0, 6),
)
def test_scores_stay_within_their_range(
    args: NodeResourcesFitArgs, nodes: list[tuple[int, int, int, int]], asked: int
) -> None:
    objects = [
        part
        for index, (cpu, memory, used_cpu, used_memory) in enumerate(nodes)
        for part in filled(
            f"n{index}", cpu=str(cpu), memory=str(memory), used_cpu=str(used_cpu), used_memory=str(used_memory)
        )
    ]
    found = _scores(ResourceTable(make.pod("p", cpu=str(asked), memory=str(asked)), *objects), args)
    assert all(0 <= score <= 100 for score in found.values())
