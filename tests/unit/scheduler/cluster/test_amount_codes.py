"""Rows that have one code have the same amounts, whatever happened to them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched.k8s.model import manifests
from kubesched.scheduler.cluster import Cluster, columns
from kubesched.testing import make
from kubesched.testing.make import Manifest


def _put(cluster: Cluster, *items: Manifest) -> None:
    for item in manifests.from_dicts(list(items)).objects:
        cluster.put(item)


def test_nodes_alike_have_one_code_and_others_another() -> None:
    cluster = Cluster()
    _put(cluster, make.node("a"), make.node("b"), make.node("c", cpu=9))
    a, b, c = (cluster.table.amount_codes.code(row) for row in range(3))
    assert a == b != c


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(make.pod("p", on="a", cpu=1), id="a pod that asks for something"),
        pytest.param(make.pod("p", on="a"), id="a pod that asks for nothing"),
        pytest.param(make.pod("p", on="a", requests={"example.com/gpu": 1}), id="a resource that is new"),
        pytest.param(make.node("a", cpu=9), id="another amount"),
        pytest.param(make.node("a", pods=9), id="another number of pods"),
        pytest.param(make.node("a", allocatable={"example.com/gpu": 1}), id="a new resource of the node"),
    ],
)
def test_a_change_of_amounts_changes_the_code(change: Manifest) -> None:
    cluster = Cluster()
    _put(cluster, make.node("a"), make.node("b"))
    before = cluster.table.amount_codes.code(0)
    _put(cluster, change)
    assert cluster.table.amount_codes.code(0) != before


def test_a_pod_that_leaves_restores_the_code() -> None:
    cluster = Cluster()
    _put(cluster, make.node("a"), make.pod("other", on="a", cpu=1))
    before = cluster.table.amount_codes.code(0)
    _put(cluster, make.pod("p", on="a", cpu=1))
    cluster.table.amount_codes.code(0)
    cluster.remove(manifests.from_dicts([make.pod("p", on="a", cpu=1)]).objects[0])
    assert cluster.table.amount_codes.code(0) == before


_STEPS = st.lists(
    st.tuples(st.sampled_from(("node", "pod", "no node", "no pod", "ask")), st.integers(0, 3), st.integers(0, 2)),
    max_size=25,
)


@pytest.mark.parametrize("most", [1, 65_536], ids=["few are remembered", "all are remembered"])
def test_one_code_means_the_same_amounts(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "_MOST_KNOWN", most)

    @settings(max_examples=50, deadline=None)
    @given(_STEPS)
    def check(steps: list[tuple[str, int, int]]) -> None:
        cluster = Cluster()
        meant: dict[int, list[int]] = {}
        for step, number, size in steps:
            node, pod = make.node(f"n{number}", cpu=size), make.pod(f"p{number}", on=f"n{size}", cpu=size)
            (item,) = manifests.from_dicts([node if "node" in step else pod]).objects
            if step in ("node", "pod"):
                cluster.put(item)
            elif step != "ask":
                cluster.remove(item)
            for row in range(cluster.table.n) if step == "ask" else ():
                info = cluster.nodes.at(row)
                amounts = [info.allocatable("cpu"), info.requested("cpu"), info.pod_count, info.nonzero_cpu_milli]
                assert meant.setdefault(cluster.table.amount_codes.code(row), amounts) == amounts

    check()
