"""`--nodes` and `--exclude-nodes`: what becomes of the other nodes, command by command."""

from __future__ import annotations

from typing import Any

import pytest
from resting_clusters import Manifest, node, workload

import kubesched
from kubesched.planning.node_groups import NodeSelection

CATALOGUE = {
    "apiVersion": "kubesched.dev/v1alpha1",
    "kind": "Catalogue",
    "currency": "USD",
    "shapes": [{"name": "m", "allocatable": {"cpu": 4, "memory": "16Gi", "pods": 110}, "offers": [{"price": 0.2}]}],
}


def cluster() -> list[Manifest]:
    nodes = [node(f"{zone}{n}", zone, pool="spot" if n else "base") for zone in "ab" for n in range(3)]
    return [*nodes, *workload("Deployment", "web", "1", ["a1", "b1", "a0"])]


def test_a_selection_says_what_it_is() -> None:
    assert str(NodeSelection("pool=spot", "zone in (a)")) == "with pool=spot and without zone in (a)"
    assert list(NodeSelection("pool=spot").told("Only {} fail.")) == ["Only nodes with pool=spot fail."]
    assert list(NodeSelection().told("Only {} fail.")) == []


def test_only_these_nodes_fail() -> None:
    report = kubesched.outage(cluster(), every="zone", nodes="pool=spot")
    assert [case.case.nodes for case in report.results] == [("a1", "a2"), ("b1", "b2")]
    assert "Only nodes with pool=spot fail." in report.assumptions
    report = kubesched.outage(cluster(), every="node", exclude_nodes="pool=spot")
    assert [case.case.nodes for case in report.results] == [("a0",), ("b0",)]


def test_only_these_nodes_are_upgraded() -> None:
    report = kubesched.upgrade(cluster(), nodes="pool=spot")
    assert (report.outcome.n_nodes, report.outcome.n_pods) == (4, 2)


def test_only_these_nodes_go() -> None:
    report = kubesched.consolidate(cluster(), exclude_nodes="pool=base")
    assert report.removed and not {"a0", "b0"} & set(report.removed)
    assert {k.reason.identifier for k in report.kept if k.node in ("a0", "b0")} == {"NotSelected"}


def test_only_these_nodes_are_measured_with_their_pods() -> None:
    report = kubesched.optimal(cluster(), nodes="pool=spot")
    assert report.n_nodes == 4 and report.tiers[-1].pods == 2


def test_new_pods_use_only_these_of_the_existing_nodes() -> None:
    objects = [*cluster(), *workload("Deployment", "new", "3", [], replicas=4)]
    assert kubesched.plan(objects, CATALOGUE, orders=1).n_nodes == 0
    report = kubesched.plan(objects, CATALOGUE, orders=1, nodes="pool=base")
    assert report.n_nodes == 2
    assert "Of the existing nodes, pods without a node use only nodes with pool=base." in report.assumptions


@pytest.mark.parametrize(
    "ask",
    [kubesched.outage, kubesched.upgrade, kubesched.consolidate, kubesched.optimal],
)
@pytest.mark.parametrize(
    ("selector", "told"), [("pool=x", "no node is left that the selectors allow"), ("pool in", 'nodes "pool in": ')]
)
def test_a_selector_that_selects_nothing_is_an_error(ask: Any, selector: str, told: str) -> None:
    with pytest.raises(kubesched.KubeschedError, match=told):
        ask(cluster(), nodes=selector)


def test_from_scratch_there_is_nothing_to_select() -> None:
    with pytest.raises(kubesched.KubeschedError, match=r"^nodes: from scratch"):
        kubesched.plan(cluster(), CATALOGUE, from_scratch=True, nodes="pool=base")
    with pytest.raises(kubesched.KubeschedError, match="no node is left"):
        kubesched.plan(cluster(), CATALOGUE, nodes="pool=x")
