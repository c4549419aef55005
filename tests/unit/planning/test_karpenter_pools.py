"""What Karpenter disrupts where NodePools say when, how many and how: situations of its own tests (consolidation,
emptiness, budgets, Balanced), typed anew, with their outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

import kubesched
from kubesched.planning.consolidate.report import ConsolidationReport
from kubesched.testing import make

Manifest = dict[str, Any]
POOL, CAPACITY_TYPE, TYPE = "karpenter.sh/nodepool", "karpenter.sh/capacity-type", "node.kubernetes.io/instance-type"
NOW = "2026-03-02T12:00:00Z"  # a Monday
ON_DEMAND, SPOT = "on-demand", "spot"


def pool(name: str = "default", *budgets: Manifest, requires: Sequence[Manifest] = (), **disruption: Any) -> Manifest:
    spec: Manifest = {"template": {"spec": {"requirements": list(requires)}}}
    if "replicas" in disruption:
        spec["replicas"] = disruption.pop("replicas")
    spec["disruption"] = {"budgets": list(budgets or ({"nodes": "100%"},)), "consolidateAfter": "0s", **disruption}
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name}, "spec": spec}


def node(name: str, kind: str = "large", *, of: str = "default", sold: str = ON_DEMAND, zone: str = "a") -> Manifest:
    labels = {POOL: of, CAPACITY_TYPE: sold, make.ZONE: zone, TYPE: kind}
    cpu = {"large": 8, "medium": 4, "small": 2}.get(kind, 8)
    return make.node(name, cpu=str(cpu), memory=f"{4 * cpu}Gi", labels=labels)


def owned(name: str, on: str, cpu: str = "1", **more: Any) -> Manifest:
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "o", "uid": "o", "controller": True}
    metadata = {"ownerReferences": [reference], **more.pop("metadata", {})}
    return make.pod(name, on=on, cpu=cpu, memory="100Mi", metadata=metadata, **more)


def machine(name: str, cpu: int, *offers: tuple[str, str, float]) -> Manifest:
    return {
        "name": name,
        "allocatable": {"cpu": str(cpu), "memory": f"{4 * cpu}Gi", "pods": "110"},
        "offers": [{"zone": zone, "capacityType": sold, "price": price} for zone, sold, price in offers],
    }


MACHINES = [
    machine("large", 8, ("a", ON_DEMAND, 0.8), ("a", SPOT, 0.4)),
    machine("medium", 4, ("a", ON_DEMAND, 0.4), ("a", SPOT, 0.2)),
    machine("small", 2, ("a", ON_DEMAND, 0.2), ("a", SPOT, 0.1)),
]


def catalogue(*shapes: Manifest) -> Manifest:
    return {"apiVersion": "kubesched.dev/v1alpha1", "kind": "Catalogue", "shapes": list(shapes or MACHINES)}


def consolidated(*objects: Manifest, shapes: Sequence[Manifest] = (), **options: Any) -> ConsolidationReport:
    options = {"policy": "karpenter", "rules": "karpenter", "at": NOW, "tie_break": "name", **options}
    return kubesched.consolidate(list(objects), catalogue(*shapes), **options)


def why(report: ConsolidationReport) -> dict[str, str]:
    return {one.node: one.reason.identifier for one in report.kept}


# -- how many at a time ------------------------------------------------------------------------------------------------


def first_round(*objects: Manifest, parallel: int = 100, **options: Any) -> list[str]:
    """The nodes that go together at first."""
    report = consolidated(*objects, parallel=parallel, **options)
    return [name for step, turn in zip(report.steps, report.rounds, strict=True) if turn == 1 for name in step.delete]


@pytest.mark.parametrize(
    ("budget", "n_at_first"),
    [
        pytest.param("30%", 3, id="3 of 10 empty nodes"),
        pytest.param("100%", 10, id="all of them"),
        pytest.param("25%", 3, id="percentages round up"),
        pytest.param("4", 4, id="a number"),
        pytest.param("0", 0, id="none of them"),
    ],
)
def test_empty_nodes_within_a_budget(budget: str, n_at_first: int) -> None:
    nodes = [node(f"n{k}") for k in range(10)]
    assert len(first_round(pool("default", {"nodes": budget}), *nodes)) == n_at_first


@pytest.mark.parametrize(("budget", "n_at_first"), [("30%", 3), ("0%", 0), ("100%", 9)])
def test_nodes_with_pods_within_a_budget(budget: str, n_at_first: int) -> None:
    """Ten nodes with a small pod each: those that the budget allows go together, to the others."""
    objects = [one for k in range(10) for one in (node(f"n{k}", "small"), owned(f"p{k}", f"n{k}", "100m"))]
    assert len(first_round(pool("default", {"nodes": budget}), *objects, replaces=False)) == n_at_first


def test_two_nodes_of_each_of_ten_pools_go_at_first() -> None:
    pools = [pool(f"pool-{k}", {"nodes": "2"}) for k in range(10)]
    nodes = [node(f"n{k}-{i}", of=f"pool-{k}") for k in range(10) for i in range(3)]
    gone = first_round(*pools, *nodes)
    assert len(gone) == 20
    assert all(sum(name.startswith(f"n{k}-") for name in gone) == 2 for k in range(10))


def test_nodes_that_are_not_ready_or_being_deleted_use_up_a_budget() -> None:
    nodes = [node(f"n{k}") for k in range(10)]
    nodes[0]["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    nodes[1]["metadata"]["deletionTimestamp"] = NOW
    blocked = consolidated(pool("default", {"nodes": "2"}), *nodes)
    assert not blocked.steps
    reason = "No allowed disruptions for disruption reason Empty due to blocking budget"
    assert set(why(blocked).values()) == {reason, "node is deleting or marked for deletion"}
    assert len(first_round(pool("default", {"nodes": "3"}), *nodes)) == 1


@pytest.mark.parametrize(
    ("budgets", "goes"),
    [
        pytest.param([{"nodes": "0", "reasons": ["Underutilized"]}], {"empty"}, id="not for being underutilised"),
        pytest.param([{"nodes": "0", "reasons": ["Empty"]}], {"busy"}, id="not for being empty"),
        pytest.param([{"nodes": "0", "reasons": ["Drifted"]}], {"empty", "busy"}, id="not for drift"),
        pytest.param([{"nodes": "100%"}, {"nodes": "0", "reasons": ["Empty"]}], {"busy"}, id="the least counts"),
        pytest.param(
            [{"nodes": "0", "schedule": "0 9 * * mon-fri", "duration": "8h"}], set(), id="not during office hours"
        ),
        pytest.param(
            [{"nodes": "0", "schedule": "0 20 * * *", "duration": "8h"}], {"empty", "busy"}, id="not in the night"
        ),
        pytest.param(
            [{"nodes": "0", "schedule": "@weekly", "duration": "35h59m"}], {"empty", "busy"}, id="until a minute ago"
        ),
        pytest.param([{"nodes": "0", "schedule": "@weekly", "duration": "36h30m"}], set(), id="for half an hour more"),
    ],
)
def test_reasons_and_schedules_of_budgets(budgets: list[Manifest], goes: set[str]) -> None:
    objects = [node("empty"), node("busy"), node("other"), owned("p", "busy"), owned("q", "other", "7")]
    report = consolidated(pool("default", *budgets), *objects, replaces=False)
    assert {name for name in report.removed if name != "other"} == goes


def test_a_schedule_says_for_how_long_it_blocks() -> None:
    budget = {"nodes": "0", "schedule": "0 9 * * mon-fri", "duration": "8h"}
    kept = consolidated(pool("default", budget), node("n")).kept[0]
    assert kept.reason.text == "budgets of NodePool default allow none for another 5h"


# -- which nodes -------------------------------------------------------------------------------------------------------


def without(label: str, name: str = "n") -> Manifest:
    found = node(name)
    del found["metadata"]["labels"][label]
    return found


@pytest.mark.parametrize(
    ("of_pool", "item", "has_pod", "expected"),
    [
        pytest.param(pool(), node("n"), True, None, id="when empty or underutilised"),
        pytest.param(
            pool(consolidationPolicy="WhenEmpty"),
            node("n"),
            True,
            'NodePool "default" has consolidation policy WhenEmpty, but node is not empty',
            id="when empty, and it is not",
        ),
        pytest.param(pool(consolidationPolicy="WhenEmpty"), node("n"), False, None, id="when empty, and it is"),
        pytest.param(
            pool(consolidateAfter="Never"), node("n"), True, 'NodePool "default" has consolidation disabled', id="never"
        ),
        pytest.param(
            pool(consolidateAfter="Never"),
            node("n"),
            False,
            'NodePool "default" has consolidation disabled',
            id="never, though empty",
        ),
        pytest.param(pool(replicas=2), node("n"), False, "static NodePool", id="a static pool, empty"),
        pytest.param(pool(replicas=2), node("n"), True, "static NodePool", id="a static pool"),
        pytest.param(pool(), node("n", of="gone"), True, "NodePool not found", id="its pool is gone"),
        pytest.param(
            pool(), without(CAPACITY_TYPE), True, f'Node does not have label "{CAPACITY_TYPE}"', id="no capacity type"
        ),
        pytest.param(pool(), without(make.ZONE), True, f'Node does not have label "{make.ZONE}"', id="no zone"),
        pytest.param(pool(), without(make.ZONE), False, None, id="no zone, but empty"),
    ],
)
def test_which_nodes_may_go(of_pool: Manifest, item: Manifest, has_pod: bool, expected: str | None) -> None:
    there = [node("other", of="default"), owned("anchor", "other", "100m", metadata={"annotations": DO_NOT})]
    pods = [owned("p", "n", "100m")] if has_pod else []
    report = consolidated(of_pool, item, *there, *pods, replaces=False)
    assert why(report).get("n") == expected
    assert ("n" in report.removed) is (expected is None)


DO_NOT = {"karpenter.sh/do-not-disrupt": "true"}


def claim(name: str, *, event: str | None = None, initialized: str | None = "2026-03-01T00:00:00Z") -> Manifest:
    conditions = [{"type": "Launched", "status": "True"}]
    if initialized:
        conditions.append({"type": "Initialized", "status": "True", "lastTransitionTime": initialized})
    status: Manifest = {"nodeName": name, "conditions": conditions, **({"lastPodEventTime": event} if event else {})}
    about = {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": f"claim-of-{name}"}}
    return {**about, "spec": {}, "status": status}


@pytest.mark.parametrize(
    ("after", "told", "goes"),
    [
        pytest.param("0s", claim("n", event="2026-03-02T11:59:59Z"), True, id="at once"),
        pytest.param("10m", claim("n", event="2026-03-02T11:50:01Z"), False, id="a second too early"),
        pytest.param("10m", claim("n", event="2026-03-02T11:50:00Z"), True, id="just long enough"),
        pytest.param("10m", claim("n", initialized="2026-03-02T11:55:00Z"), False, id="initialised five minutes ago"),
        pytest.param("10m", claim("n"), True, id="initialised yesterday"),
        pytest.param("10m", None, True, id="nobody knows"),
    ],
)
def test_consolidate_after_counts_from_the_last_pod_that_came_or_left(
    after: str, told: Manifest | None, goes: bool
) -> None:
    objects = [pool(consolidateAfter=after), node("n"), *([told] if told else [])]
    report = consolidated(*objects)
    assert bool(report.steps) is goes
    if not goes:
        assert why(report) == {"n": "consolidateAfter window not yet elapsed"}


def test_without_a_claim_the_youngest_pod_says_since_when_a_node_is_quiet() -> None:
    objects = [pool(consolidateAfter="1h"), node("n"), node("other")]
    pods = [owned("p", "n", started="2026-03-02T11:30:00Z"), owned("q", "other", started="2026-03-02T09:00:00Z")]
    report = consolidated(*objects, *pods, replaces=False)
    assert report.removed == ("other",)
    later = consolidated(*objects, *pods, replaces=False, at="2026-03-02T12:30:00Z")
    assert len(later.removed) == 1


@pytest.mark.parametrize(
    ("cost", "is_empty"),
    [
        pytest.param("-134217728", True, id="a pod whose eviction costs nothing"),
        pytest.param("-134217727.5", False, id="a little"),
        pytest.param("0", False, id="a common pod"),
        pytest.param("none", False, id="no number"),
    ],
)
def test_pods_whose_eviction_costs_nothing_leave_a_node_empty(cost: str, is_empty: bool) -> None:
    annotations = {"annotations": {"controller.kubernetes.io/pod-deletion-cost": cost}}
    objects = [pool(consolidationPolicy="WhenEmpty"), node("n"), owned("p", "n", "100m", metadata=annotations)]
    report = consolidated(*objects, node("other"), owned("anchor", "other", metadata={"annotations": DO_NOT}))
    assert ("n" in report.removed) is is_empty


@pytest.mark.parametrize(("kind", "is_empty"), [("ReplicaSet", True), ("StatefulSet", False)])
def test_terminating_pods_leave_a_node_empty_unless_a_stateful_set_waits_for_them(kind: str, is_empty: bool) -> None:
    leaving = owned("p", "n", metadata={"deletionTimestamp": NOW})
    leaving["metadata"]["ownerReferences"] = [
        {"apiVersion": "apps/v1", "kind": kind, "name": "o", "uid": "o", "controller": True}
    ]
    report = consolidated(pool(consolidationPolicy="WhenEmpty"), node("n"), leaving)
    assert ("n" in report.removed) is is_empty


def test_a_node_with_nothing_but_daemons_is_empty() -> None:
    daemon = owned("d", "n", "100m")
    daemon["metadata"]["ownerReferences"][0]["kind"] = "DaemonSet"
    report = consolidated(pool(consolidationPolicy="WhenEmpty"), node("n"), daemon)
    assert report.removed == ("n",)


# -- replacements ------------------------------------------------------------------------------------------------------


def spot_types(n: int, cheapest: float = 0.01, sold: str = SPOT) -> list[Manifest]:
    """As many types, each a little dearer than the one before."""
    return [machine(f"type-{k:02d}", 4, ("a", sold, round(cheapest + k / 1000, 4))) for k in range(n)]


@pytest.mark.parametrize(
    ("own_type", "n_types", "gate", "expected"),
    [
        pytest.param(20, 40, True, "type-00", id="20 cheaper types"),
        pytest.param(15, 40, True, "type-00", id="15 cheaper types"),
        pytest.param(
            14, 40, True, "SpotToSpotConsolidation requires 15 cheaper instance type options", id="14 cheaper types"
        ),
        pytest.param(0, 40, True, "Can't replace with a cheaper node", id="the cheapest type"),
        pytest.param(
            20,
            40,
            False,
            "SpotToSpotConsolidation is disabled, can't replace a spot node with a spot node",
            id="the feature gate is off",
        ),
    ],
)
def test_a_spot_machine_takes_the_place_of_another_where_there_is_a_choice(
    own_type: int, n_types: int, gate: bool, expected: str
) -> None:
    objects = [pool(), node("n", f"type-{own_type:02d}", sold=SPOT), owned("p", "n")]
    report = consolidated(*objects, shapes=spot_types(n_types), spot_to_spot=gate)
    if expected.startswith("type"):
        assert report.steps[0].launch[0].option.shape.name == expected
    else:
        assert why(report)["n"] in (expected, "NoPlaceToMovePods")
        assert not report.steps


@pytest.mark.parametrize("gate", [True, False])
def test_several_spot_machines_become_one_without_a_choice_of_types(gate: bool) -> None:
    objects = [pool(), *(node(f"n{k}", "medium", sold=SPOT) for k in range(3))]
    pods = [owned(f"p{k}", f"n{k}", "3") for k in range(3)]
    shapes = [*MACHINES, machine("huge", 16, ("a", SPOT, 0.5))]
    report = consolidated(*objects, *pods, shapes=shapes, spot_to_spot=gate)
    assert [len(step.delete) for step in report.steps] == ([3] if gate else [])


def test_an_on_demand_machine_becomes_a_spot_machine() -> None:
    report = consolidated(pool(), node("n", "large"), owned("p", "n", "6"))
    assert [one.option.offer.capacity_type for one in report.steps[0].launch] == [SPOT]


def test_a_spot_machine_may_become_an_on_demand_machine_where_there_is_no_spot() -> None:
    wanted = {"key": CAPACITY_TYPE, "operator": "In", "values": [ON_DEMAND]}
    report = consolidated(pool(requires=[wanted]), node("n", "large", sold=SPOT), owned("p", "n"))
    assert [one.option.name for one in report.steps[0].launch] == ["default/small/a/on-demand"]


@pytest.mark.parametrize(
    ("dearest", "wants", "is_replaced"),
    [
        pytest.param(0.9, None, False, id="it might come to a zone where it costs more"),
        pytest.param(0.3, None, True, id="it costs less wherever it comes"),
        pytest.param(0.9, "a", True, id="its pods keep it in the cheap zone"),
    ],
)
@pytest.mark.parametrize("sold", [ON_DEMAND, SPOT])
def test_a_type_counts_by_its_dearest_offer(dearest: float, wants: str | None, is_replaced: bool, sold: str) -> None:
    """Karpenter's "won't replace node if any spot replacement is more expensive", and the same for on-demand."""
    shapes = [
        machine("current", 8, ("a", ON_DEMAND, 0.5), ("b", ON_DEMAND, 0.5)),
        machine("other", 4, ("a", sold, 0.2), ("b", sold, dearest)),
    ]
    spec = {"nodeSelector": {make.ZONE: wants}} if wants else {}
    report = consolidated(pool(), node("n", "current"), owned("p", "n", spec=spec), shapes=shapes)
    assert bool(report.steps) is is_replaced


