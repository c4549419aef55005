"""Controllers run side by side: what breaks one of them does not keep a change from the others."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from controlled_api_server import Cluster, on_cluster
from controlled_server import ROOT_CA

from harness.workload_manifests import workload
from kubesched.k8s.model.apps import ReplicaSet
from kubesched.k8s.model.meta import KubeObject
from kubesched.playground.controllers.controller import Controller, ControllerContext
from kubesched.playground.controllers.kinds import DiscoveredKinds
from kubesched.playground.controllers.runner import all_controllers


class _Breaking:
    """Cannot tell whom anything concerns."""

    name = "breaking"

    def concerned(self, before: KubeObject | None, after: KubeObject | None) -> Iterable[str]:
        raise RecursionError("owners in a circle")

    async def reconcile(self, key: str) -> float | None:
        raise AssertionError("is never asked")


class _Interrupted:
    """Deletes what it is busy with, by somebody else's hand, and goes on."""

    name = "interrupted"

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self.n_looks = 0

    def concerned(self, before: KubeObject | None, after: KubeObject | None) -> Iterable[str]:
        return (after.key,) if isinstance(after, ReplicaSet) else ()

    async def reconcile(self, key: str) -> float | None:
        owner = self._context.view.find(ReplicaSet, key)
        self.n_looks += 1
        if owner is not None:
            await self._context.writer.delete(owner)
            self._context.view.whole(owner)
        return None


def test_a_workload_that_goes_while_it_is_looked_at_is_no_failure(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    made: list[_Interrupted] = []

    def make(context: ControllerContext, _: DiscoveredKinds) -> Iterable[Controller]:
        made.append(_Interrupted(context))
        return made

    async def scenario(cluster: Cluster) -> None:
        replica_sets = "/apis/apps/v1/namespaces/default/replicasets"
        manifest = workload("ReplicaSet", "web")
        manifest["spec"]["template"]["spec"]["containers"][0]["image"] = "nginx"
        await cluster.ask("POST", replica_sets, manifest)
        await cluster.until(f"{replica_sets}/web", lambda found: found is None)

    on_cluster(scenario, tmp_path, make)
    assert made[0].n_looks == 1
    assert "A controller failed" not in caplog.text


def test_a_controller_that_breaks_on_a_change_keeps_it_from_nobody(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def make(context: ControllerContext, discovered: DiscoveredKinds) -> Iterable[Controller]:
        return [_Breaking(), *all_controllers(context, discovered, root_ca_pem=ROOT_CA)]

    async def scenario(cluster: Cluster) -> None:
        await cluster.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "shop"}})
        path = "/api/v1/namespaces/shop/configmaps/kube-root-ca.crt"
        assert await cluster.until(path, lambda found: found is not None)

    on_cluster(scenario, tmp_path, make)
    assert "A controller cannot tell whom a change concerns" in caplog.text
