"""`kubesched explain deployment/web`: one pod stands for all replicas, however many they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from harness.workload_manifests import cron_job, workload
from kubesched.cli.main import main
from kubesched.k8s.model import manifests
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.manifests import KINDS_WITH_WORKLOADS
from kubesched.simulator.one_pod import with_one_pod
from kubesched.testing import make
from kubesched.testing.make import Manifest

BILLION = 1_000_000_000
NODES = [make.node("small", cpu=1), make.node("large", cpu=4)]
NOTE = "warning: {} default/web: explained by one of its pods, as it would be created now\n"


def explain(tmp_path: Path, name: str, *items: Manifest, output: str = "json") -> Result:
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*NODES, *items]}))
    return CliRunner().invoke(main, ["explain", name, "-f", str(file), "-o", output])


@pytest.mark.parametrize(
    ("name", "item"),
    [
        pytest.param(
            "deployment/web", workload("Deployment", "web", replicas=BILLION, pod={"cpu": 2}), id="deployment"
        ),
        pytest.param("rs/web", workload("ReplicaSet", "web", replicas=BILLION, pod={"cpu": 2}), id="replica set"),
        pytest.param(
            "rc/web",
            workload("ReplicationController", "web", replicas=BILLION, pod={"cpu": 2}),
            id="replication controller",
        ),
        pytest.param("sts/web", workload("StatefulSet", "web", replicas=BILLION, pod={"cpu": 2}), id="stateful set"),
        pytest.param("Job/web", workload("Job", "web", parallelism=BILLION, pod={"cpu": 2}), id="job"),
        pytest.param("cronjob/web", cron_job("web", "@daily", pod={"cpu": 2}), id="cron job"),
    ],
)
def test_one_pod_of_a_workload_is_explained(name: str, item: Manifest, tmp_path: Path) -> None:
    result = explain(tmp_path, name, item)
    assert result.exit_code == 0, result.output
    assert result.stderr == NOTE.format(item["kind"])
    told = json.loads(result.stdout)
    assert told["explanation"]["best"] == ["large"]
    assert told["pod"].startswith("default/web-")
    assert explain(tmp_path, f"default/{name}", item).stdout == result.stdout


def test_only_one_pod_is_made() -> None:
    huge = workload("Deployment", "web", replicas=BILLION)
    found = manifests.from_dicts([*NODES, make.pod("other"), huge], kinds=KINDS_WITH_WORKLOADS)
    made = with_one_pod(found, "Deployment", "default/web")
    assert made is not None
    assert sum(isinstance(item, Pod) for item in made[0].objects) == 2


def test_a_numbered_pod_has_the_next_number_and_its_claim(tmp_path: Path) -> None:
    claim: dict[str, Any] = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    templates = [{"metadata": {"name": "data"}, "spec": {**claim, "storageClassName": "disks"}}]
    item = workload("StatefulSet", "web", replicas=3, volumeClaimTemplates=templates)
    result = explain(tmp_path, "statefulset/web", make.pod("web-0", on="large"), item)
    told = json.loads(result.stdout)
    assert told["pod"] == "default/web-1"
    assert "unbound immediate PersistentVolumeClaims" in told["explanation"]["message"]  # it is there, and waits


def test_a_pod_in_a_namespace_that_is_called_like_a_kind_is_a_pod(tmp_path: Path) -> None:
    pod = make.pod("web", namespace="deployment", cpu=2)
    result = explain(tmp_path, "deployment/web", pod, workload("Deployment", "web", pod={"cpu": 9}))
    assert json.loads(result.stdout)["pod"] == "deployment/web"
    assert result.stderr == ""


@pytest.mark.parametrize(
    ("name", "item", "says"),
    [
        pytest.param(
            "deploy/other", workload("Deployment", "web"), "Deployment default/other does not exist", id="none"
        ),
        pytest.param(
            "job/web",
            workload("Job", "web", parallelism=0),
            "Job default/web: its controller would create no pod now",
            id="no pods",
        ),
        pytest.param(
            "deployment/web",
            workload("Deployment", "web", pod={"priorityClassName": "urgent"}),
            "Deployment default/web: an API server would refuse its pods: ",
            id="refused",
        ),
        pytest.param(
            "deployment/web",
            workload("Deployment", "web", pod={"cpu": "a lot"}),
            "Deployment default/web: spec.template.spec.containers[0].resources.requests.cpu: ",
            id="an amount that is none",
        ),
    ],
)
def test_what_cannot_be_explained_is_told_in_one_line(name: str, item: Manifest, says: str, tmp_path: Path) -> None:
    result = explain(tmp_path, name, item)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"error: {tmp_path / 'cluster.json'}: {says}")
    assert result.stderr.count("\n") == 1
