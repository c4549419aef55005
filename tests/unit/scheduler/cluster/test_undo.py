"""Changes to a cluster that are taken back leave even orders and assumed pods as they were."""

from __future__ import annotations

from kubesched.k8s.model import manifests
from kubesched.k8s.model.core import Node
from kubesched.k8s.model.meta import PodKey
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.cluster.self_check import recount_rows
from kubesched.scheduler.cluster.undo import UndoLog
from kubesched.testing import make
from kubesched.testing.make import ZONE

P = PodKey("default/p")


def _cluster() -> Cluster:
    nodes = [make.node(name, labels={ZONE: zone}) for name, zone in (("a", "x"), ("b", "x"), ("c", "y"))]
    return Cluster.from_objects(manifests.from_dicts([*nodes, make.pod("p", cpu="1"), make.pod("q", on="a")]).objects)


def _in_order(cluster: Cluster) -> list[str]:
    return [cluster.table.names[row] for row in cluster.rows_in_order.tolist()]


def _node(name: str, zone: str) -> Node:
    (node,) = manifests.from_dicts([make.node(name, labels={ZONE: zone})]).objects
    assert isinstance(node, Node)
    return node


def test_a_node_tried_out_in_another_zone_is_back_in_its_place() -> None:
    cluster = _cluster()
    before = _in_order(cluster)
    changes = UndoLog(cluster)
    changes.put_node(_node("a", "y"))
    assert _in_order(cluster) != before
    changes.revert()
    assert _in_order(cluster) == before
    assert list(recount_rows(cluster)) == []


def test_a_pod_that_was_assumed_is_assumed_again() -> None:
    cluster = _cluster()
    assumed = cluster.assume(cluster.pending[P], "b")
    changes = UndoLog(cluster)
    changes.remove_pod(P)
    assert not cluster.is_assumed(P)
    assert P not in cluster.pending
    changes.revert()
    assert cluster.is_assumed(P)
    assert list(cluster.pending) == [P]
    assert cluster.forget(assumed)
    assert list(recount_rows(cluster)) == []
