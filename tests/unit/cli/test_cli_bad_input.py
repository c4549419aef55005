"""Whatever is wrong with what a user gives: one line that names file, object and field, exit code 2, no traceback."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kubesched.cli.main import main

NODE = "{apiVersion: v1, kind: Node, metadata: {name: 'n'}, status: {allocatable: {cpu: 4, memory: 8Gi, pods: 110}}}\n"
PENDING = "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: []}}\n"
CONFIG = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def run(*arguments: str, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(main, ["explain", *arguments], input=stdin)


def the_one_line(result: Result) -> str:
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1 and result.stderr.startswith("error: ")
    return result.stderr.removeprefix("error: ").rstrip("\n")


BAD_FILES = [
    pytest.param(
        "a: [1\nb: 2\n",
        "line 2, column 2: not YAML or JSON: did not find expected ',' or ']'",
        id="broken YAML",
    ),
    pytest.param(
        '{"apiVersion": "v1", "kind": ',
        "line 2, column 1: not YAML or JSON: ",
        id="broken JSON",
    ),
    pytest.param(
        "metadata:\n\tname: p\n",
        "line 2, column 1: not YAML or JSON: found character that cannot start any token"
        " (a tab: YAML is indented with spaces)",
        id="a tab",
    ),
    pytest.param(
        "metadata:\n  name: {{ .Release.Name }}\n",
        "line 2, column 10: not YAML or JSON: found unhashable key (a template? render it first)",
        id="a chart's template",
    ),
    pytest.param(
        NODE.replace("name: 'n'", "name: 'n', labels: {good: x, spot: true}"),
        "Node n: metadata.labels.spot: expected str, got bool",
        id="a label that is no text",
    ),
    pytest.param(
        '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": {"a/b": 1}}}',
        "Node n: metadata.labels[a/b]: expected str, got int",
        id="a label that is no text, in JSON",
    ),
    pytest.param("hello: world\n", "document 1: not a Kubernetes object: kind is missing", id="not Kubernetes"),
    pytest.param(
        NODE + "---\n- 1\n",
        "document 2: not a Kubernetes object: a mapping with apiVersion and kind is expected",
        id="a list that is no List",
    ),
    pytest.param("", "the file is empty", id="an empty file"),
    pytest.param("# nothing here\n", "no Kubernetes objects in it", id="comments only"),
    pytest.param("caf\xe9: 1\n".encode("latin-1"), "line 1: not UTF-8: byte 0xe9", id="not UTF-8"),
    pytest.param(
        "a: !!int x\n",
        "line 1, column 4: not YAML or JSON: cannot decode !!str `x` as a !!int",
        id="a YAML tag that does not hold",
    ),
    pytest.param('{"a":' * 20_000, "nested too deeply", id="nested too deeply"),
    pytest.param(
        PENDING.replace("[]", "[{name: c, resources: {requests: {cpu: 1x}}}]"),
        "Pod default/p: spec.containers[0].resources.requests.cpu: invalid quantity '1x': ",
        id="an invalid quantity of a pod",
    ),
    pytest.param(
        NODE.replace("8Gi", "8Zi"),
        "Node n: status.allocatable.memory: invalid quantity '8Zi': ",
        id="an invalid quantity of a node",
    ),
    pytest.param(
        PENDING.replace("[]", "3"), "Pod p: spec.containers: expected array, got int", id="a field of a wrong type"
    ),
    pytest.param(
        "{apiVersion: v1, kind: Pod, metadata: {}}\n",
        "Pod document 1: metadata.name: a name is required",
        id="an object without a name",
    ),
]


@pytest.mark.parametrize(("content", "expected"), BAD_FILES)
def test_a_bad_file_is_one_line(content: str | bytes, expected: str, tmp_path: Path) -> None:
    path = tmp_path / "objects.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    line = the_one_line(run("p", "-f", str(path)))
    assert line.startswith(f"{path}: {expected}")


BAD_PODS = [
    pytest.param("gone", "pod default/gone is not among the 3 pods that were read", id="not there"),
    pytest.param(
        "shop/p",
        "pod shop/p is not among the 3 pods that were read; there is default/p",
        id="in another namespace",
    ),
    pytest.param(
        "done",
        "pod default/done has finished: a pod in phase Succeeded or Failed is not scheduled",
        id="finished",
    ),
]


def test_a_pod_of_a_file_without_pods(tmp_path: Path) -> None:
    path = tmp_path / "objects.yaml"
    path.write_text(NODE)
    assert the_one_line(run("p", "-f", str(path))) == f"{path}: there is no pod default/p: no pods were read"


@pytest.mark.parametrize(("pod", "expected"), BAD_PODS)
def test_a_pod_that_cannot_be_explained_is_one_line(pod: str, expected: str, tmp_path: Path) -> None:
    path = tmp_path / "objects.yaml"
    bound = PENDING.replace("name: p", "name: bound").replace("containers: []", "nodeName: 'n'")
    done = PENDING.replace("name: p", "name: done").replace("}\n", ", status: {phase: Succeeded}}\n")
    path.write_text("---\n".join((NODE, PENDING, bound, done)))
    assert the_one_line(run(pod, "-f", str(path))) == f"{path}: {expected}"


BAD_CONFIGS = [
    pytest.param(
        f"{CONFIG}profiles: [{{plugins: {{filter: {{enabled: [{{name: Nope}}]}}}}}}]\n",
        'profiles[0].plugins.filter.enabled: FilterPlugin "Nope" does not exist',
        id="an unknown plugin",
    ),
    pytest.param(
        f"{CONFIG}profiles: [{{pluginConfig: [{{name: NodeResourcesFit, args: {{scoringStrategy: 3}}}}]}}]\n",
        "profiles[0].pluginConfig[0].args.scoringStrategy: ",
        id="args of a wrong type",
    ),
    pytest.param("a: [1\n", "", id="broken YAML"),
    pytest.param(b"\xff", "not UTF-8", id="not UTF-8"),
]


@pytest.mark.parametrize(("content", "expected"), BAD_CONFIGS)
def test_a_bad_configuration_is_one_line(content: str | bytes, expected: str, tmp_path: Path) -> None:
    objects, config = tmp_path / "objects.yaml", tmp_path / "config.yaml"
    objects.write_text(f"{NODE}---\n{PENDING}")
    config.write_bytes(content if isinstance(content, bytes) else content.encode())
    line = the_one_line(run("p", "-f", str(objects), "--config", str(config)))
    assert line.startswith(f"{config}: {expected}")


def test_every_mistake_in_a_configuration_has_its_line(tmp_path: Path) -> None:
    objects, config = tmp_path / "objects.yaml", tmp_path / "config.yaml"
    objects.write_text(f"{NODE}---\n{PENDING}")
    config.write_text(f"{CONFIG}parallelism: many\nnonsense: 1\n")
    result = run("p", "-f", str(objects), "--config", str(config))
    assert result.exit_code == 2
    lines = result.stderr.splitlines()
    assert len(lines) == 2 and all(line.startswith(f"error: {config}: ") for line in lines)


def test_files_that_cannot_be_read_are_one_line(tmp_path: Path) -> None:
    gone = tmp_path / "gone.yaml"
    assert the_one_line(run("p", "-f", str(gone))) == f"{gone}: No such file or directory"
    assert the_one_line(run("p", "-f", str(gone / "x"), "--config", str(gone))).startswith(f"{gone}: ")
    assert (
        the_one_line(run("p", "-f", str(tmp_path)))
        == f"{tmp_path}: no .json, .yaml, .yml file in this directory or below"
    )
    assert the_one_line(run("p", "-f", "-", "--config", "-", stdin=b"")).startswith("<stdin>: ")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param(
            ["p", "-f", "x", "-o", "xml"],
            "Invalid value for '-o' / '--output': 'xml' is not one of 'text', 'wide', 'json', 'yaml'"
            " (try: kubesched explain --help)",
            id="no such output",
        ),
    ],
)
def test_a_wrong_command_line_is_one_line(arguments: list[str], expected: str) -> None:
    assert the_one_line(run(*arguments)) == expected


def test_unknown_kinds_are_warned_about_once_per_file(tmp_path: Path) -> None:
    path = tmp_path / "objects.yaml"
    role = "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: d}}\n"
    deployment = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}}\n"  # as every dump has it
    config_map = "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}\n"
    path.write_text("---\n".join((NODE, PENDING, role, role, config_map, role, deployment)))
    result = run("p", "-f", str(path))
    assert result.exit_code == 0
    assert result.stderr.splitlines() == [
        f"warning: {path}: ignored 3 rbac.authorization.k8s.io/v1 Role",
        f"warning: {path}: ignored 1 v1 ConfigMap",
    ]


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("v1 pod", "ignored 1 v1 pod (did you mean Pod?)"),
        ("v1 Deployment", "ignored 1 v1 Deployment (Deployment is in apps/v1)"),
        ("serving.knative.dev/v1 Service", "ignored 1 serving.knative.dev/v1 Service"),
    ],
)
def test_a_kind_in_other_letters_or_of_another_group_is_hinted_at(written: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "objects.yaml"
    api_version, kind = written.split()
    path.write_text(f"{NODE}---\napiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: a}}\n")
    result = CliRunner().invoke(main, ["explain", "-f", str(path)])
    assert result.stderr.splitlines() == [f"warning: {path}: {told}"]


def test_hollow_nodes_without_a_server_are_one_line(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
    parts = ["clusters: [{name: c, cluster: {server: '" + url + "'}}]", "contexts: [{name: c, context: {cluster: c}}]"]
    kubeconfig.write_text("\n".join([*parts, "current-context: c", ""]))
    result = CliRunner().invoke(main, ["nodes", "--count", "1", "--kubeconfig", str(kubeconfig)])
    assert result.exit_code == 4
    assert result.stderr.startswith(f"error: cannot reach the API server at {url}: ")
    assert result.stderr.count("\n") == 1
