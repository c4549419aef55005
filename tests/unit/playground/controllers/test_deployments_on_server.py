"""Deployments on a real server: what the controller writes beside what the user wants."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from controlled_api_server import Body, Cluster, on_cluster

_DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


def _has_revision(number: int) -> Callable[[Body | None], bool]:
    wanted = {"deployment.kubernetes.io/revision": str(number)}
    return lambda found: found is not None and found["metadata"].get("annotations") == wanted


def _spec(image: str) -> Body:
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": image}]}}
    return {"selector": {"matchLabels": {"app": "a"}}, "template": template}


def test_the_number_of_a_rollout_leaves_the_generation_to_the_user(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.ask("POST", _DEPLOYMENTS, {"metadata": {"name": "d"}, "spec": _spec("x:1")})
        numbered = await cluster.until(f"{_DEPLOYMENTS}/d", _has_revision(1))
        assert numbered is not None
        assert numbered["metadata"]["generation"] == 1
        writers = [one for one in numbered["metadata"]["managedFields"] if "f:annotations" in str(one["fieldsV1"])]
        assert [one.get("subresource") for one in writers] == ["status"]
        await cluster.ask("PATCH", f"{_DEPLOYMENTS}/d", {"spec": _spec("x:2")})
        numbered = await cluster.until(f"{_DEPLOYMENTS}/d", _has_revision(2))
        assert numbered is not None
        assert numbered["metadata"]["generation"] == 2

    on_cluster(scenario, tmp_path)
