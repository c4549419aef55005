"""What would let more copies fit, whom copies may preempt, and what other seeds, orders and namespaces change."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings

import kubesched
from kubesched.cli.main import main
from kubesched.planning.capacity import CapacityError
from kubesched.testing import make, strategies
from kubesched.testing.make import Manifest

HOST = "kubernetes.io/hostname"


def nodes(n: int = 4, cpu: str = "4") -> list[Manifest]:
    return [make.node(f"n{i}", cpu=cpu, labels={make.ZONE: "ab"[i % 2]}) for i in range(n)]


def lonely_pod() -> Manifest:
    pod: Manifest = make.pod("web", requests={"cpu": "500m"}, labels={"app": "web"})
    terms = [make.affinity_term(HOST, {"app": "web"})]
    pod["spec"]["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    return pod


def deployment(name: str, replicas: int, cpu: str) -> Manifest:
    labels = {"app": name}
    pod: Manifest = make.pod(name, requests={"cpu": cpu}, labels=labels)
    template = {"metadata": {"labels": labels}, "spec": pod["spec"]}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": spec,
    }


def quota(namespace: str, cpu: str) -> Manifest:
    metadata = {"name": "bound", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": {"requests.cpu": cpu}}}


def remedies(report: kubesched.CapacityReport) -> dict[str, int]:
    return {one.description: one.more for one in report.answers[0].remedies}


def test_a_rule_between_the_copies_is_dropped_for_all_of_them() -> None:
    report = kubesched.capacity(nodes(), lonely_pod())
    assert report.fits == 4
    assert remedies(report) == {
        f"drop the pod anti-affinity term app=web within {HOST}": 28,
        "add a node in zone a or b (4 cpu, 8Gi memory)": 1,
    }
    assert report.answers[0].reasons == {
        f"pod anti-affinity app=web within {HOST}: such a pod is there": 4,
    }
    free = lonely_pod()
    del free["spec"]["affinity"]
    assert kubesched.capacity(nodes(), free).fits == 4 + 28


def test_a_smaller_request_and_one_more_node_with_its_daemons() -> None:
    agent = {**deployment("agent", 1, "1"), "kind": "DaemonSet"}
    del agent["spec"]["replicas"]
    report = kubesched.capacity([*nodes(), agent], make.pod("web", requests={"cpu": "900m"}))
    assert report.fits == 12
    assert remedies(report) == {
        "lower the cpu request from 900m to 750m": 4,
        "add a node in zone a or b (4 cpu, 8Gi memory)": 3,
    }
    smaller = make.pod("web", requests={"cpu": "750m"})
    assert kubesched.capacity([*nodes(), agent], smaller, remedies=False).fits == 16


def test_what_the_quota_costs() -> None:
    report = kubesched.capacity([*nodes(), quota("default", "3")], shapes=["1/1Gi"])
    assert (report.fits, report.answers[0].limit) == (3, "quota")
    assert remedies(report) == {"lift the quotas and limit ranges of namespace default": 13}


def test_an_application_needs_one_more_node() -> None:
    report = kubesched.capacity(nodes(), app=[deployment("web", 3, "2")])
    assert report.fits == 2
    assert remedies(report) == {"add a node in zone a or b (4 cpu, 8Gi memory)": 1}


def test_nodes_that_are_left_out_stay_so() -> None:
    mixed = [*nodes(), make.node("big", cpu="64", labels={"pool": "gpu"})]
    report = kubesched.capacity(mixed, shapes=["1/1Gi"], exclude_nodes="pool=gpu")
    assert (report.fits, set(report.answers[0].per_node)) == (16, {"n0", "n1", "n2", "n3"})
    assert all("gpu" not in one and "uncordon" not in one for one in remedies(report))
    assert kubesched.capacity(mixed, shapes=["1/1Gi"], nodes="pool=gpu", remedies=False).fits == 8
    with pytest.raises(kubesched.KubeschedError, match="no node is left"):
        kubesched.capacity(mixed, shapes=["1/1Gi"], nodes="pool=x")
    with pytest.raises(kubesched.KubeschedError, match='nodes "pool in": '):
        kubesched.capacity(mixed, shapes=["1/1Gi"], nodes="pool in")


@settings(max_examples=15)
@given(strategies.clusters(max_nodes=4, max_pods=6))
def test_remedies_leave_no_mark_and_are_true(objects: list[Manifest]) -> None:
    pod = make.pod("copy", requests={"cpu": "700m"}, labels={"app": "a"})
    world = kubesched.world(objects, tie_break="name")
    before = (world.placed, world.pending, world.nodes)
    report = kubesched.capacity(world, pod, most=30)
    assert (world.placed, world.pending, world.nodes) == before
    assert kubesched.capacity(world, pod, most=30, remedies=False).fits == report.fits
    assert all(more > 0 for more in remedies(report).values())
    for description, more in remedies(report).items():
        if description.startswith("lower the cpu request"):
            smaller = {**pod, "spec": {**pod["spec"]}}
            amount = description.rpartition(" to ")[2]
            smaller["spec"]["containers"] = [
                {**pod["spec"]["containers"][0], "resources": {"requests": {"cpu": amount}}}
            ]
            assert kubesched.capacity(world, smaller, remedies=False).fits == report.fits + more


# -- preemption --------------------------------------------------------------------------------------------------------


def test_copies_count_if_their_victims_find_another_node() -> None:
    world = kubesched.world([*nodes(), deployment("low", 4, "1500m")], tie_break="name")
    big = make.pod("big", requests={"cpu": "4"}, priority=1000)
    never = kubesched.capacity(world, big, remedies=False)
    assert never.fits == 0
    counted = kubesched.capacity(world, big, preemption="count", remedies=False)
    assert (counted.fits, counted.answers[0].limit) == (2, "victims")
    assert counted.answers[0].victims == {"Deployment shop/low": 2}
    assert "find no other node" in counted.answers[0].message
    lossy = kubesched.capacity(world, big, preemption="count", let_lose=True, remedies=False)
    assert (lossy.fits, lossy.answers[0].limit) == (4, "unschedulable")
    assert len(world.pending) == 4


def test_a_victim_that_nobody_makes_again_is_lost() -> None:
    alone = [make.pod(f"low{i}", requests={"cpu": "3"}, on=f"n{i}") for i in range(4)]
    high = make.pod("high", requests={"cpu": "2"}, priority=1000)
    counted = kubesched.capacity([*nodes(), *alone], high, preemption="count", remedies=False)
    assert (counted.fits, counted.answers[0].limit) == (0, "victims")
    lossy = kubesched.capacity([*nodes(), *alone], high, preemption="count", let_lose=True, remedies=False)
    assert (lossy.fits, sum(lossy.answers[0].victims.values())) == (8, 4)
    with pytest.raises(CapacityError, match="not for whole applications"):
        kubesched.capacity(nodes(), app=[deployment("web", 1, "1")], preemption="count")


# -- seeds, orders, pending pods, namespaces ---------------------------------------------------------------------------


def test_what_fits_is_what_fits_in_every_order() -> None:
    """The two that wait differ in size: who comes first decides where a hole is left."""
    room = [make.node("n0", cpu="3"), make.node("n1", cpu="4")]
    waiting = [make.pod("small", requests={"cpu": "2"}), make.pod("large", requests={"cpu": "3"})]
    packed = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "pluginConfig": [
                    {
                        "name": "NodeResourcesFit",
                        "args": {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu"}]}},
                    }
                ]
            }
        ],
    }
    world = kubesched.world([*room, *waiting], config=packed, tie_break="name")
    report = kubesched.capacity(world, shapes=["2/1Gi"], orders=4)
    answer = report.answers[0]
    assert len(answer.by_run) == 4
    assert (answer.fits, set(answer.by_run)) == (0, {0, 1})
    n_more = sum(answer.by_run)
    assert str(report).startswith(f"2-1Gi: 0 more fit in each of 4 runs, and up to 1 in {n_more} of 4; the next")
    same = kubesched.capacity(nodes(), shapes=["1/1Gi"], seeds=5)
    assert str(same).startswith("1-1Gi: 16 more fit in all 5 runs; the next one: ")


def test_pending_pods_may_be_left_out() -> None:
    waiting = [make.pod(f"w{i}", requests={"cpu": "1"}) for i in range(3)]
    assert kubesched.capacity([*nodes(), *waiting], shapes=["1/1Gi"]).fits == 13
    report = kubesched.capacity([*nodes(), *waiting], shapes=["1/1Gi"], ignore_pending=True)
    assert (report.fits, report.assumptions[0]) == (16, "3 pending pods left out.")


def test_each_namespace_with_its_quota() -> None:
    report = kubesched.capacity([*nodes(), quota("shop", "2"), quota("lab", "5")], shapes=["1/1Gi"], by=["namespace"])
    found = {one.group: (one.fits, one.limit) for one in report.answers}
    assert found == {
        "all": (16, "unschedulable"),
        "namespace=lab": (5, "quota"),
        "namespace=shop": (2, "quota"),
    }
    with pytest.raises(CapacityError, match="only pods and shapes"):
        kubesched.capacity([*nodes(), deployment("web", 1, "1")], every=True, by=["namespace"])


# -- the command -------------------------------------------------------------------------------------------------------


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    path = tmp_path / "cluster.json"
    items = [*nodes(), deployment("low", 2, "1")]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return path


def run(cluster: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["capacity", "-f", str(cluster), *arguments])


def test_the_forms_of_the_report(cluster: Path, tmp_path: Path) -> None:
    shape = ("--shape", "1/1Gi", "--by", "zone")
    rows = list(csv.DictReader(io.StringIO(run(cluster, *shape, "-o", "csv").stdout)))
    assert [(row["nodes"], row["fits"]) for row in rows] == [("all", "14"), ("zone=a", "7"), ("zone=b", "7")]
    tried = list(csv.DictReader(io.StringIO(run(cluster, *shape, "-o", "csv", "--table", "remedies").stdout)))
    assert ("add a node in zone a or b (4 cpu, 8Gi memory)", "4") in [(row["remedy"], row["more"]) for row in tried]
    assert run(cluster, *shape, "-o", "markdown").stdout.startswith("**1-1Gi: 14 more fit; the next one: 0/4 nodes")
    record: dict[str, Any] = json.loads(run(cluster, *shape, "-o", "json").stdout)
    assert record["capacity"][0]["remedies"][0]["more"] == 4
    assert record["capacity"][0]["stoppedBy"]["nodesByReason"] == {"cpu: requested 1, free 0 of 4": 4}
    page = tmp_path / "page.html"
    assert run(cluster, *shape, "--report", str(page)).exit_code == 0
    assert "How many more would fit" in page.read_text()


def test_growth_of_requests(cluster: Path) -> None:
    grown = run(cluster, "--inflate", "requests", "--step", "50%")
    assert grown.stdout.startswith("+300% requests fit; at +350%, shop/low-")
    assert "cpu         2      8" in grown.stdout
    metrics = run(cluster, "--inflate", "requests", "--step", "50%", "-o", "prometheus").stdout
    assert 'kubesched_capacity_growth_percent{of="requests"} 300' in metrics
    assert run(cluster, "--inflate", "replicas", "-o", "csv").stdout.startswith("workload,now,grown\n")


@pytest.mark.parametrize(
    "wrong",
    [
        ("--let-lose", "--shape", "1/1Gi"),
        ("--preemption", "count", "--inflate", "requests"),
        ("--shape", "1/1Gi", "--exclude-nodes", "!"),
        ("--shape", "1/1Gi", "--by", "rack"),
        ("--shape", "-1/1Gi"),
        ("--shape", "1/1Gi", "--max", "0"),
    ],
)
def test_what_is_asked_wrongly_is_told_in_a_line(cluster: Path, wrong: tuple[str, ...]) -> None:
    told = run(cluster, *wrong)
    assert (told.exit_code, told.stdout) == (2, "")
    assert told.stderr.strip().splitlines()[-1].lower().startswith("error:")


def test_a_million_copies_are_told_in_a_line(cluster: Path, tmp_path: Path) -> None:
    app = tmp_path / "app.json"
    app.write_text(json.dumps(deployment("huge", 1_000_000, "1")))
    for asked, problem in (
        (("--shape", "1/1Gi", "--max", "1000000"), "error: 1,000,000 copies: from 1 to 100,000 can be tried\n"),
        (("--app", str(app)), "999,000 of its pods are not made: they are more than the nodes could ever hold\n"),
    ):
        told = run(cluster, *asked)
        assert (told.exit_code, told.stdout, told.stderr.count("\n")) == (2, "", 1)
        assert told.stderr.endswith(problem)
    beside = run(cluster, "-f", str(app), "--shape", "1/1Gi")
    assert beside.exit_code == 0 and beside.stderr.startswith("warning: ReplicaSet shop/huge-")


def test_of_a_workload_that_is_given_twice_the_later_one_counts(cluster: Path, tmp_path: Path) -> None:
    later = tmp_path / "later.json"
    later.write_text(json.dumps(deployment("low", 5, "1")))
    assert run(cluster, "-f", str(later), "--shape", "1/1Gi").stdout.startswith("1-1Gi: 11 more fit")


def test_a_pod_that_is_not_there(cluster: Path) -> None:
    told = run(cluster, "--pod", "shop/lwo")
    assert (told.exit_code, told.stderr.count("\n")) == (2, 1)
    assert told.stderr.startswith("error: there is no pod shop/lwo")


def test_a_pod_with_a_node_is_none_to_count(cluster: Path, tmp_path: Path) -> None:
    pod = tmp_path / "pod.json"
    pod.write_text(json.dumps(make.pod("web", on="n0")))
    told = run(cluster, "--pod", str(pod))
    assert told.exit_code == 2
    assert told.stderr == "error: pod default/web: spec.nodeName is set, so the scheduler has nothing to decide\n"
