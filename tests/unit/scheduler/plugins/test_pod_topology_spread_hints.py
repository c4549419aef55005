"""PodTopologySpread: which changes make a rejected pod worth another try."""

from __future__ import annotations

from typing import Any

import pytest
from crowds import ZONE, Crowd, Json, bare_node, node, pod

from kubesched.framework import ActionType, EventResource, Hint
from kubesched.k8s.model.core import Node, Pod
from kubesched.scheduler.plugins.pod_topology_spread import PodTopologySpread

WEB = {"app": "web"}
DB = {"app": "db"}


def spread_pod(**fields: Any) -> Pod:
    constraint: Json = {"topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    constraint |= {"labelSelector": {"matchLabels": WEB}, **fields.pop("constraint", {})}
    return pod("waiting", labels=WEB, topologySpreadConstraints=[constraint], **fields)


def hint(waiting: Pod, old: Node | Pod | None, new: Node | Pod | None) -> Hint:
    crowd = Crowd()
    pods, nodes = PodTopologySpread(None, crowd).events_to_register()
    function = nodes.hint if isinstance(old or new, Node) else pods.hint
    assert function is not None
    return function(crowd.info(waiting), old, new)


def test_the_events_are_those_of_kube_scheduler() -> None:
    pods, nodes = (registered.event for registered in PodTopologySpread(None, Crowd()).events_to_register())
    assert (pods.resource, nodes.resource) == (EventResource.POD, EventResource.NODE)
    assert pods.action == (
        ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_POD_LABEL | ActionType.UPDATE_POD_TOLERATION
    )
    assert nodes.action == (
        ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_TAINT
    )


PLACED = pod("x", labels=WEB, on="n")
RELABELLED = pod("x", labels=DB, on="n")
TOLERATING: Json = {"tolerations": [{"key": "k", "operator": "Exists"}]}


@pytest.mark.parametrize(
    ("old", "new", "is_worth_it"),
    [
        pytest.param(None, PLACED, True, id="a matching pod came"),
        pytest.param(PLACED, None, True, id="a matching pod went"),
        pytest.param(None, RELABELLED, False, id="another kind of pod came"),
        pytest.param(RELABELLED, None, False, id="another kind of pod went"),
        pytest.param(None, pod("x", labels=WEB), False, id="a pod came that has no node"),
        pytest.param(None, pod("x", labels=WEB, nominated="n"), True, id="a pod came that has a node in view"),
        pytest.param(None, pod("x", labels=WEB, on="n", namespace="other"), False, id="a pod of another namespace"),
        pytest.param(PLACED, RELABELLED, True, id="a pod no longer matches"),
        pytest.param(RELABELLED, PLACED, True, id="a pod matches now"),
        pytest.param(PLACED, pod("x", labels={**WEB, "a": "b"}, on="n"), False, id="a label that does not matter"),
        pytest.param(PLACED, pod("x", labels=WEB, on="n", **TOLERATING), False, id="another pod's tolerations"),
        pytest.param(spread_pod(), spread_pod(**TOLERATING), False, id="its own tolerations, with taints ignored"),
        pytest.param(pod("waiting", labels=DB), pod("waiting", labels=WEB), True, id="its own labels"),
    ],
)
def test_a_changed_pod_is_worth_a_try_if_it_changes_what_is_counted(
    old: Pod | None, new: Pod | None, is_worth_it: bool
) -> None:
    assert hint(spread_pod(), old, new) is (Hint.QUEUE if is_worth_it else Hint.SKIP)


def test_own_tolerations_are_worth_a_try_where_taints_are_honored() -> None:
    honoring: Json = {"constraint": {"nodeTaintsPolicy": "Honor"}}
    waiting = spread_pod(**honoring)
    assert hint(waiting, waiting, spread_pod(**honoring, **TOLERATING)) is Hint.QUEUE


NODE = node("n", "a")
TAINTED = node("n", "a", taints=[{"key": "k", "effect": "NoSchedule"}])


@pytest.mark.parametrize(
    ("old", "new", "is_worth_it"),
    [
        pytest.param(None, NODE, True, id="a node with the label came"),
        pytest.param(NODE, None, True, id="a node with the label went"),
        pytest.param(None, bare_node("n"), False, id="a node without the label came"),
        pytest.param(bare_node("n"), None, False, id="a node without the label went"),
        pytest.param(bare_node("n"), NODE, True, id="a node got the label"),
        pytest.param(NODE, bare_node("n"), True, id="a node lost the label"),
        pytest.param(NODE, node("n", "b"), True, id="a node moved"),
        pytest.param(NODE, TAINTED, True, id="a node with the label has other taints"),
        pytest.param(bare_node("n"), bare_node("n", other="x"), False, id="a label that does not matter"),
        pytest.param(NODE, node("n", "a", labels={"other": "x"}), False, id="another label of a node that counts"),
    ],
)
def test_a_changed_node_is_worth_a_try_if_it_changes_what_is_counted(
    old: Node | None, new: Node | None, is_worth_it: bool
) -> None:
    assert hint(spread_pod(), old, new) is (Hint.QUEUE if is_worth_it else Hint.SKIP)


def test_constraints_that_cannot_be_understood_are_always_worth_a_try() -> None:
    broken = spread_pod(constraint={"labelSelector": {"matchExpressions": [{"key": "k", "operator": "Like"}]}})
    assert hint(broken, None, RELABELLED) is Hint.QUEUE
    assert hint(broken, None, bare_node("n")) is Hint.QUEUE
