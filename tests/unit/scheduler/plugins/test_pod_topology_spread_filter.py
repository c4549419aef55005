"""PodTopologySpread: where hard constraints let a pod go."""

from __future__ import annotations

from typing import Any

import pytest
from crowds import HOST, ZONE, Crowd, Json, bare_node, node, pod, reasons, rejections

from kubesched.framework import CycleState
from kubesched.k8s.model.core import Node, Pod
from kubesched.scheduler.config import PodTopologySpreadArgs
from kubesched.scheduler.plugins.pod_topology_spread import PodTopologySpread

SKEWED = "Unschedulable: node(s) didn't match pod topology spread constraints"
UNLABELLED = (
    "UnschedulableAndUnresolvable: node(s) didn't match pod topology spread constraints (missing required label)"
)
WEB = {"app": "web"}


def hard(key: str = ZONE, skew: int = 1, **fields: Any) -> Json:
    selector = {"labelSelector": {"matchLabels": WEB}}
    return {"topologyKey": key, "maxSkew": skew, "whenUnsatisfiable": "DoNotSchedule", **selector, **fields}


def web(n: int, on: str, **fields: Any) -> list[Pod]:
    return [pod(f"web-{on}-{i}", labels=WEB, on=on, **fields) for i in range(n)]


def incoming(*constraints: Json, **fields: Any) -> Pod:
    return pod(topologySpreadConstraints=list(constraints), **{"labels": WEB, **fields})


def rejected(pod_at_hand: Pod, *objects: Node | Pod) -> dict[str, str] | None:
    crowd = Crowd(*objects)
    return rejections(PodTopologySpread(PodTopologySpreadArgs(), crowd), crowd, pod_at_hand)


ZONES = (node("a1", "a"), node("a2", "a"), node("b1", "b"))


@pytest.mark.parametrize(
    ("constraints", "pods", "expected"),
    [
        pytest.param([hard()], [], {}, id="an empty cluster takes the pod everywhere"),
        pytest.param([hard()], web(1, "a1"), {"a1": SKEWED, "a2": SKEWED}, id="one more would be too many in the zone"),
        pytest.param([hard(skew=2)], web(1, "a1"), {}, id="a larger skew lets it be"),
        pytest.param([hard()], web(1, "a1") + web(1, "b1"), {}, id="even zones take the pod everywhere"),
        pytest.param([hard()], web(1, "b1") + web(3, "a2"), {"a1": SKEWED, "a2": SKEWED}, id="the emptiest counts"),
        pytest.param([hard(HOST)], web(1, "a1"), {"a1": SKEWED}, id="by host"),
        pytest.param([hard(HOST), hard()], web(1, "a1"), {"a1": SKEWED, "a2": SKEWED}, id="all constraints must hold"),
        pytest.param([hard()], web(2, "a1", terminating=True), {}, id="pods being deleted do not count"),
        pytest.param([hard()], web(2, "a1", namespace="other"), {}, id="pods of other namespaces do not count"),
        pytest.param([hard(labelSelector=None)], web(9, "a1"), {}, id="no selector selects no pod"),
        pytest.param([hard(labelSelector={})], web(9, "a1"), {}, id="a selector of everything counts no pod"),
        pytest.param(
            [hard(matchLabelKeys=["app"], labelSelector={})],
            web(1, "a1"),
            {"a1": SKEWED, "a2": SKEWED},
            id="matchLabelKeys select by the pod's own labels",
        ),
        pytest.param(
            [hard(matchLabelKeys=["absent"])],
            web(1, "a1"),
            {"a1": SKEWED, "a2": SKEWED},
            id="matchLabelKeys that the pod has no label for are left out",
        ),
        pytest.param(
            [hard(matchLabelKeys=["app"], labelSelector=None)],
            web(9, "a1"),
            {},
            id="matchLabelKeys add nothing to no selector",
        ),
        pytest.param([hard(minDomains=3)], [], {}, id="too few domains: the minimum is 0, which an empty one meets"),
        pytest.param(
            [hard(minDomains=3)],
            web(1, "a1") + web(1, "b1"),
            {"a1": SKEWED, "a2": SKEWED, "b1": SKEWED},
            id="too few domains: the minimum is 0, so that no zone takes a second pod",
        ),
        pytest.param([hard(minDomains=2)], web(1, "a1") + web(1, "b1"), {}, id="enough domains"),
    ],
)
def test_a_node_takes_the_pod_unless_its_domain_gets_too_full(
    constraints: list[Json], pods: list[Pod], expected: dict[str, str]
) -> None:
    assert rejected(incoming(*constraints), *ZONES, *pods) == expected


