"""Claims, volumes and their classes on a real server: a manifest that replaces them does not take their protection."""

from __future__ import annotations

from pathlib import Path

import pytest
from controlled_api_server import Body, Cluster, on_cluster

_CLAIM: Body = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
_VOLUME: Body = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/d"}}


@pytest.mark.parametrize(
    ("path", "body", "finalizer"),
    [
        pytest.param(
            "/api/v1/namespaces/default/persistentvolumeclaims",
            {"spec": _CLAIM},
            "kubernetes.io/pvc-protection",
            id="a claim",
        ),
        pytest.param("/api/v1/persistentvolumes", {"spec": _VOLUME}, "kubernetes.io/pv-protection", id="a volume"),
        pytest.param(
            "/apis/storage.k8s.io/v1/volumeattributesclasses",
            {"driverName": "d.example.com", "parameters": {"iops": "5"}},
            "kubernetes.io/vac-protection",
            id="a class of attributes",
        ),
    ],
)
def test_what_was_replaced_is_protected_again(path: str, body: Body, finalizer: str, tmp_path: Path) -> None:
    async def scenario(cluster: Cluster) -> None:
        made = await cluster.ask("POST", path, {"metadata": {"name": "x"}, **body})
        assert made["metadata"]["finalizers"] == [finalizer]
        replaced = await cluster.ask("PUT", f"{path}/x", {"metadata": {"name": "x"}, **body})
        assert "finalizers" not in replaced["metadata"]
        await cluster.until(f"{path}/x", lambda found: found and found["metadata"].get("finalizers") == [finalizer])
        await cluster.ask("DELETE", f"{path}/x")
        await cluster.until(f"{path}/x", lambda found: found is None)

    on_cluster(scenario, tmp_path)
