"""How near to optimal: bounds on nodes and cost, what is fragmented or stranded, and pods by priority."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner

import kubesched
from kubesched.cli.main import main
from kubesched.testing import make

EXAMPLES = Path(__file__).parents[3] / "examples"


def test_nodes_that_no_placement_needs() -> None:
    nodes = [make.node(f"n{k}", cpu="4", memory="8Gi") for k in range(4)]
    pods = [make.pod(f"p{k}", requests={"cpu": "1", "memory": "1Gi"}, on=f"n{k}") for k in range(4)]
    report = kubesched.optimal([*nodes, *pods])
    assert (report.n_nodes, report.least_nodes, report.packed_nodes) == (4, 1, 1)
    assert report.headline == "4 nodes; no placement needs fewer than 1, and a packing on 1 was found."
    full = [make.pod(f"f{k}", requests={"cpu": "3"}, on=f"n{k}") for k in range(4)]
    assert kubesched.optimal([*nodes, *pods, *full]).least_nodes == 4


def test_what_the_pods_would_cost_on_the_best_machines() -> None:
    label = {"node.kubernetes.io/instance-type": "medium", make.ZONE: "a"}
    nodes = [make.node(f"n{k}", cpu="4", memory="16Gi", labels=label) for k in range(3)]
    pods = [make.pod(f"p{k}", requests={"cpu": "1", "memory": "1Gi"}, on=f"n{k}") for k in range(3)]
    report = kubesched.optimal([*nodes, *pods], EXAMPLES / "plan" / "catalogue.yaml")
    assert report.cost == 570_000_000
    assert report.least_cost is not None and report.least_cost <= 190_000_000
    assert report.packed_cost == 190_000_000


def test_fragmented_and_stranded_room() -> None:
    """Two nodes with 500m free each: of no use to pods of 1 cpu, of use to those of 100m."""
    nodes = [make.node(f"n{k}", cpu="4", memory="8Gi") for k in range(2)]
    pods = [make.pod(f"p{k}", requests={"cpu": "3500m", "memory": "1Gi"}, on=f"n{k}") for k in range(2)]
    cpu, memory = kubesched.optimal([*nodes, *pods]).resources
    assert (cpu.fragmented_percent, cpu.unusable_percent) == (100.0, 100.0)
    assert cpu.stranded == 0
    assert memory.stranded > 0
    small = [make.pod(f"s{k}", requests={"cpu": "100m", "memory": "1Gi"}, on="n0") for k in range(2)]
    (cpu, _) = kubesched.optimal([*nodes, *pods, *small]).resources
    assert (cpu.fragmented_percent, cpu.unusable_percent) == (50.0, 0.0)


def test_the_most_pods_by_priority() -> None:
    """One node of 4 cpus: a pod of 3 with low priority keeps out two of 2 cpus with high priority."""
    node = make.node("n", cpu="4", memory="8Gi")
    low = make.pod("low", requests={"cpu": "3"}, on="n", priority=1)
    never = {"preemptionPolicy": "Never"}
    high = [make.pod(f"high{k}", requests={"cpu": "2"}, priority=10, spec=never) for k in range(3)]
    report = kubesched.optimal([node, low, *high])
    assert [(one.priority, one.pods, one.placed, one.most) for one in report.tiers] == [(10, 3, 0, 2), (1, 4, 1, 2)]


@pytest.mark.parametrize("seed", range(15))
def test_no_placement_of_the_scheduler_is_better_than_the_bounds(seed: int) -> None:
    chance = Random(seed)
    nodes = [make.node(f"n{k}", cpu=str(chance.choice([2, 4])), memory="8Gi", pods=6) for k in range(4)]
    pods = [
        make.pod(f"p{k}", requests={"cpu": f"{chance.choice([300, 700, 1500])}m"}, priority=chance.choice([0, 5]))
        for k in range(12)
    ]
    report = kubesched.optimal([*nodes, *pods])
    for tier in report.tiers:
        assert tier.most is not None and tier.placed <= tier.most <= tier.pods
    with kubesched.world([*nodes, *pods]).trial() as trial:
        settled = trial.settle()
        used = len(set(settled.placed.values()))
    if not settled.pending:
        assert report.least_nodes <= used


def test_the_guide_shows_what_is_printed() -> None:
    result = CliRunner().invoke(main, ["optimal", "-f", str(EXAMPLES / "outage")])
    page = EXAMPLES.parent / "docs" / "guides" / "optimal.md"
    assert f"```text\n{result.stdout}```" in page.read_text()


def test_the_command() -> None:
    arguments = ["optimal", "-f", str(EXAMPLES / "outage"), "--catalogue", str(EXAMPLES / "plan" / "catalogue.yaml")]
    result = CliRunner().invoke(main, [*arguments, "-o", "json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["nodes"]["atLeast"] >= 1
    assert CliRunner().invoke(main, [*arguments, "-o", "csv"]).stdout.startswith("resource,")
    shop = CliRunner().invoke(main, ["optimal", "-f", str(EXAMPLES / "plan" / "shop.yaml")])
    assert (shop.exit_code, "there are no nodes" in shop.stderr) == (2, True)
