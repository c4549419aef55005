"""`kubesched bench` from the outside."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bench_files import MEASURED, write_file
from click.testing import CliRunner, Result

from kubesched.cli.bench import measure_apart
from kubesched.cli.main import main
from kubesched.simulator.bench.run import BenchSettings
from kubesched.simulator.bench.runner import run_workload
from kubesched.simulator.bench.workload_file import load_workloads, select_workloads

KEYS = ["workload", "nodes", "pods", "scheduled", "pods_per_s", "attempts", "p50_us", "p90_us", "p99_us", "peak_mb"]


def _bench(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["bench", *arguments])


def test_the_list_names_families_and_sizes() -> None:
    found = _bench("--list")
    assert found.exit_code == 0
    lines = {line.split()[0]: line for line in found.output.splitlines()}
    assert "initNodes=5000" in lines["basic"]
    assert "measurePods=10000" in lines["basic"]
    assert "initNodes=15000" in lines["daemonset"]


def test_json_is_an_object_with_these_keys() -> None:
    found = _bench("basic", "--nodes", "10", "--pods", "20", "-o", "json")
    assert found.exit_code == 0
    record = json.loads(found.stdout)
    assert list(record) == KEYS
    assert [record[key] for key in ("workload", "nodes", "pods", "scheduled")] == ["basic", 10, 20, 20]
    assert record["peak_mb"] > 0


def test_text_is_a_table() -> None:
    head, row = _bench("basic/small").stdout.splitlines()
    assert head.split() == ["workload", "nodes", "pods", "scheduled", "pods/s", "attempts", "p50", "p90", "p99", "peak"]
    assert row.split()[:4] == ["basic/small", "20", "50", "50"]
    assert len(head) == len(row)


def test_several_workloads_are_an_object_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubesched.cli.bench.measure_apart", run_workload)  # all in this process, which is faster
    found = _bench("basic/small", "gated/small", "-o", "json")
    assert [json.loads(line)["workload"] for line in found.stdout.splitlines()] == ["basic/small", "gated/small"]


def test_a_process_of_its_own_gives_the_same_answer() -> None:
    (basic,) = select_workloads(load_workloads(()), ["basic/small"], ())
    apart, here = measure_apart(basic, BenchSettings()), run_workload(basic)
    assert (apart.workload, apart.scheduled, apart.attempts) == (here.workload, here.scheduled, here.attempts)


def test_without_the_class_cache_as_many_pods_are_placed() -> None:
    record = json.loads(_bench("basic/small", "--no-class-cache", "--seed", "4", "-o", "json").stdout)
    assert record["scheduled"] == 50


def test_pods_that_were_not_placed_make_the_exit_code_1(tmp_path: Path) -> None:
    path = write_file(
        tmp_path, [{"opcode": "createNodes", "count": 1}, {**MEASURED, "podTemplatePath": "large.yaml"}], {}
    )
    found = _bench("-f", str(path), "-o", "json")
    assert found.exit_code == 1
    assert json.loads(found.stdout)["scheduled"] == 0
    assert found.stderr.startswith(
        "error: case: operation 1 (createPods): 1 of 1 pods were not placed; namespace-1/large-0"
    )


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        pytest.param(["baisc"], "unknown workload 'baisc' (did you mean \"basic\"?)", id="a name that is not known"),
        pytest.param(["-f", "absent.yaml"], "absent.yaml: No such file or directory", id="a file that is not there"),
        pytest.param(["basic", "--label", "huge"], "no workload has the label huge", id="a label that none has"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(arguments: list[str], error: str) -> None:
    found = _bench(*arguments)
    assert (found.exit_code, found.stdout, found.stderr) == (2, "", f"error: {error}\n")


def test_feature_gates_that_are_turned_off_are_said_to_stay(tmp_path: Path) -> None:
    gates = {"SchedulerQueueingHints": False, "NodeDeclaredFeatures": True}
    path = write_file(tmp_path, [{"opcode": "createNodes", "count": 1}, MEASURED], {}, featureGates=gates)
    found = _bench("-f", str(path))
    assert found.exit_code == 0
    assert found.stderr == (
        "warning: feature gates cannot be turned off, these stay at their defaults: SchedulerQueueingHints\n"
    )