def test_a_pod_that_its_own_selector_does_not_match_adds_nothing_to_its_domain() -> None:
    other = incoming(hard(), labels={"app": "other"})
    assert rejected(other, *ZONES, *web(1, "a1")) == {}
    assert rejected(other, *ZONES, *web(2, "a1")) == {"a1": SKEWED, "a2": SKEWED}


def test_a_selector_of_everything_still_matches_the_pod_itself() -> None:
    everything: Json = {"matchExpressions": []}
    assert rejected(incoming(hard(skew=0, labelSelector=everything)), *ZONES) == {
        "a1": SKEWED,
        "a2": SKEWED,
        "b1": SKEWED,
    }


@pytest.mark.parametrize(
    ("constraints", "expected"),
    [
        pytest.param([hard()], {"a1": SKEWED, "none": UNLABELLED}, id="the label is missing"),
        pytest.param([hard(), hard("rack")], {"a1": SKEWED, "none": UNLABELLED}, id="the first of two is missing"),
        pytest.param(
            [hard("rack"), hard()],
            {"a1": SKEWED, "none": SKEWED},
            id="the first constraint that does not hold gives the reason",
        ),
        pytest.param(
            [hard("rack", 2), hard(skew=2)],
            {"none": UNLABELLED},
            id="a node without all labels does not count for the others either",
        ),
    ],
)
def test_a_node_without_a_topology_label_is_out_for_good(constraints: list[Json], expected: dict[str, str]) -> None:
    nodes = (
        node("a1", "a", labels={"rack": "r1"}),
        node("b1", "b", labels={"rack": "r2"}),
        bare_node("none", rack="r1"),
    )
    assert rejected(incoming(*constraints), *nodes, *web(1, "a1"), *web(1, "none")) == expected


def test_an_empty_value_is_a_domain_like_any_other() -> None:
    nodes = (node("a1", "a"), node("e1", ""))
    assert rejected(incoming(hard()), *nodes, *web(1, "e1")) == {"e1": SKEWED}
    assert rejected(incoming(hard()), *nodes, *web(1, "a1")) == {"a1": SKEWED}


TAINTED = node("c1", "c", taints=[{"key": "k", "effect": "NoSchedule"}])
TOLERATING = {"tolerations": [{"key": "k", "operator": "Exists"}]}
IN_A = {"nodeSelector": {ZONE: "a"}}
NOT_C = {
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["c1"]}]},
                    {"matchExpressions": [{"key": ZONE, "operator": "Gt", "values": ["mistaken"]}]},
                ]
            }
        }
    }
}


