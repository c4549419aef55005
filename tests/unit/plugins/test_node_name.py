"""NodeName: a pod that names its node."""

from __future__ import annotations

import pytest
from small_clusters import NO_HANDLE, node, pod_info, statuses, table

from kubesched.framework import Cycle
from kubesched.framework.events import ActionType, ClusterEvent, EventResource, RegisteredEvent
from kubesched.plugins.node_name import NodeName

PLUGIN = NodeName(None, NO_HANDLE)
OTHER = ("UnschedulableAndUnresolvable", "node(s) didn't match the requested node name")


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        pytest.param("", {}, id="names none"),
        pytest.param("a", {"b": OTHER}, id="names one of them"),
        pytest.param("c", {"a": OTHER, "b": OTHER}, id="names one that is not there"),
    ],
)
def test_a_pod_goes_only_to_the_node_it_names(wanted: str, expected: dict[str, tuple[str, ...]]) -> None:
    nodes = table(node("a"), node("b"))
    assert statuses(PLUGIN.filter(Cycle(), pod_info(nodeName=wanted), nodes), nodes) == expected


def test_every_new_node_is_worth_a_try() -> None:
    assert list(PLUGIN.events_to_register()) == [
        RegisteredEvent(ClusterEvent(EventResource.NODE, ActionType.ADD), None)
    ]
