"""`kubesched up` without kubectl: how it starts, stops, starts again, and what it says to validation errors."""

from __future__ import annotations

import json
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from playground_process import RunningPlayground, Said, kubesched, playground

kubernetes = pytest.importorskip("kubernetes", reason="the official Python client is not installed")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningPlayground]:
    with playground(tmp_path_factory.mktemp("client"), "--in-memory") as running:
        yield running


def test_the_official_python_client_runs_a_deployment(cluster: RunningPlayground) -> None:
    labels = {"app": "web"}
    spec = {
        "replicas": 5,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}},
    }
    with kubernetes.config.new_client_from_config(str(cluster.kubeconfig)) as connection:
        apps, core = kubernetes.client.AppsV1Api(connection), kubernetes.client.CoreV1Api(connection)
        apps.create_namespaced_deployment("default", {"metadata": {"name": "web"}, "spec": spec})
        watch = kubernetes.watch.Watch()
        for event in watch.stream(apps.list_namespaced_deployment, "default", timeout_seconds=60):
            if event["object"].status.ready_replicas == 5:
                watch.stop()
        pods = core.list_namespaced_pod("default", label_selector="app=web").items
        assert {pod.spec.node_name for pod in pods} == {"node-0", "node-1", "node-2"}
        assert {pod.status.phase for pod in pods} == {"Running"}
        apps.patch_namespaced_deployment_scale("web", "default", {"spec": {"replicas": 0}})
        for event in watch.stream(core.list_namespaced_pod, "default", timeout_seconds=60):
            if event["type"] == "DELETED" and not core.list_namespaced_pod("default").items:
                watch.stop()
        events = core.list_namespaced_event("default", field_selector="reason=ScalingReplicaSet").items
        assert {event.source.component for event in events} == {"deployment-controller"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "a polite kill"])
def test_what_was_made_is_there_after_a_restart(tmp_path: Path, number: int) -> None:
    with playground(tmp_path) as first:
        _make_config_map(first)
        _delete_node(first, "node-1")
        said = first.stop(number)
        assert (said.code, said.err) == (0, "stopping\n")
    with playground(tmp_path) as second:
        with kubernetes.config.new_client_from_config(str(second.kubeconfig)) as connection:
            core = kubernetes.client.CoreV1Api(connection)
            assert core.read_namespaced_config_map("kept", "default").data == {"a": "b"}
            assert [node.metadata.name for node in core.list_node().items] == ["node-0", "node-2"]
        assert second.stop().code == 0


def test_one_directory_serves_one_cluster_at_a_time(tmp_path: Path) -> None:
    with playground(tmp_path):
        _is_refused(kubesched("up", "--port", "0", "--data", str(tmp_path / "data")), "another API server is using it")


def _make_config_map(cluster: RunningPlayground) -> None:
    with kubernetes.config.new_client_from_config(str(cluster.kubeconfig)) as connection:
        body = {"metadata": {"name": "kept"}, "data": {"a": "b"}}
        kubernetes.client.CoreV1Api(connection).create_namespaced_config_map("default", body)


def _delete_node(cluster: RunningPlayground, name: str) -> None:
    with kubernetes.config.new_client_from_config(str(cluster.kubeconfig)) as connection:
        kubernetes.client.CoreV1Api(connection).delete_node(name)


def _is_refused(said: Said, why: str) -> None:
    assert said.code == 2, said.all
    assert said.err.startswith("error: ")
    assert why in said.err
    assert said.err.count("\n") == 1


POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}}


@pytest.mark.parametrize(
    ("content", "why"),
    [
        pytest.param("a: [1", "file.yaml: line ", id="no YAML"),
        pytest.param("hello", "file.yaml: a document is not a Kubernetes object", id="no object"),
        pytest.param(
            json.dumps(POD), 'file.yaml: Pod p: Pod "p" is invalid: spec.containers[0].image', id="an invalid pod"
        ),
        pytest.param(json.dumps({**POD, "kind": "Pot"}), "file.yaml: Pot p: the server has no Pot", id="no such kind"),
        pytest.param(
            '{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"},"status":{"capacity":{"cpu":"many"}}}',
            "Node n: ",
            id="a node with amounts that are none",
        ),
    ],
)
def test_a_mistake_in_a_file_is_named(tmp_path: Path, content: str, why: str) -> None:
    file = tmp_path / "file.yaml"
    file.write_text(content)
    _is_refused(kubesched("up", "--once", "-f", str(file)), why)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        pytest.param(("--once",), "--once needs -f", id="--once alone"),
        pytest.param(("--once", "-f", "missing.yaml"), "missing.yaml: No such file", id="a file that is not there"),
        pytest.param(("--in-memory", "--config", "missing.yaml"), "missing.yaml", id="a configuration that is not"),
        pytest.param(("--nodes", "-1"), "--nodes", id="fewer nodes than none"),
        pytest.param(("--in-memory", "--cpu", "lots"), "--cpu lots: ", id="an amount that is none"),
        pytest.param(("--port", "70000"), "--port", id="a port that is none"),
        pytest.param(("--data", "/dev/null"), "--data /dev/null: not a directory", id="a file as directory"),
    ],
)
def test_a_wrong_option_is_named(options: tuple[str, ...], why: str) -> None:
    _is_refused(kubesched("up", *options), why)


def test_a_taken_port_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = kubesched("up", "--data", str(tmp_path), "--port", str(port))
    _is_refused(said, f"127.0.0.1:{port}: the port is in use; choose another with --port")


@pytest.mark.parametrize(
    ("file", "why"),
    [
        pytest.param("format", "written by another version of kubesched", id="of another version"),
        pytest.param("objects.sqlite", "objects.sqlite: cannot be read (file is not a database)", id="damaged"),
    ],
)
def test_a_directory_that_cannot_be_read_is_named(tmp_path: Path, file: str, why: str) -> None:
    (tmp_path / file).write_text("something else")
    _is_refused(kubesched("up", "--data", str(tmp_path), "--port", "0"), why)


def test_once_tells_what_became_of_the_pods(tmp_path: Path) -> None:
    big = {"containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "100"}}}]}
    small = {"containers": [{"name": "c", "image": "x"}]}
    pods = [{**POD, "metadata": {"name": name}, "spec": spec} for name, spec in (("small", small), ("big", big))]
    file = tmp_path / "pods.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": pods}))
    said = kubesched("up", "--once", "--nodes", "2", "-f", str(file))
    assert (said.code, said.err) == (1, "")
    assert said.out.splitlines()[0] == "1 of 2 pods scheduled, on 1 node"
    assert "pending: default/big: 0/2 nodes are available: 2 Insufficient cpu." in said.out
