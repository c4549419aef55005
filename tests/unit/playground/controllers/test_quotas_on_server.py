"""Quotas with both their halves: the server refuses and charges, the controller counts and gives back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from controlled_api_server import Body, Cluster, on_cluster

_NAMESPACE = "/api/v1/namespaces/default"
_QUOTA = f"{_NAMESPACE}/resourcequotas/q"


def _quota(hard: Body, **spec: Any) -> Body:
    return {"kind": "ResourceQuota", "apiVersion": "v1", "metadata": {"name": "q"}, "spec": {"hard": hard, **spec}}


def _pod(name: str, cpu: str = "100m", **spec: Any) -> Body:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}, "limits": {"cpu": cpu}}}
    return {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": name}, "spec": {"containers": [container], **spec}}


def _used(**wanted: str) -> Any:
    return lambda quota: (
        quota and quota["status"].get("used") == {name.replace("_", "."): wanted[name] for name in wanted}
    )


async def _put(cluster: Cluster, plural: str, body: Body) -> Body:
    return await cluster.ask("POST", f"{_NAMESPACE}/{plural}", body)


def test_pods_are_charged_refused_and_given_back(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster) -> None:
        await _put(cluster, "resourcequotas", _quota({"pods": "2", "requests.cpu": "300m"}))
        await cluster.until(_QUOTA, _used(pods="0", requests_cpu="0"))
        await _put(cluster, "pods", _pod("a"))
        assert _used(pods="1", requests_cpu="100m")(await cluster.find(_QUOTA))  # at once, not later
        why = await cluster.refusal("POST", f"{_NAMESPACE}/pods", _pod("b", cpu="250m"))
        assert why == (
            'pods "b" is forbidden: exceeded quota: q, requested: requests.cpu=250m, used: requests.cpu=100m, '
            "limited: requests.cpu=300m"
        )
        silent = _pod("c")
        del silent["spec"]["containers"][0]["resources"]
        why = await cluster.refusal("POST", f"{_NAMESPACE}/pods", silent)
        assert why == 'pods "c" is forbidden: failed quota: q: must specify requests.cpu for: c'
        await _put(cluster, "pods", _pod("b"))
        await cluster.ask("PATCH", f"{_NAMESPACE}/pods/a/status", {"status": {"phase": "Succeeded"}})
        await cluster.until(_QUOTA, _used(pods="1", requests_cpu="100m"))
        await cluster.ask("DELETE", f"{_NAMESPACE}/pods/b")
        await cluster.until(_QUOTA, _used(pods="0", requests_cpu="0"))

    on_cluster(scenario, tmp_path)


def test_a_dry_run_is_refused_but_never_charged(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster) -> None:
        await _put(cluster, "resourcequotas", _quota({"pods": "1"}))
        await cluster.until(_QUOTA, _used(pods="0"))
        await cluster.ask("POST", f"{_NAMESPACE}/pods?dryRun=All", _pod("a"))
        assert _used(pods="0")(await cluster.find(_QUOTA))
        await _put(cluster, "pods", _pod("a"))
        why = await cluster.refusal("POST", f"{_NAMESPACE}/pods?dryRun=All", _pod("b"))
        assert "exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1" in why

    on_cluster(scenario, tmp_path)


def test_scopes_choose_the_pods_that_count(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster) -> None:
        await _put(cluster, "resourcequotas", _quota({"pods": "1"}, scopes=["Terminating"]))
        await cluster.until(_QUOTA, _used(pods="0"))
        await _put(cluster, "pods", _pod("lasting"))
        assert _used(pods="0")(await cluster.find(_QUOTA))
        await _put(cluster, "pods", _pod("short", activeDeadlineSeconds=60))
        assert _used(pods="1")(await cluster.find(_QUOTA))
        why = await cluster.refusal("POST", f"{_NAMESPACE}/pods", _pod("more", activeDeadlineSeconds=60))
        assert "exceeded quota: q" in why

    on_cluster(scenario, tmp_path)


def test_any_kind_is_counted_custom_resources_too(tmp_path: Path) -> None:
    schema = {"openAPIV3Schema": {"type": "object"}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    names = {"plural": "widgets", "kind": "Widget"}
    definition = {
        "metadata": {"name": "widgets.g.io"},
        "spec": {"group": "g.io", "names": names, "scope": "Namespaced", "versions": [version]},
    }
    widgets = "/apis/g.io/v1/namespaces/default/widgets"

    async def scenario(cluster: Cluster) -> None:
        await cluster.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
        hard = {"count/widgets.g.io": "1", "configmaps": "2", "count/deployments.apps": "0"}
        await _put(cluster, "resourcequotas", _quota(hard))
        zero = {"count/widgets.g.io": "0", "configmaps": "1", "count/deployments.apps": "0"}
        await cluster.until(_QUOTA, lambda quota: quota and quota["status"].get("used") == zero)
        widget = {"apiVersion": "g.io/v1", "kind": "Widget", "metadata": {"name": "w"}}
        await cluster.ask("POST", widgets, widget)
        why = await cluster.refusal("POST", widgets, {**widget, "metadata": {"name": "v"}})
        assert why == (
            'widgets.g.io "v" is forbidden: exceeded quota: q, requested: count/widgets.g.io=1, '
            "used: count/widgets.g.io=1, limited: count/widgets.g.io=1"
        )
        await cluster.ask("DELETE", f"{widgets}/w")
        await cluster.until(_QUOTA, lambda quota: quota and quota["status"]["used"] == zero)

    on_cluster(scenario, tmp_path)


def test_services_and_claims_are_measured_and_may_change(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster) -> None:
        gold = "gold.storageclass.storage.k8s.io/requests.storage"
        await _put(
            cluster,
            "resourcequotas",
            _quota({"services": "2", "services.nodeports": "1", "services.loadbalancers": "0", gold: "10Gi"}),
        )
        await cluster.until(_QUOTA, lambda quota: quota and quota["status"].get("used", {}).get(gold) == "0")
        service = {"kind": "Service", "apiVersion": "v1", "metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}
        await _put(cluster, "services", service)
        why = await cluster.refusal("PATCH", f"{_NAMESPACE}/services/s", {"spec": {"type": "LoadBalancer"}})
        assert "requested: services.loadbalancers=1, used: services.loadbalancers=0" in why
        await cluster.ask("PATCH", f"{_NAMESPACE}/services/s", {"spec": {"type": "NodePort"}})
        used = await cluster.find(_QUOTA)
        assert used is not None and used["status"]["used"]["services.nodeports"] == "1"
        await cluster.ask("PATCH", f"{_NAMESPACE}/services/s", {"spec": {"type": "ClusterIP"}})
        await cluster.until(_QUOTA, lambda quota: quota and quota["status"]["used"]["services.nodeports"] == "0")
        claim = {
            "kind": "PersistentVolumeClaim",
            "apiVersion": "v1",
            "metadata": {"name": "c"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "gold",
                "resources": {"requests": {"storage": "11Gi"}},
            },
        }
        why = await cluster.refusal("POST", f"{_NAMESPACE}/persistentvolumeclaims", claim)
        assert f"requested: {gold}=11Gi, used: {gold}=0, limited: {gold}=10Gi" in why

    on_cluster(scenario, tmp_path)


def test_a_quota_whose_limits_change_is_counted_anew(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster) -> None:
        await _put(cluster, "pods", _pod("a"))
        await _put(cluster, "resourcequotas", _quota({"pods": "5"}))
        await cluster.until(_QUOTA, _used(pods="1"))
        await cluster.ask("PATCH", _QUOTA, {"spec": {"hard": {"pods": None, "limits.cpu": "1"}}})
        await cluster.until(_QUOTA, _used(limits_cpu="100m"))

    on_cluster(scenario, tmp_path)
