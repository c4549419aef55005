"""`kubectl why`: a live pod explained, or all pending pods grouped by cause, with kubectl's options."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
import yaml
from click.testing import Result
from live_clusters import ROOT, LiveCluster, example_objects, the_one_error

from kubesched.cli.why import why
from kubesched.testing import make

ANSWERS = Path(__file__).parent / "answers"
REPORT = (ANSWERS / "shop-report.text.txt").read_text()


@pytest.fixture
def example(tmp_path: Path) -> LiveCluster:
    return LiveCluster(tmp_path, example_objects())


def ask(cluster: LiveCluster, *arguments: str) -> Result:
    return cluster.run(*arguments, command=why)


@pytest.mark.parametrize(
    "arguments",
    [
        ["report", "-n", "shop"],
        ["-n", "shop", "pod/report"],
        ["pods/report", "--namespace=shop"],
        ["shop/report"],
        ["shop/report", "-n", "shop", "--context", "test"],
    ],
    ids=" ".join,
)
def test_a_pod_is_named_as_for_kubectl(arguments: list[str], example: LiveCluster) -> None:
    result = ask(example, *arguments)
    assert (result.exit_code, result.stderr, result.stdout) == (0, "", REPORT)
    assert {request.verb for request in example.server.requests} == {"list"}


def test_the_namespace_is_that_of_the_context(tmp_path: Path) -> None:
    assert ask(LiveCluster(tmp_path, example_objects(), namespace="shop"), "report").stdout == REPORT


def test_other_forms_are_those_of_explain(example: LiveCluster) -> None:
    wide = ask(example, "report", "-n", "shop", "-o", "wide")
    assert wide.stdout == (ANSWERS / "shop-report.wide.txt").read_text()
    assert json.loads(ask(example, "report", "-n", "shop", "-o", "json").stdout)["pod"] == "shop/report"


def test_two_namespaces_are_one_too_many(example: LiveCluster) -> None:
    line = the_one_error(ask(example, "shop/report", "-n", "lab"))
    assert line.startswith("shop/report is not in the namespace lab: specify the namespace once")


def test_a_pod_that_is_not_there_is_one_line(example: LiveCluster) -> None:
    assert the_one_error(ask(example, "gone")) == f"{example.source}: pod default/gone does not exist"


def test_a_wrong_command_line_is_one_line(example: LiveCluster) -> None:
    assert the_one_error(ask(example, "--nonsense")).startswith('No such option "--nonsense"')


CLUSTER = [
    make.node("a", cpu="1"),
    make.pod("big", namespace="shop", cpu="2"),
    make.pod("small", namespace="shop", cpu="1"),
    make.pod("gated", namespace="shop", spec={"schedulingGates": [{"name": "example.com/hold"}]}),
    make.pod("leaving", namespace="shop", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}),
    make.pod("other", namespace="lab", cpu="1"),
    make.pod("done", namespace="shop", status={"phase": "Succeeded"}),
]


def test_without_a_pod_those_of_the_namespace_are_grouped_by_cause(tmp_path: Path) -> None:
    replicas = [make.pod(f"big-{i}", namespace="shop", cpu="2") for i in range(3)]
    result = ask(LiveCluster(tmp_path, [*CLUSTER, *replicas]), "-n", "shop")
    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[0].startswith(
        "Namespace shop: 5 of 6 pods are pending, for 2 reasons, most often (4 pods): needs 2 cpu; the only node, a, "
    )
    assert lines[2] == "Pending pods, by what stands in their way"
    assert [line.split()[0] for line in lines[4:] if line[6:7].isdigit()] == ["4", "1", "1"]
    assert "shop/leaving" not in result.stdout and "shop/done" not in result.stdout


def test_pods_of_all_namespaces_are_grouped(tmp_path: Path) -> None:
    told = json.loads(ask(LiveCluster(tmp_path, CLUSTER), "-A", "-o", "json").stdout)
    assert told["subject"] == "All namespaces"
    assert [(group["cause"]["kind"], group["pods"]) for group in told["groups"]] == [
        ("too-large", ["shop/big"]),
        ("scheduling-gates", ["shop/gated"]),
        ("fits", ["lab/other", "shop/small"]),
    ]


def test_the_groups_for_machines(tmp_path: Path) -> None:
    cluster = LiveCluster(tmp_path, CLUSTER, namespace="lab")
    told = json.loads(ask(cluster, "-o", "json").stdout)
    assert (told["pending"], told["groups"][0]["pods"]) == (1, ["lab/other"])
    assert yaml.safe_load(ask(cluster, "-o", "yaml").stdout) == told


def test_no_pending_pods_are_no_error(tmp_path: Path) -> None:
    result = ask(LiveCluster(tmp_path, [make.node("a")]))
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "No pending pods found in default namespace.\n"


def test_a_list_that_cannot_be_read_is_one_line(example: LiveCluster) -> None:
    example.server.refuse("list", "nodes")
    assert the_one_error(ask(example)).startswith(f"{example.source}: cannot list nodes: ")


def test_the_program_has_the_name_by_which_kubectl_finds_it() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["scripts"]["kubectl-why"] == "kubesched.cli.why:main"
