"""NodeResourcesFit's filter: which nodes have enough of everything, and the reasons where they have not."""

from __future__ import annotations

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from resource_tables import GPU, ResourceTable, device_class, filled

from kubesched.framework import ACCEPT_ALL, OK, Code, CycleState, Status
from kubesched.scheduler.config.plugin_args import NodeResourcesFitArgs
from kubesched.scheduler.plugins.node_resources_fit import NodeResourcesFit
from kubesched.testing import make
from kubesched.testing.make import Manifest


def _filter(table: ResourceTable, args: NodeResourcesFitArgs | None = None) -> dict[str, Status]:
    plugin = NodeResourcesFit(args, table.handle)
    assert plugin.pre_filter(table.cycle, table.pod, table.nodes).status is OK
    return table.statuses(plugin.filter(table.cycle, table.pod, table.nodes))


@pytest.mark.parametrize(
    ("pod", "objects", "expected"),
    [
        pytest.param(make.pod("p", cpu="1", memory="1Gi"), filled("a"), {}, id="room for everything"),
        pytest.param(make.pod("p", cpu="4"), filled("a"), {}, id="exactly as much as there is"),
        pytest.param(
            make.pod("p", cpu="2"),
            filled("a", used_cpu="2001m"),
            {"a": Status.unschedulable("Insufficient cpu")},
            id="a thousandth too little",
        ),
        pytest.param(
            make.pod("p", cpu="4001m"),
            filled("a"),
            {"a": Status.unresolvable("Insufficient cpu")},
            id="more than the node has at all",
        ),
        pytest.param(
            make.pod("p", cpu="3", memory="5Gi", requests={"ephemeral-storage": "1"}),
            filled("a", used_cpu="2"),
            {"a": Status.unresolvable("Insufficient cpu", "Insufficient memory", "Insufficient ephemeral-storage")},
            id="all reasons are kept, and one for good is enough",
        ),
        pytest.param(
            make.pod("p", cpu="1"),
            [make.node("a", pods=1), make.pod("q", on="a")],
            {"a": Status.unschedulable("Too many pods")},
            id="no place for one more pod",
        ),
        pytest.param(
            make.pod("p", cpu="1"),
            [make.node("a", pods=0, cpu="0")],
            {"a": Status.unresolvable("Too many pods", "Insufficient cpu")},
            id="pods first",
        ),
        pytest.param(make.pod("p"), filled("a", used_cpu="9"), {}, id="nothing asked of an over-committed node"),
        pytest.param(make.pod("p", cpu="0", requests={GPU: "0"}), filled("a", used_cpu="9"), {}, id="zero asked of it"),
        pytest.param(
            make.pod("p", memory="1"),
            filled("a", used_cpu="9"),
            {},
            id="memory asked of a node over-committed in cpu",
        ),
        pytest.param(
            make.pod("p", requests={GPU: "1", "hugepages-2Mi": "2Mi"}),
            [make.node("a", allocatable={GPU: 1}), make.pod("q", on="a", requests={GPU: "1"})],
            {
                "a": Status.unresolvable(f"Insufficient {GPU}", "Insufficient hugepages-2Mi"),
            },
            id="scalar resources",
        ),
        pytest.param(
            make.pod("p", cpu="2"),
            [
                make.node("a", cpu="4"),
                make.pod("done", on="a", cpu="3", status={"phase": "Succeeded"}),
                make.pod("leaving", on="a", cpu="1", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}),
                make.pod("pending", cpu="4"),
            ],
            {},
            id="finished and pending pods take nothing",
        ),
    ],
)
def test_a_node_must_have_enough_of_everything(
    pod: Manifest, objects: list[Manifest], expected: dict[str, Status]
) -> None:
    assert _filter(ResourceTable(pod, *objects)) == expected


IGNORE_GPU = NodeResourcesFitArgs(ignored_resources=(GPU,))
IGNORE_GROUP = NodeResourcesFitArgs(ignored_resource_groups=("example.com",))


