"""Controllers run side by side: what breaks one of them does not keep a change from the others."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from controlled_api_server import Cluster, on_cluster
from controlled_server import ROOT_CA

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
