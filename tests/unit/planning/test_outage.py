"""What a failure leaves behind: who is replaced, who is not, and the reason that is given."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import kubesched
from kubesched.cli.main import main
from kubesched.k8s.loaded_cluster import read_objects
from kubesched.older.config.emulation import GivenConfiguration
from kubesched.planning.node_groups import NoSuchGroupError
from kubesched.planning.outage import OutagePlayer
from kubesched.planning.outage_report import OutageReport
from kubesched.simulator.loading import SIMULATED_KINDS, load
from kubesched.simulator.options import SimulationOptions
from kubesched.testing import make

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "outage"
ZONE = "topology.kubernetes.io/zone"


def _node(name: str, zone: str, cpu: str = "4", **labels: str) -> dict[str, Any]:
    own = {"kubernetes.io/hostname": name, ZONE: zone, **labels}
    amounts = {"cpu": cpu, "memory": "16Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": own},
        "status": {"allocatable": amounts},
    }


def _pod_spec(cpu: str, **more: Any) -> dict[str, Any]:
    return {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}], **more}


def _workload(kind: str, name: str, cpu: str, replicas: int = 1, **more: Any) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "selector": {"matchLabels": {"app": name}},
        "template": {"metadata": {"labels": {"app": name}}, "spec": _pod_spec(cpu, **more)},
    }
    if kind != "DaemonSet":
        spec["replicas"] = replicas
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def test_pods_that_fit_elsewhere_are_replaced() -> None:
    cluster = [_node("a", "a"), _node("b", "b"), _workload("Deployment", "web", "1", 4)]
    report = kubesched.outage(cluster, every="zone")
    assert report.survives
    assert [result.hit for result in report.results] == [2, 2]
    assert [result.last_replacement_s for result in report.results] == [350.0, 350.0]
    assert str(report).startswith("Survives the loss of any one of 2 zones: every pod is replaced.")


def test_what_finds_no_room_is_counted_with_the_reason_and_what_it_asks_for() -> None:
    cluster = [_node("a", "a"), _node("b", "b"), _workload("Deployment", "web", "1", 7)]
    report = kubesched.outage(cluster, fail=["zone=a"])
    (result,) = report.results
    (loss,) = result.workloads
    assert (loss.had, loss.left, loss.missing) == (7, 4, 3)
    assert loss.lowest == loss.had - loss.hit
    assert "1 Insufficient cpu" in loss.reason
    assert loss.requests == {"cpu": 3000}
    assert not report.survives


def test_daemons_are_not_missed_on_a_node_that_is_gone() -> None:
    cluster = [_node("a", "a"), _node("b", "b"), _workload("DaemonSet", "agent", "1")]
    assert kubesched.outage(cluster, every="node").survives


def test_a_pod_without_a_controller_is_lost() -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "alone"}, "spec": _pod_spec("1", nodeName="a")}
    report = kubesched.outage([_node("a", "a"), _node("b", "b"), pod], fail=["node/a"])
    assert [(loss.workload, loss.missing) for loss in report.results[0].workloads] == [("Pod alone", 1)]
    assert "no controller" in report.results[0].workloads[0].reason


def test_a_stateful_pod_comes_back_only_when_the_node_is_deleted() -> None:
    nodes = [_node("a", "a"), _node("b", "b"), _node("c", "c", cpu="8")]
    cluster = [*nodes, _workload("StatefulSet", "db", "4", 3)]
    stays = kubesched.outage(cluster, fail=["zone=a"])
    assert stays.results[0].missing == stays.results[0].hit == stays.results[0].placed_if_gone == 1
    assert "Terminating" in stays.results[0].workloads[0].reason
    assert kubesched.outage([*cluster, _node("d", "d")], fail=["zone=a"], gone=True).survives


@pytest.mark.parametrize("full", [False, True])
def test_a_stateful_pod_comes_back_when_the_old_one_is_deleted_by_force(full: bool) -> None:
    cluster = [_node("a", "a"), _node("b", "b"), _workload("StatefulSet", "db", "1", 2)]
    assert not kubesched.outage(cluster, every="node", full=full).survives
    report = kubesched.outage(cluster, every="node", full=full, force_delete_after="10m")
    assert report.survives
    assert [result.last_replacement_s for result in report.results] == [50 + 300 + 600] * 2
    assert "nobody deletes pods by force" not in str(report)


def test_what_was_played_before_ctrl_c_is_told_and_that_it_is_not_all() -> None:
    def played(cpu: str, n_looks: int) -> OutageReport:
        looks = count()
        cluster = [_node(name, name) for name in "abc"] + [_workload("Deployment", "web", cpu, 3)]
        given = load(read_objects(cluster, SIMULATED_KINDS))
        player = OutagePlayer(
            given, GivenConfiguration.read(None, None, None, None).as_of_today().config, SimulationOptions()
        )
        return player.report(every="zone", stopped=lambda: "interrupted" if next(looks) >= n_looks else "")

    begun = played("1", 3)
    assert (len(begun.results), begun.n_unplayed) == (0, 3)
    assert str(begun).startswith("Not known: interrupted after 0 of 3 cases.\n")
    n_looks = next(n for n in range(10, 200) if len(played("3", n).results) == 1)
    bad = played("3", n_looks)
    assert str(bad).startswith("Does not survive the loss of zone=a")
    assert "Interrupted: 2 more cases were not simulated." in str(bad)
    assert played("1", n_looks).headline == (
        "Not known: interrupted after 1 of 3 cases, none of which leaves pods without a node."
    )


def test_only_pods_of_the_asked_priority_count() -> None:
    classes = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 10}
    low = _workload("Deployment", "low", "2", 2)
    high = _workload("Deployment", "high", "2", 2, priorityClassName="high")
    cluster = [classes, _node("a", "a"), _node("b", "b"), high, low]
    everybody = kubesched.outage(cluster, every="zone")
    important = kubesched.outage(cluster, every="zone", priority_at_least=10)
    assert not everybody.survives
    assert important.survives
    assert sum(result.preempted for result in important.results) > 0


def test_pairs_fail_together() -> None:
    cluster = [_node(name, name) for name in "abc"]
    report = kubesched.outage([*cluster, _workload("Deployment", "web", "1", 3)], every="zone", pairs=True)
    assert [result.case.name for result in report.results] == [
        "zone=a and zone=b",
        "zone=a and zone=c",
        "zone=b and zone=c",
    ]
    assert report.survives


@pytest.mark.parametrize("label", ["karpenter.sh/nodepool", "eks.amazonaws.com/nodegroup", "pool"])
def test_pools_go_by_the_labels_that_providers_use(label: str) -> None:
    cluster = [_node("a", "a", **{label: "spot"}), _node("b", "a"), _workload("Deployment", "web", "1", 2)]
    report = kubesched.outage(cluster, every="pool")
    assert [(result.case.name, result.case.nodes) for result in report.results] == [("pool=spot", ("a",))]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"fail": ["zone=q"]}, 'there is no zone "q"'),
        ({"fail": ["a"]}, '"a" is not of the form zone=NAME, pool=NAME, node/NAME or LABEL=VALUE'),
        ({"every": "pool"}, "no node has a label for its pool"),
        ({"every": "zoen"}, 'no node has the label "zoen" (did you mean "zone"?)'),
    ],
)
def test_groups_that_do_not_exist_are_named(arguments: dict[str, Any], problem: str) -> None:
    with pytest.raises(NoSuchGroupError) as caught:
        kubesched.outage([_node("a", "a")], **arguments)
    assert problem in str(caught.value)


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["outage", *arguments])


def test_the_guide_shows_what_is_printed() -> None:
    result = _run("-f", str(EXAMPLE), "--tie-break", "name")
    assert result.exit_code == 0
    assert f"```text\n{result.stdout}```" in (ROOT / "docs" / "guides" / "outage.md").read_text()


def test_exit_codes() -> None:
    assert _run("-f", str(EXAMPLE), "--exit-code").exit_code == 1
    assert _run("-f", str(EXAMPLE), "--exit-code", "--gone").exit_code == 0
    assert _run("-f", str(EXAMPLE), "--fail", "zone=q").exit_code == 2
    assert _run("-f", "no-such-file.yaml").exit_code == 2
    assert _run().exit_code == 2
    assert _run("-f", str(EXAMPLE), "--pairs").exit_code == 2


def test_the_same_seed_gives_the_same_bytes() -> None:
    first, second = (_run("-f", str(EXAMPLE), "-o", "json", "--seed", "3").stdout for _ in range(2))
    assert first == second
    assert json.loads(first)["survives"] is False


def test_from_python_zones_fail_unless_anything_else_is_asked() -> None:
    cluster = [make.node(f"n{i}", cpu=1, labels={make.ZONE: "ab"[i]}) for i in range(2)]
    assert [one.case.name for one in kubesched.outage(cluster).results] == ["zone=a", "zone=b"]
    assert [one.case.name for one in kubesched.outage(cluster, fail=["node/n0"]).results] == ["node/n0"]
