"""Garbage and namespaces on a real server: custom resources own and are owned, pods leave first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from controlled_api_server import Body, Cluster, on_cluster

_WIDGETS = "/apis/g.io/v1/namespaces/default/widgets"
_MAPS = "/api/v1/namespaces/default/configmaps"


def _definition() -> Body:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    names = {"plural": "widgets", "kind": "Widget"}
    spec = {"group": "g.io", "names": names, "scope": "Namespaced", "versions": [version]}
    return {"metadata": {"name": "widgets.g.io"}, "spec": spec}


def _widget(name: str, **metadata: Any) -> Body:
    return {"apiVersion": "g.io/v1", "kind": "Widget", "metadata": {"name": name, **metadata}}


def _owned_by(owner: Body) -> list[Body]:
    metadata = owner["metadata"]
    kind = {"apiVersion": owner["apiVersion"], "kind": owner["kind"]}
    return [{**kind, "name": metadata["name"], "uid": metadata["uid"], "blockOwnerDeletion": True}]


def test_custom_resources_own_and_are_owned(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", _definition())
        owner = await cluster.ask("POST", _WIDGETS, _widget("owner"))
        middle = await cluster.ask("POST", _WIDGETS, _widget("middle", ownerReferences=_owned_by(owner)))
        last = {"metadata": {"name": "last", "ownerReferences": _owned_by(middle)}}
        await cluster.ask("POST", _MAPS, last)
        await cluster.ask("DELETE", f"{_WIDGETS}/owner", {"propagationPolicy": "Foreground"})
        for path in (f"{_MAPS}/last", f"{_WIDGETS}/middle", f"{_WIDGETS}/owner"):
            await cluster.until(path, lambda found: found is None)

    on_cluster(scenario, tmp_path)


def test_orphans_of_a_custom_resource_stay(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", _definition())
        owner = await cluster.ask("POST", _WIDGETS, _widget("owner"))
        await cluster.ask("POST", _WIDGETS, _widget("stays", ownerReferences=_owned_by(owner)))
        await cluster.ask("DELETE", f"{_WIDGETS}/owner", {"propagationPolicy": "Orphan"})
        await cluster.until(f"{_WIDGETS}/owner", lambda found: found is None)
        await cluster.until(f"{_WIDGETS}/stays", lambda found: found and "ownerReferences" not in found["metadata"])

    on_cluster(scenario, tmp_path)


def test_a_circle_of_owners_goes_as_a_whole(tmp_path: Path) -> None:
    names, pods = ("a", "b", "c"), "/api/v1/namespaces/default/pods"
    spec = {"containers": [{"name": "c", "image": "i"}]}

    async def scenario(cluster: Cluster) -> None:
        made = {}
        for name in names:
            made[name] = await cluster.ask("POST", pods, {"metadata": {"name": name}, "spec": spec})
        for name, owner in zip(names, ("c", "a", "b"), strict=True):
            references = {"metadata": {"ownerReferences": _owned_by(made[owner])}}
            await cluster.ask("PATCH", f"{pods}/{name}", references)
        await cluster.ask("DELETE", f"{pods}/a", {"propagationPolicy": "Foreground"})
        for name in names:
            await cluster.until(f"{pods}/{name}", lambda found: found is None)

    on_cluster(scenario, tmp_path)


def test_a_namespace_waits_for_its_pods_and_says_so(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "team"}})
        pod = {"metadata": {"name": "p", "finalizers": ["a/b"]}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        await cluster.ask("POST", "/api/v1/namespaces/team/pods", pod)
        await cluster.ask("POST", "/api/v1/namespaces/team/configmaps", {"metadata": {"name": "m"}})
        await cluster.ask("DELETE", "/api/v1/namespaces/team")
        waiting = await cluster.until(
            "/api/v1/namespaces/team", lambda found: found and found["status"].get("conditions")
        )
        assert waiting is not None
        told = {one["type"]: one["status"] for one in waiting["status"]["conditions"]}
        assert told["NamespaceFinalizersRemaining"] == told["NamespaceContentRemaining"] == "True"
        assert await cluster.find("/api/v1/namespaces/team/configmaps/m") is not None
        await cluster.ask("PATCH", "/api/v1/namespaces/team/pods/p", {"metadata": {"finalizers": None}})
        await cluster.until("/api/v1/namespaces/team", lambda found: found is None)

    on_cluster(scenario, tmp_path)
