"""How many more copies fit: published figures, and a loop that adds one pod at a time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings

import kubesched
from kubesched.cli.main import main
from kubesched.planning.capacity import CapacityError
from kubesched.testing import make, strategies
from kubesched.testing.make import Manifest


def test_the_example_of_cluster_capacity() -> None:
    nodes = [make.node(f"n{n}", cpu="2", memory="4G") for n in range(4)]
    pod = make.pod("small", requests={"cpu": "150m", "memory": "100Mi"})
    report = kubesched.capacity(nodes, pod)
    assert report.fits == 52
    assert report.answers[0].per_node == {f"n{n}": 13 for n in range(4)}
    assert report.answers[0].message.startswith("0/4 nodes are available: 4 Insufficient cpu.")
    running = [make.pod(f"r{n}", requests={"cpu": "150m", "memory": "100Mi"}, on=f"n{n % 4}") for n in range(6)]
    after = kubesched.capacity([*nodes, *running], pod)
    assert (after.fits, sorted(after.answers[0].per_node.values())) == (46, [11, 11, 12, 12])


def test_the_simulator_test_of_cluster_capacity() -> None:
    nodes = [make.node(f"n{n}", cpu=cpu, memory="1Gi", pods=3) for n, cpu in enumerate(("300m", "400m", "1200m"))]
    pod = make.pod("small", requests={"cpu": "100m", "memory": "5e6"})
    assert kubesched.capacity(nodes, pod).fits == 9
    limited = kubesched.capacity(nodes, pod, most=6)
    assert (limited.fits, limited.answers[0].limit) == (6, "max")


@pytest.mark.parametrize(("label", "fits", "n_nodes"), [("kubernetes.io/hostname", 30, 1), (make.ZONE, 90, 3)])
def test_copies_that_want_to_be_together(label: str, fits: int, n_nodes: int) -> None:
    """cluster-capacity's tests of hard pod affinity: all on one node, or all in one zone."""
    nodes = [make.node(f"n{n}", cpu="1", pods=30, labels={make.ZONE: "abc"[n // 3]}) for n in range(9)]
    pod = make.pod("together", requests={"cpu": "10m"}, labels={"app": "together"})
    terms = [make.affinity_term(label, {"app": "together"})]
    pod["spec"]["affinity"] = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    (answer,) = kubesched.capacity(nodes, pod, most=100).answers
    assert (answer.fits, len(answer.per_node)) == (fits, n_nodes)


def test_shapes_by_zone() -> None:
    nodes = [make.node(f"n{n}", cpu="4", labels={make.ZONE: "aab"[n]}) for n in range(3)]
    world = kubesched.world(nodes)
    report = kubesched.capacity(world, shapes=["1/1Gi", "cpu=3"], by=["zone"])
    assert [(one.pod, one.group, one.fits) for one in report.answers] == [
        ("1-1Gi", "all", 12),
        ("1-1Gi", "zone=a", 8),
        ("1-1Gi", "zone=b", 4),
        ("cpu-3", "all", 3),
        ("cpu-3", "zone=a", 2),
        ("cpu-3", "zone=b", 1),
    ]
    assert world.placed == {}


def test_a_shape_that_is_none_is_an_error() -> None:
    with pytest.raises(CapacityError, match='shape "lots" is not of the form'):
        kubesched.capacity([make.node("a")], shapes=["lots"])


@settings(max_examples=25)
@given(strategies.clusters(max_nodes=4, max_pods=6))
def test_capacity_is_what_a_naive_loop_finds(objects: list[Manifest]) -> None:
    objects = [item for item in objects if item["metadata"]["name"] != "pending"]
    pod = make.pod("copy", requests={"cpu": "700m"}, labels={"app": "a"})
    pod["spec"]["preemptionPolicy"] = "Never"
    counted = kubesched.capacity(kubesched.world(objects, tie_break="name"), pod, most=30).fits
    world = kubesched.world(objects, tie_break="name")
    n = 0
    with world.trial() as trial:
        trial.settle()
        while n < 30:
            trial.add_pod({**pod, "metadata": {**pod["metadata"], "name": f"copy-{n}"}})
            if f"{pod['metadata']['namespace']}/copy-{n}" not in trial.settle().placed:
                break
            n += 1
    assert counted == n


def test_the_command_answers_with_a_number_first(tmp_path: Path) -> None:
    cluster, pod = tmp_path / "cluster.json", tmp_path / "pod.json"
    nodes = [make.node(f"n{n}", cpu="2", labels={make.ZONE: "ab"[n % 2]}) for n in range(4)]
    cluster.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": nodes}))
    pod.write_text(json.dumps(make.pod("web", requests={"cpu": "500m"})))

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(main, ["capacity", "-f", str(cluster), *arguments])

    assert run("--pod", str(pod)).stdout.startswith("web: 16 more fit; the next one: 0/4 nodes are available")
    assert json.loads(run("--pod", str(pod), "-o", "json").stdout)["capacity"][0]["fits"] == 16
    metrics = run("--shape", "1/1Gi", "--by", "zone", "-o", "prometheus").stdout
    assert 'kubesched_capacity_fits{pod="1-1Gi",by="zone",value="a"} 4' in metrics
    assert run("--shape", "9/1Gi", "--exit-code").exit_code == 1
    mistake = run("--shape", "lots")
    assert (mistake.exit_code, mistake.stderr.count("\n")) == (2, 1)
    assert run().exit_code == 2