@pytest.mark.parametrize(
    ("constraint", "fields", "is_full"),
    [
        pytest.param(hard(), {}, True, id="taints are ignored unless asked for"),
        pytest.param(hard(nodeTaintsPolicy="Ignore"), {}, True, id="taints are ignored when asked for"),
        pytest.param(hard(nodeTaintsPolicy="Honor"), {}, False, id="a node with taints does not count"),
        pytest.param(hard(nodeTaintsPolicy="Honor"), TOLERATING, True, id="unless they are tolerated"),
        pytest.param(hard(), IN_A, False, id="nodes that the node selector excludes do not count"),
        pytest.param(hard(nodeAffinityPolicy="Ignore"), IN_A, True, id="unless the policy says so"),
        pytest.param(hard(), NOT_C, False, id="nodes that node affinity excludes do not count"),
        pytest.param(hard(nodeAffinityPolicy="Ignore"), NOT_C, True, id="unless the policy says so, here too"),
    ],
)
def test_nodes_count_as_the_inclusion_policies_say(constraint: Json, fields: Json, is_full: bool) -> None:
    """Zone c is empty: it holds the others back exactly if it counts."""
    pods = (*web(1, "a1"), *web(1, "b1"))
    expected = {"a1": SKEWED, "a2": SKEWED, "b1": SKEWED} if is_full else {}
    assert rejected(incoming(constraint, **fields), *ZONES, TAINTED, *pods) == expected


@pytest.mark.parametrize(
    "constraints",
    [
        pytest.param([], id="no constraints"),
        pytest.param([hard(whenUnsatisfiable="ScheduleAnyway")], id="soft constraints only"),
    ],
)
def test_the_filter_is_left_out_without_hard_constraints(constraints: list[Json]) -> None:
    assert rejected(incoming(*constraints), *ZONES, *web(9, "a1")) is None


def test_a_selector_that_cannot_be_understood_is_an_error() -> None:
    crowd = Crowd(*ZONES)
    broken = incoming(hard(labelSelector={"matchExpressions": [{"key": "k", "operator": "Like"}]}))
    found = PodTopologySpread(None, crowd).pre_filter(CycleState(), crowd.info(broken), crowd.nodes).status
    assert (found.code.value, found.message) == (
        "Error",
        "get constraints from pod: obtaining pod's hard topology spread constraints: "
        '"Like" is not a valid label selector operator',
    )


def test_the_filter_without_its_preparation_is_an_error() -> None:
    crowd = Crowd(*ZONES)
    found = PodTopologySpread(None, crowd).filter(CycleState(), crowd.info(incoming(hard())), crowd.nodes)
    assert set(found.errors.values()) == {'reading "PreFilterPodTopologySpread" from cycleState: not found'}


@pytest.mark.parametrize(
    ("changed", "row", "expected"),
    [
        pytest.param(pod("x", labels=WEB), "b1", {}, id="a matching pod evens the zones out"),
        pytest.param(pod("x", labels=WEB, terminating=True), "b1", {}, id="one being deleted counts when it is added"),
        pytest.param(pod("x", labels={"app": "db"}), "b1", {"a1": SKEWED, "a2": SKEWED}, id="another kind of pod"),
        pytest.param(pod("x", labels=WEB, namespace="other"), "b1", {"a1": SKEWED, "a2": SKEWED}, id="not in here"),
        pytest.param(pod("x", labels=WEB), "out", {"a1": SKEWED, "a2": SKEWED}, id="a node that does not count"),
    ],
)
def test_adding_and_removing_a_pod_undo_each_other(changed: Pod, row: str, expected: dict[str, str]) -> None:
    crowd = Crowd(*ZONES, bare_node("out", **{HOST: "out"}), *web(1, "a1"))
    plugin, cycle, info = PodTopologySpread(None, crowd), CycleState(), crowd.info(incoming(hard()))
    plugin.pre_filter(cycle, info, crowd.nodes)
    before = reasons(plugin.filter(cycle, info, crowd.nodes), crowd.nodes)
    other, at = crowd.info(changed), crowd.nodes.at(list(crowd.nodes.names).index(row))
    assert plugin.add_pod(cycle, info, other, at).is_success
    assert reasons(plugin.filter(cycle, info, crowd.nodes), crowd.nodes) == {**expected, "out": UNLABELLED}
    assert plugin.remove_pod(cycle, info, other, at).is_success
    assert reasons(plugin.filter(cycle, info, crowd.nodes), crowd.nodes) == before
