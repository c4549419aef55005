"""What is said of a pod group: gated, complete, without a placement, without a label."""

from __future__ import annotations

from typing import Any

import pytest

import kubesched
from kubesched.explanation.explain import NotExplainableError


def _node(name: str, cpu: str = "2", **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "10"}},
    }


def _group(min_count: int, rack: bool = False) -> dict[str, Any]:
    constraints = {"schedulingConstraints": {"topology": [{"key": "rack"}]}} if rack else {}
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "g"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": min_count}}, **constraints},
    }


def _pods(n: int, **spec: Any) -> list[dict[str, Any]]:
    container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"p{i}", "uid": f"p{i}"},
            "spec": {"containers": [container], "schedulingGroup": {"podGroupName": "g"}, **spec},
        }
        for i in range(n)
    ]


@pytest.mark.parametrize(
    ("objects", "headline", "waits"),
    [
        pytest.param(
            [_node("n"), _group(3), *_pods(2)],
            "PodGroup default/g waits: 1 of the 3 pods that it needs do not exist.",
            True,
            id="too few",
        ),
        pytest.param(
            [_node("n"), _group(2), *_pods(2)],
            "PodGroup default/g fits: 2 of 2 pods find a node.",
            False,
            id="fits",
        ),
        pytest.param(
            [_node("n"), _group(2), *_pods(3)],
            "PodGroup default/g fits: 2 of 3 pods find a node, 1 do not.",
            False,
            id="fits in part",
        ),
        pytest.param(
            [_node("n"), _group(3), *_pods(3)],
            "PodGroup default/g waits: 2 of the 3 pods that it needs find a node; p2 does not: "
            "0/1 nodes are available: 1 Insufficient cpu.",
            True,
            id="does not fit",
        ),
        pytest.param(
            [_node("n"), _group(2, rack=True), *_pods(2)],
            "PodGroup default/g waits: no feasible placements found.",
            True,
            id="no node has the label",
        ),
        pytest.param(
            [_node("n"), _group(2), *_pods(2, nodeName="n")],
            "PodGroup default/g: no pod is pending; 2 pods have a node.",
            False,
            id="bound",
        ),
    ],
)
def test_headline(objects: list[dict[str, Any]], headline: str, waits: bool) -> None:
    found = kubesched.explain(objects, "podgroup/g")
    assert (found.headline, found.is_unschedulable) == (headline, waits)
    assert found.to_dict()["headline"] == headline
    assert headline in found._repr_html_().replace("&#x27;", "'")


def test_a_group_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(NotExplainableError, match="PodGroup default/g does not exist"):
        kubesched.explain([_node("n")], "pg/g")
