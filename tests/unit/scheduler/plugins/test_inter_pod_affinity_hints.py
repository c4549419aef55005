"""InterPodAffinity: which changes make a rejected pod worth another try."""

from __future__ import annotations

from typing import Any

import pytest
from crowds import HOST, ZONE, Crowd, Json, bare_node, node, pod

from kubesched.framework import ActionType, EventResource, Hint
from kubesched.k8s.model.core import Node, Pod
from kubesched.scheduler.plugins.inter_pod_affinity import InterPodAffinity

WEB = {"app": "web"}
DB = {"app": "db"}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def term(labels: dict[str, str], key: str = ZONE, **fields: Any) -> Json:
    return {"topologyKey": key, "labelSelector": {"matchLabels": labels}, **fields}


def near(*terms: Json) -> Json:
    return {"podAffinity": {REQUIRED: list(terms)}}


def away(*terms: Json) -> Json:
    return {"podAntiAffinity": {REQUIRED: list(terms)}}


def is_worth_it(affinity: Json | None, old: Node | Pod | None, new: Node | Pod | None) -> bool:
    crowd = Crowd()
    pods, nodes = InterPodAffinity(None, crowd).events_to_register()
    function = nodes.hint if isinstance(old or new, Node) else pods.hint
    assert function is not None
    return function(crowd.info(pod("waiting", labels=DB, affinity=affinity)), old, new) is Hint.QUEUE


def test_the_events_are_those_of_kube_scheduler() -> None:
    pods, nodes = (registered.event for registered in InterPodAffinity(None, Crowd()).events_to_register())
    assert (pods.resource, nodes.resource) == (EventResource.POD, EventResource.NODE)
    assert pods.action == ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_POD_LABEL
    assert nodes.action == ActionType.ADD | ActionType.UPDATE_NODE_LABEL


PLACED = pod("x", labels=WEB, on="n")
OTHER = pod("x", labels={"app": "other"}, on="n")
ELSEWHERE = term(WEB, namespaces=["other"])


@pytest.mark.parametrize(
    ("affinity", "old", "new", "expected"),
    [
        pytest.param(near(term(WEB)), None, PLACED, True, id="one came that it wants to be near"),
        pytest.param(near(term(WEB), term(DB)), None, PLACED, False, id="one came that only one of two terms wants"),
        pytest.param(near(ELSEWHERE), None, PLACED, False, id="one came, but in another namespace than wanted"),
        pytest.param(near(term(WEB)), None, pod("x", labels=WEB), False, id="one came that has no node"),
        pytest.param(near(term(WEB)), None, pod("x", labels=WEB, nominated="n"), True, id="one with a node in view"),
        pytest.param(near(term(WEB)), None, OTHER, False, id="one came that it does not care about"),
        pytest.param(near(term(WEB)), PLACED, None, False, id="one went that it wants to be near"),
        pytest.param(away(term(WEB)), None, PLACED, False, id="one came that it wants to be away from"),
        pytest.param(away(term(WEB)), PLACED, None, True, id="one went that it wants to be away from"),
        pytest.param(away(term(WEB)), OTHER, None, False, id="one went that it does not care about"),
        pytest.param(None, pod("x", on="n", affinity=away(term(DB))), None, True, id="one went that did not want it"),
        pytest.param(None, pod("x", on="n", affinity=away(term(WEB))), None, False, id="one went that did not mind it"),
        pytest.param(near(term(WEB)), OTHER, PLACED, True, id="one became such a pod"),
        pytest.param(near(term(WEB)), PLACED, OTHER, False, id="one is such a pod no longer"),
        pytest.param(away(term(WEB)), PLACED, OTHER, True, id="one is no longer a pod to be away from"),
        pytest.param(away(term(WEB)), OTHER, PLACED, False, id="one became a pod to be away from"),
        pytest.param(None, pod("waiting", labels=WEB), pod("waiting", labels=DB), True, id="its own labels changed"),
    ],
)
def test_a_changed_pod_is_worth_a_try_if_it_came_or_went_as_wished(
    affinity: Json | None, old: Pod | None, new: Pod | None, expected: bool
) -> None:
    assert is_worth_it(affinity, old, new) is expected


NODE = node("n", "a")


@pytest.mark.parametrize(
    ("affinity", "old", "new", "expected"),
    [
        pytest.param(near(term(WEB)), None, NODE, True, id="a node with the label came"),
        pytest.param(near(term(WEB)), None, bare_node("n"), False, id="a node without the label came"),
        pytest.param(near(term(WEB)), bare_node("n"), NODE, True, id="a node got the label"),
        pytest.param(near(term(WEB)), NODE, bare_node("n"), False, id="a node lost the label"),
        pytest.param(near(term(WEB)), NODE, node("n", "b"), True, id="a node moved"),
        pytest.param(near(term(WEB), term(WEB, HOST)), NODE, node("n", "b"), True, id="a node moved, by one term"),
        pytest.param(away(term(WEB)), None, bare_node("n"), True, id="a node came: there one is away from others"),
        pytest.param(away(term(WEB)), NODE, bare_node("n"), True, id="a node left the topology"),
        pytest.param(away(term(WEB)), bare_node("n"), NODE, False, id="a node joined the topology"),
        pytest.param(away(term(WEB)), NODE, node("n", "b"), True, id="a node moved to another topology"),
        pytest.param(away(term(WEB)), NODE, NODE, False, id="nothing that matters changed"),
        pytest.param(None, None, NODE, False, id="the pod has no terms"),
    ],
)
def test_a_changed_node_is_worth_a_try_if_its_topology_changed_as_wished(
    affinity: Json | None, old: Node | None, new: Node, expected: bool
) -> None:
    assert is_worth_it(affinity, old, new) is expected


BROKEN: Json = {"topologyKey": ZONE, "labelSelector": {"matchExpressions": [{"key": "k", "operator": "Like"}]}}


def test_terms_that_cannot_be_understood_are_always_worth_a_try() -> None:
    assert is_worth_it(near(BROKEN), None, OTHER)
    assert is_worth_it(near(BROKEN), None, bare_node("n"))
    assert is_worth_it(away(term(WEB)), pod("x", on="n", affinity=away(BROKEN)), None)
