"""Nodes that fall silent, and pods that must leave."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from recording_api import RecordingApi

from kubesched.k8s.client.lease import LeaseSpec
from kubesched.k8s.model.core import Node, NodeCondition, NodeSpec, NodeStatus, Pod, PodSpec, Taint, Toleration
from kubesched.k8s.model.meta import KubeObject, ObjectMeta
from kubesched.playground.controllers.cluster_view import ClusterView
from kubesched.playground.controllers.controller import ControllerContext, PlanWriter
from kubesched.playground.controllers.kinds import NodeLease
from kubesched.playground.controllers.node_lifecycle import (
    NodeLifecycleController,
    OrphanedPodController,
    TaintEvictionController,
)


class _World:
    def __init__(self) -> None:
        self.api = RecordingApi()
        self.view = ClusterView()
        self.now_s = 1_800_000_000.0
        self.context = ControllerContext(self.view, PlanWriter(self.api, self.view), lambda: self.now_s)


def _meta(name: str, version: int = 1, namespace: str = "") -> ObjectMeta:
    return ObjectMeta(name=name, namespace=namespace, uid=f"u-{name}-{namespace}", resource_version=str(version))


def _node(version: int = 1, taints: tuple[Taint, ...] = ()) -> Node:
    status = NodeStatus(conditions=(NodeCondition("Ready", "True"),))
    return Node(_meta("n", version), NodeSpec(taints=taints or None), status)


def _lease(renewed: str, version: int, held_s: int = 40) -> NodeLease:
    return NodeLease(_meta("n", version, "kube-node-lease"), LeaseSpec("n", held_s, renew_time=renewed))


def _pod(*tolerations: Toleration) -> Pod:
    return Pod(_meta("p", 1, "d"), PodSpec(node_name="n", tolerations=tolerations))


@pytest.mark.parametrize(
    ("held_s", "silent_for_s", "is_lost"),
    [
        pytest.param(40, 49.0, False, id="silent for a while"),
        pytest.param(40, 50.0, True, id="silent for too long"),
        pytest.param(200, 199.0, False, id="with a lease that holds for longer"),
    ],
)
def test_a_node_whose_lease_is_not_renewed_is_lost(held_s: int, silent_for_s: float, is_lost: bool) -> None:
    world = _World()
    controller = NodeLifecycleController(world.context)

    def hear(before: KubeObject | None, after: KubeObject | None) -> None:
        controller.concerned(before, after)

    world.view.listen(hear)
    world.view.put(_node())
    world.view.put(_lease("a", 2, held_s))
    asyncio.run(controller.reconcile("n"))
    world.now_s += 30
    world.view.put(_lease("b", 3, held_s))
    world.now_s += silent_for_s
    world.api.answers["/api/v1/nodes/n/status"] = {"metadata": {"name": "n", "uid": "u-n-", "resourceVersion": "1"}}
    asyncio.run(controller.reconcile("n"))
    assert world.api.written() == ([("PATCH", "/api/v1/nodes/n/status")] if is_lost else [])
    if is_lost:
        conditions: list[dict[str, Any]] = world.api.asked[0][2]["status"]["conditions"]
        assert {known["status"] for known in conditions} == {"Unknown"}


def test_a_pod_leaves_when_the_time_is_over_that_it_tolerates_a_taint_for() -> None:
    world = _World()
    controller = TaintEvictionController(world.context)
    world.view.put(_node(1, (Taint("fire", "NoExecute"),)))
    world.view.put(_pod(Toleration("fire", "Exists", toleration_seconds=300)))
    world.api.answers["/api/v1/namespaces/d/pods/p/status"] = {"metadata": {"name": "p", "uid": "u-p-d"}}
    assert asyncio.run(controller.reconcile("d/p")) == 300.0
    world.now_s += 200
    assert asyncio.run(controller.reconcile("d/p")) == 100.0
    assert world.api.written() == []
    world.now_s += 100
    assert asyncio.run(controller.reconcile("d/p")) is None
    path = "/api/v1/namespaces/d/pods/p"
    assert world.api.written() == [("PATCH", f"{path}/status"), ("DELETE", path)]


def test_a_pod_whose_node_is_gone_is_deleted_after_a_while_and_without_grace() -> None:
    world = _World()
    controller = OrphanedPodController(world.context)
    world.view.put(_pod())
    assert asyncio.run(controller.reconcile("d/p")) == 40.0
    world.now_s += 40
    asyncio.run(controller.reconcile("d/p"))
    ((method, path, options),) = world.api.asked
    assert (method, path) == ("DELETE", "/api/v1/namespaces/d/pods/p")
    assert (options["gracePeriodSeconds"], options["preconditions"]) == (0, {"uid": "u-p-d"})
