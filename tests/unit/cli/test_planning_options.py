"""The options that the commands of planning share: what the cluster is supposed to be like, and how strict they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from kubesched.cli.main import main

ZONE = "topology.kubernetes.io/zone"
COMMANDS = {
    "capacity": ["--shape", "1/1Gi"],
    "capacity --every": ["--every", "workload"],
    "capacity --inflate": ["--inflate", "replicas"],
    "consolidate": [],
    "consolidate --node": ["--node", "a1"],
    "outage": [],
    "outage --every node": ["--every", "node"],
    "upgrade": [],
    "plan": ["--catalogue", "catalogue.json", "--orders", "1"],
    "optimal": [],
    "compare": ["--variant", "base", "--variant", "other:resize=cpu*0.9", "--seeds", "1"],
}


def run(command: str, *arguments: str) -> Result:
    return CliRunner().invoke(main, [command.split()[0], *COMMANDS[command], *arguments], catch_exceptions=False)


def write(name: str, *items: dict[str, Any]) -> None:
    Path(name).write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(items)}))


def node(name: str, zone: str) -> dict[str, Any]:
    amounts = {"cpu": "8", "memory": "16Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {ZONE: zone, "kubernetes.io/hostname": name, "pool": "p"}},
        "status": {"allocatable": amounts, "capacity": amounts, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def deployment(cpu: str, replicas: int = 2) -> dict[str, Any]:
    asked = {"requests": {"cpu": cpu}} if cpu else {}
    spec = {"containers": [{"name": "c", "image": "i", "resources": asked}]}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": spec}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template},
    }


def scaler(most: int) -> dict[str, Any]:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": most},
    }


CATALOGUE = {
    "apiVersion": "kubesched.dev/v1alpha1",
    "kind": "Catalogue",
    "currency": "USD",
    "shapes": [
        {"name": "m", "capacity": {"cpu": 8, "memory": "16Gi", "pods": 110}, "offers": [{"zone": "a", "price": 0.2}]}
    ],
}


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("catalogue.json").write_text(json.dumps(CATALOGUE))
    nodes = [node("a1", "a"), node("a2", "a"), node("b1", "b"), node("b2", "b")]
    write("whole.json", *nodes, deployment("1"))
    write("silent.json", *nodes, deployment(""))
    write("scaled.json", *nodes, deployment("1"), scaler(6))
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS)
def test_what_had_to_be_guessed_is_an_error_if_it_is_to_be(command: str) -> None:
    relaxed = run(command, "-f", "silent.json")
    told = "pods of Deployment default/web request nothing, so there is always room for them."
    assert relaxed.exit_code == 0 and told in " ".join(relaxed.stdout.split()), relaxed.output
    strict = run(command, "-f", "silent.json", "--strict", "--report", "page.html")
    assert strict.exit_code == 2
    assert strict.stdout == ""
    assert strict.stderr.splitlines()[-1] == f"error: strict: {told}"
    assert not Path("page.html").exists()


@pytest.mark.parametrize("command", COMMANDS)
def test_every_form_has_what_was_guessed(command: str) -> None:
    """As YAML it is the same as in JSON, to the letter."""
    as_json = run(command, "-f", "silent.json", "-o", "json")
    as_yaml = run(command, "-f", "silent.json", "-o", "yaml")
    assert (as_json.exit_code, as_yaml.exit_code) == (0, 0)
    assert yaml.safe_load(as_yaml.stdout) == json.loads(as_json.stdout)
    for form in ("csv", "markdown", "html"):
        assert run(command, "-f", "silent.json", "-o", form).exit_code == 0


@pytest.mark.parametrize("command", COMMANDS)
def test_strictness_changes_nothing_where_everything_is_said(command: str) -> None:
    plain = run(command, "-f", "whole.json", "-o", "json")
    assert plain.exit_code == 0
    strict = run(command, "-f", "whole.json", "-o", "json", "--strict")
    assert (strict.exit_code, strict.stdout) == (0, plain.stdout)


@pytest.mark.parametrize("command", COMMANDS)
def test_autoscaled_workloads_are_as_many_as_is_asked(command: str) -> None:
    told = run(command, "-f", "scaled.json", "--replicas", "max", "-o", "json")
    assert told.exit_code == 0, told.output
    assert "1 autoscaled workload has its most replicas." in json.loads(told.stdout)["assumptions"]
    guessed = run(command, "-f", "scaled.json", "--strict")
    assert guessed.exit_code == 2 and "HorizontalPodAutoscaler is not played" in guessed.stderr


def test_with_the_most_replicas_less_room_is_left() -> None:
    def fits(replicas: str) -> int:
        found: int = json.loads(run("capacity", "-f", "scaled.json", "--replicas", replicas, "-o", "json").stdout)[
            "capacity"
        ][0]["fits"]
        return found

    assert fits("min") == fits("max") + 5


@pytest.mark.parametrize("command", COMMANDS)
def test_daemons_can_be_left_out(command: str) -> None:
    told = run(command, "-f", "whole.json", "--ignore", "daemons", "--ignore", "budgets", "-o", "json")
    assert told.exit_code == 0, told.output
    assert "DaemonSets and their pods are left out." in json.loads(told.stdout)["assumptions"]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_page_goes_to_standard_output(command: str) -> None:
    page = run(command, "-f", "whole.json", "-o", "html")
    assert page.exit_code == 0 and page.stdout.startswith("<!doctype html>")
