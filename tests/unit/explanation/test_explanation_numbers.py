"""What stands behind a rejection: the numbers, the taint, the label, the port, the pod in the way."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.explanation.answer import Explanation
from kubesched.simulator.asking import explain
from kubesched.testing import make
from kubesched.testing.make import HOSTNAME, ZONE, Manifest

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def texts(objects: list[Manifest], node: str = "a") -> list[str]:
    explanation = explain(objects, "default/p")
    return _texts(explanation, node)


def _texts(explanation: Explanation, node: str) -> list[str]:
    assert explanation.numbers is not None
    return [finding.text for finding in explanation.numbers.of(explanation.cluster.table.rows[node])]


def _node_affinity(*terms: Manifest) -> Manifest:
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}}


def _expression(key: str, operator: str, *values: str) -> Manifest:
    return {"key": key, "operator": operator, "values": list(values)}


RESOURCE_CASES = [
    pytest.param(
        [make.node("a", cpu=4), make.pod("x", on="a", cpu="3500m"), make.pod("p", cpu=2)],
        ["cpu: requested 2, free 500m (used 3500m of 4)"],
        id="a lacking resource with requested, free, used and allocatable",
    ),
    pytest.param(
        [make.node("a", cpu=1, memory="1Gi"), make.pod("p", cpu=2, memory="3Gi")],
        [
            "cpu: requested 2, free 1 (used 0 of 1)",
            "memory: requested 3Gi, free 1Gi (used 0 of 1Gi)",
        ],
        id="every lacking resource",
    ),
    pytest.param(
        [make.node("a", pods=1), make.pod("x", on="a"), make.pod("p")],
        ["pods: requested 1, free 0 (used 1 of 1)"],
        id="the number of pods",
    ),
    pytest.param(
        [
            make.node("a", cpu=2),
            make.pod("n", cpu=1, status={"nominatedNodeName": "a"}),
            make.pod("p", cpu=2),
        ],
        ["cpu: requested 2, free 1 (used 1 of 2, 1 of it by nominated pods)"],
        id="pods nominated to the node count as used",
    ),
    pytest.param(
        [make.node("a", memory="1000000001"), make.pod("p", memory="2Gi")],
        ["memory: requested 2Gi, free ~953.67Mi (used 0 of ~953.67Mi)"],
        id="long amounts are rounded and say so",
    ),
]


@pytest.mark.parametrize(("objects", "expected"), RESOURCE_CASES)
def test_shortages_are_told_with_their_numbers(objects: list[Manifest], expected: list[str]) -> None:
    assert texts(objects) == expected


NODE_CASES = [
    pytest.param(
        make.node("a", taints=[make.taint("gpu", "yes"), make.taint("spot", effect="NoExecute")]),
        {},
        ["taint gpu=yes:NoSchedule is not tolerated", "taint spot:NoExecute is not tolerated"],
        id="every taint that is not tolerated",
    ),
    pytest.param(
        make.node("a", taints=[make.taint("soft", effect="PreferNoSchedule")], unschedulable=True),
        {},
        ["the node is cordoned (spec.unschedulable)"],
        id="a cordoned node, but no taint that only costs score",
    ),
    pytest.param(
        make.node("a", labels={"disk": "hdd"}),
        {"nodeSelector": {"disk": "ssd", "arch": "arm"}},
        [
            "nodeSelector arch=arm: the node has no label arch",
            "nodeSelector disk=ssd: the node has disk=hdd",
        ],
        id="labels of the node selector, and what the node has",
    ),
    pytest.param(
        make.node("a", labels={"disk": "hdd", "size": "3"}),
        _node_affinity(
            {"matchExpressions": [_expression("disk", "In", "ssd", "nvme"), _expression("size", "Gt", "2")]},
            {"matchExpressions": [_expression("disk", "NotIn", "hdd")]},
        ),
        [
            "required node affinity, term 1: disk in (nvme,ssd): the node has disk=hdd",
            "required node affinity, term 2: disk!=hdd: the node has disk=hdd",
        ],
        id="of every term the requirements that are not met",
    ),
    pytest.param(
        make.node("a"),
        _node_affinity({"matchExpressions": [_expression("size", "Gt", "many")]}),
        [
            "required node affinity: values[0]: Invalid value: \"many\": for 'Gt', 'Lt' operators, "
            "the value must be an integer"
        ],
        id="a term that cannot be understood",
    ),
]


@pytest.mark.parametrize(("node", "spec", "expected"), NODE_CASES)
def test_nodes_that_are_closed_to_the_pod_say_why(node: Manifest, spec: Manifest, expected: list[str]) -> None:
    assert texts([node, make.pod("p", spec=spec)]) == expected


def test_a_taken_port_is_told_with_the_pod_that_holds_it() -> None:
    objects = [make.node("a"), make.pod("x", on="a", host_ports=(80, 443)), make.pod("p", host_ports=(443, 8443))]
    assert texts(objects) == ["host port 443/TCP is taken by default/x"]


def test_spread_is_told_with_counts_and_skew() -> None:
    constraint = make.spread(ZONE, labels={"app": "web"})
    objects = [
        make.node("a", labels={ZONE: "north"}),
        make.node("b", labels={ZONE: "south"}),
        make.node("c"),
        make.pod("x", on="a", labels={"app": "web"}),
        make.pod("p", labels={"app": "web"}, spec={"topologySpreadConstraints": [constraint]}),
    ]
    expected = f"1 matching pod in {ZONE}=north, the emptiest domain has 0: skew 2, maxSkew 1 ({ZONE})"
    assert texts(objects) == [expected]
    assert texts(objects, "c") == [f"the node has no label {ZONE}"]


def test_too_few_domains_count_as_one_that_is_empty() -> None:
    constraint = make.spread(ZONE, labels={"app": "web"}) | {"minDomains": 3}
    objects = [
        make.node("a", labels={ZONE: "north"}),
        make.pod("x", on="a", labels={"app": "web"}),
        make.pod("p", labels={"app": "web"}, spec={"topologySpreadConstraints": [constraint]}),
    ]
    emptiest = "one domain counts as empty (1 of minDomains 3)"
    assert texts(objects) == [f"1 matching pod in {ZONE}=north, {emptiest}: skew 2, maxSkew 1 ({ZONE})"]


def _pod_affinity(kind: str, key: str, app: str) -> Manifest:
    return {"affinity": {kind: {REQUIRED: [make.affinity_term(key, {"app": app})]}}}


POD_AFFINITY_CASES = [
    pytest.param(
        [make.pod("p", spec=_pod_affinity("podAffinity", ZONE, "db"))],
        [f"pod affinity app=db within {ZONE}: no such pod in {ZONE}=north"],
        id="nobody there to be near",
    ),
    pytest.param(
        [make.pod("p", spec=_pod_affinity("podAffinity", "rack", "db"))],
        ["pod affinity app=db within rack: the node has no label rack"],
        id="a node outside of the topology",
    ),
    pytest.param(
        [
            make.pod("x", on="b", labels={"app": "db"}),
            make.pod("p", spec=_pod_affinity("podAntiAffinity", ZONE, "db")),
        ],
        [f"pod anti-affinity app=db within {ZONE}: default/x on b in {ZONE}=north"],
        id="somebody in the zone whom the pod must not be near",
    ),
    pytest.param(
        [
            make.pod("x", on="a", labels={"app": "db"}),
            make.pod("p", spec=_pod_affinity("podAntiAffinity", HOSTNAME, "db")),
        ],
        [f"pod anti-affinity app=db within {HOSTNAME}: default/x on the node"],
        id="somebody on the node itself",
    ),
    pytest.param(
        [
            make.pod("x", on="b", spec=_pod_affinity("podAntiAffinity", ZONE, "web")),
            make.pod("p", labels={"app": "web"}),
        ],
        [f"default/x on b in {ZONE}=north wants no app=web within {ZONE}"],
        id="somebody who must not have the pod near",
    ),
    pytest.param(
        [
            make.pod("n", status={"nominatedNodeName": "a"}, labels={"app": "db"}),
            make.pod("p", spec=_pod_affinity("podAntiAffinity", HOSTNAME, "db")),
        ],
        [f"pod anti-affinity app=db within {HOSTNAME}: default/n (nominated) on the node"],
        id="somebody who is promised the node",
    ),
]


@pytest.mark.parametrize(("pods", "expected"), POD_AFFINITY_CASES)
def test_pod_affinity_names_the_term_and_the_pod(pods: list[Manifest], expected: list[str]) -> None:
    nodes = [make.node("a", labels={ZONE: "north"}), make.node("b", labels={ZONE: "north"})]
    assert texts([*nodes, *pods]) == expected


def test_the_first_of_a_series_is_only_told_about_missing_labels() -> None:
    spec: dict[str, Any] = _pod_affinity("podAffinity", ZONE, "web")
    objects = [make.node("a"), make.node("b", labels={ZONE: "north"}), make.pod("p", labels={"app": "web"}, spec=spec)]
    assert texts(objects) == [f"pod affinity app=web within {ZONE}: the node has no label {ZONE}"]


def test_default_constraints_of_the_profile_are_told_as_well() -> None:
    constraint = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    args = {"defaultingType": "List", "defaultConstraints": [constraint]}
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"pluginConfig": [{"name": "PodTopologySpread", "args": args}]}],
    }
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"app": "web"}},
    }
    objects = [
        make.node("a", labels={ZONE: "north"}),
        make.node("b", labels={ZONE: "south"}),
        make.pod("x", on="a", labels={"app": "web"}),
        service,
        make.pod("p", labels={"app": "web"}),
    ]
    expected = f"1 matching pod in {ZONE}=north, the emptiest domain has 0: skew 2, maxSkew 1 ({ZONE})"
    assert _texts(explain(objects, "default/p", config), "a") == [expected]
