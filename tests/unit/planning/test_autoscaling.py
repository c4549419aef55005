"""Autoscalers in a simulation: what they launch, when they remove it, what that costs, and what they leave alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import kubesched
from kubesched.cli.main import main
from kubesched.planning.autoscaling.autoscaler import POLICIES
from kubesched.simulator.autoscaling import AutoscalingRecord
from kubesched.testing import make


def machines(*shapes: dict[str, Any], pools: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    record: dict[str, Any] = {"apiVersion": "kubesched.dev/v1alpha1", "kind": "Catalogue", "shapes": list(shapes)}
    return record if pools is None else {**record, "pools": pools}


def shape(name: str, cpu: int, price: float, *zones: str, **offer: Any) -> dict[str, Any]:
    return {
        "name": name,
        "allocatable": {"cpu": str(cpu), "memory": f"{4 * cpu}Gi", "pods": "110"},
        "offers": [{"zone": zone, "price": price, **offer} for zone in zones or ("a",)],
    }


SMALL, LARGE = shape("small", 2, 0.1), shape("large", 8, 0.36)


def deployment(name: str, replicas: int, cpu: str = "1", **pod: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "c", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container], **pod}},
        },
    }


def job(name: str, n: int, duration: str = "10m") -> dict[str, Any]:
    template = deployment(name, 1)["spec"]["template"]
    template["metadata"]["annotations"] = {"kubesched.dev/duration": duration}
    template["spec"]["restartPolicy"] = "Never"
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"completions": n, "parallelism": n, "template": template},
    }


def scenario(*events: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "kubesched.dev/v1alpha1",
        "kind": "Scenario",
        "metadata": {"name": "s"},
        "events": list(events),
    }


def played(policy: str, catalogue: dict[str, Any], *objects: Any, boot: str = "60s") -> kubesched.SimulationReport:
    autoscaler = kubesched.autoscaler(policy, catalogue, boot=boot)
    return kubesched.simulate(list(objects), autoscaler=autoscaler, tie_break="name")


def record_of(report: kubesched.SimulationReport) -> AutoscalingRecord:
    assert report.autoscaling is not None
    return report.autoscaling


def steps(report: kubesched.SimulationReport) -> list[tuple[float, str, str]]:
    return [(one.at_s, one.change, one.machine) for one in record_of(report).changes]


@pytest.mark.parametrize(("policy", "looks_s"), [("karpenter", 1.0), ("cluster-autoscaler", 10.0)])
def test_a_machine_comes_for_a_pod_that_waits_and_is_ready_after_its_boot(policy: str, looks_s: float) -> None:
    report = played(policy, machines(SMALL), deployment("web", 1), boot="90s")
    assert steps(report) == [(looks_s, "launched", "small/a"), (looks_s + 90, "ready", "small/a")]
    assert report.summary["states"] == {"Running": 1}


@pytest.mark.parametrize("policy", POLICIES)
def test_where_everybody_has_a_node_nothing_happens(policy: str) -> None:
    node = make.node("n", cpu="4", memory="16Gi")
    report = played(policy, machines(SMALL), node, deployment("web", 2))
    assert record_of(report).changes == ()
    assert (record_of(report).fewest_nodes, record_of(report).most_nodes) == (1, 1)


@pytest.mark.parametrize("policy", POLICIES)
def test_pods_that_no_machine_holds_bring_none_and_the_run_ends(policy: str) -> None:
    report = played(policy, machines(SMALL), deployment("web", 2, cpu="3"))
    assert record_of(report).changes == ()
    assert report.summary["states"] == {"Pending": 2}


def test_karpenter_launches_the_cheapest_machine_that_holds_the_pods() -> None:
    report = played("karpenter", machines(SMALL, LARGE), deployment("web", 8))
    assert [machine for _, change, machine in steps(report) if change == "launched"] == ["large/a"]
    alone = played("karpenter", machines(SMALL, LARGE), deployment("web", 2))
    assert [machine for _, change, machine in steps(alone) if change == "launched"] == ["small/a"]


def test_cluster_autoscaler_takes_the_group_that_wastes_least_whatever_it_costs() -> None:
    dear = shape("dear", 2, 9.0)
    report = played("cluster-autoscaler", machines(dear, LARGE), deployment("web", 2))
    assert [machine for _, change, machine in steps(report) if change == "launched"] == ["dear/a"]


@pytest.mark.parametrize("policy", POLICIES)
def test_what_is_on_its_way_is_not_launched_again(policy: str) -> None:
    late = scenario({"at": "30s", "apply": [deployment("late", 1, cpu="500m")]})
    report = played(policy, machines(SMALL), deployment("web", 1), late, boot="2m")
    assert record_of(report).count("launched") == 1


@pytest.mark.parametrize(("policy", "after_s"), [("karpenter", 60.0), ("cluster-autoscaler", 700.0)])
def test_an_empty_node_goes(policy: str, after_s: float) -> None:
    """Karpenter soon after it is empty, Cluster Autoscaler after ten minutes."""
    report = played(policy, machines(SMALL), job("calculate", 2))
    launched, ready, removed = record_of(report).changes
    assert (launched.change, ready.change, removed.change, removed.why) == ("launched", "ready", "removed", "empty")
    ended_s = ready.at_s + 600
    assert ended_s < removed.at_s <= ended_s + after_s
    assert record_of(report).nodes_at_end == 0
    assert record_of(report).node_hours == pytest.approx((removed.at_s - launched.at_s) / 3600, abs=1e-6)
    assert record_of(report).cost == pytest.approx(0.1 * (removed.at_s - launched.at_s) / 3600, abs=1e-6)


def test_karpenter_exchanges_a_node_for_a_cheaper_one_that_comes_first() -> None:
    fewer = scenario({"at": "20m", "apply": [deployment("web", 1)]})
    report = played("karpenter", machines(SMALL, LARGE), deployment("web", 8), fewer)
    assert [(change, machine) for _, change, machine in steps(report)] == [
        ("launched", "large/a"),
        ("ready", "large/a"),
        ("launched", "small/a"),
        ("ready", "small/a"),
        ("drained", "large/a"),
        ("removed", "large/a"),
    ]
    assert report.summary["states"]["Running"] == 1


def test_cluster_autoscaler_exchanges_nothing() -> None:
    fewer = scenario({"at": "20m", "apply": [deployment("web", 5)]})
    report = played("cluster-autoscaler", machines(LARGE), deployment("web", 8), fewer)
    assert [change for _, change, _ in steps(report)] == ["launched", "ready"]


@pytest.mark.parametrize("policy", POLICIES)
def test_nodes_that_are_not_of_the_catalogue_stay(policy: str) -> None:
    report = played(policy, machines(SMALL), make.node("mine", cpu="4", memory="16Gi"))
    assert record_of(report).changes == ()
    assert any("no machine of the catalogue" in one for one in record_of(report).assumptions)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_node_of_the_catalogue_that_was_there_before_may_go(policy: str) -> None:
    labels = {"node.kubernetes.io/instance-type": "small"}
    report = played(policy, machines(SMALL), make.node("mine", cpu="2", memory="8Gi", labels=labels))
    assert [(one.change, one.node) for one in record_of(report).changes] == [("removed", "mine")]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_budget_keeps_pods_on_their_node(policy: str) -> None:
    labels = {"node.kubernetes.io/instance-type": "small"}
    nodes = [make.node(name, cpu="2", memory="8Gi", labels=labels) for name in ("a", "b")]
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "w", "uid": "w", "controller": True}
    running = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    pods = [
        make.pod(
            f"w-{name}",
            requests={"cpu": "500m"},
            on=name,
            labels={"app": "w"},
            status=running,
            metadata={"ownerReferences": [owner]},
        )
        for name in ("a", "b")
    ]
    free = played(policy, machines(SMALL), *nodes, *pods)
    assert record_of(free).count("removed") == 1
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "w"},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "w"}}},
    }
    assert record_of(played(policy, machines(SMALL), *nodes, *pods, budget)).changes == ()


@pytest.mark.parametrize("policy", POLICIES)
def test_pods_that_must_spread_over_zones_get_machines_in_each(policy: str) -> None:
    spread = {
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    labels = {"topology.kubernetes.io/zone": "b"}
    far = make.node("far", cpu="1", memory="4Gi", labels=labels)  # makes zone b a domain
    web = deployment("web", 6, topologySpreadConstraints=[spread])
    report = played(policy, machines(shape("small", 2, 0.1, "a", "b")), far, web)
    assert report.summary["states"]["Running"] == 6
    assert "Pending" not in report.summary["states"]


@pytest.mark.parametrize("policy", POLICIES)
def test_limits_of_pools_and_offers_hold(policy: str) -> None:
    limited = machines(SMALL, pools=[{"name": "p", "limits": {"nodes": 2}}])
    assert record_of(played(policy, limited, deployment("web", 20))).count("launched") == 2
    scarce = machines(shape("small", 2, 0.1, available=3))
    assert record_of(played(policy, scarce, deployment("web", 20))).count("launched") == 3


@pytest.mark.parametrize("policy", POLICIES)
def test_a_pool_has_its_least_number_of_nodes(policy: str) -> None:
    report = played(policy, machines(SMALL, pools=[{"name": "p", "min": 2}]), deployment("web", 1))
    assert record_of(report).count("launched") >= 2
    assert report.summary["states"] == {"Running": 1}


@settings(max_examples=15)
@given(
    policy=st.sampled_from(POLICIES),
    sizes=st.lists(st.tuples(st.integers(1, 6), st.sampled_from(["250m", "1", "1500m"])), min_size=1, max_size=4),
    n_jobs=st.integers(0, 8),
    seed=st.integers(0, 3),
)
def test_all_that_fit_a_machine_run_and_the_costs_are_those_of_the_nodes(
    policy: str, sizes: list[tuple[int, str]], n_jobs: int, seed: int
) -> None:
    objects = [deployment(f"d{k}", n, cpu) for k, (n, cpu) in enumerate(sizes)]
    if n_jobs:
        objects.append(job("calculate", n_jobs))
    autoscaler = kubesched.autoscaler(policy, machines(shape("small", 2, 0.1, "a", "b"), LARGE))
    report = kubesched.simulate(objects, autoscaler=autoscaler, seed=seed)
    record = record_of(report)
    assert report.summary["states"]["Running"] == sum(n for n, _ in sizes)
    assert "Pending" not in report.summary["states"]
    assert record.nodes_at_end == record.count("launched") - record.count("removed")
    price = {"small/a": 0.1, "small/b": 0.1, "large/a": 0.36}
    since = {one.node: one for one in record.changes if one.change == "launched"}
    until = {one.node: one.at_s for one in record.changes if one.change == "removed"}
    costs = [price[one.machine] * (until.get(name, report.ended_s) - one.at_s) / 3600 for name, one in since.items()]
    assert record.cost == pytest.approx(sum(costs), abs=1e-5)
    assert kubesched.simulate(objects, autoscaler=autoscaler, seed=seed) == report


# -- the command -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "says"),
    [
        pytest.param(["--autoscaler", "karpenter"], "--autoscaler and --catalogue need each other", id="no machines"),
        pytest.param(["--catalogue", "c.yaml"], "--autoscaler and --catalogue need each other", id="no autoscaler"),
        pytest.param(
            ["--autoscaler", "karpenter", "--catalogue", "none.yaml"], "none.yaml: No such file", id="no file"
        ),
        pytest.param(["--autoscaler", "karpenter", "--catalogue", "free.yaml"], "not all have a price", id="no prices"),
        pytest.param(
            ["--autoscaler", "karpenter", "--catalogue", "c.yaml", "--emulate", "1.19"], "--emulate", id="older"
        ),
        pytest.param(
            ["--autoscaler", "karpenter", "--catalogue", "c.yaml", "--boot", "-1s"], "negative", id="a boot before"
        ),
    ],
)
def test_what_cannot_be_played_is_one_line(
    options: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("c.yaml").write_text(str(machines(SMALL)))
    Path("free.yaml").write_text(str(machines({**SMALL, "offers": [{"zone": "a"}]})))
    Path("web.yaml").write_text(str(deployment("web", 1)))
    result = CliRunner().invoke(main, ["simulate", "-f", "web.yaml", *options])
    assert result.exit_code == 2
    assert says in result.stderr
    assert result.stdout == ""


def test_what_the_library_refuses() -> None:
    with pytest.raises(kubesched.KubeschedError, match='no autoscaler "keda": karpenter and cluster-autoscaler'):
        kubesched.autoscaler("keda", machines(SMALL))
    with pytest.raises(kubesched.OptionError, match="an older one"):
        kubesched.simulate(
            deployment("web", 1), autoscaler=kubesched.autoscaler("karpenter", machines(SMALL)), emulate="1.19"
        )


def test_without_prices_cluster_autoscaler_is_played_and_nothing_costs_anything() -> None:
    report = played("cluster-autoscaler", machines({**SMALL, "offers": [{"zone": "a"}]}), deployment("web", 1))
    assert (record_of(report).count("launched"), record_of(report).cost) == (1, None)


def test_the_changes_are_a_table_and_in_the_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("c.yaml").write_text(str(machines(SMALL)))
    Path("web.yaml").write_text(str(deployment("web", 1)))
    asked = ["simulate", "-f", "web.yaml", "--autoscaler", "karpenter", "--catalogue", "c.yaml"]
    table = CliRunner().invoke(main, [*asked, "-o", "csv", "--table", "autoscaler"]).stdout.splitlines()
    assert table[0] == "at_s,change,node,machine,why"
    assert table[1] == "1.0,launched,new-small-a-1,small/a,for 1 pod"
    report = played("karpenter", machines(SMALL), deployment("web", 1))
    assert report.to_dict()["autoscaling"]["launched"] == 1
    assert "autoscaling" not in kubesched.simulate(deployment("web", 1)).to_dict()
