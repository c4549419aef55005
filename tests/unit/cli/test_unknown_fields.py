"""Fields that a kind does not have are warned of, with file, object, path and the nearest name; once a server has
checked an object, nothing is looked at. So are manifests that contradict each other."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kubesched.cli.files import read_manifests
from kubesched.cli.main import main
from kubesched.k8s.model import manifests
from kubesched.simulator.loading import SIMULATED_KINDS
from kubesched.testing import make

ROOT = Path(__file__).parents[3]
SHAPES = "kubesched.playground.apiserver.openapi.schemas"

POD = """
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: shop, label: {app: web}}
spec:
  nodeSelctor: {disk: ssd}
  containers:
    - name: c
      resources: {request: {cpu: 1}}
---
apiVersion: v1
kind: Node
metadata: {name: node-1}
status: {allocatable: {cpu: "4", pods: "10"}, capacities: {}}
"""
EXPECTED = [
    'Pod shop/p: unknown field "metadata.label" (did you mean "labels"?)',
    'Pod shop/p: unknown field "spec.nodeSelctor" (did you mean "nodeSelector"?)',
    'Pod shop/p: unknown field "spec.containers[0].resources.request" (did you mean "requests"?)',
    'Node node-1: unknown field "status.capacities" (did you mean "capacity"?)',
]


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, list(map(str, arguments)))


@pytest.mark.parametrize("form", ["yaml", "json"])
@pytest.mark.parametrize("command", [("explain", "shop/p"), ("simulate",)])
def test_unknown_fields_are_warned_of(command: tuple[str, ...], form: str, tmp_path: Path) -> None:
    path = tmp_path / f"objects.{form}"
    if form == "json":
        import yaml

        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*yaml.safe_load_all(POD)]}))
    else:
        path.write_text(POD)
    result = run(*command, "-f", path)
    assert result.exit_code == 0
    assert result.stderr.splitlines() == [f"warning: {path}: {line}" for line in EXPECTED]


def test_objects_of_a_server_are_not_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, SHAPES, raising=False)
    odd = {**make.node("n"), "metadata": {"name": "n", "uid": "u"}, "unheardOf": 1}
    path = tmp_path / "dump.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "NodeList", "items": [odd]}))
    _, warnings = read_manifests([str(path)])
    assert warnings == []
    assert SHAPES not in sys.modules


def test_of_very_many_written_objects_the_first_are_checked(tmp_path: Path) -> None:
    odd = {**make.node("n"), "unheardOf": 1}
    path = tmp_path / "many.json"
    n = manifests.MOST_WRITTEN + 5
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [odd] * n}))
    assert len(read_manifests([str(path)])[1]) == manifests.MOST_WRITTEN


def _written(path: Path, *nodes: dict[str, object]) -> str:
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(nodes)}))
    return str(path)


def test_manifests_that_contradict_each_other_are_warned_of(tmp_path: Path) -> None:
    small, large = make.node("a", cpu="1"), make.node("a", cpu="2")
    first = _written(tmp_path / "first.json", small, make.node("b"), small)
    second = _written(tmp_path / "second.json", large, make.node("b"), make.node("c"))
    assert read_manifests([first, second])[1] == [f"{second}: Node a overrides the one in {first}"]
    both = _written(tmp_path / "both.json", small, make.node("b", cpu="1"), large, make.node("b", cpu="2"))
    assert read_manifests([both])[1] == [f"{both}: Node a overrides an earlier one in the same file (and 1 more)"]


def test_a_change_of_what_a_dump_holds_is_meant(tmp_path: Path) -> None:
    node = make.node("a")
    dumped = {**node, "metadata": {"name": "a", "uid": "u"}}
    dump, change = _written(tmp_path / "dump.json", dumped), _written(tmp_path / "change.json", node)
    assert read_manifests([dump, change])[1] == []


def test_the_examples_have_no_unknown_field() -> None:
    for folder in ("explain", "simulate", "playground"):
        _, warnings = read_manifests([str(ROOT / "examples" / folder)], SIMULATED_KINDS)
        assert [warning for warning in warnings if "unknown field" in warning] == []
