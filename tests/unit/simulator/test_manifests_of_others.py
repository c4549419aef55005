"""Real workloads on a small cluster: placed without an error, and what waits says why."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kubesched.cli.main import main

ROOT = Path(__file__).parents[3]
CLUSTER = ROOT / "examples" / "simulate" / "cluster.yaml"
MANIFESTS = ROOT / "tests" / "data" / "manifests"


def _simulate(name: str, cluster: Path = CLUSTER) -> dict[str, Any]:
    files = ["-f", str(cluster), "-f", str(MANIFESTS / f"{name}.yaml")]
    result = CliRunner().invoke(main, ["simulate", *files, "--tie-break", "name", "-o", "json"])
    assert result.exit_code == 0, result.stderr
    report: dict[str, Any] = json.loads(result.stdout)
    return report


@pytest.mark.parametrize(
    ("name", "n_pods"),
    [
        pytest.param("argo-cd-ha", 14, id="Argo CD, highly available"),
        pytest.param("kube-prometheus", 11, id="kube-prometheus"),
        pytest.param("online-boutique", 12, id="Online Boutique"),
        pytest.param("otel-demo", 33, id="OpenTelemetry demo"),
        pytest.param("train-ticket", 64, id="Train Ticket"),
    ],
)
def test_real_workloads_are_placed(name: str, n_pods: int) -> None:
    report = _simulate(name)
    assert report["summary"]["states"] == {"Running": n_pods}
    assert report["pending"] == []


@pytest.fixture
def one_node(tmp_path: Path) -> Path:
    """The first node of the cluster, with less in it."""
    path = tmp_path / "node.yaml"
    first, _, _ = CLUSTER.read_text().partition("---\n")
    path.write_text(first.replace("memory: 16Gi", "memory: 1Gi"))
    return path


def _that_fit(pods: list[dict[str, Any]], *, cpu_milli: int, memory_bytes: int) -> list[str]:
    """One node, pods one after another: what fits is there, the rest is not."""
    found = []
    for pod in sorted(pods, key=lambda pod: -pod["priority"]):
        if pod["cpu_milli"] <= cpu_milli and pod["memory_bytes"] <= memory_bytes:
            cpu_milli -= pod["cpu_milli"]
            memory_bytes -= pod["memory_bytes"]
            found.append(pod["name"])
    return sorted(found)


@pytest.mark.parametrize("name", ["kube-prometheus", "online-boutique", "otel-demo", "train-ticket"])
def test_what_does_not_fit_waits_and_says_why(one_node: Path, name: str) -> None:
    report = _simulate(name, one_node)
    placed = sorted(pod["name"] for pod in report["pods"] if pod["node"])
    assert placed == _that_fit(report["pods"], cpu_milli=4000, memory_bytes=2**30)
    assert len(report["pending"]) == len(report["pods"]) - len(placed) > 0
    assert all("0/1 nodes are available: 1 Insufficient memory." in pod["message"] for pod in report["pending"])


def test_pods_that_must_not_share_a_node_wait_and_say_why(one_node: Path) -> None:
    report = _simulate("argo-cd-ha", one_node)
    waiting = Counter(pod["workload"] for pod in report["pending"])
    assert waiting == {
        "Deployment argocd-redis-ha-haproxy": 2,
        "Deployment argocd-repo-server": 1,
        "Deployment argocd-server": 1,
        "StatefulSet argocd-redis-ha-server": 1,  # the third comes when the second runs
    }
    assert all("1 node(s) didn't match pod anti-affinity rules" in pod["message"] for pod in report["pending"])


def test_every_file_comes_with_its_origin_and_licence() -> None:
    told = (MANIFESTS / "README.md").read_text()
    assert all(f"`{path.name}`" in told for path in MANIFESTS.glob("*.yaml"))
    assert "Apache License" in (MANIFESTS / "LICENSE").read_text()
