"""The self-check: says what is wrong, in kube-scheduler's words where it has them, and changes nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kubesched.k8s.model import manifests
from kubesched.k8s.model.meta import KubeObject, PodKey
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.cluster.self_check import self_check
from kubesched.testing import make

TERMS = [make.affinity_term(make.HOSTNAME, {"app": "web"})]
APART = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": TERMS}}}


def _told() -> list[KubeObject]:
    return manifests.from_dicts(
        [
            make.node("a", cpu=4, labels={make.ZONE: "z"}, taints=[make.taint("spot")], images={"i": 5}),
            make.node("b", cpu=2),
            make.pod("web", on="a", cpu=1, labels={"app": "web"}, host_ports=[80], spec=APART),
            make.pod("db", on="b", spec={"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}),
            make.pod("waits", cpu=1),
            make.pod("done", on="a", status={"phase": "Succeeded"}),
            make.budget("budget", {"app": "web"}, allowed=1),
        ]
    ).objects


def _found(cluster: Cluster, told: list[KubeObject]) -> list[str]:
    return sorted(map(str, self_check(cluster, told)))


def test_a_cluster_that_was_told_everything_has_no_findings() -> None:
    told = _told()
    assert _found(Cluster.from_objects(told), told) == []


@pytest.mark.parametrize(
    ("left_out", "findings"),
    [
        pytest.param("b", ["missed node b"], id="node"),
        pytest.param("web", ["missed pod default/web: on node a"], id="pod on a node"),
        pytest.param("waits", ["missed pod default/waits: pending"], id="pending pod"),
        pytest.param("budget", ["missed PodDisruptionBudget default/budget"], id="another object"),
        pytest.param("done", [], id="a finished pod is not missed"),
    ],
)
def test_what_the_cluster_was_not_told_is_missed(left_out: str, findings: list[str]) -> None:
    told = _told()
    assert _found(Cluster.from_objects([item for item in told if item.name != left_out]), told) == findings


@pytest.mark.parametrize(
    ("gone", "findings"),
    [
        pytest.param("a", ["redundant node a"], id="node"),
        pytest.param("web", ["redundant pod default/web: on node a"], id="pod on a node"),
        pytest.param("waits", ["redundant pod default/waits: pending"], id="pending pod"),
        pytest.param("budget", ["redundant PodDisruptionBudget default/budget"], id="another object"),
    ],
)
def test_what_the_informers_no_longer_hold_is_redundant(gone: str, findings: list[str]) -> None:
    told = _told()
    cluster = Cluster.from_objects(told)
    assert _found(cluster, [item for item in told if item.name != gone]) == findings


def test_an_assumed_pod_is_neither_missed_nor_redundant() -> None:
    told = _told()
    cluster = Cluster.from_objects(told)
    cluster.assume(cluster.pending[PodKey("default/waits")], "b")
    assert _found(cluster, told) == []


def test_a_nomination_of_a_pod_that_does_not_wait_is_redundant() -> None:
    told = _told()
    cluster = Cluster.from_objects(told)
    cluster.nominations.add(cluster.placed[PodKey("default/web")], "b")
    assert _found(cluster, told) == ["redundant pod default/web: nominated to node b"]


def test_an_update_that_was_missed_is_stale() -> None:
    cluster = Cluster.from_objects(_told())
    newer = manifests.from_dicts(
        [
            make.node("b", cpu=3),
            make.pod("db", on="a"),
            make.pod("waits", cpu=2, metadata={"resourceVersion": "7"}),
        ]
    ).objects
    names = {item.name for item in newer}
    assert _found(cluster, [*newer, *(item for item in _told() if item.name not in names)]) == [
        "misplaced pod default/db: counted on node b, assigned to a",
        "stale node b: known in version '', told ''",
        "stale pod default/waits: pending, known in version '', told '7'",
    ]


def _set(cluster: Cluster, column: str, resource: str = "") -> None:
    found = getattr(cluster.table, column)
    (found[resource] if resource else found).cells[cluster.table.rows["a"]] += 1


@pytest.mark.parametrize(
    ("break_it", "word"),
    [
        pytest.param(lambda c: _set(c, "requested", "cpu"), "requested of cpu: 1001, should be 1000", id="requests"),
        pytest.param(lambda c: _set(c, "allocatable", "cpu"), "allocatable of cpu", id="allocatable"),
        pytest.param(lambda c: _set(c, "pod_counts"), "pods allowed, pods", id="number of pods"),
        pytest.param(lambda c: _set(c, "nonzero_cpu_milli"), "for scoring", id="amounts for scoring"),
        pytest.param(lambda c: c.table.ports.clear(), "host ports of", id="host ports"),
        pytest.param(lambda c: c.table.claims.clear(), "claims of", id="claims"),
        pytest.param(lambda c: c.table.images.clear(), "images", id="images"),
        pytest.param(lambda c: c.table.taints.set(0, ()), "taints", id="taints"),
        pytest.param(lambda c: c.table.label_column(make.ZONE).set(0, "y"), "label topology", id="labels"),
        pytest.param(lambda c: c.table.pods._label_class.cells.__setitem__(0, 1), "by label class", id="label classes"),
        pytest.param(lambda c: c.table.pods._terminating.cells.__setitem__(0, True), "pods that stay", id="leaving"),
        pytest.param(lambda c: c.table.pods._affinity_groups.clear(), "with affinity", id="affinity terms"),
        pytest.param(lambda c: c.table.rows.update(a=1, b=0), "known as row", id="rows by name"),
        pytest.param(lambda c: c.table.pods._by_row[0].clear(), "belongs to", id="pods by row"),
    ],
)  # fmt: skip
def test_a_table_that_does_not_add_up_is_found_out(break_it: Callable[[Cluster], None], word: str) -> None:
    told = _told()
    cluster = Cluster.from_objects(told)
    break_it(cluster)
    findings = _found(cluster, told)
    assert any(word in finding for finding in findings), findings


def test_a_check_changes_nothing() -> None:
    told = _told()
    cluster = Cluster.from_objects(told[1:])
    assert _found(cluster, told) == _found(cluster, told) != []
