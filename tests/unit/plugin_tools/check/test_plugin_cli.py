"""`kubesched plugin new` writes a plugin that works; `kubesched plugin check` tells what is wrong with one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kubesched.cli.main import main
from kubesched.plugin_tools.check.battery import costs_of
from kubesched.plugin_tools.check.subject import outside_subjects
from kubesched.scheduler.plugin_loading import plugins_from_files

HASHED = """
class Hashed:
    name = "Hashed"

    def score_node(self, cycle, pod, node):
        return hash(node.name) % 100
"""
MUTE = """
class Mute:
    name = "Mute"

    def filter_node(self, cycle, pod, node):
        return None
"""
ARGUED = """
from dataclasses import dataclass
from kubesched.framework import OK

@dataclass(frozen=True)
class ArguedArgs:
    top: int = 100

class Argued:
    name = "Argued"
    args_type = ArguedArgs

    def __init__(self, args):
        self.top = args.top

    def score_node(self, cycle, pod, node):
        return self.top
"""
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: Argued
    args: {top: TOP}
"""
PENDING = """
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Node, metadata: {name: a}, status: {allocatable: {cpu: 4, pods: 10}}}
- {apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: c, image: i}]}}
"""


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["plugin", *map(str, arguments)])


def written(directory: Path, name: str, text: str) -> Path:
    path = directory / name
    path.write_text(text)
    return path


def test_a_new_plugin_passes_its_test_and_the_battery(tmp_path: Path) -> None:
    made = run("new", "QuietHours", "--directory", tmp_path / "plugins")
    assert made.exit_code == 0
    assert sorted(path.name for path in (tmp_path / "plugins").iterdir()) == ["quiet_hours.py", "test_quiet_hours.py"]
    tested = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path / "plugins")],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )
    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert "4 passed" in tested.stdout
    checked = run("check", tmp_path / "plugins" / "quiet_hours.py", "--cases", 5, "--only", "answers")
    assert checked.exit_code == 0, checked.output
    assert "all checks passed (5 cases, seed 0)" in checked.output


@pytest.mark.parametrize(
    ("name", "module", "class_name"),
    [
        pytest.param("quiet-hours", "quiet_hours", "QuietHours", id="with a hyphen"),
        pytest.param("gpuPacking", "gpu_packing", "GpuPacking", id="in camel case"),
        pytest.param("GPUPacking", "gpu_packing", "GPUPacking", id="with an abbreviation"),
    ],
)
def test_names_are_spelled_as_python_spells_them(tmp_path: Path, name: str, module: str, class_name: str) -> None:
    assert run("new", name, "--directory", tmp_path).exit_code == 0
    assert f"\nclass {class_name}:\n" in (tmp_path / f"{module}.py").read_text()


def test_a_file_that_is_there_is_left_as_it_is(tmp_path: Path) -> None:
    theirs = written(tmp_path, "test_quiet_hours.py", "theirs")
    answer = run("new", "QuietHours", "--directory", tmp_path)
    assert (answer.exit_code, answer.stderr) == (2, f"error: {theirs}: already exists, not overwritten\n")
    assert [path.name for path in tmp_path.iterdir()] == ["test_quiet_hours.py"]


@pytest.mark.parametrize("name", ["", "../up", "7up", "class", "quiet/hours"])
def test_what_cannot_name_a_plugin_is_told(tmp_path: Path, name: str) -> None:
    answer = run("new", name, "--directory", tmp_path)
    assert answer.exit_code == 2
    assert "cannot name a plugin" in answer.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_failed_check_is_exit_code_1_with_the_smallest_case(tmp_path: Path) -> None:
    answer = run("check", written(tmp_path, "mute.py", MUTE), "--cases", 5)
    assert answer.exit_code == 1
    assert "FAILED  answers" in answer.stdout
    assert "filter_node returned None, it must return a Status" in answer.stdout
    assert "smallest case found:" in answer.stdout
    assert answer.stdout.count("kind: Node") == 1


def test_hashes_are_found_by_another_python(tmp_path: Path) -> None:
    path = written(tmp_path, "hashed.py", HASHED)
    answer = run("check", path, "--cases", 5, "--only", "determinism", "-o", "json")
    assert answer.exit_code == 1
    (report,) = json.loads(answer.stdout)["plugins"]
    (result,) = report["checks"]
    assert (result["check"], result["result"]) == ("determinism", "failed")
    assert "another Python" in result["problem"]


@pytest.mark.parametrize(("top", "exit_code"), [(100, 0), (101, 1)])
def test_arguments_come_from_the_configuration(tmp_path: Path, top: int, exit_code: int) -> None:
    config = written(tmp_path, "config.yaml", CONFIG.replace("TOP", str(top)))
    argued = written(tmp_path, "argued.py", ARGUED)
    answer = run("check", argued, "--config", config, "--cases", 3, "--only", "bounds")
    assert answer.exit_code == exit_code, answer.output


def test_a_cluster_of_ones_own_is_tried_too(tmp_path: Path) -> None:
    argued = written(tmp_path, "argued.py", ARGUED)
    cluster = written(tmp_path, "cluster.yaml", PENDING)
    answer = run("check", argued, "-f", cluster, "--cases", 3, "--only", "bounds", "-o", "json")
    assert json.loads(answer.stdout)["plugins"][0]["cases"] == 4


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        pytest.param("x = 1\n", "no plugin in it", id="no plugin"),
        pytest.param("import nowhere_at_all\n", "nowhere_at_all", id="cannot be imported"),
        pytest.param(None, "No such file", id="no file"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(tmp_path: Path, text: str | None, complaint: str) -> None:
    path = tmp_path / "mine.py"
    if text is not None:
        path.write_text(text)
    answer = run("check", path)
    assert answer.exit_code == 2
    assert answer.stderr.startswith(f"error: {path}")
    assert complaint in answer.stderr
    assert answer.stderr.count("\n") == 1


def test_the_cost_says_form_and_scope(tmp_path: Path) -> None:
    outside = plugins_from_files([written(tmp_path, "argued.py", ARGUED)], enable=True)
    (cost,) = costs_of(outside_subjects(outside, lambda _name: None)[0], seed=0)
    record = cost.as_record()
    assert record.pop("msPer1000Nodes") > 0
    assert record == {
        "extensionPoint": "score",
        "form": "node by node",
        "scope": "none",
        "kept": "not kept: asked again for every pod",
    }
