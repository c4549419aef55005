"""NodeUnschedulable: who may go to a cordoned node."""

from __future__ import annotations

from typing import Any

import pytest
from small_clusters import NO_HANDLE, node, pod, pod_info, statuses, table

from kubesched.framework import CycleState, Hint
from kubesched.framework.events import HintFunction
from kubesched.scheduler.cluster.cluster import Cluster
from kubesched.scheduler.plugins.node_unschedulable import NodeUnschedulable

PLUGIN = NodeUnschedulable(None, NO_HANDLE)
KEY = "node.kubernetes.io/unschedulable"
REJECTED = {"closed": ("UnschedulableAndUnresolvable", "node(s) were unschedulable")}

TOLERATIONS = [
    pytest.param({"key": KEY, "operator": "Exists", "effect": "NoSchedule"}, True, id="exactly the taint"),
    pytest.param({"key": KEY, "operator": "Exists"}, True, id="the taint with any effect"),
    pytest.param({"operator": "Exists"}, True, id="everything"),
    pytest.param({"key": KEY}, True, id="the taint with its empty value"),
    pytest.param({"key": KEY, "value": "x"}, False, id="the taint with another value"),
    pytest.param({"key": KEY, "operator": "Exists", "effect": "NoExecute"}, False, id="the taint with another effect"),
    pytest.param({"key": "other", "operator": "Exists"}, False, id="another taint"),
]


def hints() -> list[HintFunction | None]:
    return [registered.hint for registered in PLUGIN.events_to_register()]


def test_a_pod_without_tolerations_stays_off_cordoned_nodes() -> None:
    nodes = table(node("open"), node("closed", unschedulable=True))
    assert statuses(PLUGIN.filter(CycleState(), pod_info(), nodes), nodes) == REJECTED


@pytest.mark.parametrize(("toleration", "is_allowed"), TOLERATIONS)
def test_a_toleration_of_the_taint_that_cordoning_stands_for_opens_the_node(
    toleration: dict[str, Any], is_allowed: bool
) -> None:
    nodes = table(node("open"), node("closed", unschedulable=True))
    found = statuses(PLUGIN.filter(CycleState(), pod_info(tolerations=[toleration]), nodes), nodes)
    assert found == ({} if is_allowed else REJECTED)


def test_what_was_found_does_not_change_when_the_node_is_uncordoned() -> None:
    cluster = Cluster.from_objects([node("closed", unschedulable=True)])
    verdicts = PLUGIN.filter(CycleState(), pod_info(), cluster.nodes)
    cluster.put(node("closed"))
    assert statuses(verdicts, cluster.nodes) == REJECTED


@pytest.mark.parametrize(
    ("was_cordoned", "is_cordoned", "expected"),
    [
        pytest.param(None, False, Hint.QUEUE, id="an open node came"),
        pytest.param(None, True, Hint.SKIP, id="a cordoned node came"),
        pytest.param(True, False, Hint.QUEUE, id="a node was uncordoned"),
        pytest.param(True, True, Hint.SKIP, id="a node stayed cordoned"),
        pytest.param(False, False, Hint.SKIP, id="a node stayed open"),
        pytest.param(False, True, Hint.SKIP, id="a node was cordoned"),
    ],
)
def test_a_node_that_opens_is_worth_a_try(was_cordoned: bool | None, is_cordoned: bool, expected: Hint) -> None:
    after_node_change, _ = hints()
    old = None if was_cordoned is None else node("n", unschedulable=was_cordoned)
    assert after_node_change is not None
    assert after_node_change(pod_info(), old, node("n", unschedulable=is_cordoned)) == expected


@pytest.mark.parametrize(("toleration", "is_allowed"), TOLERATIONS)
def test_a_new_toleration_is_worth_a_try_if_it_helps(toleration: dict[str, Any], is_allowed: bool) -> None:
    _, after_toleration_change = hints()
    assert after_toleration_change is not None
    changed = pod(uid="u", tolerations=[toleration])
    expected = Hint.QUEUE if is_allowed else Hint.SKIP
    assert after_toleration_change(pod_info(uid="u"), pod(uid="u"), changed) == expected
    assert after_toleration_change(pod_info(uid="another"), pod(uid="u"), changed) == Hint.SKIP
