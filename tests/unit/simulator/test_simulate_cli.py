"""`kubesched simulate` from the outside: forms of output, repeatability, validation errors in one line."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from kubesched.cli.main import main

EXAMPLE = Path(__file__).parents[3] / "examples" / "simulate"
NODE = "{apiVersion: v1, kind: Node, metadata: {name: 'n'}, status: {allocatable: {cpu: 4, memory: 8Gi, pods: 110}}}\n"


def _run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(main, ["simulate", *arguments], input=stdin)


def _example(*arguments: str) -> str:
    result = _run("-f", str(EXAMPLE), *arguments)
    assert result.exit_code == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize("form", ["text", "wide", "json", "yaml", "csv"])
def test_the_same_seed_gives_the_same_bytes(form: str) -> None:
    assert _example("--seed", "7", "-o", form) == _example("--seed", "7", "-o", form)


def test_another_process_gives_the_same_bytes() -> None:
    """Nothing depends on how this process happens to hash texts."""
    program = "import sys\nfrom kubesched.cli.main import main\nmain(sys.argv[1:])\n"
    command = [sys.executable, "-c", program, "simulate", "-f", str(EXAMPLE), "--seed", "7", "-o", "json"]
    outputs = [
        subprocess.run(command, capture_output=True, check=True, env={"PYTHONHASHSEED": seed}).stdout
        for seed in ("1", "2")
    ]
    assert outputs[0] == outputs[1]


def test_different_seeds_differ() -> None:
    outputs = {_example("--seed", str(seed), "-o", "json") for seed in range(3)}
    assert len(outputs) == 3


def test_json_and_yaml_say_the_same() -> None:
    assert json.loads(_example("-o", "json")) == yaml.safe_load(_example("-o", "yaml"))


@pytest.mark.parametrize("table", ["pods", "nodes", "utilisation", "events", "preemptions", "not_created"])
def test_csv_has_one_table(table: str) -> None:
    rows = list(csv.DictReader(io.StringIO(_example("-o", "csv", "--table", table))))
    told = json.loads(_example("-o", "json"))[table]
    assert [list(row) for row in rows[:1]] == [list(row) for row in told[:1]]
    assert len(rows) == len(told)


def test_the_text_says_what_became_of_workloads_and_how_full_nodes_are() -> None:
    text = _example("--tie-break", "name")
    assert text.splitlines()[:2] == [
        "49 pods on 7 nodes: 6 Gone, 18 Running, 25 Succeeded.",
        "The run was cut short at 1d: more was to come. Seed 0, ties by name.",
    ]
    for heading in ("Workloads", "Preemptions", "Nodes: requested of allocatable", "Cluster: cpu"):
        assert f"\n\n{heading}" in text


def test_the_text_says_what_waits_and_why() -> None:
    files = ["-f", str(EXAMPLE / "cluster.yaml"), "-f", str(EXAMPLE / "workload.yaml")]
    text = _run(*files, "--until", "2h", "--tie-break", "name").stdout
    _, _, pending = text.partition("\n\nPending\n")
    assert pending.startswith("  1 pod: shop/search-")
    assert "0/5 nodes are available: 1 node(s) had untolerated taint(s), 4 Insufficient cpu." in pending


def test_wide_lists_every_pod() -> None:
    wide, told = _example("-o", "wide"), json.loads(_example("-o", "json"))
    assert all(f"{pod['namespace']}/{pod['name']} " in wide for pod in told["pods"])


def test_manifests_may_come_from_standard_input() -> None:
    result = _run("-f", "-", stdin=NODE)
    assert result.exit_code == 0
    assert result.stdout.startswith("0 pods on 1 node: none.\nThe run was over after 0s.")


def test_kinds_that_mean_nothing_are_told_in_one_line() -> None:
    account = "---\n{apiVersion: v1, kind: ServiceAccount, metadata: {name: x}}\n"
    result = _run("-f", "-", stdin=NODE + account * 2)
    assert (result.exit_code, result.stderr) == (0, "warning: <stdin>: ignored 2 v1 ServiceAccount\n")


def test_extenders_are_not_called_and_that_is_said(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "extenders: [{urlPrefix: 'http://127.0.0.1:1/', filterVerb: filter, weight: 1}]\n"
    )
    result = _run("-f", "-", "--config", str(config), stdin=NODE)
    assert (result.exit_code, result.stderr) == (0, "warning: extenders are not called in a simulation\n")


SCENARIO = "---\n{apiVersion: kubesched.dev/v1alpha1, kind: Scenario, metadata: {name: s}, events: [%s]}\n"


@pytest.mark.parametrize(
    ("arguments", "stdin", "message"),
    [
        pytest.param(["-f", "nowhere.yaml"], "", "nowhere.yaml: No such file or directory", id="no such file"),
        pytest.param(["-f", "-"], "", "<stdin>: the file is empty", id="an empty file"),
        pytest.param(
            ["-f", "-", "--until", "soon"],
            NODE,
            "Invalid value for '--until': 'soon' is not a duration such as 90s, 24h or 1h30m "
            "(try: kubesched simulate --help)",
            id="no span of time",
        ),
        pytest.param(["-f", "-", "--start", "noon"], NODE, "--start: not an RFC 3339 time: 'noon'", id="no instant"),
        pytest.param(
            ["-f", "-"],
            NODE + SCENARIO % "{at: 1h, drain: x}",
            '<stdin>: Scenario s: events[0].drain: there is no node "x"',
            id="a scenario about a node that is not there",
        ),
        pytest.param(
            ["-f", "-"],
            NODE + "---\n{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {parallelism: many}}\n",
            "<stdin>: Job j: spec.parallelism: expected int | null, got str",
            id="a number that is none",
        ),
        pytest.param(
            ["-f", "-", "--config", "-"],
            NODE,
            "<stdin>: cannot be both the configuration and the manifests",
            id="standard input twice",
        ),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(arguments: list[str], stdin: str, message: str) -> None:
    result = _run(*arguments, stdin=stdin)
    assert result.exit_code == 2
    assert (result.stdout, result.stderr) == ("", f"error: {message}\n")
