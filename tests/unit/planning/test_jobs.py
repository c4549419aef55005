"""Work that is spread over processes gives the same report, byte for byte."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from resting_clusters import node, workload

from kubesched.cli.main import main

QUESTIONS = {
    "outage": ["outage", "-f", "cluster.json", "--every", "zone"],
    "outage of nodes": ["outage", "-f", "cluster.json", "--every", "node"],
    "upgrade": ["upgrade", "-f", "cluster.json", "--find-surge", "--find-order"],
    "check": ["check", "check.json"],
}


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    nodes = [node(f"{zone}{n}", zone) for zone in "abc" for n in range(2)]
    names = [one["metadata"]["name"] for one in nodes]
    items = [*nodes, *workload("Deployment", "web", "1500m", names), *workload("DaemonSet", "agent", "100m", names)]
    Path("cluster.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    checks = [
        {"name": "fits", "fits": {}},
        {"name": "room", "capacity": {"shape": "1/1Gi", "atLeast": 20}},
        {"name": "zones", "outage": {"every": "zone"}},
        {"name": "requests", "requests": {"cpu": "required"}},
    ]
    check = {"apiVersion": "kubesched.dev/v1alpha1", "kind": "Check", "cluster": {"file": "cluster.json"}, "seeds": 2}
    Path("check.json").write_text(json.dumps({**check, "checks": checks}))


@pytest.mark.parametrize("question", QUESTIONS)
def test_several_processes_give_the_bytes_of_one(question: str) -> None:
    alone, together = (
        CliRunner().invoke(main, [*QUESTIONS[question], "-o", "json", "--jobs", jobs], catch_exceptions=False)
        for jobs in ("1", "3")
    )
    assert alone.stdout and (alone.exit_code, alone.stdout) == (together.exit_code, together.stdout), together.output


def test_a_plan_of_several_processes_has_the_bytes_of_one() -> None:
    shapes = [{"name": "m", "allocatable": {"cpu": 4, "memory": "16Gi", "pods": 110}, "offers": [{"price": 0.2}]}]
    catalogue = {"apiVersion": "kubesched.dev/v1alpha1", "kind": "Catalogue", "currency": "USD", "shapes": shapes}
    Path("catalogue.json").write_text(json.dumps(catalogue))
    new = workload("Deployment", "new", "1500m", [], replicas=20)
    Path("new.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": new}))
    asked = [
        "plan",
        "-f",
        "cluster.json",
        "-f",
        "new.json",
        "--catalogue",
        "catalogue.json",
        "--seeds",
        "2",
        "-o",
        "json",
    ]
    alone, together = (
        CliRunner().invoke(main, [*asked, "--jobs", jobs], catch_exceptions=False) for jobs in ("1", "3")
    )
    assert alone.stdout and (alone.exit_code, alone.stdout) == (0, together.stdout), together.output
