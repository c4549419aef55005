"""Copies of a whole application: all of it, or nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import kubesched
from kubesched.cli.main import main
from kubesched.planning.copies import ApplicationError
from kubesched.testing import make
from kubesched.testing.make import Manifest


def workload(kind: str, name: str, replicas: int, cpu: str, **pod_spec: Any) -> Manifest:
    labels = {"app": name}
    pod: Manifest = make.pod(name, requests={"cpu": cpu}, labels=labels)
    spec: Manifest = {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {**pod["spec"], **pod_spec}},
    }
    if kind != "DaemonSet":
        spec["replicas"] = replicas
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "shop"},
        "spec": spec,
    }


def listed(*items: Manifest) -> Manifest:
    return {"apiVersion": "v1", "kind": "List", "items": list(items)}


NODES = [make.node(f"n{i}", cpu="4") for i in range(3)]
SHOP = listed(workload("Deployment", "web", 2, "500m"), workload("StatefulSet", "db", 1, "2"))


def test_a_copy_counts_as_a_whole_and_the_pod_that_fails_is_named() -> None:
    world = kubesched.world(NODES)
    report = kubesched.capacity(world, app=[SHOP])
    answer = report.answers[0]
    with world.trial() as trial:
        whole = 0
        while whole < 10:
            pods = [make.pod(f"web-{whole}-{i}", requests={"cpu": "500m"}) for i in range(2)]
            trial.add_pods([*pods, make.pod(f"db-{whole}", requests={"cpu": "2"})])
            if trial.settle().pending:
                break
            whole += 1
    assert 1 <= answer.fits <= whole <= 4
    assert answer.failed_pod.startswith(f"shop-copy-{answer.fits + 1}/")
    assert sum(answer.per_node.values()) == 3 * answer.fits
    assert str(report).startswith(f"app of 3 pods: {answer.fits} more whole copies fit; in the next one, shop-copy-")
    assert (world.placed, list(world.cluster.objects.namespaces)) == ({}, [])


def test_selectors_of_copies_stay_apart_but_host_ports_collide() -> None:
    term = {**make.affinity_term("kubernetes.io/hostname", {"app": "web"}), "namespaces": ["shop"]}
    alone = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    apart = listed(workload("Deployment", "web", 3, "500m", affinity=alone))
    assert kubesched.capacity(NODES, app=[apart]).fits == 8
    port = [{"name": "c", "ports": [{"containerPort": 80, "hostPort": 80}]}]
    assert kubesched.capacity(NODES, app=[listed(workload("Deployment", "web", 1, "1", containers=port))]).fits == 3


def test_daemons_come_once() -> None:
    app = listed(workload("DaemonSet", "agent", 0, "1"), workload("Deployment", "web", 1, "1"))
    assert kubesched.capacity(NODES, app=[app]).fits == 9


def test_at_most_so_many_copies() -> None:
    answer = kubesched.capacity(NODES, app=[SHOP], most=1).answers[0]
    assert (answer.fits, answer.limit) == (1, "max")


def test_what_is_no_application() -> None:
    with pytest.raises(ApplicationError, match="has no pods"):
        kubesched.capacity(NODES, app=[listed()])
    with pytest.raises(ApplicationError, match="Node n0: an application has no nodes"):
        kubesched.capacity(NODES, app=[listed(*NODES)])


def test_the_command(tmp_path: Path) -> None:
    cluster, app = tmp_path / "cluster.json", tmp_path / "app.json"
    cluster.write_text(json.dumps(listed(*NODES)))
    app.write_text(json.dumps(listed(workload("Deployment", "web", 2, "1"))))

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(main, ["capacity", "-f", str(cluster), *arguments])

    assert run("--app", str(app)).stdout.startswith(
        "app of 2 pods: 6 more whole copies fit; in the next one, shop-copy-7/"
    )
    record = json.loads(run("--app", str(app), "-o", "json").stdout)["capacity"][0]
    assert record["stoppedBy"]["pod"].startswith("shop-copy-7/web-")
    chart = tmp_path / "chart"
    chart.mkdir()
    (chart / "Chart.yaml").write_text("name: web")
    mistake = run("--app", str(chart))
    assert (mistake.exit_code, mistake.stderr.count("\n")) == (2, 1)
    assert "helm template" in mistake.stderr
