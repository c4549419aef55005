"""A pod's life in the cluster cache: assume, confirm, forget; facts in any order; nodes that come late and go early.

After every case the self-check must find nothing wrong.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from kubesched.k8s.model import manifests
from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.meta import KubeObject, PodKey
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.cluster.self_check import self_check
from kubesched.testing import make
from kubesched.testing.make import Manifest

KEY = PodKey("default/p")


def _object(manifest: Manifest) -> KubeObject:
    return manifests.from_dicts([manifest]).objects[0]


def _node(name: str = "a", *, cpu: int = 4) -> Node:
    node = _object(make.node(name, cpu=cpu))
    assert isinstance(node, Node)
    return node


def _pod(name: str = "p", *, on: str = "", cpu: int = 1, uid: str = "", **metadata: str) -> Pod:
    given = {"uid": uid} if uid else {}
    pod = _object(make.pod(name, on=on, cpu=cpu, metadata={**given, **metadata}))
    assert isinstance(pod, Pod)
    return pod


def _requested(cluster: Cluster, node_name: str) -> int:
    row = cluster.table.rows[node_name]
    return cluster.nodes.at(row).requested("cpu")


def _with_assumed(*, on: str = "a", nodes: Sequence[str] = ("a", "b")) -> Cluster:
    cluster = Cluster.from_objects([*(_node(name) for name in nodes), _pod()])
    cluster.assume(cluster.pending[KEY], on)
    return cluster


def _check(cluster: Cluster, *told: KubeObject) -> None:
    assert self_check(cluster, told) == []


# -- assumed pods ------------------------------------------------------------------------------------------------------


def test_an_assumed_pod_counts_on_its_node_and_is_still_pending() -> None:
    cluster = _with_assumed()
    assert (_requested(cluster, "a"), cluster.n_assumed, cluster.is_assumed(KEY)) == (1000, 1, True)
    assert list(cluster.pending) == [KEY]
    _check(cluster, _node("a"), _node("b"), _pod())


def test_an_assumed_pod_is_confirmed_by_the_informer_and_counts_once() -> None:
    cluster = _with_assumed()
    cluster.put(_pod(on="a"))
    assert (_requested(cluster, "a"), cluster.n_assumed, cluster.n_pods) == (1000, 0, 1)
    assert cluster.pending == {}
    _check(cluster, _node("a"), _node("b"), _pod(on="a"))


def test_a_confirmed_pod_cannot_be_forgotten() -> None:
    cluster = _with_assumed()
    assumed = cluster.placed[KEY]
    cluster.put(_pod(on="a"))
    assert not cluster.forget(assumed)
    assert _requested(cluster, "a") == 1000


def test_a_forgotten_pod_gives_its_place_back_and_waits_again() -> None:
    cluster = _with_assumed()
    assert cluster.forget(cluster.placed[KEY])
    assert (_requested(cluster, "a"), cluster.n_assumed) == (0, 0)
    assert list(cluster.pending) == [KEY]
    _check(cluster, _node("a"), _node("b"), _pod())


def test_forgetting_twice_does_nothing_the_second_time() -> None:
    cluster = _with_assumed()
    assumed = cluster.placed[KEY]
    assert [cluster.forget(assumed), cluster.forget(assumed)] == [True, False]


def test_an_assumed_pod_added_on_another_node_counts_there_alone() -> None:
    cluster = _with_assumed(on="a")
    assumed = cluster.placed[KEY]
    cluster.put(_pod(on="b"))
    assert (_requested(cluster, "a"), _requested(cluster, "b"), cluster.n_assumed) == (0, 1000, 0)
    assert not cluster.forget(assumed), "the binding that fails now takes nothing away"
    _check(cluster, _node("a"), _node("b"), _pod(on="b"))


def test_an_update_of_an_assumed_pod_that_is_still_pending_leaves_it_assumed() -> None:
    cluster = _with_assumed()
    newer = _pod(resourceVersion="2")
    cluster.put(newer)
    assert cluster.is_assumed(KEY)
    assert cluster.pending[KEY].pod is newer
    _check(cluster, _node("a"), _node("b"), newer)


def test_an_assumed_pod_that_changed_when_it_is_confirmed_counts_as_it_is_now() -> None:
    cluster = _with_assumed()
    resized = _pod(on="a", cpu=3)
    cluster.put(resized)
    assert (_requested(cluster, "a"), cluster.n_assumed) == (3000, 0)
    _check(cluster, _node("a"), _node("b"), resized)


def test_an_assumed_pod_that_is_deleted_is_gone_altogether() -> None:
    cluster = _with_assumed()
    assumed = cluster.placed[KEY]
    cluster.remove(_pod())
    assert (_requested(cluster, "a"), cluster.n_assumed, cluster.pending) == (0, 0, {})
    assert not cluster.forget(assumed)
    _check(cluster, _node("a"), _node("b"))


def test_a_pod_of_the_same_name_is_another_pod() -> None:
    cluster = _with_assumed()
    assumed = cluster.placed[KEY]
    recreated = _pod(uid="second")
    cluster.put(recreated)
    assert (_requested(cluster, "a"), cluster.n_assumed) == (0, 0)
    second = cluster.assume(cluster.pending[KEY], "b")
    assert not cluster.forget(assumed), "the first pod's binding must not take the second one's place"
    assert cluster.forget(second)
    _check(cluster, _node("a"), _node("b"), recreated)


# -- nodes that come late and go early ---------------------------------------------------------------------------------


def test_a_pod_that_comes_before_its_node_counts_as_soon_as_the_node_is_there() -> None:
    cluster = Cluster()
    cluster.put(_pod(on="a"))
    assert list(cluster.orphans) == ["a"]
    _check(cluster, _pod(on="a"))
    cluster.put(_node("a"))
    assert (_requested(cluster, "a"), cluster.orphans) == (1000, {})
    _check(cluster, _node("a"), _pod(on="a"))


def test_pods_outlive_their_node_and_count_again_when_it_returns() -> None:
    cluster = Cluster.from_objects([_node("a"), _node("b"), _pod(on="a")])
    cluster.remove(_node("a"))
    assert list(cluster.table.rows) == ["b"]
    _check(cluster, _node("b"), _pod(on="a"))
    cluster.put(_node("a", cpu=8))
    assert _requested(cluster, "a") == 1000
    _check(cluster, _node("a", cpu=8), _node("b"), _pod(on="a"))


@pytest.mark.parametrize(
    "told",
    [
        pytest.param([_pod(on="a")], id="confirmed"),
        pytest.param([_pod(on="b")], id="added on another node"),
        pytest.param([_pod(on="a", cpu=2)], id="confirmed with other requests"),
        pytest.param([_pod(resourceVersion="2"), _pod(on="a", resourceVersion="3")], id="changed, then confirmed"),
        pytest.param([_pod(on="a", deletionTimestamp="2026-01-01T00:00:00Z")], id="confirmed while it is leaving"),
        pytest.param([], id="nothing is heard of it"),
    ],
)
@pytest.mark.parametrize("returns", [False, True], ids=["for good", "and returns"])
def test_the_node_of_an_assumed_pod_vanishes(told: list[Pod], returns: bool) -> None:
    cluster = _with_assumed()
    cluster.remove(_node("a"))
    if returns:
        cluster.put(_node("a"))
    for pod in told:
        cluster.put(pod)
    nodes = [_node("a"), _node("b")] if returns else [_node("b")]
    _check(cluster, *nodes, *(told[-1:] or [_pod()]))


def test_a_pod_forgotten_after_its_node_vanished_leaves_nothing_behind() -> None:
    cluster = _with_assumed()
    cluster.remove(_node("a"))
    assert cluster.forget(cluster.placed[KEY])
    assert cluster.orphans == {}
    _check(cluster, _node("b"), _pod())


def test_a_pod_deleted_after_its_node_leaves_nothing_behind() -> None:
    cluster = Cluster.from_objects([_node("a"), _pod(on="a"), _pod("q", on="a")])
    cluster.remove(_node("a"))
    cluster.remove(_pod(on="a"))
    assert list(cluster.orphans["a"]) == ["default/q"]
    cluster.remove(_pod("q", on="a"))
    assert cluster.orphans == {}
    _check(cluster)


def test_a_node_that_shrinks_keeps_its_pods() -> None:
    cluster = Cluster.from_objects([_node("a"), _pod(on="a", cpu=3)])
    cluster.put(_node("a", cpu=1))
    assert (_requested(cluster, "a"), cluster.nodes.at(0).allocatable("cpu")) == (3000, 1000)
    _check(cluster, _node("a", cpu=1), _pod(on="a", cpu=3))


# -- facts that come twice, or not at all ------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["", "a"], ids=["pending", "on a node"])
def test_a_pod_told_twice_counts_once(where: str) -> None:
    pod = _pod(on=where)
    cluster = Cluster.from_objects([_node("a"), pod, pod])
    _check(cluster, _node("a"), pod)


def test_deleting_what_is_not_known_does_nothing() -> None:
    cluster = Cluster.from_objects([_node("a")])
    cluster.remove(_pod(on="a"))
    cluster.remove(_node("b"))
    _check(cluster, _node("a"))


def test_a_binding_of_which_only_the_end_was_seen() -> None:
    """The updates in between were missed: the pod was pending, and is finished."""
    cluster = Cluster.from_objects([_node("a"), _pod()])
    pod = _pod(on="a")
    finished = replace(pod, status=replace(pod.status, phase="Succeeded"))
    cluster.put(finished)
    assert (cluster.n_pods, cluster.pending) == (0, {})
    _check(cluster, _node("a"), finished)


def test_a_pod_that_moved_while_nobody_looked_counts_where_it_is() -> None:
    """Deleted and recreated on another node between two lists: one update, with another uid."""
    cluster = Cluster.from_objects([_node("a"), _node("b"), _pod(on="a")])
    moved = _pod(on="b", uid="second")
    cluster.put(moved)
    assert (_requested(cluster, "a"), _requested(cluster, "b")) == (0, 1000)
    _check(cluster, _node("a"), _node("b"), moved)


# -- nominations -------------------------------------------------------------------------------------------------------


def _nominated(to: str) -> Pod:
    pod = _pod(resourceVersion=f"to {to}")
    return replace(pod, status=replace(pod.status, nominated_node_name=to))


@pytest.mark.parametrize(
    ("updates", "nominated"),
    [
        pytest.param([_pod(resourceVersion="2")], "a", id="kept while nothing is written of it"),
        pytest.param([_nominated("a")], "a", id="kept when it is written"),
        pytest.param([_nominated("b")], "b", id="replaced by another"),
        pytest.param([_nominated("a"), _pod(resourceVersion="2")], "", id="taken back"),
        pytest.param([_pod(uid="second")], "", id="not that of another pod of the same name"),
        pytest.param([_pod(on="b")], "", id="over when the pod has a node"),
    ],
)
def test_a_nomination_decided_here(updates: list[Pod], nominated: str) -> None:
    cluster = Cluster.from_objects([_node("a"), _node("b"), _pod()])
    cluster.nominations.add(cluster.pending[KEY], "a")
    for pod in updates:
        cluster.put(pod)
    found = [name for name in ("a", "b") for info in cluster.nominations.on(name) if info.pod is updates[-1]]
    assert found == ([nominated] if nominated else [])
    _check(cluster, _node("a"), _node("b"), updates[-1])
