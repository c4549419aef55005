"""Every filter is asked about every node, whoever rejected it before."""

from __future__ import annotations

import pytest

from kubesched.explanation.evidence import LEFT_OUT, Failures
from kubesched.simulator.asking import explain
from kubesched.testing import make
from kubesched.testing.make import Manifest

OBJECTS = [
    make.node("full", cpu=1, taints=[make.taint("gpu")], unschedulable=True),
    make.node("small", cpu=1),
    make.node("good", cpu=8),
    make.pod("p", cpu=4),
]


def failures(objects: list[Manifest]) -> Failures:
    found: Failures | None = explain(objects, "default/p").failures
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        pytest.param(0, ["NodeUnschedulable", "TaintToleration", "NodeResourcesFit"], id="all plugins in their order"),
        pytest.param(1, ["NodeResourcesFit"], id="the only one"),
        pytest.param(2, [], id="none for a node that fits"),
    ],
)
def test_all_rejections_of_a_node_are_found(row: int, expected: list[str]) -> None:
    assert [status.plugin for status in failures(OBJECTS).statuses(row)] == expected


def test_nodes_are_found_by_what_alone_speaks_against_them() -> None:
    found = failures(OBJECTS)
    assert found.only({"NodeResourcesFit"}).tolist() == [1]
    assert found.only({"NodeResourcesFit", "TaintToleration", "NodeUnschedulable"}).tolist() == [0, 1]
    assert found.n_failing().tolist() == [3, 1, 0]
    assert set(found.rejecting()) == {"NodeUnschedulable", "TaintToleration", "NodeResourcesFit"}


def test_a_node_that_is_full_only_beside_nominated_pods_is_found() -> None:
    objects = [make.node("a", cpu=2), make.pod("n", cpu=1, status={"nominatedNodeName": "a"}), make.pod("p", cpu=2)]
    (status,) = failures(objects).statuses(0)
    assert (status.plugin, status.reasons) == ("NodeResourcesFit", ("Insufficient cpu",))
    assert failures(objects).only({"NodeResourcesFit"}).tolist() == [0]


def test_a_nominated_pod_of_lower_priority_is_no_rival() -> None:
    nominated = make.pod("n", cpu=1, priority=-1, status={"nominatedNodeName": "a"})
    assert failures([make.node("a", cpu=2), nominated, make.pod("p", cpu=2)]).statuses(0) == ()


def test_nodes_left_out_by_prefilter_are_rejected_by_node_affinity_too() -> None:
    named = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["b"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [named]}}
    objects = [
        make.node("a"),
        make.node("b", cpu=1),
        make.pod("p", cpu=2, spec={"affinity": {"nodeAffinity": required}}),
    ]
    found = failures(objects)
    assert [status.plugin for status in found.statuses(0)] == ["NodeAffinity"]
    assert found.only({"NodeAffinity"}).tolist() == []
    assert found.only({"NodeAffinity", LEFT_OUT}).tolist() == [0]


def test_a_pod_that_is_rejected_as_a_whole_has_no_failures() -> None:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "gone"}}]
    assert explain([make.node("a"), make.pod("p", spec={"volumes": volumes})], "default/p").failures is None
