"""`kubesched snapshot`: a file that answers like the live cluster, private, whole or not at all."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result
from live_clusters import ROOT, LiveCluster, Manifest, example_objects, the_one_error

from kubesched.cli.files import InputError, write_files
from kubesched.cli.main import main
from kubesched.testing import make

ANSWERS = Path(__file__).parent / "answers"
SIMULATION = ROOT / "examples" / "simulate"


@pytest.fixture
def example(tmp_path: Path) -> LiveCluster:
    return LiveCluster(tmp_path, example_objects())


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, list(map(str, arguments)))


@pytest.mark.parametrize("suffix", ["yaml", "yml", "json", "dump"])
def test_the_file_answers_like_the_live_cluster(suffix: str, example: LiveCluster, tmp_path: Path) -> None:
    dump = tmp_path / f"dump.{suffix}"
    result = example.run("snapshot", "-o", dump)
    objects = example_objects()
    n_nodes, n_pods = (sum(item["kind"] == kind for item in objects) for kind in ("Node", "Pod"))
    counts = f"{n_nodes} nodes, {n_pods} pods, {len(objects) - n_nodes - n_pods} other objects"
    assert (result.exit_code, result.stderr, result.stdout) == (0, "", f"{dump}: {counts}\n")
    assert dump.read_bytes().startswith(b"{" if suffix == "json" else b"apiVersion: v1\nkind: List\n")
    for pod in ("shop/web-3", "shop/report", "lab/train-2", "shop/web-4", "lab/batch-1"):
        answer = run("explain", pod, "-f", dump, "-o", "wide")
        assert answer.stderr == ""
        assert answer.stdout == (ANSWERS / f"{pod.replace('/', '-')}.wide.txt").read_text()


def test_only_its_owner_can_read_the_file(example: LiveCluster, tmp_path: Path) -> None:
    dump = tmp_path / "dump.yaml"
    dump.write_text("what was there before")
    dump.chmod(0o644)
    example.run("snapshot", "-o", dump)
    assert stat.S_IMODE(dump.stat().st_mode) == 0o600


def test_the_server_is_only_read_and_never_asked_for_secrets(example: LiveCluster) -> None:
    example.server.put({"kind": "Secret", "metadata": {"name": "s", "namespace": "shop"}, "data": {"k": "aGlkZGVu"}})
    example.server.put(make.pod("p", metadata={"annotations": {"note": "aGlkZGVu"}}))
    result = example.run("snapshot", "-o", "-")
    assert {request.verb for request in example.server.requests} == {"list"}
    assert not example.server.asked(path="secrets")
    assert "aGlkZGVu" not in result.stdout
    assert "default/p" in {
        f"{item['metadata'].get('namespace')}/{item['metadata']['name']}"
        for item in yaml.safe_load(result.stdout)["items"]
    }


def test_what_was_there_stays_when_the_cluster_cannot_be_read(example: LiveCluster, tmp_path: Path) -> None:
    dump = tmp_path / "dump.yaml"
    dump.write_text("what was there before")
    example.server.refuse("list", "pods")
    assert "cannot list pods" in the_one_error(example.run("snapshot", "-o", dump))
    assert dump.read_text() == "what was there before"


def test_files_are_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "dump.yaml"
    path.write_text("old")
    with pytest.raises(TypeError):
        write_files({str(path): "no bytes"})  # type: ignore[dict-item]
    with pytest.raises(InputError, match="no directory/other: No such file"):
        write_files({str(path): b"new", str(tmp_path / "no directory" / "other"): b"new"})
    assert {entry.name: entry.read_text() for entry in tmp_path.iterdir()} == {"dump.yaml": "old"}
    write_files({str(path): b"new"})
    assert {entry.name: entry.read_text() for entry in tmp_path.iterdir()} == {"dump.yaml": "new"}
    assert path.stat().st_mode & 0o044
    write_files({str(path): b"secret"}, private=True)
    assert not path.stat().st_mode & 0o077


@pytest.mark.parametrize(
    ("place", "problem"),
    [
        pytest.param("", "is a directory", id="a directory"),
        pytest.param("none/dump.yaml", "directory ", id="in no directory"),
    ],
)
def test_a_place_that_cannot_be_written_is_told_before_the_cluster_is_read(
    place: str, problem: str, example: LiveCluster, tmp_path: Path
) -> None:
    path = tmp_path / place
    assert the_one_error(example.run("snapshot", "-o", path)).startswith(f"{path}: {problem}")
    assert example.server.requests == []


def test_missing_kinds_are_warned_of(example: LiveCluster, tmp_path: Path) -> None:
    example.server.refuse("list", "services")
    result = example.run("snapshot", "-o", tmp_path / "dump.json")
    assert result.exit_code == 0
    assert "no right to list services" in result.stderr
    assert json.loads((tmp_path / "dump.json").read_text())["kind"] == "List"


def _cluster_of_simulation() -> list[Manifest]:
    return [item for item in yaml.safe_load_all((SIMULATION / "cluster.yaml").read_text()) if item]


def test_a_simulation_on_the_live_cluster_is_that_on_its_files(tmp_path: Path) -> None:
    workload = ("-f", SIMULATION / "workload.yaml", "--seed", "7", "-o", "json")
    cluster = LiveCluster(tmp_path, _cluster_of_simulation())
    live = cluster.run("simulate", "--live", *workload)
    assert (live.exit_code, live.stderr) == (0, "")
    assert {request.verb for request in cluster.server.requests} == {"list"}
    dump = tmp_path / "dump.yaml"
    cluster.run("snapshot", "-o", dump)
    assert run("simulate", "-f", dump, *workload).stdout == live.stdout
    assert json.loads(live.stdout)["pods"]


def test_a_simulation_says_what_it_could_not_read(tmp_path: Path) -> None:
    cluster = LiveCluster(tmp_path, _cluster_of_simulation())
    cluster.server.refuse("list", "services")
    result = cluster.run("simulate", "--context", "test", "-f", SIMULATION / "workload.yaml")
    assert result.exit_code == 0
    assert f"warning: {cluster.source}: no right to list services: none are assumed" in result.stderr
