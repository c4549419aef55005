"""The command line on older configurations: explain, simulate, and what is translated."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from kubesched.cli.main import main
from kubesched.scheduler.config import load
from kubesched.testing import make

POLICY = "kind: Policy\npredicates: []\npriorities:\n- {name: NodePreferAvoidPodsPriority, weight: 1}\n"


def run(*arguments: str | Path, stdin: str | None = None) -> Result:
    return CliRunner().invoke(main, [*map(str, arguments)], input=stdin)


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    path = tmp_path / "cluster.json"
    items = [make.node("a", taints=[make.taint("gpu")]), make.node("b"), make.pod("new", cpu="1")]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return path


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY)
    return path


def test_an_explanation_says_whose_decision_it_is(cluster: Path, policy: Path) -> None:
    result = run("explain", "new", "-f", cluster, "--policy-config-file", policy, "--emulate", "1.14")
    assert result.exit_code == 0
    assert result.stdout.startswith("As kube-scheduler v1.14 decides.\nPod default/new fits on 1 of 2 nodes")
    assert "node(s) had taints that the pod didn't tolerate (PodToleratesNodeTaints)" in result.stdout
    assert "scores are 0 to 10" in result.stdout


def test_a_missing_claim_is_no_broken_plugin(tmp_path: Path) -> None:
    path = tmp_path / "cluster.json"
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "gone"}}]
    items = [make.node("a"), make.pod("new", spec={"volumes": volumes})]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    told = run("explain", "new", "-f", path, "--emulate", "1.17").stdout.splitlines()
    problem = 'persistentvolumeclaim "gone" not found'
    assert told[1:] == [
        f"Pod default/new cannot be decided on: the search ended in an error before any node was looked at: {problem}.",
        "",
        f"FailedScheduling: {problem}",
    ]


def test_a_translated_policy_is_told_in_warnings(cluster: Path, policy: Path) -> None:
    result = run("explain", "new", "-f", cluster, "--policy-config-file", policy)
    assert result.exit_code == 0
    assert "warning: NodePreferAvoidPodsPriority: dropped" in result.stderr


def test_machines_get_the_older_record(cluster: Path) -> None:
    result = run("explain", "new", "-f", cluster, "--emulate", "1.19", "-o", "json")
    record = json.loads(result.stdout)["explanation"]
    assert record["best"] == ["b"]
    assert "gated" not in record


def test_a_simulation_emulates_as_well(cluster: Path) -> None:
    result = run("simulate", "-f", cluster, "--emulate", "1.17", "--algorithm-provider", "ClusterAutoscalerProvider")
    assert result.exit_code == 0
    assert "1 Running" in result.stdout


def test_gates_of_the_version_are_given_as_to_kube_scheduler(cluster: Path) -> None:
    gates = ("--feature-gates", "EvenPodsSpread=true")
    result = run("explain", "new", "-f", cluster, "--emulate", "1.17", *gates, "-o", "json")
    record = json.loads(result.stdout)["explanation"]
    assert "PodTopologySpread" in record["nodes"]["b"]["scores"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["--emulate", "1.16"], 'version "1.16" is not known: there are 1.13', id="no such version"),
        pytest.param(["--algorithm-provider", "Mine"], '"ClusterAutoscalerProvider"', id="no such provider"),
        pytest.param(["--policy-config-file", "/no/such"], "/no/such: No such file", id="no such file"),
        pytest.param(["--feature-gates", "A=true", "--emulate", "1.14"], '"A" is not known', id="no such gate"),
        pytest.param(["--feature-gates", "A"], "must have the form Name=true", id="a gate without a value"),
    ],
)
def test_a_mistake_is_one_line_and_the_code_2(cluster: Path, arguments: list[str], message: str) -> None:
    result = run("simulate", "-f", cluster, *arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_convert_prints_v1_and_says_what_was_lost(policy: Path) -> None:
    result = run("config", "convert", policy)
    assert result.exit_code == 0
    manifest = yaml.safe_load(result.stdout)
    assert load(manifest, "converted").profiles
    assert result.stderr == (
        f"{policy}: NodePreferAvoidPodsPriority: dropped: the annotation that it went by is gone; taint such nodes\n"
    )


def test_convert_reads_standard_input_and_writes_json() -> None:
    old = "apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\nparallelism: 8\n"
    result = run("config", "convert", "-", "-o", "json", stdin=old)
    assert json.loads(result.stdout) == {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "parallelism": 8,
    }


def test_convert_names_the_mistake(tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    path.write_text('{"kind": "Policy", "predicates": [{"name": "Mine"}]}')
    result = run("config", "convert", path)
    assert result.exit_code == 2
    assert "predicates[0].name: Unsupported value" in result.stderr
