"""Bound pods: why they are where they are, and what would win today; and one pod asked about one node."""

from __future__ import annotations

import json

import pytest

from kubesched.explanation.overview import NodeOverview
from kubesched.explanation.placement import UnknownNodeError, why_not_node
from kubesched.simulator.asking import explain
from kubesched.testing import make
from kubesched.testing.make import Manifest


def test_a_pod_that_would_go_there_again() -> None:
    objects = [make.node("a", cpu=8), make.node("b", cpu=2), make.pod("p", on="a", cpu=1)]
    explanation = explain(objects, "default/p")
    assert explanation.headline.startswith(
        "Pod default/p is on a (how nodes scored then was not recorded); it would go there again today, with "
    )
    assert explanation.cause.kind.value == "bound"
    assert explanation.cause.fields["standing"]["place"] == 1
    assert explanation.cause.fields["wouldWin"] == ["a"]


def test_its_own_requests_do_not_count_against_it() -> None:
    """On a node that it fills, it would still be let in."""
    explanation = explain([make.node("a", cpu=1), make.pod("p", on="a", cpu=1)], "default/p")
    assert explanation.fits and explanation.placed_on == "a"


def test_another_node_would_win_today() -> None:
    objects = [
        make.node("a", cpu=4),
        make.node("b", cpu=4),
        make.pod("x", on="a", cpu=3, memory="6Gi"),
        make.pod("p", on="a", cpu="500m"),
    ]
    explanation = explain(objects, "default/p")
    assert "; today b would win with " in explanation.headline
    assert "NodeResourcesFit" in explanation.headline
    assert explanation.report()["node"] == "a"


@pytest.mark.parametrize(
    ("objects", "says"),
    [
        pytest.param(
            [make.node("a", taints=[make.taint("gpu")]), make.node("b"), make.pod("p", on="a")],
            "today it would not be let in there: taint gpu:NoSchedule is not tolerated. It would go to b instead.",
            id="its node has a taint by now",
        ),
        pytest.param(
            [make.node("a", unschedulable=True), make.pod("p", on="a")],
            "today it would not be let in there: the node is cordoned (spec.unschedulable).",
            id="no node takes it",
        ),
        pytest.param(
            [make.node("b"), make.pod("p", on="gone", status={"phase": "Pending"})],
            "p is assigned to gone, but there is no such node. No kubelet will start it: delete it",
            id="its node is gone",
        ),
        pytest.param(
            [make.node("node-b"), make.pod("p", on="node-d", status={"phase": "Pending"})],
            "Did you mean node-b? No kubelet",
            id="a slip in nodeName",
        ),
        pytest.param(
            [make.node("b"), make.pod("p", on="gone")],
            "there is no such node. It is lost with its node",
            id="its node is gone, while it ran",
        ),
    ],
)
def test_a_node_that_would_not_take_it_today(objects: list[Manifest], says: str) -> None:
    explanation = explain(objects, "default/p")
    assert says in explanation.headline
    assert json.loads(json.dumps(explanation.report()))["cause"]["kind"] == "bound"


def test_recorded_scores_are_those_of_then() -> None:
    explanation = explain([make.node("a"), make.node("b"), make.pod("p", on="a")], "default/p")
    scores = [{"node": "a", "total": 412}, {"node": "b", "total": 390}]
    explanation.recorded = {"at": 0.0, "scores": scores}
    assert explanation.headline.startswith(
        "Pod default/p is on a, chosen at 1970-01-01T00:00:00Z with 412 points, before b with 390; it would go"
    )
    assert explanation.cause.fields["scores"] == "recorded"


CLUSTER = [
    make.node("a", cpu=4, taints=[make.taint("dedicated", "ml")]),
    make.node("b", cpu=1),
    make.node("c", cpu=4),
    make.node("d", cpu=8),
    make.pod("p", cpu=2),
]


def test_everything_that_speaks_against_one_node_is_told() -> None:
    answer = why_not_node(explain(CLUSTER, "default/p"), "a")
    assert answer.headline == "Pod default/p cannot go to a: taint dedicated=ml:NoSchedule is not tolerated."
    assert answer.change is not None and answer.change.kind.value == "tolerate"
    assert "TaintToleration: node(s) had untolerated taint(s) (evictions do not help)" in answer.render()


def test_a_node_that_fits_but_is_not_the_best() -> None:
    answer = why_not_node(explain(CLUSTER, "default/p"), "c")
    assert answer.standing is not None and not answer.standing.is_best
    assert answer.headline.startswith("Pod default/p fits on c, but 1 node of 2 is better: it has ")
    assert answer.to_dict()["standing"]["next"] == "d"


def test_a_change_for_a_node_is_tried_out_on_that_node() -> None:
    answer = why_not_node(explain(CLUSTER, "default/p"), "b")
    assert answer.change is not None
    assert (answer.change.node, answer.change.description) == ("b", "lower the cpu request from 2 to 1")


def test_an_unknown_node_is_told_with_the_nearest_name() -> None:
    objects = [make.node("ip-10-0-1-2.eu-west-1.compute.internal"), make.pod("p")]
    with pytest.raises(UnknownNodeError, match=r"there is ip-10-0-1-2\.eu-west-1\.compute\.internal"):
        why_not_node(explain(objects, "default/p"), "ip-10-0-1-2.eu-west-1.compute.interna")


def test_a_node_may_be_called_by_the_first_part_of_its_name_if_no_other_is() -> None:
    objects = [make.node("a.x"), make.node("b.x"), make.node("b.y"), make.pod("p")]
    assert why_not_node(explain(objects, "default/p"), "a").node == "a.x"
    about = explain(objects, "node/a")
    assert isinstance(about, NodeOverview) and about.node == "a.x"
    with pytest.raises(UnknownNodeError):
        why_not_node(explain(objects, "default/p"), "b")
