"""What is said of a pod group: gated, complete, without a placement, without a label."""

from __future__ import annotations

from typing import Any

import pytest

import kubesched
from kubesched.explanation.explain import NotExplainableError
from kubesched.explanation.pod_groups import PodGroupExplanation
from kubesched.k8s.loaded_cluster import Document


def _node(name: str, cpu: str = "2", **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "10"}},
    }


def explained(objects: list[dict[str, Any]], config: Document = None) -> PodGroupExplanation:
    found = kubesched.explain(objects, "podgroup/g", config)
    assert isinstance(found, PodGroupExplanation)
    return found


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
            "PodGroup default/g waits: 1 of the 3 pods that it needs does not exist.",
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
            "PodGroup default/g fits: 2 of 3 pods find a node, 1 does not.",
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
            "PodGroup default/g waits: no feasible placements found: no node has the label rack.",
            True,
            id="no node has the label",
        ),
        pytest.param(
            [_group(2, rack=True), *_pods(2)],
            "PodGroup default/g waits: no feasible placements found: there are no nodes.",
            True,
            id="no nodes",
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
    found = explained(objects)
    assert (found.headline, found.is_unschedulable) == (headline, waits)
    assert found.to_dict()["headline"] == headline
    assert headline in found._repr_html_().replace("&#x27;", "'")


def test_a_group_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(NotExplainableError, match="PodGroup default/g does not exist"):
        kubesched.explain([_node("n")], "pg/g")


RACKS = [_node("a", "4", rack="a"), _node("b", "2", rack="b"), _node("c", "4", rack="b")]


@pytest.mark.parametrize(
    ("objects", "changes"),
    [
        pytest.param(
            [*RACKS, _group(7, rack=True), *_pods(8)],
            [
                ("lower the cpu request of each pod from 1 to 800m", "b"),
                ("lower minCount from 7 to 6", "b"),
                ("add a node like b (2 cpu, 8Gi memory)", "b"),
                ("drop the topology constraint on rack", ""),
            ],
            id="a rack is too small",
        ),
        pytest.param(
            [_node("n", "2"), _node("big", "4"), _group(16), *_pods(16)],
            [
                ("add 3 nodes like big (4 cpu, 8Gi memory each)", ""),
                ("lower the cpu request of each pod from 1 to 300m", ""),
                ("lower minCount from 16 to 6", ""),
            ],
            id="fewer of the larger nodes",
        ),
        pytest.param(
            [_node("n", "1"), _group(2), *_pods(2, nodeSelector={"disk": "ssd"})],
            [],
            id="nothing of that helps",
        ),
    ],
)
def test_what_would_make_it_fit(objects: list[dict[str, Any]], changes: list[tuple[str, str]]) -> None:
    found = kubesched.explain(objects, "podgroup/g")
    told = [(change["description"], change["placement"]) for change in found.to_dict()["changes"]]
    assert told == changes
    assert all(description in str(found) for description, _ in changes)


def test_one_node_fewer_is_not_enough() -> None:
    """What is told is the smallest number: applied by hand, it fits, and with one fewer it does not."""
    cluster = [_node("n", "4"), _group(16), *_pods(16)]
    assert "add 3 nodes like n" in str(kubesched.explain(cluster, "podgroup/g"))
    more = [_node(f"new-{i}", "4") for i in range(3)]
    assert not explained([*cluster, *more]).is_unschedulable
    assert explained([*cluster, *more[:2]]).is_unschedulable


def _config(gates: tuple[str, ...], emulate: str | None) -> dict[str, Any]:
    on = ["GenericWorkload", "TopologyAwareWorkloadScheduling", *gates]
    on += [] if emulate == "1.37" else ["GangScheduling"]
    header = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return {**header, "featureGates": dict.fromkeys(on, True), **({"emulate": emulate} if emulate else {})}


def _low(node: str, cpu: str = "1") -> dict[str, Any]:
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"low-{node}", "uid": f"low-{node}"},
        "spec": {"containers": [container], "priority": 0, "nodeName": node},
    }


@pytest.mark.parametrize(
    ("gates", "emulate", "rack"),
    [
        pytest.param((), None, False, id="pods one by one"),
        pytest.param(("WorkloadAwarePreemption",), None, False, id="the group"),
        pytest.param((), "1.37", False, id="v1.37"),
        pytest.param((), "1.37", True, id="v1.37 in a rack"),
    ],
)
def test_who_is_evicted_for_it(gates: tuple[str, ...], emulate: str | None, rack: bool) -> None:
    group = _group(3, rack=rack)
    group["spec"]["priority"] = 5
    nodes = [_node(name) for name in ("a", "b")]
    for node in nodes:
        node["metadata"]["labels"] = {"rack": "r"}
    objects = [*nodes, _low("a"), _low("b"), group, *_pods(3, priority=5)]
    found = explained(objects, _config(gates, emulate))
    headline = "PodGroup default/g fits once 1 pod of lower priority left: default/low-"
    assert found.headline.startswith(headline)
    assert "Who is evicted for it" in str(found)
    assert [victim["priority"] for victim in found.to_dict()["victims"]] == [0]
    assert found.is_unschedulable


