"""Copies that are counted, not placed: as many as the scheduler places one by one, with the same words to the next."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import kubesched
from kubesched.k8s.model.selectors import Selector
from kubesched.planning.many_copies import CountedCopies, count_copies
from kubesched.simulator.trial import LoadedWorld, copies_of
from kubesched.testing import make
from kubesched.testing.make import Manifest

MOST = 400


def spread(key: str, skew: int, app: str = "web", **more: Any) -> Manifest:
    selector = {"matchLabels": {"app": app}}
    return {
        "maxSkew": skew,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": selector,
        **more,
    }


def both(world: LoadedWorld, pod: Manifest, most: int = MOST) -> tuple[CountedCopies | None, CountedCopies]:
    """What is counted, and what comes of placing them."""
    with world.trial() as trial:
        template = trial.read_pod(pod)
        counted = count_copies(world, template, most)
        nodes, failed = trial.place_each(copies_of(template, most))
    per_node = {name: nodes.count(name) for name in sorted(set(nodes))}
    message, plugins = ("", ()) if failed is None else (failed.message, failed.plugins)
    return counted, CountedCopies(len(nodes), per_node, message, plugins)


def random_cluster(chance: Random) -> list[Manifest]:
    objects = []
    for number in range(chance.randint(1, 9)):
        labels = {make.ZONE: chance.choice("abc")} if chance.random() < 0.95 else {}
        taints = [{"key": "team", "value": "x", "effect": "NoSchedule"}] if chance.random() < 0.15 else []
        amounts: Manifest = {"cpu": str(chance.choice((2, 4, 8))), "memory": chance.choice(("4Gi", "16Gi")), "pods": 12}
        objects.append(
            make.node(f"n{number}", **amounts, labels=labels, taints=taints, unschedulable=chance.random() < 0.05)
        )
    names = [one["metadata"]["name"] for one in objects]
    for number in range(chance.randint(0, 12)):
        affinity: dict[str, Any] = {}
        if chance.random() < 0.1:
            term = make.affinity_term(make.ZONE, {"app": chance.choice(("web", "db"))})
            affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        objects.append(
            make.pod(
                f"p{number}",
                requests={"cpu": chance.choice(("100m", "500m", "1")), "memory": "256Mi"},
                labels={"app": chance.choice(("web", "db"))},
                on=chance.choice(names),
                spec={"affinity": affinity},
            )
        )
    return objects


def random_pod(chance: Random) -> Manifest:
    constraints = []
    for _ in range(chance.choice((0, 0, 1, 1, 1, 2))):
        more: dict[str, Any] = {"minDomains": chance.randint(1, 4)} if chance.random() < 0.3 else {}
        if chance.random() < 0.3:
            more["nodeTaintsPolicy"] = "Honor"
        key = chance.choice((make.ZONE, make.ZONE, make.HOSTNAME))
        constraints.append(spread(key, chance.randint(1, 4), chance.choice(("web", "web", "web", "db")), **more))
    if len({one["topologyKey"] for one in constraints}) < len(constraints):
        constraints = constraints[:1]
    spec: dict[str, Any] = {}
    if chance.random() < 0.15:
        spec["nodeSelector"] = {make.ZONE: chance.choice("abc")}
    if chance.random() < 0.2:
        spec["tolerations"] = [{"key": "team", "operator": "Exists"}]
    requests = {"cpu": chance.choice(("100m", "250m", "700m", "3")), "memory": chance.choice(("64Mi", "900Mi"))}
    return make.pod(
        "copy", requests=requests, labels={"app": "web"}, spec={"topologySpreadConstraints": constraints, **spec}
    )


def test_as_many_are_counted_as_are_placed_one_by_one() -> None:
    n_counted = n_with_places = 0
    for seed in range(300):
        chance = Random(seed)
        world = kubesched.world(random_cluster(chance), seed=seed)
        counted, placed = both(world, random_pod(chance))
        if counted is None:
            continue
        n_counted += 1
        assert (counted.n, bool(counted.message)) == (placed.n, bool(placed.message)), seed
        if counted.per_node is not None:
            n_with_places += 1
            assert counted == placed, seed
    assert n_counted > 150
    assert n_with_places > 100


def test_nothing_is_left_of_copies_that_were_counted() -> None:
    world = kubesched.world([make.node("a"), make.node("b"), make.pod("p", cpu="1", on="a")])
    table = world.cluster.table
    columns = (table.pod_counts, table.nonzero_cpu_milli, table.nonzero_memory_bytes, *table.requested.values())
    before = [column.data[: table.n].tolist() for column in columns]
    assert both(world, make.pod("copy", cpu="500m"))[0] is not None
    assert [column.data[: table.n].tolist() for column in columns] == before
    assert table.pods.counts(table.pods.classes(Selector(()), None)).tolist() == [1, 0]


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(
            {"containers": [{"name": "c", "ports": [{"containerPort": 80, "hostPort": 80}]}]}, id="host ports"
        ),
        pytest.param(
            {
                "affinity": {
                    "podAntiAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": [
                            make.affinity_term(make.HOSTNAME, {"app": "web"})
                        ]
                    }
                }
            },
            id="its own anti-affinity",
        ),
        pytest.param({"schedulingGates": [{"name": "later"}]}, id="gates"),
        pytest.param({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}, id="claims"),
        pytest.param({"topologySpreadConstraints": [spread(make.ZONE, 1), spread(make.HOSTNAME, 1)]}, id="two spreads"),
    ],
)
def test_where_the_order_matters_copies_are_placed(spec: Manifest) -> None:
    world = kubesched.world([make.node("a", labels={make.ZONE: "a"}), make.node("b", labels={make.ZONE: "b"})])
    assert both(world, make.pod("copy", cpu="1", labels={"app": "web"}, spec=spec))[0] is None


def test_no_more_are_counted_than_were_asked_for() -> None:
    world = kubesched.world([make.node("a", cpu="4"), make.node("b", cpu="4")])
    pod = make.pod("copy", cpu="1")
    counted, placed = both(world, pod, most=8)
    assert counted == placed == CountedCopies(8, {"a": 4, "b": 4})
    assert both(world, pod, most=7)[0] == CountedCopies(7, None)
    placed_alone = kubesched.capacity(world, pod, most=7, remedies=False).answers[0].per_node
    assert sum(placed_alone.values()) == 7


def test_every_workload_is_told_what_it_is_told_alone() -> None:
    objects = [make.node(f"n{i}", cpu="4", labels={make.ZONE: "abb"[i % 3]}) for i in range(9)]
    for number, zones in enumerate((False, True, False)):
        labels = {"app": f"w{number}"}
        constraints = [spread(make.ZONE, 2, f"w{number}")] if zones else []
        pod = make.pod("x", cpu="700m", labels=labels, spec={"topologySpreadConstraints": constraints})
        template = {"metadata": {"labels": labels}, "spec": pod["spec"]}
        about = {"name": f"w{number}", "namespace": "default"}
        spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
        objects.append({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": about, "spec": spec})
    world = kubesched.world(objects)
    together = {one.pod: one for one in kubesched.capacity(world, every=True).answers}
    for name, one in together.items():
        (alone,) = kubesched.capacity(world, workloads=[name.lower().replace(" ", "/")]).answers
        assert (one.fits, one.limit) == (alone.fits, alone.limit)
        assert one.per_node in ({}, alone.per_node)
    assert not together["Deployment default/w1"].per_node  # which nodes of zone b depends on how they fill up
