"""NodeResourcesBalancedAllocation: scores by what the pod does to the balance between a node's resources."""

from __future__ import annotations

import math

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from resource_tables import GPU, ResourceTable, filled

from kubesched.framework import OK
from kubesched.framework.status import SKIP
from kubesched.scheduler.config.plugin_args import NodeResourcesBalancedAllocationArgs, ResourceSpec
from kubesched.scheduler.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from kubesched.testing import make
from kubesched.testing.make import Manifest

STORAGE = "ephemeral-storage"


def _args(*names: str) -> NodeResourcesBalancedAllocationArgs:
    return NodeResourcesBalancedAllocationArgs(tuple(ResourceSpec(name, 1) for name in names))


def _scores(table: ResourceTable, args: NodeResourcesBalancedAllocationArgs | None = None) -> dict[str, int]:
    plugin = NodeResourcesBalancedAllocation(args, table.handle)
    return table.by_node(list(plugin.score(table.cycle, table.pod, table.nodes)))


@pytest.mark.parametrize(
    ("pod", "objects", "names", "expected"),
    [
        pytest.param(make.pod("p", cpu="1", memory="1Gi"), filled("a"), ("cpu", "memory"), 75, id="nothing changes"),
        pytest.param(make.pod("p", cpu="4"), filled("a"), ("cpu", "memory"), 50, id="the worst that can be done"),
        pytest.param(
            make.pod("p", cpu="4"),
            filled("a", used_memory="4Gi"),
            ("cpu", "memory"),
            100,
            id="the best that can be done",
        ),
        pytest.param(make.pod("p", cpu="1"), filled("a"), ("cpu", "memory"), 68, id="a little worse: 100 becomes 87"),
        pytest.param(
            make.pod("p", cpu="9"),
            filled("a", used_cpu="9"),
            ("cpu", "memory"),
            75,
            id="over-committed is full, not more",
        ),
        pytest.param(
            make.pod("p", cpu="1"),
            [make.node("a", cpu="2"), make.pod("silent", on="a")],
            ("cpu", "memory"),
            62,
            id="silent pods count as nothing",
        ),
        pytest.param(make.pod("p", cpu="1"), filled("a"), ("cpu",), 75, id="one resource is always in balance"),
        pytest.param(
            make.pod("p", cpu="4"),
            [make.node("a", memory="0")],
            ("cpu", "memory"),
            75,
            id="a resource that is not there",
        ),
        pytest.param(
            make.pod("p", cpu="4"),
            [make.node("a", allocatable={STORAGE: "1Gi"})],
            ("cpu", "memory", STORAGE),
            51,
            id="three resources: 100 becomes 52",
        ),
        pytest.param(
            make.pod("p", cpu="4"),
            [make.node("a")],
            ("cpu", STORAGE, "memory"),
            50,
            id="three of which the node has two",
        ),
        pytest.param(
            make.pod("p", cpu="4"),
            [make.node("a", allocatable={GPU: 4})],
            ("cpu", "memory", GPU),
            50,
            id="an extended resource that is not asked for does not count",
        ),
        pytest.param(
            make.pod("p", cpu="4", memory="8Gi", requests={GPU: 4}),
            [make.node("a", allocatable={GPU: 4})],
            ("cpu", "memory", GPU),
            75,
            id="one that is asked for does",
        ),
    ],
)
def test_a_node_is_scored_by_the_balance_the_pod_leaves(
    pod: Manifest, objects: list[Manifest], names: tuple[str, ...], expected: int
) -> None:
    assert _scores(ResourceTable(pod, *objects), _args(*names)) == {"a": expected}


@pytest.mark.parametrize(
    ("pod", "names", "is_scored"),
    [
        pytest.param(make.pod("p"), ("cpu", "memory"), False, id="a pod that asks for nothing"),
        pytest.param(make.pod("p", requests={GPU: 1}), ("cpu", "memory"), False, id="for something else"),
        pytest.param(make.pod("p", cpu="0"), ("cpu", "memory"), False, id="for zero"),
        pytest.param(make.pod("p", memory="1"), ("cpu", "memory"), True, id="for one of the resources"),
        pytest.param(make.pod("p", requests={GPU: 1}), ("cpu", GPU), True, id="for an extended one"),
        pytest.param(
            make.pod("p", spec={"overhead": {"cpu": "1m"}}), ("cpu", "memory"), True, id="whose overhead asks for some"
        ),
    ],
)
def test_pods_that_ask_for_none_of_the_resources_are_not_scored(
    pod: Manifest, names: tuple[str, ...], is_scored: bool
) -> None:
    table = ResourceTable(pod, make.node("a"))
    plugin = NodeResourcesBalancedAllocation(_args(*names), table.handle)
    assert plugin.pre_score(table.cycle, table.pod, table.nodes) is (OK if is_scored else SKIP)
    if not is_scored:
        assert _scores(table, _args(*names)) == {"a": 0}


def test_cpu_and_memory_are_the_default() -> None:
    table = ResourceTable(make.pod("p", cpu="4"), *filled("a"))
    assert _scores(table) == {"a": 50}


def _balance(used: list[int], allocatable: list[int]) -> int:
    """One node, in plain floats."""
    fractions = [min(u / a, 1.0) for u, a in zip(used, allocatable, strict=True) if a]
    deviation = 0.0
    if len(fractions) == 2:
        deviation = abs((fractions[0] - fractions[1]) / 2)
    elif len(fractions) > 2:
        total = 0.0
        for fraction in fractions:
            total += fraction
        mean, squares = total / len(fractions), 0.0
        for fraction in fractions:
            squares += (fraction - mean) * (fraction - mean)
        deviation = math.sqrt(squares / len(fractions))
    return int((1 - deviation) * 100.0)


NAMES = ("cpu", "memory", STORAGE, GPU)
Evidence = tuple[int, int, int, int]


@settings(deadline=None, max_examples=60)
@given(
    n_resources=st.integers(1, 4),
    nodes=st.lists(st.tuples(*[st.tuples(*[st.integers(0, 9)] * 4)] * 2), min_size=1, max_size=4),
    asked=st.tuples(*[st.integers(1, 5)] * 4),
)
def test_the_table_answers_as_the_rule_does_node_by_node(
    n_resources: int, nodes: list[tuple[Evidence, Evidence]], asked: Evidence
) -> None:
    names = NAMES[:n_resources]
    objects, expected = [], {}
    for index, (allocatable, used) in enumerate(nodes):
        name = f"n{index}"
        objects.append(make.node(name, allocatable=dict(zip(NAMES, allocatable, strict=True))))
        objects.append(make.pod(f"on-{name}", on=name, requests=dict(zip(NAMES, used, strict=True))))
        scale = [1000 if name == "cpu" else 1 for name in names]
        there = [n * unit for n, unit in zip(allocatable, scale, strict=False)]
        before = [n * unit for n, unit in zip(used, scale, strict=False)]
        after = [(n + more) * unit for n, more, unit in zip(used, asked, scale, strict=False)]
        expected[name] = 50 + (50 + _balance(after, there) - _balance(before, there)) // 2
        event(f"{sum(map(bool, there))} resources")
    pod = make.pod("p", requests=dict(zip(NAMES, asked, strict=True)))
    assert _scores(ResourceTable(pod, *objects), _args(*names)) == expected
