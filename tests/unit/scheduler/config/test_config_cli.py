"""`kubesched config` shows, completes and checks files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from kubesched.cli.config import config
from kubesched.scheduler.config import default, load, to_manifest

GOOD = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: mine
  plugins:
    score:
      disabled: [{name: "*"}]
      enabled: [{name: ImageLocality, weight: 7}]
"""
BAD = GOOD.replace("weight: 7", "weight: heavy") + "parallelism: 0\n"
UNKNOWN_PLUGIN = GOOD.replace("ImageLocality", "ImageLocation")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with files."""
    monkeypatch.chdir(tmp_path)
    for name, text in (("good.yaml", GOOD), ("bad.yaml", BAD), ("unknown.yaml", UNKNOWN_PLUGIN)):
        (tmp_path / name).write_text(text)
    return tmp_path


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(config, list(arguments), input=stdin, catch_exceptions=False)


def test_default_prints_the_default_configuration() -> None:
    result = run("default")
    assert result.exit_code == 0
    assert load(result.stdout, "stdout") == default()
    assert result.stdout.startswith("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n")


def test_default_prints_json_on_request() -> None:
    assert json.loads(run("default", "-o", "json").stdout) == to_manifest(default())


@pytest.mark.usefixtures("folder")
def test_view_fills_in_all_defaults() -> None:
    result = run("view", "-f", "good.yaml")
    assert result.exit_code == 0
    assert yaml.safe_load(result.stdout) == to_manifest(load(GOOD, "good.yaml"))
    assert "leaseDuration: 15s\n" in result.stdout
    assert yaml.safe_load(run("view", "-f", "good.yaml", "-o", "json").stdout) == yaml.safe_load(result.stdout)


@pytest.mark.usefixtures("folder")
def test_view_tells_every_mistake_and_fails() -> None:
    result = run("view", "-f", "bad.yaml")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.splitlines() == [
        'error: bad.yaml: profiles[0].plugins.score.enabled[0].weight: Invalid value: "heavy": must be of type int32',
        "error: bad.yaml: parallelism: Invalid value: 0: should be an integer value greater than zero",
    ]


@pytest.mark.usefixtures("folder")
def test_standard_input_is_a_file_too() -> None:
    assert load(run("view", "-f", "-", stdin=GOOD).stdout, "stdout") == load(GOOD, "good.yaml")
    assert run("validate", "-", stdin=GOOD).stdout == "<stdin>: ok\n"
    assert run("validate", "-", stdin="a: [").stderr.startswith("<stdin>: line ")


@pytest.mark.parametrize(("command", "prefix"), [(("view", "-f"), "error: "), (("validate",), "")])
def test_a_file_that_cannot_be_read_is_one_line(folder: Path, command: tuple[str, ...], prefix: str) -> None:
    missing = run(*command, "missing.yaml")
    assert (missing.exit_code, missing.stderr) == (2, f"{prefix}missing.yaml: No such file or directory\n")
    directory = run(*command, str(folder))
    assert (directory.exit_code, directory.stderr) == (2, f"{prefix}{folder}: Is a directory\n")


@pytest.mark.usefixtures("folder")
def test_validate_looks_at_every_file() -> None:
    result = run("validate", "bad.yaml", "good.yaml", "unknown.yaml", "missing.yaml")
    assert result.exit_code == 2
    assert result.stdout == "good.yaml: ok\n"
    lines = result.stderr.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["bad.yaml", "bad.yaml", "unknown.yaml", "missing.yaml"]
    assert 'ScorePlugin "ImageLocation" does not exist; plugins that exist: DefaultBinder, ' in lines[2]


@pytest.mark.usefixtures("folder")
def test_validate_succeeds_when_all_files_are_good() -> None:
    result = run("validate", "good.yaml", "good.yaml")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "good.yaml: ok\n" * 2, "")


@pytest.mark.usefixtures("folder")
def test_validate_shows_what_runs_where() -> None:
    lines = run("validate", "--resolved", "good.yaml").stdout.splitlines()
    assert lines[:4] == [
        "good.yaml: ok",
        "profile mine",
        "  preEnqueue         SchedulingGates, DynamicResources, DefaultPreemption",
        "  queueSort          PrioritySort",
    ]
    assert "  score              ImageLocality (7)" in lines
    assert "  permit             -" in lines
    assert len(lines) == 16


def test_importing_the_command_does_not_import_the_configuration() -> None:
    """`kubesched --help` must not pay for it."""
    code = "import sys, kubesched.cli.config; print('kubesched.scheduler.config' in sys.modules, 'yaml' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"
