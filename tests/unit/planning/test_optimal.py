"""How near to optimal: bounds on nodes and cost, what is fragmented or stranded, and pods by priority."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner

import kubesched
from kubesched.cli.main import main
from kubesched.planning.moving import PlacementStep, fewest_moves
from kubesched.testing import make

EXAMPLES = Path(__file__).parents[3] / "examples"


def test_nodes_that_no_placement_needs() -> None:
    nodes = [make.node(f"n{k}", cpu="4", memory="8Gi") for k in range(4)]
    pods = [make.pod(f"p{k}", requests={"cpu": "1", "memory": "1Gi"}, on=f"n{k}") for k in range(4)]
    report = kubesched.optimal([*nodes, *pods])
    assert (report.n_nodes, report.least_nodes, report.packed_nodes) == (4, 1, 1)
    assert report.headline == "The pods fit on 1 of the 4 nodes, and on no fewer."
    full = [make.pod(f"f{k}", requests={"cpu": "3"}, on=f"n{k}") for k in range(4)]
    assert kubesched.optimal([*nodes, *pods, *full]).least_nodes == 4


def test_pods_that_fit_on_no_node_leave_the_bound_of_the_others() -> None:
    nodes = [make.node(f"n{k}", cpu="4", memory="8Gi") for k in range(4)]
    asked = {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]}
    web = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": 6,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": asked},
        },
    }
    report = kubesched.optimal([*nodes, web, make.pod("huge", requests={"cpu": "100"})])
    assert (report.n_nodes, report.least_nodes, report.packed_nodes) == (4, 2, 2)
    assert "Some pods fit on none of the nodes: bounds are for the pods that have one." in report.assumptions


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


# -- moves -------------------------------------------------------------------------------------------------------------

NEVER = {"preemptionPolicy": "Never"}
Cluster = list[dict[str, Any]]


def owned(name: str) -> dict[str, Any]:
    return {"ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": name}]}


def carried_out(cluster: Cluster, steps: Iterable[PlacementStep]) -> dict[str, str]:
    """Where the pods are in the end. By amounts alone, every step leaves room on its node; nobody is moved from where
    it is not."""
    free, asked, where = Counter[str](), {}, {}
    for item in cluster:
        name = item["metadata"]["name"]
        if item["kind"] == "Node":
            free[name] = int(item["status"]["allocatable"]["cpu"]) * 1000
        else:
            key = f"default/{name}"
            asked[key] = int(item["spec"]["containers"][0]["resources"]["requests"]["cpu"].removesuffix("m"))
            where[key] = item["spec"].get("nodeName", "")
    for key, node in where.items():
        free[node] -= asked[key] if node else 0
    for step in steps:
        assert where[step.pod] == step.source
        free[step.source] += asked[step.pod]
        where[step.pod] = step.target
        if step.target:
            free[step.target] -= asked[step.pod]
            assert free[step.target] >= 0, step
    return where


def test_one_pod_makes_room_for_another() -> None:
    cluster = [make.node(f"n{k}", cpu="4", memory="8Gi") for k in range(3)]
    cluster += [make.pod(f"p{k}", requests={"cpu": "2500m"}, on=f"n{k}") for k in range(2)]
    cluster += [make.pod("s", requests={"cpu": "1500m"}, on="n2")]
    cluster += [make.pod("big", requests={"cpu": "4000m"}, priority=10, spec=NEVER)]
    report = kubesched.optimal(cluster)
    assert report.moves is not None and report.moves.is_fewest
    assert [(one.pod, one.source, one.kind) for one in report.moves.steps] == [
        ("default/s", "n2", "move"),
        ("default/big", "", "place"),
    ]
    assert report.moves.placed == ((10, 1), (0, 4))
    assert "With 1 move, the fewest possible, 4 pods have a node (+1), 1 of priority 10 or more:" in str(report)
    assert report.headline.endswith(" 1 more pod fits after 1 move.")
    assert all(carried_out(cluster, report.moves.steps).values())


def test_a_pod_of_lower_priority_waits_if_nothing_else_helps() -> None:
    node = make.node("n", cpu="4", memory="8Gi")
    low = make.pod("low", requests={"cpu": "3000m"}, on="n", priority=1)
    high = make.pod("high", requests={"cpu": "2000m"}, priority=10, spec=NEVER)
    report = kubesched.optimal([node, low, high])
    assert report.moves is not None
    assert [(one.pod, one.kind) for one in report.moves.steps] == [("default/low", "wait"), ("default/high", "place")]


def crossing(*more: dict[str, Any]) -> Cluster:
    """For z, x must leave a; it fits only where y is, and y only where x is."""
    pins = {kind: {"nodeSelector": {"kind": kind}, **NEVER} for kind in ("a", "spare")}
    return [
        make.node("a", cpu="8", memory="8Gi", labels={"kind": "a"}),
        make.node("b", cpu="5", memory="8Gi"),
        make.pod("x", requests={"cpu": "5000m"}, on="a"),
        make.pod("y", requests={"cpu": "4000m"}, on="b"),
        make.pod("z", requests={"cpu": "4000m"}, spec=pins["a"]),
        *more,
        *([make.pod("w", requests={"cpu": "4000m"}, spec=pins["spare"])] if more else []),
    ]


def test_pods_that_wait_for_each_other_make_a_detour() -> None:
    """A third node has room for y, but for no longer than until w comes."""
    cluster = crossing(make.node("spare", cpu="4", memory="8Gi", labels={"kind": "spare"}))
    found = fewest_moves(kubesched.world(cluster), 60)
    assert found is not None
    assert [(one.pod[-1], one.kind, one.target) for one in found.steps] == [
        ("y", "detour", "spare"),
        ("x", "move", "b"),
        ("y", "move", "a"),
        ("w", "place", "spare"),
        ("z", "place", "a"),
    ]
    assert all(carried_out(cluster, found.steps).values())


def test_without_room_for_a_detour_a_pod_waits_in_between() -> None:
    cluster = crossing()
    report = kubesched.optimal(cluster)
    assert report.moves is not None
    assert [one.kind for one in report.moves.steps] == ["wait", "move", "place", "place"]
    assert all(carried_out(cluster, report.moves.steps).values())


def test_rules_between_pods_are_those_of_the_scheduler() -> None:
    """By amounts both pods of a kind fit on one node; they keep away from each other."""
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "a"}}}
    ]}}  # fmt: skip
    cluster = [make.node(f"n{k}", cpu="4", memory="8Gi", labels={make.HOSTNAME: f"n{k}"}) for k in range(2)]
    cluster += [make.pod("f", requests={"cpu": "2000m"}, on="n0")]
    cluster += [
        make.pod(f"a{k}", requests={"cpu": "2500m"}, labels={"app": "a"}, spec={"affinity": apart}) for k in range(2)
    ]
    report = kubesched.optimal(cluster)
    assert report.moves is None or report.moves.placed[-1][1] == 2


@pytest.mark.parametrize("seed", range(12))
def test_moves_are_the_fewest_of_all_placements(seed: int) -> None:
    """Against all placements of up to six pods on three nodes."""
    chance = Random(seed)
    cpus = [chance.choice([2, 3, 4]) for _ in range(3)]
    free, pods, cluster = (
        [1000 * cpu for cpu in cpus],
        [],
        [make.node(f"n{k}", cpu=str(cpu), memory="64Gi") for k, cpu in enumerate(cpus)],
    )
    for k in range(6):
        cpu, priority = chance.choice([700, 1000, 1500, 2000]), chance.choice([0, 5])
        node = chance.choice([n for n in range(3) if free[n] >= cpu] or [-1]) if k < 4 else -1
        if node >= 0:
            free[node] -= cpu
        pods.append((cpu, priority, node))
        on = f"n{node}" if node >= 0 else ""
        cluster.append(make.pod(f"p{k}", requests={"cpu": f"{cpu}m"}, priority=priority, spec=NEVER, on=on))
    world = kubesched.world(cluster)
    found = fewest_moves(world, 60)
    assert found is not None
    best = max(
        (sum(p == 5 and t >= 0 for (_, p, _), t in zip(pods, targets, strict=True)), sum(t >= 0 for t in targets),
         -sum(n >= 0 and n != t for (_, _, n), t in zip(pods, targets, strict=True)))
        for targets in product(range(-1, 3), repeat=6)
        if all(sum(c for (c, _, _), t in zip(pods, targets, strict=True) if t == n) <= 1000 * cpus[n] for n in range(3))
    )  # fmt: skip
    where = carried_out(cluster, found.steps)
    ends = [where[f"default/p{k}"] for k in range(6)]
    n_high = sum(bool(end) and pod[1] == 5 for end, pod in zip(ends, pods, strict=True))
    n_left = sum(pod[2] >= 0 and end != f"n{pod[2]}" for end, pod in zip(ends, pods, strict=True))
    assert (n_high, sum(map(bool, ends)), -n_left) == best
    assert found.is_fewest
