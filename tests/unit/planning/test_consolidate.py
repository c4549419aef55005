"""Consolidation: steps hold on paper, nothing more can be saved after them; peers' rules and searches; the commands."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner, Result
from consolidation_check import ClusterOnPaper
from hypothesis import given, settings
from hypothesis import strategies as st
from resting_clusters import apart, budget, node, pod, priced, random_cluster, spread, workload

import kubesched
from kubesched.cli.main import main
from kubesched.k8s.errors import KubeschedError
from kubesched.planning.catalogue import Catalogue
from kubesched.planning.catalogue_files import catalogue_in
from kubesched.planning.consolidate.consolidation import (
    Consolidation,
    ConsolidationError,
    ConsolidationRequest,
)
from kubesched.planning.consolidate.report import ConsolidationReport
from kubesched.planning.consolidate.rounds import BudgetError, nodes_allowed
from kubesched.testing import make

Manifest = dict[str, Any]
SHAPES = {f"size-{cpu}": {"cpu": str(cpu), "memory": f"{cpu * 4}Gi", "pods": "110"} for cpu in (1, 2, 4, 8, 16)}
PRICES = {"size-1": 0.06, "size-2": 0.11, "size-4": 0.20, "size-8": 0.38, "size-16": 0.74}
EXAMPLE = str(Path(__file__).parents[3] / "examples" / "outage")


def _catalogue() -> Catalogue:
    shapes = [
        {"name": name, "allocatable": amounts, "offers": [{"zone": zone, "price": PRICES[name]} for zone in "abc"]}
        for name, amounts in SHAPES.items()
    ]
    record = {"apiVersion": "kubesched.dev/v1alpha1", "kind": "Catalogue", "currency": "USD", "shapes": shapes}
    return catalogue_in(json.dumps(record).encode(), "c.json")


CATALOGUE = _catalogue()


def consolidated(cluster: list[Manifest], catalogue: Catalogue | None = None, **options: Any) -> ConsolidationReport:
    return kubesched.consolidate(cluster, catalogue, tie_break="name", **options)


def kept(report: ConsolidationReport) -> dict[str, str]:
    return {one.node: one.reason.identifier for one in report.kept}


# -- what holds for every cluster --------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6))
def test_no_pod_is_left_pending_and_no_budget_is_broken(seed: int) -> None:
    cluster = random_cluster(Random(seed), budgets=True, prices=True)
    for policy in ("best", "karpenter", "cluster-autoscaler"):
        report = consolidated(cluster, policy=policy)
        assert ClusterOnPaper(cluster).problems(report) == []
    assert ClusterOnPaper(cluster).problems(consolidated(cluster, parallel=3)) == []


@settings(max_examples=6, deadline=None)
@given(st.integers(0, 10**6))
def test_the_same_with_machines_in_place_of_nodes_and_never_less_than_karpenter(seed: int) -> None:
    cluster = random_cluster(Random(seed), budgets=True, prices=True)
    report = consolidated(cluster, CATALOGUE, policy=["best", "karpenter"])
    assert ClusterOnPaper(cluster).problems(report, SHAPES) == []
    assert report.saving >= report.others["karpenter"]
    assert report.cost - report.saving >= report.bound


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10**6))
def test_afterwards_nothing_more_can_be_saved(seed: int) -> None:
    cluster = random_cluster(Random(seed), budgets=True, prices=True)
    report = consolidated(cluster)
    where = {str(move.pod): move.target for move in report.moves}
    left = []
    for item in cluster:
        if item["kind"] == "Node" and item["metadata"]["name"] in report.removed:
            continue
        if item["kind"] == "Pod":
            key = f"default/{item['metadata']['name']}"
            item["spec"] = {**item["spec"], "nodeName": where.get(key, item["spec"]["nodeName"])}
        left.append(item)
    assert consolidated(left).steps == ()


def test_the_world_is_as_it_was_and_the_answer_the_same_again() -> None:
    world = kubesched.world(random_cluster(Random(5), prices=True), tie_break="name")
    placed, nodes = dict(world.placed), list(world.nodes)
    first = kubesched.consolidate(world)
    assert first.steps
    assert (dict(world.placed), list(world.nodes)) == (placed, nodes)
    assert kubesched.consolidate(world).to_dict() == first.to_dict()


# -- during and after --------------------------------------------------------------------------------------------------


def test_a_drained_node_is_still_a_domain_so_a_spread_pod_waits_until_it_is_gone() -> None:
    cluster = [
        node("a", "a"),
        node("b", "b"),
        *workload("Deployment", "web", "100m", ["a", "b"], topologySpreadConstraints=spread("web")),
    ]
    report = consolidated(cluster)
    assert report.steps == ()
    assert set(kept(report).values()) == {"NoPlaceToMovePods"}
    patient = consolidated(cluster, allow_wait=True)
    assert [step.waited for step in patient.steps] == [(patient.steps[0].moves[0].pod,)]


def test_a_pod_that_tolerates_the_cordon_comes_back_so_its_node_is_never_empty() -> None:
    cluster = [
        node("x"),
        node("y", cpu="8"),
        *workload("Deployment", "stubborn", "100m", ["x"], tolerations=[{"operator": "Exists"}]),
        *workload("Deployment", "rest", "5", ["y"]),
    ]
    (reason,) = (one.reason for one in consolidated(cluster).kept if one.node == "x")
    assert reason.text == "it tolerates the cordon, and comes back to x"
    patient = consolidated(cluster, allow_wait=True)
    assert [(step.delete, step.waited, step.moves[0].target) for step in patient.steps] == [
        (("x",), ("default/stubborn-1-0",), "y")
    ]


def test_who_finds_no_room_is_asked_first_and_nobody_else_is_moved_for_it() -> None:
    cluster = [
        node("x"),
        node("y"),
        *workload("Deployment", "small", "100m", ["x"] * 5),
        *workload("Deployment", "large", "3", ["x"]),
        *workload("Deployment", "rest", "3", ["y"]),
    ]
    report = consolidated(cluster)
    reasons = {one.node: one.reason for one in report.kept}
    assert reasons["x"].pod == "default/large-1-0"
    assert "Insufficient cpu" in reasons["x"].text


def test_pods_leave_in_waves_as_their_budget_allows() -> None:
    cluster = [
        node("a"),
        node("b", cpu="8"),
        *workload("Deployment", "web", "100m", ["a", "a", "a", "b"]),
        *workload("Deployment", "rest", "5", ["b"]),
        budget("web", maxUnavailable=1),
    ]
    (step,) = consolidated(cluster).steps
    assert (step.delete, step.waves, step.evictions) == (("a",), 3, 3)


def test_pods_are_not_moved_to_nodes_that_go_later() -> None:
    cluster = [
        *(node(name, cpu="4") for name in "abcd"),
        node("z", cpu="4"),
        *(item for name in "abcd" for item in workload("Deployment", f"app-{name}", "800m", [name])),
        *workload("Deployment", "rest", "200m", ["z"]),
    ]
    report = consolidated(cluster)
    assert len(report.removed) == 4
    assert report.evictions <= 5
    assert {name for step in report.steps for name in step.cordon} <= set(report.removed)


def test_a_large_node_is_split_into_two_cheaper_ones() -> None:
    cluster = [
        priced(node("big", "a", cpu="16", memory="64Gi"), "0.74", "size-16"),
        *workload("Deployment", "web", "1500m", ["big", "big"]),
        *workload("Deployment", "other", "700m", ["big", "big"]),
    ]
    theirs = consolidated(cluster, CATALOGUE, policy="karpenter")
    assert [one.option.shape.name for step in theirs.steps for one in step.launch] == ["size-8"]
    report = consolidated(cluster, CATALOGUE)
    shapes = sorted(one.option.shape.name for step in report.steps for one in step.launch)
    assert report.saving > theirs.saving
    assert "size-8" not in shapes
    assert ClusterOnPaper(cluster).problems(report, SHAPES) == []
    assert consolidated(cluster, CATALOGUE, replaces=False).steps == ()


def test_limits() -> None:
    cluster = [
        *(node(name) for name in "abcd"),
        *(item for name in "abcd" for item in workload("Deployment", f"app-{name}", "100m", [name, name])),
    ]
    assert consolidated(cluster).evictions >= 6
    few = consolidated(cluster, max_evictions=4)
    assert (few.evictions, few.stopped) == (4, "limit")
    assert len(consolidated(cluster, max_steps=1).steps) == 1
    assert consolidated(cluster, min_saving=0.8).steps == ()
    rounds = consolidated(cluster, parallel=2).rounds
    assert max(rounds) < len(rounds)
    assert consolidated(cluster, parallel=3, budget="1").rounds == tuple(range(1, len(rounds) + 1))


def test_after_ctrl_c_the_best_so_far_is_told_and_it_still_holds() -> None:
    cluster = [
        *(node(name) for name in "abcdef"),
        *(item for name in "abcdef" for item in workload("Deployment", f"app-{name}", "600m", [name, name])),
    ]
    n_whole = len(consolidated(cluster).steps)
    seen = set()
    for n_looks in range(0, 60, 3):
        report, told = _interrupted(cluster, n_looks)
        assert ClusterOnPaper(cluster).problems(report) == []
        if report.stopped == "interrupted":
            assert "This is the best so far: it was interrupted before all was tried." in str(report)
            assert set(report.removed).isdisjoint(one.node for one in report.kept)
        seen.add(len(report.steps))
        assert bool(told) >= bool(report.steps)
    assert {0, n_whole} <= seen
    assert len(seen) > 2


def _interrupted(cluster: list[Manifest], n_looks: int) -> tuple[ConsolidationReport, list[str]]:
    """After so many looks at whether it is."""
    looks, told = count(), list[str]()
    consolidation = Consolidation(
        kubesched.world(cluster, tie_break="name"),
        None,
        ConsolidationRequest(("best", "karpenter")),
        is_interrupted=lambda: next(looks) >= n_looks,
        told=told.append,
    )
    return consolidation.report(), told


def test_budgets_of_nodes_round_up_and_count_what_is_not_ready() -> None:
    assert [nodes_allowed("10%", 11, n) for n in (0, 1, 5)] == [2, 1, 0]
    assert nodes_allowed("3", 100, 1) == 2
    with pytest.raises(BudgetError, match="neither a number of nodes nor a percentage"):
        nodes_allowed("many", 1, 0)


# -- peers' rules ------------------------------------------------------------------------------------------------------


_NODE_SAYS_SO = 'disruption is blocked through the "karpenter.sh/do-not-disrupt" annotation'


def _with_pod(change: str) -> list[Manifest]:
    """Two nodes, of which the one named x has a pod with something special about it."""
    cluster = [node("x"), node("y", cpu="8"), *workload("Deployment", "web", "100m", ["x", "x"], replicas=2)]
    cluster += workload("Deployment", "rest", "5", ["y"])
    chosen = next(item for item in cluster if item["kind"] == "Pod" and item["spec"]["nodeName"] == "x")
    match change:
        case "unowned":
            del chosen["metadata"]["ownerReferences"]
        case "emptyDir":
            chosen["spec"]["volumes"] = [{"name": "scratch", "emptyDir": {}}]
        case "budget":
            cluster.append(budget("web", maxUnavailable=0))
        case "two budgets":
            cluster += [budget("web", maxUnavailable=1), {**budget("web", maxUnavailable=1)}]
            cluster[-1]["metadata"] = {"name": "second", "namespace": "default"}
        case "do-not-disrupt":
            chosen["metadata"]["annotations"] = {"karpenter.sh/do-not-disrupt": "true"}
        case "not safe":
            chosen["metadata"]["annotations"] = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
        case "node disabled":
            note = {"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"}
            cluster[0]["metadata"]["annotations"] = note
        case "node do-not-disrupt":
            cluster[0]["metadata"]["annotations"] = {"karpenter.sh/do-not-disrupt": "true"}
        case "control plane":
            cluster[0]["metadata"]["labels"]["node-role.kubernetes.io/control-plane"] = ""
    return cluster


@pytest.mark.parametrize(
    ("change", "rules", "reason"),
    [
        ("unowned", "drain", "Unmanaged"),
        ("emptyDir", "drain", "LocalStorage"),
        ("budget", "drain", "DisruptionBudget"),
        ("two budgets", "drain", "DisruptionBudgets"),
        ("do-not-disrupt", "drain", None),
        ("do-not-disrupt", "karpenter", 'pod has "karpenter.sh/do-not-disrupt" annotation'),
        ("emptyDir", "karpenter", None),
        ("budget", "karpenter", "pdb prevents pod evictions"),
        ("two budgets", "karpenter", "eviction does not support multiple PDBs"),
        (
            "node do-not-disrupt",
            "karpenter",
            'disruption is blocked through the "karpenter.sh/do-not-disrupt" annotation',
        ),
        ("unowned", "cluster-autoscaler", "BlockedByPod/NotReplicated"),
        ("emptyDir", "cluster-autoscaler", "BlockedByPod/LocalStorageRequested"),
        ("not safe", "cluster-autoscaler", "BlockedByPod/NotSafeToEvictAnnotation"),
        ("budget", "cluster-autoscaler", "BlockedByPod/NotEnoughPdb"),
        ("node disabled", "cluster-autoscaler", "ScaleDownDisabledAnnotation"),
        ("control plane", "drain", "ControlPlane"),
    ],
)
def test_what_keeps_a_node_by_whose_rules(change: str, rules: str, reason: str | None) -> None:
    report = consolidated(_with_pod(change), rules=rules)
    if reason is None:
        assert report.removed == ("x",)
    else:
        assert kept(report)["x"] == reason
        assert "x" not in report.removed


def test_kubectls_flags_let_a_drain_do_more() -> None:
    assert consolidated(_with_pod("emptyDir"), delete_emptydir_data=True).removed == ("x",)
    forced = consolidated(_with_pod("unowned"), force=True)
    assert [step.lost for step in forced.steps] == [("default/web-1-0",)]
    assert "are lost" in str(forced)


def test_cluster_autoscaler_looks_at_little_used_nodes_only() -> None:
    cluster = [node("x"), node("y"), *workload("Deployment", "web", "1500m", ["x"])]
    cluster += workload("Deployment", "half", "2100m", ["y"])
    assert consolidated(cluster, policy="cluster-autoscaler").removed == ("x",)
    assert kept(consolidated(cluster, policy="cluster-autoscaler"))["y"] == "NotUnderutilized"


def test_hostname_anti_affinity_keeps_as_many_nodes_as_there_are_pods() -> None:
    cluster = [
        *(node(name) for name in "abcd"),
        *workload("Deployment", "db", "1", ["a", "b", "c"], affinity=apart("db")),
    ]
    assert consolidated(cluster).removed == ("d",)


# -- the commands ------------------------------------------------------------------------------------------------------


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["consolidate", "--tie-break", "name", *arguments])


def _file(tmp_path: Path, cluster: list[Manifest]) -> str:
    path = tmp_path / "dump.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": cluster}))
    return str(path)


def test_a_dry_run_says_where_each_pod_goes_and_what_blocks(tmp_path: Path) -> None:
    can = run("-f", EXAMPLE, "--node", "a-1")
    assert can.stdout.splitlines()[0] == "a-1 can go: each of its 3 pods finds another node."
    blocked = run("-f", _file(tmp_path, _with_pod("emptyDir")), "--node", "x", "-o", "json", "--exit-code")
    (record,) = json.loads(blocked.stdout)["nodes"]
    assert blocked.exit_code == 1
    assert [one["reason"] for one in record["blockers"]] == ["LocalStorage"]
    assert [one["to"] for one in record["moves"]] == ["y"]
    tight = [node("x"), node("y"), *workload("Deployment", "web", "3", ["x", "y"])]
    stuck = run("-f", _file(tmp_path, tight), "--node", "x")
    assert "x cannot go: 1 of 1 pod would find no node." in stuck.stdout
    assert "Insufficient cpu" in stuck.stdout


def test_the_guide_shows_what_is_printed() -> None:
    root = Path(__file__).parents[3]
    guide = (root / "docs" / "guides" / "consolidate.md").read_text()
    example = str(root / "examples" / "consolidate")
    catalogue = str(root / "examples" / "plan" / "catalogue.yaml")
    whole = run("-f", example, "--catalogue", catalogue, "--policy", "best,karpenter", "--delete-emptydir-data")
    for result in (whole, run("-f", example, "--node", "large-a")):
        assert f"```text\n{result.stdout}```" in guide


def test_every_form(tmp_path: Path) -> None:
    assert run("-f", EXAMPLE).stdout.startswith("3 of 6 nodes can go, with 6 evictions.\n")
    assert run("-f", EXAMPLE, "-o", "csv").stdout.startswith("step,round,delete,")
    assert len(run("-f", EXAMPLE, "-o", "csv", "--table", "moves").stdout.splitlines()) == 7
    assert run("-f", EXAMPLE, "-o", "markdown").stdout.startswith("**3 of 6 nodes can go")
    record = json.loads(run("-f", EXAMPLE, "-o", "json", "--policy", "best,karpenter").stdout)
    assert record["cost"] == {
        "currency": "nodes",
        "before": 6.0,
        "after": 3.0,
        "saving": 3.0,
        "savingAMonth": None,
        "bound": 3.0,
    }
    assert record["otherPolicies"] == {"karpenter": 3.0}
    assert "Karpenter would save 3 nodes." in run("-f", EXAMPLE, "--policy", "best,karpenter").stdout
    full = [node("x"), *workload("Deployment", "web", "3", ["x"])]
    none = run("-f", _file(tmp_path, full), "--exit-code")
    assert (none.exit_code, none.stdout.splitlines()[0]) == (1, "None of 1 node can go.")


def test_mistakes_are_told_in_a_line(tmp_path: Path) -> None:
    empty = tmp_path / "pods.json"
    empty.write_text(json.dumps(pod("x", "y", {"containers": []})))
    unpriced = tmp_path / "c.yaml"
    unpriced.write_text(
        "apiVersion: kubesched.dev/v1alpha1\nkind: Catalogue\nshapes: [{name: m, allocatable: {cpu: 1, memory: 1Gi}}]\n"
    )
    mistakes = {
        ("-f", EXAMPLE, "--policy", "none"): 'error: there is no policy "none"',
        ("-f", EXAMPLE, "--node", "zz"): "error: there is no node zz",
        ("-f", EXAMPLE, "--pool", "zz"): "error: no node has a label for its pool",
        ("-f", EXAMPLE, "--budget", "lots", "--parallel", "2"): 'error: budget "lots" is neither',
        ("-f", EXAMPLE, "--min-saving", "lots"): "error: Invalid value for '--min-saving'",
        ("-f", EXAMPLE, "--prices", "x.csv"): "error: --prices needs --catalogue",
        ("-f", EXAMPLE, "--catalogue", str(unpriced)): f"error: {unpriced}: no offer has a price",
        ("-f", str(empty)): f"error: {empty}: there are no nodes",
        (): "error: a cluster is needed",
    }
    for arguments, told in mistakes.items():
        result = run(*arguments)
        assert result.exit_code == 2, arguments
        assert len(result.stderr.splitlines()) == 1
        assert result.stderr.startswith(told), result.stderr
        assert result.stdout == ""
    with pytest.raises(ConsolidationError, match="no rules"):
        kubesched.consolidate([node("a")], rules="none")
    with pytest.raises(KubeschedError, match=r"kubesched\.dev/price"):
        kubesched.consolidate([priced(node("a"), "lots")])


def test_without_a_price_of_any_node_none_is_replaced() -> None:
    cluster = [make.node("a"), make.node("b"), make.pod("p", cpu=1, on="a"), make.pod("q", cpu=1, on="b")]
    report = consolidated(cluster, CATALOGUE, force=True)
    assert not any(step.launch for step in report.steps)
    assert (report.currency, report.saving) == ("", 2 * 10**9)
    told = "The catalogue knows no node's instance type, so each counts as one, and none is replaced."
    assert told in report.assumptions
    with pytest.raises(kubesched.KubeschedError, match="The catalogue knows no node's instance type"):
        report.strictly()
