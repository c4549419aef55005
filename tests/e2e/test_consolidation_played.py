"""Consolidation on a playground: its steps, played by kubectl in their order, leave no pod pending, break no budget."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from playground_process import WITHIN_S, RunningPlayground, kubesched, playground, why_no_kubectl

pytestmark = pytest.mark.skipif(bool(why_no_kubectl()), reason=why_no_kubectl())

N_PODS = 8 + 6


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


def _healthy(cluster: RunningPlayground) -> str:
    """Empty once every pod is ready on a node; else what is missing. A budget must hold at every moment."""
    budgets = json.loads(cluster.does("get pdb -o json"))["items"]
    for one in budgets:
        status = one["status"]
        assert status["currentHealthy"] >= status["desiredHealthy"], status
    pods = json.loads(cluster.does("get pods -o json"))["items"]
    ready = [
        pod
        for pod in pods
        if "deletionTimestamp" not in pod["metadata"]
        and any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", []))
    ]
    return "" if len(ready) == N_PODS == len(pods) else f"{len(ready)} of {len(pods)} pods are ready"


def _until_healthy(cluster: RunningPlayground) -> None:
    deadline_s = time.monotonic() + WITHIN_S
    while problem := _healthy(cluster):
        assert time.monotonic() < deadline_s, problem


def test_its_steps_played_by_kubectl_leave_no_pod_pending(tmp_path: Path) -> None:
    with playground(tmp_path, "--in-memory", "--nodes", "6", "--cpu", "4", "--zones", "2") as cluster:
        cluster.does("apply -f -", _manifests())
        _until_healthy_at_first(cluster)
        said = kubesched("consolidate", "--kubeconfig", str(cluster.kubeconfig), "-o", "json")
        assert said.code == 0, said.all
        steps = json.loads(said.out)["steps"]
        assert len(steps) >= 2
        for step in steps:
            for name in step["cordon"]:
                cluster.does(f"cordon {name}")
            for name in step["delete"]:
                cluster.does(f"drain {name} --ignore-daemonsets --timeout=90s")
                cluster.does(f"delete node {name}")
                _until_healthy(cluster)
        left = json.loads(cluster.does("get nodes -o json"))["items"]
        assert len(left) == 6 - sum(len(step["delete"]) for step in steps)


def _until_healthy_at_first(cluster: RunningPlayground) -> None:
    cluster.does("rollout status deployment/web --timeout=90s")
    cluster.does("rollout status deployment/queue --timeout=90s")
    _until_healthy(cluster)
