"""The server's cluster follows what the API server tells."""

from __future__ import annotations

import asyncio

import pytest

from kubesched.k8s.client.rest import RestClient
from kubesched.k8s.client.target import ServerTarget
from kubesched.k8s.model import manifests
from kubesched.k8s.model.meta import KubeObject
from kubesched.plugin_tools.extender_server.served_cluster import ClusterFollower
from kubesched.scheduler.cluster import Cluster
from kubesched.testing import make


def the(manifest: make.Manifest) -> KubeObject:
    return manifests.from_dicts([manifest]).objects[0]


def follower_of(cluster: Cluster) -> ClusterFollower:
    return ClusterFollower(cluster, RestClient(ServerTarget("http://127.0.0.1:1")))


def test_objects_come_and_go() -> None:
    async def scene() -> None:
        cluster = Cluster()
        follower = follower_of(cluster)
        follower.put(the(make.node("a")))
        follower.put(the(make.pod("p", on="a")))
        assert [info.name for info in cluster.table.pods.on(0)] == ["p"]
        follower.remove(the(make.pod("p", on="a")))
        assert not cluster.table.pods.on(0)
        await follower.client.close()

    asyncio.run(scene())


def test_an_object_that_cannot_be_used_is_left_out_and_told(caplog: pytest.LogCaptureFixture) -> None:
    async def scene() -> None:
        cluster = Cluster()
        follower = follower_of(cluster)
        follower.put(the(make.node("a")))
        follower.put(the(make.pod("p", on="a", cpu="much")))
        assert not cluster.table.pods.on(0)
        await follower.client.close()

    asyncio.run(scene())
    assert "Could not take in object" in caplog.text
