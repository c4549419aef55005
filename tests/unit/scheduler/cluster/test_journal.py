"""The journal keeps the last changes, and says so when older ones are asked for."""

from __future__ import annotations

import pytest

from kubesched.k8s.model import manifests
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import PodKey
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.cluster.journal import KEPT, ChangeLog, NodeChangeKind, PodLog
from kubesched.testing import make


def test_changes_are_given_from_a_place_on() -> None:
    log: ChangeLog[str] = ChangeLog()
    log.append("a")
    place = log.end
    log.append("b")
    log.append("c")
    assert log.since(place) == ["b", "c"]
    assert log.since(log.end) == []


@pytest.mark.parametrize("n", [KEPT, KEPT + 1, 2 * KEPT + 5])
def test_what_is_not_kept_any_more_is_not_given(n: int) -> None:
    log: ChangeLog[int] = ChangeLog()
    for number in range(n):
        log.append(number)
    assert log.end == n
    assert log.since(n - 10) == list(range(n - 10, n))
    assert (log.since(0) is None) == (n > KEPT)


def test_rows_are_those_of_the_changes() -> None:
    (pod,) = manifests.from_dicts([make.pod("p")]).objects
    assert isinstance(pod, Pod)
    info = Cluster().signatures.info(pod)
    log = PodLog()
    for number in range(KEPT + 100):
        log.append((number % 1000, info, True))
    for place in (log.end - 5, log.end - KEPT // 2, log.end):
        changes = log.since(place)
        assert changes is not None
        assert log.rows_since(place).tolist() == [row for row, _, _ in changes]


def test_it_is_known_where_the_last_pod_with_affinity_terms_came_or_went() -> None:
    terms = {
        "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [make.affinity_term("zone", {"a": "b"})]}
    }
    put = [
        make.node("a"),
        make.pod("p", on="a"),
        make.pod("q", on="a", spec={"affinity": terms}),
        make.pod("r", on="a"),
    ]
    cluster = Cluster()
    log = cluster.table.journal.pods
    ends = []
    for item in manifests.from_dicts(put).objects:
        cluster.put(item)
        ends.append(log.terms_end)
    cluster.drop_pod(PodKey("default/q"))
    assert [*ends, log.terms_end] == [0, 0, 2, 2, 4]


def test_nodes_that_come_change_and_go_are_noted_with_the_pods_before() -> None:
    cluster = Cluster.from_objects(manifests.from_dicts([make.node("a"), make.node("b")]).objects)
    place = cluster.table.journal.nodes.end
    put = [make.pod("p", on="b"), make.node("a", cpu=9), make.node("c")]
    for item in manifests.from_dicts(put).objects:
        cluster.put(item)
    cluster.remove(manifests.from_dicts([make.node("b")]).objects[0])
    changes = cluster.table.journal.nodes.since(place)
    assert changes is not None
    assert [(change.kind, change.row, change.n_rows, change.pods_end) for change in changes] == [
        (NodeChangeKind.UPDATED, 0, 2, 1),
        (NodeChangeKind.ADDED, 2, 3, 1),
        (NodeChangeKind.REMOVED, 1, 2, 2),  # with its pod, before
    ]


def test_a_trial_leaves_no_mark() -> None:
    cluster = Cluster.from_objects(manifests.from_dicts([make.node("a"), make.pod("p")]).objects)
    before = cluster.table.journal.places
    with cluster.with_pods(cluster.pending.values(), 0):
        pass
    assert cluster.table.journal.places == before
