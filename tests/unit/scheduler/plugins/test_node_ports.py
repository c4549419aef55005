"""NodePorts: when two pods want the same port of a node."""

from __future__ import annotations

from typing import Any

import pytest
from small_clusters import NO_HANDLE, info_of, node, pod, pod_info, statuses, table

from kubesched.framework import OK, CycleState, Hint
from kubesched.framework.status import SKIP
from kubesched.k8s.model.core import Pod
from kubesched.scheduler.plugins.node_ports import NodePorts

PLUGIN = NodePorts(None, NO_HANDLE)
TAKEN = ("Unschedulable", "node(s) didn't have free ports for the requested pod ports")


def with_ports(*ports: tuple[str, str, int], name: str = "p", **fields: Any) -> Pod:
    """(address, protocol, number); an empty protocol or address is left out."""
    manifests = [
        {"hostPort": number, **({"hostIP": address} if address else {}), **({"protocol": protocol} if protocol else {})}
        for address, protocol, number in ports
    ]
    return pod(name, containers=[{"name": "c", "ports": manifests}], **fields)


OVERLAPS = [
    pytest.param(("", "TCP", 80), ("", "TCP", 80), True, id="the same port"),
    pytest.param(("", "TCP", 80), ("", "TCP", 81), False, id="another number"),
    pytest.param(("", "TCP", 80), ("", "UDP", 80), False, id="another protocol"),
    pytest.param(("", "", 80), ("", "TCP", 80), True, id="TCP when nothing is said"),
    pytest.param(("10.0.0.1", "TCP", 80), ("10.0.0.2", "TCP", 80), False, id="another address"),
    pytest.param(("10.0.0.1", "TCP", 80), ("10.0.0.1", "TCP", 80), True, id="the same address"),
    pytest.param(("10.0.0.1", "TCP", 80), ("0.0.0.0", "TCP", 80), True, id="one address, taken on all"),
    pytest.param(("", "TCP", 80), ("10.0.0.1", "TCP", 80), True, id="all addresses, taken on one"),
    pytest.param(("0.0.0.0", "SCTP", 80), ("", "SCTP", 80), True, id="all addresses, said and unsaid"),
    pytest.param(("::", "TCP", 80), ("10.0.0.1", "TCP", 80), False, id="the address :: is one like any other"),
]


@pytest.mark.parametrize(("wanted", "used", "is_taken"), OVERLAPS)
def test_a_node_is_out_where_a_wanted_port_is_taken(
    wanted: tuple[str, str, int], used: tuple[str, str, int], is_taken: bool
) -> None:
    nodes = table(node("busy"), node("idle"), with_ports(used, name="user", nodeName="busy"))
    cycle, incoming = CycleState(), info_of(with_ports(("", "TCP", 9), wanted))
    assert PLUGIN.pre_filter(cycle, incoming, nodes).status == OK
    assert statuses(PLUGIN.filter(cycle, incoming, nodes), nodes) == ({"busy": TAKEN} if is_taken else {})


@pytest.mark.parametrize(
    ("fields", "is_skipped"),
    [
        pytest.param({}, True, id="no ports"),
        pytest.param({"containers": [{"name": "c", "ports": [{"containerPort": 80}]}]}, True, id="no host ports"),
        pytest.param({"initContainers": [{"name": "i", "ports": [{"hostPort": 80}]}]}, True, id="on an init container"),
        pytest.param(
            {"initContainers": [{"name": "i", "restartPolicy": "Always", "ports": [{"hostPort": 80}]}]},
            False,
            id="on a sidecar",
        ),
        pytest.param({"containers": [{"name": "c", "ports": [{"hostPort": 80}]}]}, False, id="on a container"),
    ],
)
def test_a_pod_without_host_ports_is_skipped(fields: dict[str, Any], is_skipped: bool) -> None:
    status = PLUGIN.pre_filter(CycleState(), pod_info(**fields), table(node("n"))).status
    assert status == (SKIP if is_skipped else OK)


def test_filtering_without_pre_filter_fails_as_in_kube_scheduler() -> None:
    nodes = table(node("n"))
    expected = ("Error", 'reading "PreFilterNodePorts" from cycleState: not found')
    assert statuses(PLUGIN.filter(CycleState(), pod_info(), nodes), nodes) == {"n": expected}


@pytest.mark.parametrize(("wanted", "used", "is_taken"), OVERLAPS)
def test_the_end_of_a_pod_that_held_a_wanted_port_is_worth_a_try(
    wanted: tuple[str, str, int], used: tuple[str, str, int], is_taken: bool
) -> None:
    after_pod_deleted = PLUGIN.events_to_register()[0].hint
    assert after_pod_deleted is not None
    incoming = info_of(with_ports(wanted))
    expected = Hint.QUEUE if is_taken else Hint.SKIP
    assert after_pod_deleted(incoming, with_ports(used, nodeName="n"), None) == expected
    assert after_pod_deleted(incoming, with_ports(used, status={"nominatedNodeName": "n"}), None) == expected
    assert after_pod_deleted(incoming, with_ports(used), None) == Hint.SKIP


def test_the_end_of_a_pod_without_ports_is_not_worth_a_try() -> None:
    after_pod_deleted, node_added = (registered.hint for registered in PLUGIN.events_to_register())
    assert after_pod_deleted is not None
    assert after_pod_deleted(info_of(with_ports(("", "TCP", 80))), pod(nodeName="n"), None) == Hint.SKIP
    assert node_added is None