def test_a_group_in_a_rack_evicts_nobody_before_that() -> None:
    group = _group(2, rack=True)
    group["spec"]["priority"] = 5
    node = _node("a")
    node["metadata"]["labels"] = {"rack": "r"}
    objects = [node, _low("a"), group, *_pods(2, priority=5)]
    found = kubesched.explain(objects, "podgroup/g", config=_config(("WorkloadAwarePreemption",), None))
    assert found.headline.startswith("PodGroup default/g waits: the nearest placement is rack=r, where 1 of the 2 pods")
    assert found.to_dict()["victims"] == []


def test_in_v1_37_one_pod_that_is_held_back_holds_back_its_group() -> None:
    gated = _pods(1, schedulingGates=[{"name": "quota"}])[0]
    gated["metadata"] = {"name": "gated", "uid": "gated"}
    objects = [_node("n"), _group(2), *_pods(2), gated]
    assert kubesched.explain(objects, "podgroup/g").headline == "PodGroup default/g fits: 2 of 2 pods find a node."
    found = kubesched.explain(objects, "podgroup/g", config=_config((), "1.37"))
    assert found.headline == (
        "PodGroup default/g waits: its pod gated is held back, and holds back the others: "
        "waiting for scheduling gates: [quota]."
    )


_INCOMPLETE = [_node("n"), _group(3), *_pods(2)]
_TOO_LARGE = [_node("n", cpu="2"), _group(3), *_pods(3)]


@pytest.mark.parametrize(
    ("objects", "headline"),
    [
        pytest.param(
            _INCOMPLETE,
            "Pod default/p0 is pending: its PodGroup g waits: 1 of the 3 pods that it needs does not exist. See "
            "kubesched explain default/podgroup/g for what would help.",
            id="incomplete",
        ),
        pytest.param(
            [_node("n"), *_pods(1)], "Pod default/p0 is pending: its PodGroup g does not exist.", id="no such group"
        ),
        pytest.param(
            _TOO_LARGE,
            "Pod default/p0 is pending: its PodGroup g waits: 2 of the 3 pods that it needs find a node; p2 does not: "
            "0/1 nodes are available: 1 Insufficient cpu. See kubesched explain default/podgroup/g for what would make "
            "it fit; by itself it fits on 1 of 1 node and would go to n.",
            id="it fits, others do not",
        ),
        pytest.param(
            [_node("n"), _group(1), *_pods(1)], "Pod default/p0 fits on 1 of 1 node and would go to n.", id="it fits"
        ),
    ],
)
def test_a_pod_that_waits_with_its_group_says_so(objects: list[dict[str, Any]], headline: str) -> None:
    explanation = kubesched.explain(objects, "p0")
    assert explanation.headline == headline
    assert (explanation.report()["cause"]["kind"] == "pod-group") == ("PodGroup" in headline)


def test_of_several_pods_that_wait_with_their_group_it_is_said_in_the_plural() -> None:
    overview = kubesched.explain(_TOO_LARGE, "namespace/default")
    assert overview.headline == (
        "Namespace default: 3 of 3 pods are pending: their PodGroup g waits: 2 of the 3 pods that it needs find a "
        "node; p2 does not: 0/1 nodes are available: 1 Insufficient cpu. See kubesched explain default/podgroup/g for "
        "what would make it fit; each by itself fits on 1 of 1 node and would go to n."
    )
    assert "their PodGroup g waits" in " ".join(str(overview).split("WHY")[1].split())


def test_a_gang_without_any_pod_says_so() -> None:
    assert kubesched.explain([_node("n"), _group(3)], "podgroup/g").headline == (
        "PodGroup default/g waits: none of the 3 pods that it needs exists."
    )


def _bound(pod: dict[str, Any]) -> dict[str, Any]:
    return {**pod, "spec": {**pod["spec"], "nodeName": "n"}}


@pytest.mark.parametrize("emulate", [None, "1.37"])
@pytest.mark.parametrize(
    ("cpu", "told"),
    [
        ("2", "is complete; 2 of 2 more pods find no node: p2: 0/1 nodes are available: 1 Insufficient cpu."),
        ("3", "is complete; 1 of 2 more pods finds no node: p3: 0/1 nodes are available: 1 Insufficient cpu."),
        ("4", "is complete; 2 more pods find a node."),
    ],
)
def test_pods_that_a_gang_does_not_need_are_told_apart(cpu: str, told: str, emulate: str | None) -> None:
    first, second, *others = _pods(4)
    objects = [_node("n", cpu=cpu), _group(2), _bound(first), _bound(second), *others]
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        **({"emulate": emulate} if emulate else {}),
    }
    explanation = explained(objects, config)
    assert explanation.headline == f"PodGroup default/g {told}"
    assert explanation.is_unschedulable == (cpu == "2")


def test_a_pod_that_fits_nowhere_by_itself_says_why() -> None:
    pods = _pods(1, containers=[{"name": "c", "resources": {"requests": {"cpu": "9"}}}])
    explanation = kubesched.explain([_node("n"), _group(1), *pods], "p0")
    assert explanation.cause.kind.value == "too-large"


def test_where_groups_are_turned_off_a_pod_of_one_is_as_any_other() -> None:
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "featureGates": {"GenericWorkload": False},
    }
    assert kubesched.explain(_INCOMPLETE, "p0", config).fits
    assert kubesched.explain(_INCOMPLETE, "p0", config).headline.startswith("Pod default/p0 fits on 1 of 1 node")
