"""NodeDeclaredFeatures: what a pod's spec needs, and which nodes declare it."""

from __future__ import annotations

from typing import Any

import pytest
from small_clusters import NO_HANDLE, node, pod, pod_info, statuses, table

from kubesched.framework import OK, CycleState, Hint
from kubesched.framework.events import HintFunction
from kubesched.framework.status import SKIP
from kubesched.k8s.model.core import Node
from kubesched.k8s.model.requests import DECLARED_FEATURES, required_features
from kubesched.scheduler.plugins.node_declared_features import NodeDeclaredFeatures

PLUGIN = NodeDeclaredFeatures(None, NO_HANDLE)
RESTART = "RestartAllContainersOnContainerExits"
USERNS = "UserNamespacesHostNetworkSupport"
LACKING = ("UnschedulableAndUnresolvable", "node(s) didn't match Pod's required features")

RESTARTING = {"name": "c", "restartPolicyRules": [{"action": "Restart"}, {"action": "RestartAllContainers"}]}
ON_HOST_NETWORK: dict[str, Any] = {"hostNetwork": True, "hostUsers": False}

NEEDS = [
    pytest.param({}, set(), id="an ordinary pod"),
    pytest.param({"containers": [RESTARTING]}, {RESTART}, id="a container that restarts all others"),
    pytest.param({"initContainers": [RESTARTING]}, {RESTART}, id="an init container that restarts all others"),
    pytest.param(
        {"containers": [{"name": "c", "restartPolicyRules": [{"action": "Restart"}]}]}, set(), id="restarts itself only"
    ),
    pytest.param(ON_HOST_NETWORK, {USERNS}, id="a user namespace on the host's network"),
    pytest.param({"hostNetwork": True}, set(), id="the host's network, users not mentioned"),
    pytest.param({"hostNetwork": True, "hostUsers": True}, set(), id="the host's network and users"),
    pytest.param({"hostUsers": False}, set(), id="a user namespace on a network of its own"),
    pytest.param({"containers": [RESTARTING], **ON_HOST_NETWORK}, {RESTART, USERNS}, id="both"),
]


def features(name: str, *declared: str) -> Node:
    return node(name, status={"declaredFeatures": list(declared)} if declared else {})


def hints() -> list[HintFunction | None]:
    return [registered.hint for registered in PLUGIN.events_to_register()]


@pytest.mark.parametrize(("spec", "expected"), NEEDS)
def test_what_a_pod_needs_follows_from_its_spec(spec: dict[str, Any], expected: set[str]) -> None:
    assert required_features(pod(**spec).spec) == expected
    assert expected <= DECLARED_FEATURES.keys()


@pytest.mark.parametrize(("spec", "needed"), NEEDS)
def test_a_node_is_out_unless_it_declares_all_that_is_needed(spec: dict[str, Any], needed: set[str]) -> None:
    nodes = table(features("none"), features("one", "Other", RESTART), features("two", RESTART, USERNS))
    cycle, incoming = CycleState(), pod_info(**spec)
    status = PLUGIN.pre_filter(cycle, incoming, nodes).status
    if not needed:
        assert status == SKIP
        return
    assert status == OK
    expected = {"none": LACKING} if needed == {RESTART} else {"none": LACKING, "one": LACKING}
    assert statuses(PLUGIN.filter(cycle, incoming, nodes), nodes) == expected


def test_filtering_without_pre_filter_fails_as_in_kube_scheduler() -> None:
    nodes = table(node("n"))
    expected = ("Error", 'error reading "PreFilterNodeDeclaredFeatures" from cycle-state: not found')
    assert statuses(PLUGIN.filter(CycleState(), pod_info(), nodes), nodes) == {"n": expected}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(None, features("n"), Hint.QUEUE, id="a node came"),
        pytest.param(features("n"), features("n"), Hint.SKIP, id="nothing declared before and after"),
        pytest.param(features("n"), node("n", status={"declaredFeatures": []}), Hint.SKIP, id="nothing and empty"),
        pytest.param(features("n"), features("n", "A"), Hint.QUEUE, id="something new is declared"),
        pytest.param(features("n", "A"), features("n", "A"), Hint.SKIP, id="the same is declared"),
        pytest.param(features("n", "A"), features("n"), Hint.QUEUE, id="less is declared"),
    ],
)
def test_any_change_of_what_a_node_declares_is_worth_a_try(old: Node | None, new: Node, expected: Hint) -> None:
    after_node_change, _ = hints()
    assert after_node_change is not None
    assert after_node_change(pod_info(**ON_HOST_NETWORK), old, new) == expected


def test_a_change_of_the_pods_own_needs_is_worth_a_try() -> None:
    _, after_pod_update = hints()
    assert after_pod_update is not None
    needy, modest = pod(uid="u", **ON_HOST_NETWORK), pod(uid="u")
    assert after_pod_update(pod_info(uid="u"), needy, modest) == Hint.QUEUE
    assert after_pod_update(pod_info(uid="u"), needy, needy) == Hint.SKIP
    assert after_pod_update(pod_info(uid="v"), needy, modest) == Hint.SKIP