@pytest.mark.parametrize("sold", [ON_DEMAND, SPOT])
def test_three_nodes_become_one(sold: str) -> None:
    shapes = [machine("medium", 4, ("a", sold, 0.4)), machine("wide", 8, ("a", sold, 0.6))]
    objects = [pool(), *(node(f"n{k}", "medium", sold=sold) for k in range(3))]
    pods = [owned(f"p{k}", f"n{k}", "2100m") for k in range(3)]
    report = consolidated(*objects, *pods, shapes=shapes, spot_to_spot=True)
    assert [(len(step.delete), [one.option.shape.name for one in step.launch]) for step in report.steps] == [
        (3, ["wide"])
    ]


def test_two_nodes_do_not_become_one_of_their_own_type() -> None:
    """Deleting one of them does the same."""
    objects = [pool(), node("n0", "medium"), node("n1", "medium"), owned("p0", "n0"), owned("p1", "n1")]
    shapes = [machine("medium", 4, ("a", ON_DEMAND, 0.4))]
    report = consolidated(*objects, shapes=shapes)
    assert [(step.delete, step.launch) for step in report.steps] == [(("n0",), ())]


# -- Balanced ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "n_pods", "goes"),
    [
        pytest.param("Balanced", 2, True, id="an oversized node with few pods"),
        pytest.param("Balanced", 12, False, id="a packed node, for little"),
        pytest.param("WhenEmptyOrUnderutilized", 12, True, id="a packed node of a pool that only counts money"),
    ],
)
def test_a_balanced_pool_weighs_the_saving_against_the_disruption(policy: str, n_pods: int, goes: bool) -> None:
    """The node would become one that costs less. Another of its pool costs as much, and has seven pods."""
    shapes = [machine("large", 8, ("a", ON_DEMAND, 0.8)), machine("other", 8, ("a", ON_DEMAND, 0.5))]
    cpu = f"{7000 // n_pods}m"
    objects = [pool(consolidationPolicy=policy), node("n"), node("beside")]
    pods = [owned(f"p{k}", "n", cpu) for k in range(n_pods)]
    beside = [owned(f"q{k}", "beside", "1100m", metadata={"annotations": DO_NOT}) for k in range(7)]
    report = consolidated(*objects, *pods, *beside, shapes=shapes)
    assert ("n" in report.removed) is goes
    if not goes:
        assert why(report)["n"] == "Balanced score is below its threshold"


