"""`kubesched explain` on a live server: the same answers as from files, read-only, and one line for what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from live_clusters import EXAMPLE, LiveCluster, example_objects, the_one_error, write_kubeconfig

from kubesched.cli.main import main
from kubesched.testing import make

ANSWERS = Path(__file__).parent / "answers"


@pytest.fixture
def example(tmp_path: Path) -> LiveCluster:
    return LiveCluster(tmp_path, example_objects())


@pytest.mark.parametrize("pod", ["shop/web-3", "shop/report", "lab/train-2", "shop/web-4", "lab/batch-1"])
def test_a_live_pod_is_explained_as_from_files_by_reading_alone(pod: str, example: LiveCluster) -> None:
    result = example.run("explain", pod)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == (ANSWERS / f"{pod.replace('/', '-')}.text.txt").read_text()
    assert {request.method for request in example.server.requests} == {"GET"}
    assert {request.verb for request in example.server.requests} == {"list"}
    assert not example.server.asked(path="secrets")


def test_kubeconfig_and_context_choose_the_cluster(example: LiveCluster) -> None:
    expected = (ANSWERS / "shop-report.text.txt").read_text()
    kubeconfig = example.kubeconfig
    assert example.run("explain", "shop/report", "--kubeconfig", kubeconfig).stdout == expected
    assert example.run("explain", "shop/report", "--kubeconfig", kubeconfig, "--context", "test").stdout == expected
    assert example.run("explain", "shop/report", "--context", "test").stdout == expected


def test_a_pod_without_a_namespace_is_in_that_of_the_context(tmp_path: Path) -> None:
    cluster = LiveCluster(tmp_path, example_objects(), namespace="shop")
    assert cluster.run("explain", "report").stdout == (ANSWERS / "shop-report.text.txt").read_text()


def test_files_are_laid_over_the_live_cluster(example: LiveCluster, tmp_path: Path) -> None:
    """A pod that is not there yet, and a node as it might become."""
    given = tmp_path / "given.yaml"
    given.write_text("{apiVersion: v1, kind: Pod, metadata: {name: new, namespace: shop}, spec: {containers: []}}\n")
    result = example.run("explain", "shop/new", "--live", "-f", given)
    assert result.stdout.startswith("Pod shop/new fits on 2 of 5 nodes")
    node = next(item for item in example_objects() if item["metadata"]["name"] == "general-3")
    opened = {**node, "spec": {}}
    given.write_text(f"{given.read_text()}---\n{opened}")
    result = example.run("explain", "shop/new", "--context", "test", "-f", given)
    assert result.stdout.startswith("Pod shop/new fits on 3 of 5 nodes")


def test_files_alone_ask_no_server(example: LiveCluster) -> None:
    result = example.run("explain", "shop/report", "-f", EXAMPLE)
    assert result.stdout == (ANSWERS / "shop-report.text.txt").read_text()
    assert example.server.requests == []


BAD_PODS = [
    pytest.param("shop/gone", "pod shop/gone does not exist", id="not there"),
    pytest.param("lab/report", "pod lab/report does not exist; there is shop/report", id="in another namespace"),
    pytest.param(
        "shop/done", "pod shop/done has finished: a pod in phase Succeeded or Failed is not scheduled", id="finished"
    ),
]


@pytest.mark.parametrize(("pod", "expected"), BAD_PODS)
def test_a_pod_that_cannot_be_explained_is_one_line(pod: str, expected: str, example: LiveCluster) -> None:
    example.server.put(make.pod("done", namespace="shop", status={"phase": "Succeeded"}))
    assert the_one_error(example.run("explain", pod)) == f"{example.source}: {expected}"


def test_a_pod_that_does_not_exist_is_told_before_the_rest_is_read(example: LiveCluster) -> None:
    example.run("explain", "shop/gone")
    assert len(example.server.requests) == 1


def test_missing_and_forbidden_kinds_are_warned_of(example: LiveCluster) -> None:
    for plural in ("resourceclaims", "deviceclasses"):
        example.server.routes.remove(plural)
    example.server.refuse("list", "poddisruptionbudgets")
    result = example.run("explain", "shop/report")
    assert result.exit_code == 0
    assert result.stderr.splitlines() == [
        f"warning: {example.source}: the server does not have resourceclaims.resource.k8s.io, "
        "deviceclasses.resource.k8s.io: none are assumed",
        f"warning: {example.source}: no right to list poddisruptionbudgets.policy: none are assumed, "
        "and the answer may be wrong",
    ]
    assert result.stdout == (ANSWERS / "shop-report.text.txt").read_text()


@pytest.mark.parametrize("plural", ["nodes", "pods"])
def test_without_nodes_or_pods_there_is_no_answer(plural: str, example: LiveCluster) -> None:
    example.server.refuse("list", plural)
    line = the_one_error(example.run("explain", "shop/report"))
    assert line.startswith(f"{example.source}: cannot list {plural}: {plural} is forbidden: User ")
    assert line.endswith("(403 Forbidden)")


def test_a_refused_login_is_one_line_without_the_token(tmp_path: Path) -> None:
    cluster = LiveCluster(tmp_path, [], token="not-the-one")
    cluster.server.access.accepts_token = "another"
    line = the_one_error(cluster.run("explain", "p"))
    assert "does not accept the credentials" in line and "not-the-one" not in line


def test_a_server_that_is_away_is_one_line(example: LiveCluster) -> None:
    example.run("explain", "shop/report")  # its port is free again afterwards
    result = CliRunner().invoke(main, ["explain", "shop/report", "--kubeconfig", str(example.kubeconfig)])
    assert the_one_error(result, 4).startswith(f"{example.source}: cannot list pods: ")
    assert example.server.url.removeprefix("http://") in result.stderr


def test_a_server_that_is_none_of_kubernetes_is_one_line(example: LiveCluster) -> None:
    example.server.routes.remove("pods")
    line = the_one_error(example.run("explain", "shop/report"))
    assert line.startswith(f"{example.source}: cannot list pods: ")


BAD_TARGETS = [
    pytest.param(["--context", "no"], 'context "no" does not exist (there are: test)', id="an unknown context"),
    pytest.param(["--kubeconfig", "/nowhere/config"], "/nowhere/config: ", id="no such kubeconfig"),
]


@pytest.mark.parametrize(("arguments", "expected"), BAD_TARGETS)
@pytest.mark.parametrize("command", [("explain", "p"), ("snapshot", "-o", "-"), ("simulate", "-f", str(EXAMPLE))])
def test_a_wrong_choice_of_cluster_is_one_line(
    command: tuple[str, ...], arguments: list[str], expected: str, tmp_path: Path
) -> None:
    kubeconfig = write_kubeconfig(tmp_path / "config", "http://127.0.0.1:1")
    result = CliRunner(env={"KUBECONFIG": str(kubeconfig)}).invoke(main, [*command, *arguments])
    assert expected in the_one_error(result)


def test_without_files_and_kubeconfig_it_is_said_what_to_give(tmp_path: Path) -> None:
    environment = {"KUBECONFIG": "", "HOME": str(tmp_path), "KUBERNETES_SERVICE_HOST": None}
    line = the_one_error(CliRunner(env=environment).invoke(main, ["explain", "p"]))
    assert line.startswith("no cluster is configured: ") and "-f FILE" in line
