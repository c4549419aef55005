"""PodTopologySpread: how soft constraints score nodes."""

from __future__ import annotations

import math
from typing import Any

import pytest
from crowds import HOST, ZONE, Crowd, Json, bare_node, node, pod, scores

from kubesched.framework import CycleState
from kubesched.k8s.model.core import Node, Pod
from kubesched.scheduler.config import PodTopologySpreadArgs
from kubesched.scheduler.plugins.pod_topology_spread import PodTopologySpread

WEB = {"app": "web"}
Score = tuple[int, int]


def soft(key: str = ZONE, skew: int = 1, **fields: Any) -> Json:
    selector = {"labelSelector": {"matchLabels": WEB}}
    return {"topologyKey": key, "maxSkew": skew, "whenUnsatisfiable": "ScheduleAnyway", **selector, **fields}


def web(n: int, on: str, **fields: Any) -> list[Pod]:
    return [pod(f"web-{on}-{i}", labels=WEB, on=on, **fields) for i in range(n)]


def incoming(*constraints: Json, **fields: Any) -> Pod:
    return pod(topologySpreadConstraints=list(constraints), **{"labels": WEB, **fields})


def scored(pod_at_hand: Pod, *objects: Node | Pod, feasible: list[int] | None = None) -> dict[str, Score] | None:
    crowd = Crowd(*objects)
    return scores(PodTopologySpread(PodTopologySpreadArgs(), crowd), crowd, pod_at_hand, feasible)


ZONES = (node("a1", "a"), node("a2", "a"), node("b1", "b"))
LOG4, LOG5 = math.log(2 + 2), math.log(3 + 2)


@pytest.mark.parametrize(
    ("constraints", "pods", "expected"),
    [
        pytest.param([soft()], [], {"a1": (0, 100), "a2": (0, 100), "b1": (0, 100)}, id="nothing to spread among"),
        pytest.param([soft()], web(3, "a1"), {"a1": (4, 0), "a2": (4, 0), "b1": (0, 100)}, id="the emptier zone"),
        pytest.param(
            [soft()],
            web(3, "a1") + web(1, "b1"),
            {"a1": (4, 25), "a2": (4, 25), "b1": (1, 100)},
            id="the best node gets 100, the others what they are short of it",
        ),
        pytest.param(
            [soft(HOST)],
            web(3, "a1"),
            {"a1": (round(3 * LOG5), 0), "a2": (0, 100), "b1": (0, 100)},
            id="hosts are counted one by one, with the weight of their number",
        ),
        pytest.param(
            [soft(HOST), soft()],
            web(2, "a1"),
            {"a1": (round(2 * LOG5 + 2 * LOG4), 0), "a2": (3, 50), "b1": (0, 100)},
            id="constraints add up before rounding",
        ),
        pytest.param(
            [soft(skew=5)],
            web(3, "a1"),
            {"a1": (8, 50), "a2": (8, 50), "b1": (4, 100)},
            id="a larger skew makes differences smaller",
        ),
        pytest.param(
            [soft()],
            web(3, "a1", terminating=True),
            {"a1": (0, 100), "a2": (0, 100), "b1": (0, 100)},
            id="pods being deleted do not count",
        ),
        pytest.param(
            [soft(labelSelector={})],
            web(3, "a1"),
            {"a1": (0, 100), "a2": (0, 100), "b1": (0, 100)},
            id="a selector of everything counts no pod",
        ),
    ],
)
def test_the_fewer_matching_pods_around_a_node_the_better(
    constraints: list[Json], pods: list[Pod], expected: dict[str, Score]
) -> None:
    assert scored(incoming(*constraints), *ZONES, *pods) == expected


def test_pods_in_a_feasible_domain_count_on_nodes_that_are_not_feasible_too() -> None:
    assert scored(incoming(soft()), *ZONES, *web(3, "a2"), feasible=[0, 2]) == {"a1": (4, 0), "b1": (0, 100)}


def test_the_weight_is_of_feasible_domains_only() -> None:
    one_zone = scored(incoming(soft()), *ZONES, *web(3, "a2"), feasible=[0, 1])
    assert one_zone == {name: (round(3 * math.log(1 + 2)), 100) for name in ("a1", "a2")}


def test_nodes_without_a_topology_label_score_nothing() -> None:
    nodes = (*ZONES, bare_node("none", **{HOST: "none"}))
    found = scored(incoming(soft(), soft(HOST)), *nodes, *web(1, "a1"), *web(5, "none"))
    assert found == {"a1": (3, 0), "a2": (1, 66), "b1": (0, 100), "none": (0, 0)}
    assert scored(incoming(soft("rack")), *ZONES) == {"a1": (0, 0), "a2": (0, 0), "b1": (0, 0)}


@pytest.mark.parametrize(
    ("constraint", "fields", "counts"),
    [
        pytest.param(soft(), {}, True, id="nodes with taints count"),
        pytest.param(soft(nodeTaintsPolicy="Honor"), {}, False, id="unless the policy says otherwise"),
        pytest.param(soft(), {"nodeSelector": {"disk": "ssd"}}, False, id="nodes the selector excludes do not count"),
        pytest.param(soft(nodeAffinityPolicy="Ignore"), {"nodeSelector": {"disk": "ssd"}}, True, id="unless asked for"),
        pytest.param(soft(HOST, nodeTaintsPolicy="Honor"), {}, True, id="hosts count whatever the policy"),
    ],
)
def test_nodes_count_as_the_inclusion_policies_say(constraint: Json, fields: Json, counts: bool) -> None:
    tainted = node("a2", "a", taints=[{"key": "k", "effect": "NoExecute"}])
    found = scored(incoming(constraint, **fields), node("b1", "b"), tainted, *web(3, "a2"))
    assert found is not None
    assert (found["a2"][0] > 0) is counts


@pytest.mark.parametrize(
    "constraints",
    [
        pytest.param([], id="no constraints, and nothing that default constraints could spread among"),
        pytest.param([soft(whenUnsatisfiable="DoNotSchedule")], id="hard constraints only"),
    ],
)
def test_the_score_is_left_out_without_soft_constraints(constraints: list[Json]) -> None:
    assert scored(incoming(*constraints), *ZONES, *web(9, "a1")) is None


def test_a_selector_that_cannot_be_understood_is_an_error() -> None:
    crowd = Crowd(*ZONES)
    broken = incoming(soft(labelSelector={"matchExpressions": [{"key": "k", "operator": "Like"}]}))
    found = PodTopologySpread(None, crowd).pre_score(CycleState(), crowd.info(broken), crowd.nodes)
    assert (found.code.value, found.message) == (
        "Error",
        "calculating preScoreState: obtaining pod's soft topology spread constraints: "
        '"Like" is not a valid label selector operator',
    )


def test_the_score_without_its_preparation_is_an_error() -> None:
    crowd = Crowd(*ZONES)
    with pytest.raises(LookupError, match=r'^error reading "PreScorePodTopologySpread" from cycleState: not found$'):
        PodTopologySpread(None, crowd).score(CycleState(), crowd.info(incoming(soft())), crowd.nodes)
