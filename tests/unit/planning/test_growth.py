"""How far all workloads can grow together."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import kubesched
from kubesched.cli.main import main
from kubesched.planning.growth import GrowthError, growth
from kubesched.testing import make
from kubesched.testing.make import Manifest

NODES = [make.node(f"n{i}", cpu="10") for i in range(2)]


def deployment(name: str, replicas: int) -> Manifest:
    labels = {"app": name}
    pod: Manifest = make.pod(name, requests={"cpu": "1"}, labels=labels)
    template = {"metadata": {"labels": labels}, "spec": pod["spec"]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }


CLUSTER = [*NODES, deployment("web", 8), deployment("api", 4)]


def test_it_ends_before_the_first_step_that_fails() -> None:
    world = kubesched.world(CLUSTER)
    report = growth(world, step=Fraction(25))
    assert (report.percent, report.n_more, report.failed_at) == (Fraction(50), 6, Fraction(75))
    assert [(one.name, one.before, one.after) for one in report.grown] == [
        ("Deployment shop/web", 8, 12),
        ("Deployment shop/api", 4, 6),
    ]
    assert str(report).startswith("+50% replicas fit (6 more pods); at +75%, shop/")
    assert len(world.pending) == 12
    finer = growth(world)
    assert (finer.percent, finer.n_more, finer.failed_at) == (Fraction(62), 8, Fraction(63))


def test_the_quota_may_end_it() -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "few", "namespace": "shop"},
        "spec": {"hard": {"pods": "14"}},
    }
    report = growth(kubesched.world([*CLUSTER, quota]))
    assert (report.n_more, report.failed) == (2, "Deployment shop/api")
    assert report.message.startswith("exceeded quota: few")
    assert growth(kubesched.world([*CLUSTER, quota]), quota=False).n_more == 8


def test_nothing_to_grow() -> None:
    with pytest.raises(GrowthError, match="no workload with replicas"):
        growth(kubesched.world(NODES))
    with pytest.raises(GrowthError, match="a step of 0% is none"):
        growth(kubesched.world(CLUSTER), step=Fraction(0))


def test_the_command(tmp_path: Path) -> None:
    cluster = tmp_path / "cluster.json"
    cluster.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": CLUSTER}))

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(main, ["capacity", "-f", str(cluster), *arguments])

    assert run("--inflate", "replicas", "--step", "25%").stdout.startswith("+50% replicas fit (6 more pods); at +75%")
    assert json.loads(run("--inflate", "replicas", "-o", "json").stdout)["growth"]["percent"] == 62
    for wrong in (["--step", "x"], ["--step", "0"], ["--by", "zone"], ["--seeds", "2"]):
        assert run("--inflate", "replicas", *wrong).exit_code == 2
    assert run("--shape", "1/1Gi", "--step", "5").exit_code == 2
