"""Consolidation on a playground: its steps, played by kubectl in their order, leave no pod pending, break no budget."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from playground_process import WITHIN_S, RunningPlayground, kubesched, playground, why_no_kubectl

pytestmark = pytest.mark.skipif(bool(why_no_kubectl()), reason=why_no_kubectl())


def _deployment(name: str, replicas: int, cpu: str, **spec: Any) -> dict[str, Any]:
    labels = {"app": name}
    container = {"name": "c", "image": "nginx", "resources": {"requests": {"cpu": cpu}}}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container], **spec}}
    whole = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": whole}


def _manifests() -> str:
    spread = {"maxSkew": 2, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}
    constraint = {**spread, "labelSelector": {"matchLabels": {"app": "web"}}}
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web"},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    }
    items = [
        _deployment("web", 8, "500m", topologySpreadConstraints=[constraint]),
        _deployment("queue", 6, "300m"),
        budget,
    ]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


def _with_volumes_and_daemons() -> str:
    """A StatefulSet with a volume for each pod, an agent on every node, and a cache with an emptyDir."""
    disk = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "fast"},
        "provisioner": "example.com/disk",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "fast",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    database = _deployment("db", 3, "500m")
    database["kind"] = "StatefulSet"
    database["spec"] |= {"serviceName": "db", "volumeClaimTemplates": [claim]}
    agent = _deployment("agent", 0, "200m")
    agent["kind"] = "DaemonSet"
    del agent["spec"]["replicas"]
    spread = {"maxSkew": 3, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule"}
    constraint = {**spread, "labelSelector": {"matchLabels": {"app": "cache"}}}
    scratch = {"topologySpreadConstraints": [constraint], "volumes": [{"name": "scratch", "emptyDir": {}}]}
    budgets = [
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": name},
            "spec": {**allowed, "selector": {"matchLabels": {"app": name}}},
        }
        for name, allowed in (("db", {"maxUnavailable": 1}), ("cache", {"minAvailable": "75%"}))
    ]
    items = [disk, database, agent, _deployment("cache", 8, "600m", **scratch), *budgets]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


def _with_copies_apart() -> str:
    """An API whose copies keep away from each other, with a budget; a database with volumes, spread over zones."""
    whole = json.loads(_with_volumes_and_daemons())
    disk, database, _, _, of_database, of_cache = whole["items"]
    apart = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "api"}}}
    rule = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    spread = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}
    constraint = {**spread, "labelSelector": {"matchLabels": {"app": "db"}}}
    database["spec"]["template"]["spec"]["topologySpreadConstraints"] = [constraint]
    of_cache["metadata"]["name"] = "api"
    of_cache["spec"] = {"maxUnavailable": "25%", "selector": {"matchLabels": {"app": "api"}}}
    whole["items"] = [disk, database, _deployment("api", 4, "700m", affinity=rule), of_database, of_cache]
    return json.dumps(whole)


def _pods(cluster: RunningPlayground) -> list[dict[str, Any]]:
    found = json.loads(cluster.does("get pods -o json"))["items"]
    return [pod for pod in found if pod["metadata"]["ownerReferences"][0]["kind"] != "DaemonSet"]


def _ready(cluster: RunningPlayground) -> list[dict[str, Any]]:
    return [
        pod
        for pod in _pods(cluster)
        if "deletionTimestamp" not in pod["metadata"]
        and any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", []))
    ]


def _healthy(cluster: RunningPlayground, n_pods: int) -> str:
    """Empty once every pod is ready on a node; else what is missing. A budget must hold at every moment."""
    budgets = json.loads(cluster.does("get pdb -o json"))["items"]
    for one in budgets:
        status = one["status"]
        assert status["currentHealthy"] >= status["desiredHealthy"], status
    pods, ready = _pods(cluster), _ready(cluster)
    return "" if len(ready) == n_pods == len(pods) else f"{len(ready)} of {len(pods)} pods are ready"


def _until_healthy(cluster: RunningPlayground, n_pods: int) -> None:
    deadline_s = time.monotonic() + WITHIN_S
    while problem := _healthy(cluster, n_pods):
        assert time.monotonic() < deadline_s, problem


@pytest.mark.parametrize(
    ("manifests", "n_pods", "cpu", "flags"),
    [
        pytest.param(_manifests(), 8 + 6, "4", (), id="spread over zones"),
        pytest.param(_with_volumes_and_daemons(), 3 + 8, "8", ("--delete-emptydir-data",), id="volumes and daemons"),
        pytest.param(_with_copies_apart(), 3 + 4, "4", (), id="copies apart, volumes in zones"),
    ],
)
def test_its_steps_played_by_kubectl_leave_no_pod_pending(
    manifests: str, n_pods: int, cpu: str, flags: tuple[str, ...], tmp_path: Path
) -> None:
    with playground(tmp_path, "--in-memory", "--nodes", "6", "--cpu", cpu, "--zones", "2") as cluster:
        cluster.does("apply -f -", manifests)
        _until_healthy_at_first(cluster, n_pods)
        said = kubesched("consolidate", "--kubeconfig", str(cluster.kubeconfig), "-o", "json", *flags)
        assert said.code == 0, said.all
        steps = json.loads(said.out)["steps"]
        assert len(steps) >= 2
        for step in steps:
            for name in step["cordon"]:
                cluster.does(f"cordon {name}")
            for name in step["delete"]:
                cluster.does(f"drain {name} --ignore-daemonsets --timeout=90s {' '.join(flags)}")
                cluster.does(f"delete node {name}")
                _until_healthy(cluster, n_pods)
        left = json.loads(cluster.does("get nodes -o json"))["items"]
        assert len(left) == 6 - sum(len(step["delete"]) for step in steps)


def _until_healthy_at_first(cluster: RunningPlayground, n_pods: int) -> None:
    """A budget does not hold yet as long as its pods are started."""
    deadline_s = time.monotonic() + WITHIN_S
    while len(_ready(cluster)) < n_pods:
        assert time.monotonic() < deadline_s, cluster.does("get pods")
    _until_healthy(cluster, n_pods)