@pytest.mark.parametrize(
    ("args", "asked", "is_ignored"),
    [
        pytest.param(IGNORE_GPU, GPU, True, id="by name"),
        pytest.param(IGNORE_GPU, "example.com/nic", False, id="another name"),
        pytest.param(IGNORE_GROUP, "example.com/nic", True, id="by group"),
        pytest.param(IGNORE_GROUP, "other.example.com/nic", False, id="a group below it"),
        pytest.param(
            NodeResourcesFitArgs(ignored_resources=("hugepages-2Mi",)), "hugepages-2Mi", False, id="only extended ones"
        ),
    ],
)
def test_extended_resources_can_be_ignored(args: NodeResourcesFitArgs, asked: str, is_ignored: bool) -> None:
    table = ResourceTable(make.pod("p", requests={asked: "1"}), make.node("a"))
    assert _filter(table, args) == ({} if is_ignored else {"a": Status.unresolvable(f"Insufficient {asked}")})


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        pytest.param(GPU, {"full": Status.unschedulable(f"Insufficient {GPU}")}, id="by the declared name"),
        pytest.param("deviceclass.resource.kubernetes.io/gpus", {}, id="by the class's own name"),
        pytest.param(
            "example.com/nic",
            {name: Status.unresolvable("Insufficient example.com/nic") for name in ("none", "zero", "full")},
            id="not a resource that devices stand for",
        ),
    ],
)
def test_what_devices_stand_for_is_left_to_dynamic_resources_where_a_node_has_none(
    asked: str, expected: dict[str, Status]
) -> None:
    table = ResourceTable(
        make.pod("p", requests={asked: "1"}),
        device_class("gpus", resource=GPU),
        make.node("none"),
        make.node("zero", allocatable={GPU: 0}),
        make.node("full", allocatable={GPU: 1}),
        make.pod("q", on="full", requests={GPU: "1"}),
    )
    assert _filter(table) == expected


def test_without_pre_filter_every_node_is_an_error() -> None:
    table = ResourceTable(make.pod("p"), make.node("a"))
    verdicts = NodeResourcesFit(None, table.handle).filter(CycleState(), table.pod, table.nodes)
    message = 'error reading "PreFilterNodeResourcesFit" from cycleState: not found'
    assert verdicts.status(0) == Status(Code.ERROR, (message,))


def test_a_filter_answers_for_a_part_of_the_table_as_it_is_now() -> None:
    table = ResourceTable(make.pod("p", cpu="3"), *filled("a", used_cpu="2"), *filled("b"))
    plugin = NodeResourcesFit(None, table.handle)
    plugin.pre_filter(table.cycle, table.pod, table.nodes)

    def statuses() -> dict[str, Status]:
        part = table.nodes.take(table.nodes.named("a"))
        verdicts = plugin.filter(table.cycle, table.pod, part)
        return {} if verdicts is ACCEPT_ALL else {"a": verdicts.status(0)}

    (existing,) = table.nodes.pods.on(0)
    assert statuses() == {"a": Status.unschedulable("Insufficient cpu")}
    table.cluster.table.remove_pod(existing)
    assert statuses() == {}
    table.cluster.table.add_pod(existing, 0)
    assert statuses() == {"a": Status.unschedulable("Insufficient cpu")}


AMOUNTS = st.fixed_dictionaries({}, optional={"cpu": st.integers(0, 3), GPU: st.integers(0, 2)})


@settings(deadline=None, max_examples=60)
@given(wanted=AMOUNTS, nodes=st.lists(st.tuples(AMOUNTS, st.lists(AMOUNTS, max_size=3), st.integers(0, 3)), max_size=4))
def test_the_table_answers_as_the_rule_does_node_by_node(
    wanted: dict[str, int], nodes: list[tuple[dict[str, int], list[dict[str, int]], int]]
) -> None:
    objects, expected = [], {}
    for index, (allocatable, used, n_pods) in enumerate(nodes):
        name = f"n{index}"
        objects.append(make.node(name, cpu=0, memory=0, pods=n_pods, allocatable=allocatable))
        objects.extend(make.pod(f"{name}-{i}", on=name, requests=amounts) for i, amounts in enumerate(used))
        reasons = ["Too many pods"] if len(used) + 1 > n_pods else []
        free = {key: allocatable.get(key, 0) - sum(amounts.get(key, 0) for amounts in used) for key in ("cpu", GPU)}
        lacking = [key for key in free if 0 < wanted.get(key, 0) > free[key]]
        reasons.extend(f"Insufficient {key}" for key in lacking)
        if reasons:
            is_final = any(wanted[key] > allocatable.get(key, 0) for key in lacking)
            expected[name] = Status.unresolvable(*reasons) if is_final else Status.unschedulable(*reasons)
            event("for good" if is_final else "for now")
    assert _filter(ResourceTable(make.pod("p", requests=wanted), *objects)) == expected
