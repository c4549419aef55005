"""`kubesched record`, `replay` and `shadow` as commands: what they print, and how they end."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from live_clusters import LiveCluster, example_objects, the_one_error

from kubesched.cli.main import main

EXAMPLE = Path(__file__).parents[3] / "examples" / "replay"
DAY = str(EXAMPLE / "day.jsonl.gz")


def test_the_example_agrees_with_kube_scheduler() -> None:
    result = CliRunner().invoke(main, ["replay", DAY, "--exit-code"])
    assert result.exit_code == 0
    assert result.stdout.splitlines()[0] == "Agrees in all 240 decisions."


def test_another_configuration_is_found_and_named() -> None:
    result = CliRunner().invoke(main, ["replay", DAY, "--config", str(EXAMPLE / "packed.yaml"), "--exit-code"])
    assert result.exit_code == 1
    assert "differs by NodeResourcesFit" in result.stdout
    result = CliRunner().invoke(main, ["replay", DAY, "--config", str(EXAMPLE / "packed.yaml"), "-o", "json"])
    report = json.loads(result.stdout)
    assert report["verdicts"]["differs"] > 20
    assert {gap["plugin"] for gap in report["differences"][0]["scores"]} >= {"NodeResourcesFit"}


def test_the_closed_replay_says_what_would_have_happened() -> None:
    result = CliRunner().invoke(main, ["replay", DAY, "--closed"])
    assert result.exit_code == 0
    assert result.stdout.startswith("240 of 240 pods got a node, 240 did then")


def test_twice_the_same_bytes() -> None:
    first, second = (CliRunner().invoke(main, ["replay", DAY, "-o", "json"]).stdout for _ in range(2))
    assert first == second


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["nowhere.jsonl.gz"], "nowhere.jsonl.gz: No such file or directory"),
        ([DAY, "--from", "25:00"], "--from: '25:00' is not a time of day"),
        ([DAY, "--to", "noon"], "--to: 'noon' is neither a time such as 09:00 nor an RFC 3339 time"),
        ([str(EXAMPLE / "packed.yaml")], "not a recording"),
    ],
)
def test_what_cannot_be_replayed(arguments: list[str], problem: str) -> None:
    assert problem in the_one_error(CliRunner().invoke(main, ["replay", *arguments]))


def test_a_cluster_is_recorded_to_a_file_of_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "day.jsonl.gz"
    result = LiveCluster(tmp_path, example_objects()).run("record", "-o", path, "--for", "300ms")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(f"{path}: 0 bindings recorded")
    assert path.stat().st_mode & 0o777 == 0o600
    replayed = CliRunner().invoke(main, ["replay", str(path)])
    assert replayed.stdout.startswith("No decision to compare")


def test_a_recording_is_not_written_over(tmp_path: Path) -> None:
    path = tmp_path / "day.jsonl.gz"
    path.write_bytes(b"precious")
    cluster = LiveCluster(tmp_path, example_objects())
    assert the_one_error(cluster.run("record", "-o", path, "--for", "100ms")).startswith(f"{path}: exists already")
    assert path.read_bytes() == b"precious"


def test_a_recording_is_continued(tmp_path: Path) -> None:
    path = tmp_path / "day.jsonl.gz"
    for more in ((), ("--append",)):
        cluster = LiveCluster(tmp_path, example_objects())
        assert cluster.run("record", "-o", path, "--for", "200ms", *more).exit_code == 0
    assert (tmp_path / "day-0002.jsonl.gz").exists()
    assert "Gap: changes from" in CliRunner().invoke(main, ["replay", str(path)]).stdout


@pytest.mark.parametrize("command", [["record", "-o", "day.jsonl.gz"], ["shadow"]])
def test_a_cluster_that_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]) -> None:
    monkeypatch.chdir(tmp_path)
    config = tmp_path / "kubeconfig"
    config.write_text(
        "{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: "
        "{server: 'http://127.0.0.1:9'}}], contexts: [{name: c, context: {cluster: c, user: u}}], "
        "users: [{name: u, user: {}}]}"
    )
    result = CliRunner().invoke(main, [*command, "--kubeconfig", str(config), "--for", "1s"])
    assert result.exit_code == 4
    assert result.stderr.startswith("error: ") and result.stderr.count("\n") == 1
    assert not (tmp_path / "day.jsonl.gz").exists()


def test_a_shadow_ends_with_a_report(tmp_path: Path) -> None:
    result = LiveCluster(tmp_path, example_objects()).run("shadow", "--for", "300ms", "-o", "json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["decided"] == 0


EXEC = "{exec: {apiVersion: client.authentication.k8s.io/v1, command: not-there, interactiveMode: Never}}"


@pytest.mark.parametrize(
    "command", ["record -o day.jsonl.gz", "shadow", "nodes --count 1", "run --secure-port=0 --leader-elect=false"]
)
def test_a_credential_plugin_that_is_missing(tmp_path: Path, command: str) -> None:
    config = tmp_path / "kubeconfig"
    config.write_text(
        "{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: "
        "{server: 'https://127.0.0.1:9'}}], contexts: [{name: c, context: {cluster: c, user: u}}], "
        f"users: [{{name: u, user: {EXEC}}}]}}"
    )
    called = [sys.executable, "-m", "kubesched", *command.split(), "--kubeconfig", str(config)]
    finished = subprocess.run(called, capture_output=True, text=True, check=False, cwd=tmp_path)
    said = [line for line in finished.stderr.splitlines() if not re.match(r"[IWE]\d{4} ", line)]
    assert said == [f"error: {config}: user \"u\": exec: credential plugin 'not-there': not found in PATH"]
    assert finished.returncode == 2
    assert [file.name for file in tmp_path.iterdir()] == ["kubeconfig"]