def test_empty_nodes_of_a_balanced_pool_always_go() -> None:
    assert consolidated(pool(consolidationPolicy="Balanced"), node("n")).removed == ("n",)


def test_each_balanced_pool_has_to_agree() -> None:
    """Two nodes that would go together, one of a pool that is balanced and full of pods, one of another."""
    pools = [pool("calm", consolidationPolicy="Balanced"), pool("eager")]
    many = [owned(f"c{k}", "n0", "300m") for k in range(12)]
    calm = [node("n0", "medium", of="calm"), *(node(f"dear-{k}", of="calm") for k in range(4))]
    busy = [owned(f"d{k}", f"dear-{k}", "7500m", metadata={"annotations": DO_NOT}) for k in range(4)]
    report = consolidated(
        *pools, *calm, *busy, *many, node("n1", of="eager"), owned("e", "n1"), node("room", of="eager"), replaces=False
    )
    assert "n0" not in report.removed
    assert why(report)["n0"] == "Balanced score is below its threshold"


# -- in the course of time ---------------------------------------------------------------------------------------------


def played(*pools: Manifest, duration: str = "10m", start: str = NOW) -> list[tuple[float, str]]:
    """What Karpenter does to the node of a job that ends: when, and what."""
    template: Manifest = {
        "metadata": {"annotations": {"kubesched.dev/duration": duration}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "c"}]},
    }
    template["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    about = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}}
    job = {**about, "spec": {"completions": 1, "template": template}}
    own = {**catalogue(machine("small", 2, ("a", ON_DEMAND, 0.1))), "pools": list(pools)}
    karpenter = kubesched.autoscaler("karpenter", own, boot="60s")
    report = kubesched.simulate([job], autoscaler=karpenter, tie_break="name", start=start)
    assert report.autoscaling is not None
    return [(one.at_s, one.change) for one in report.autoscaling.changes]


def disrupting(*budgets: Manifest, **more: Any) -> Manifest:
    return {"name": "p", "disruption": {**({"budgets": list(budgets)} if budgets else {}), **more}}


@pytest.mark.parametrize(
    ("of_pool", "removed_s"),
    [
        pytest.param(disrupting(), 688.0, id="looked at after 10 s, and again after 15 s"),
        pytest.param(disrupting(consolidateAfter="5m"), 978.0, id="five minutes after the last pod left"),
        pytest.param(disrupting(consolidateAfter="Never"), None, id="never"),
        pytest.param(disrupting({"nodes": "0"}), None, id="no budget"),
        pytest.param(
            disrupting({"nodes": "0", "schedule": "0 9 * * *", "duration": "8h"}),
            5 * 3600.0 + 15,
            id="after the office hours",
        ),
        pytest.param(
            disrupting({"nodes": "0", "schedule": "@yearly", "duration": "1h"}), 688.0, id="a schedule of another day"
        ),
        pytest.param(
            disrupting({"nodes": "0"}, {"nodes": "1", "schedule": "@daily", "duration": "1h"}), None, id="never open"
        ),
    ],
)
def test_pools_in_virtual_time(of_pool: Manifest, removed_s: float | None) -> None:
    """The job's pod waits 61 s for its node, starts 2 s later, and runs for ten minutes."""
    changes = played(of_pool)
    assert [what for _, what in changes][:2] == ["launched", "ready"]
    assert [at_s for at_s, what in changes if what == "removed"] == ([] if removed_s is None else [removed_s])
