"""What is said of groups of groups: a parent that is missing, too few pods, no room, room by eviction."""

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


def _composite(name: str, least: int = 0, parent: str = "", **spec: Any) -> dict[str, Any]:
    policy = {"gang": {"minGroupCount": least}} if least else {"basic": {}}
    above = {"parentCompositePodGroupName": parent} if parent else {}
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha3",
        "kind": "CompositePodGroup",
        "metadata": {"name": name},
        "spec": {"schedulingPolicy": policy, **above, **spec},
    }


def _gang(name: str, n: int, parent: str = "a", n_pods: int | None = None, **spec: Any) -> list[dict[str, Any]]:
    container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
    group = {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {
            "schedulingPolicy": {"gang": {"minCount": n}},
            "parentCompositePodGroupName": parent,
            "workloadRef": {"workloadName": "w", "templateName": name},
            **spec,
        },
    }
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"{name}-{i}", "uid": f"{name}-{i}"},
            "spec": {
                "containers": [container],
                "schedulingGroup": {"podGroupName": name},
                "priority": spec.get("priority", 0),
            },
        }
        for i in range(n if n_pods is None else n_pods)
    ]
    return [group, *pods]


def _running(name: str, node: str) -> dict[str, Any]:
    container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
    spec = {"containers": [container], "nodeName": node, "priority": -5}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "uid": name}, "spec": spec}


def _asked(objects: list[dict[str, Any]], about: str = "compositepodgroup/a") -> Any:
    return kubesched.explain(objects, about, emulate="1.37")


@pytest.mark.parametrize(
    ("objects", "headline"),
    [
        pytest.param(
            [_node("n"), _composite("a", 2), *_gang("x", 1), *_gang("y", 2, n_pods=1)],
            "waits: 1 of the 2 groups that it needs has enough pods; PodGroup y has 1 of 2 pods.",
            id="too few pods",
        ),
        pytest.param(
            [_node("n"), _composite("a", 2), *_gang("x", 1)],
            "waits: 1 of the 2 groups that it needs has enough pods.",
            id="too few groups",
        ),
        pytest.param(
            [_node("n"), _composite("a", 2), *_gang("x", 1), *_gang("y", 2)],
            "waits: 1 of the 2 groups that it needs finds room; "
            "PodGroup y does not: y-1: 0/1 nodes are available: 1 Insufficient cpu.",
            id="no room",
        ),
        pytest.param(
            [_node("n"), _composite("a"), *_gang("x", 1), *_gang("y", 2)],
            "fits: 1 of 2 groups finds room; PodGroup y does not.",
            id="as far as they fit",
        ),
        pytest.param(
            [_node("n"), _running("low", "n"), _composite("a", 2), *_gang("x", 1), *_gang("y", 1)],
            "fits once 1 pod of lower priority left: default/low on n.",
            id="by eviction",
        ),
        pytest.param(
            [_node("n"), _composite("a", 0, "b"), *_gang("x", 1)],
            "waits: CompositePodGroup b above it does not exist.",
            id="no parent",
        ),
        pytest.param(
            [_node("n"), _composite("a", 0, "b"), _composite("b", 0, "a"), *_gang("x", 1)],
            "waits: the groups above it are each other's parents, CompositePodGroup a among them.",
            id="a circle",
        ),
    ],
)
def test_the_headline_says_why_it_waits(objects: list[dict[str, Any]], headline: str) -> None:
    explained = _asked(objects)
    assert explained.headline == f"CompositePodGroup default/a {headline}"
    assert explained.is_unschedulable is ("fits:" not in headline)
    assert explained.to_dict()["headline"] == explained.headline


def test_a_pod_group_with_a_parent_is_explained_with_all_that_wait_with_it() -> None:
    objects = [_node("n", rack="r0"), _composite("a", 2), *_gang("x", 1), *_gang("y", 2)]
    assert str(_asked(objects, "podgroup/y")) == str(_asked(objects))


def test_the_tree_is_shown_level_by_level() -> None:
    topology: dict[str, Any] = {"schedulingConstraints": {"topology": [{"key": "zone"}]}}
    objects = [_node("n", zone="z"), _composite("a", 1, **topology), _composite("b", 1, "a"), *_gang("x", 2, "b")]
    text = str(_asked(objects))
    assert text.splitlines()[0] == "CompositePodGroup default/a fits: 1 of 1 group finds room."
    rows = [line.split() for line in text.splitlines()[4:]]
    assert [" ".join(row[:2]) for row in rows] == ["CompositePodGroup a", "CompositePodGroup b", "PodGroup x"]
    assert [" ".join(row[2:]) for row in rows] == ["1 group in one zone 2 0 yes", "1 group 2 0 yes", "2 pods 2 0 yes"]


def test_a_pod_group_without_its_parent_is_what_was_asked_about() -> None:
    explained = _asked([_node("n"), *_gang("x", 1)], "podgroup/x")
    assert explained.headline == "PodGroup default/x waits: CompositePodGroup a above it does not exist."


def test_without_v1_37_there_are_no_groups_of_groups() -> None:
    with pytest.raises(NotExplainableError, match=r"scheduled with --emulate 1\.37"):
        kubesched.explain([_node("n"), _composite("a")], "cpg/a")


def test_one_that_is_not_there_is_named() -> None:
    with pytest.raises(NotExplainableError, match="CompositePodGroup default/b does not exist"):
        _asked([_node("n")], "cpg/b")


@pytest.mark.parametrize(
    ("least", "told"),
    [
        pytest.param(
            2, "its PodGroup x waits with its parent: CompositePodGroup default/a waits: 1 of", id="whole tree"
        ),
        pytest.param(0, "fits on 1 of 1 node", id="the parent starts without the other one"),
    ],
)
def test_pods_say_that_they_wait_with_the_tree(least: int, told: str) -> None:
    objects = [_node("n"), _composite("a", least), *_gang("x", 1), *_gang("y", 2)]
    groups = {group.pods[0]: group.cause.text for group in _asked(objects, "namespace/default").groups}
    assert groups["default/x-0"].startswith(told)
    left_out = "its PodGroup y finds no room beside the other groups of CompositePodGroup default/a: y-1: 0/1 nodes"
    if not least:
        assert groups["default/y-0"].startswith(left_out)
