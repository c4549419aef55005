"""`kubesched explain deployment/web`: its pods grouped by cause, or one that stands for all, however many they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import kubesched
from harness.workload_manifests import cron_job, workload
from kubesched.cli.main import main
from kubesched.k8s.model import manifests
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.manifests import KINDS_WITH_WORKLOADS
from kubesched.simulator.expansion import with_one_pod
from kubesched.testing import make
from kubesched.testing.make import Manifest

BILLION = 1_000_000_000
NODES = [make.node("small", cpu=1), make.node("large", cpu=4)]
NOTE = "warning: {} default/web: explained by one of its pods, as it would be created now\n"


def explain(tmp_path: Path, name: str, *items: Manifest, output: str = "json") -> Result:
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*NODES, *items]}))
    return CliRunner().invoke(main, ["explain", *filter(None, [name]), "-f", str(file), "-o", output])


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


def _owned(name: str, kind: str, owner: str, **how: Any) -> Manifest:
    reference = {"apiVersion": "apps/v1", "kind": kind, "name": owner, "uid": f"uid-{owner}", "controller": True}
    return make.pod(name, metadata={"ownerReferences": [reference]}, **how)


def test_pods_of_a_deployment_are_grouped_by_cause(tmp_path: Path) -> None:
    """Through the replica set between the two, even if only the pods speak of it."""
    items = [
        workload("Deployment", "web", replicas=4, pod={"cpu": 2}),
        _owned("web-7f-a", "ReplicaSet", "web-7f", on="large", cpu=3),
        *(_owned(f"web-7f-{name}", "ReplicaSet", "web-7f", cpu=2) for name in "bc"),
        _owned("web-7f-d", "ReplicaSet", "web-7f", cpu=2, spec={"schedulingGates": [{"name": "hold"}]}),
        make.pod("other", cpu=9),
    ]
    told = json.loads(explain(tmp_path, "deploy/web", *items).stdout)
    assert (told["subject"], told["wanted"], told["placed"], told["pending"]) == ("Deployment default/web", 4, 1, 3)
    assert [(group["cause"]["kind"], group["count"]) for group in told["groups"]] == [
        ("insufficient-resources", 2),
        ("scheduling-gates", 1),
    ]
    text = explain(tmp_path, "deploy/web", *items, output="text").stdout
    assert text.startswith(
        "Deployment default/web: 3 of 4 pods are pending, for 2 reasons, most often (2 pods): needs 2 cpu; "
    )


def test_pods_that_an_api_server_refuses_do_not_exist(tmp_path: Path) -> None:
    item = workload("Deployment", "web", replicas=3, pod={"priorityClassName": "urgent"})
    told = json.loads(explain(tmp_path, "deployment/web", item).stdout)
    assert told["missing"]["count"] == 3
    assert told["missing"]["cause"]["kind"] == "missing-priority-class"
    assert told["headline"].startswith(
        "Deployment default/web: 3 of 3 pods do not exist: an API server refuses its pods: "
    )


def test_a_workload_may_want_no_pods(tmp_path: Path) -> None:
    result = explain(tmp_path, "job/web", workload("Job", "web", parallelism=0), output="text")
    assert (result.exit_code, result.stdout) == (0, "Job default/web wants no pods now.\n")


def test_a_namespace_is_explained_with_what_does_not_exist(tmp_path: Path) -> None:
    items = [
        make.pod("big", cpu=9),
        make.pod("elsewhere", namespace="lab", cpu=9),
        workload("Deployment", "web", replicas=2, pod={"priorityClassName": "urgent"}),
    ]
    told = json.loads(explain(tmp_path, "namespace/default", *items).stdout)
    assert [group["pods"] for group in told["groups"]] == [["default/big"]]
    (note,) = told["notes"]
    assert note.startswith("Deployment default/web has 0 of 2 pods: an API server refuses its pods: ")


def test_without_a_name_all_that_waits_is_explained(tmp_path: Path) -> None:
    items = [
        make.pod("big", cpu=9),
        make.pod("placed", on="large"),
        make.pod("elsewhere", namespace="lab", cpu=9),
        workload("Deployment", "web", replicas=2, pod={"priorityClassName": "urgent"}),
    ]
    told = json.loads(explain(tmp_path, "", *items).stdout)
    assert told["headline"].startswith("All namespaces: 2 of 3 pods are pending")
    assert sorted(name for group in told["groups"] for name in group["pods"]) == ["default/big", "lab/elsewhere"]
    assert told["notes"][0].startswith("Deployment default/web has 0 of 2 pods")
    one = CliRunner().invoke(main, ["explain", "-n", "lab", "-f", str(tmp_path / "cluster.json"), "-o", "json"])
    assert [group["pods"] for group in json.loads(one.stdout)["groups"]] == [["lab/elsewhere"]]
    assert kubesched.explain([*NODES, *items]).to_dict() == told


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--node", "large"], "all namespaces: why not a node is a question about a pod"),
        (["--emulate", "1.19"], "all namespaces: an emulation explains pods only"),
    ],
)
def test_what_is_asked_about_one_pod_needs_its_name(more: list[str], says: str, tmp_path: Path) -> None:
    (tmp_path / "cluster.json").write_text(str(NODES[0]))
    result = CliRunner().invoke(main, ["explain", "-f", str(tmp_path / "cluster.json"), *more])
    assert (result.exit_code, result.stderr) == (2, f"error: {says}\n")


def test_a_node_says_who_could_not_come(tmp_path: Path) -> None:
    items = [
        make.pod("x", on="small", cpu="500m"),
        *(make.pod(f"p{i}", cpu=1) for i in range(3)),
        make.pod("tiny", cpu="100m"),
    ]
    told = json.loads(explain(tmp_path, "node/small", *items).stdout)
    assert (told["pods"], told["couldTake"]) == (1, ["default/tiny"])
    assert told["groups"] == [
        {
            "count": 3,
            "why": "cpu: requested 1, free 500m of 1",
            "pods": ["default/p0", "default/p1", "default/p2"],
        }
    ]
    text = explain(tmp_path, "no/small", *items, output="text").stdout
    assert text.startswith(
        "Node small could take 1 of 4 pending pods; 3 cannot come: cpu: requested 1, free 500m of 1."
    )


def test_a_node_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    result = explain(tmp_path, "node/smal")
    assert (result.exit_code, result.stderr) == (2, "error: node smal is not among the 2 nodes; there is small\n")


def test_why_not_this_node(tmp_path: Path) -> None:
    file = tmp_path / "cluster.json"
    items = [*NODES, make.pod("p", cpu=2)]
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    ask = ["explain", "pod/p", "-n", "default", "-f", str(file), "--node"]
    refused = CliRunner().invoke(main, [*ask, "small"])
    assert refused.stdout.startswith("Pod default/p cannot go to small: cpu: requested 2, allocatable 1.\n")
    assert "lower the cpu request from 2 to 1" in refused.stdout
    fits = json.loads(CliRunner().invoke(main, [*ask, "large", "-o", "json"]).stdout)
    assert (fits["fits"], fits["standing"]["place"]) == (True, 1)
    both = CliRunner().invoke(main, ["explain", "node/small", "-f", str(file), "--node", "small"])
    assert (both.exit_code, both.stderr) == (2, "error: node/small: why not a node is a question about a pod\n")


def _quota(used: dict[str, str], hard: dict[str, str]) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "compute", "namespace": "default"},
        "spec": {"hard": hard},
        "status": {"hard": hard, "used": used},
    }


def test_pods_that_a_quota_leaves_no_room_for_do_not_exist(tmp_path: Path) -> None:
    items = [
        workload("Deployment", "web", replicas=3, pod={"cpu": 1}),
        _owned("web-7f-a", "ReplicaSet", "web-7f", on="large", cpu=1),
        _quota({"requests.cpu": "1500m", "pods": "1"}, {"requests.cpu": "2", "pods": "10"}),
    ]
    told = json.loads(explain(tmp_path, "deployment/web", *items).stdout)
    assert told["headline"] == (
        "Deployment default/web: 2 of 3 pods do not exist: quota compute is used up: 1500m of 2 requests.cpu used, a "
        "pod needs 1. Have the quota raised, run less in the namespace, or ask for less."
    )
    assert told["missing"]["cause"]["kind"] == "quota"
    assert told["missing"]["cause"]["exceeded"][0]["resource"] == "requests.cpu"
    (note,) = json.loads(explain(tmp_path, "ns/default", *items).stdout)["notes"]
    assert note.startswith("Deployment default/web has 1 of 3 pods: quota compute is used up: ")


def test_a_quota_with_room_is_not_the_cause(tmp_path: Path) -> None:
    quota = _quota({"pods": "1"}, {"pods": "10"})
    told = json.loads(explain(tmp_path, "deployment/web", workload("Deployment", "web", pod={"cpu": 9}), quota).stdout)
    assert told["cause"]["kind"] == "too-large"
