"""Operations, run: what is there afterwards, and what was measured."""

from __future__ import annotations

import itertools
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from bench_files import MEASURED, placements, run_of, workload_of

from kubesched.simulator.bench.arrivals import at_random
from kubesched.simulator.bench.operations import WorkloadError
from kubesched.simulator.bench.run import DECISION_S, BenchRun, BenchSettings
from kubesched.simulator.bench.runner import run_operations, run_workload

NODES = {"opcode": "createNodes", "count": 3, "nodeTemplatePath": "node.yaml"}
PODS = {"opcode": "createPods", "count": 4, "podTemplatePath": "pod.yaml"}


def _nodes_of(labels_of: Any) -> list[dict[str, str]]:
    table = labels_of.world.loop.cluster.table
    return [table.nodes[row].labels for row in table.rows.values()]


# -- nodes and namespaces ----------------------------------------------------------------------------------------------


def test_nodes_take_turns_with_the_values_of_a_label(tmp_path: Path) -> None:
    strategy = {"labelKey": "zone", "labelValues": ["a", "b"]}
    run = run_of(tmp_path, [{**NODES, "labelNodePrepareStrategy": strategy}, MEASURED])
    assert [labels["zone"] for labels in _nodes_of(run)] == ["a", "b", "a"]
    assert [labels["kubernetes.io/hostname"] for labels in _nodes_of(run)] == ["node-0", "node-1", "node-2"]


def test_a_unique_label_differs_on_every_node(tmp_path: Path) -> None:
    run = run_of(tmp_path, [{**NODES, "uniqueNodeLabelStrategy": {"labelKey": "id"}}, MEASURED])
    assert len({labels["id"] for labels in _nodes_of(run)}) == 3


def test_nodes_get_more_to_allocate_and_csi_drivers(tmp_path: Path) -> None:
    strategy = {
        "nodeAllocatable": {"example.com/gpu": "8"},
        "csiNodeAllocatable": {"csi.example.com": {"count": 39}},
        "migratedPlugins": ["kubernetes.io/aws-ebs"],
    }
    cluster = run_of(tmp_path, [{**NODES, "nodeAllocatableStrategy": strategy}, MEASURED]).world.loop.cluster
    node, csi_node = cluster.table.nodes[0], cluster.objects.csi_nodes["node-0"]
    assert node.status.allocatable == {"cpu": "2", "memory": "4Gi", "pods": "10", "example.com/gpu": "8"}
    (driver,) = csi_node.spec.drivers
    assert (driver.name, driver.allocatable.count if driver.allocatable else None) == ("csi.example.com", 39)
    assert csi_node.metadata.annotations == {"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/aws-ebs"}


def test_without_templates_nodes_and_pods_are_of_a_default_kind(tmp_path: Path) -> None:
    run = run_of(tmp_path, [{"opcode": "createNodes", "count": 1}, {**MEASURED, "podTemplatePath": ""}])
    assert placements(run) == {"namespace-1/pod-0": "node-0"}


def test_namespaces_are_numbered_and_take_labels_from_a_template(tmp_path: Path) -> None:
    operation = {"opcode": "createNamespaces", "prefix": "team", "count": 2, "namespaceTemplatePath": "ns.yaml"}
    template = "{apiVersion: v1, kind: Namespace, metadata: {labels: {team: devops}}}"
    found = run_of(tmp_path, [NODES, operation, MEASURED], {"ns.yaml": template}).world.loop.cluster.objects.namespaces
    assert {name: namespace.labels for name, namespace in found.items()} == {
        "team-0": {"team": "devops"},
        "team-1": {"team": "devops"},
        "namespace-2": {},
    }


def test_any_object_is_created_in_its_namespace(tmp_path: Path) -> None:
    operation = {"opcode": "createAny", "templatePath": "svc.yaml", "namespace": "shop", "count": 2}
    template = "{apiVersion: v1, kind: Service, metadata: {name: 'svc-{{ .Index }}'}, spec: {selector: {app: web}}}"
    objects = run_of(tmp_path, [NODES, operation, MEASURED], {"svc.yaml": template}).world.loop.cluster.objects
    assert list(objects.services) == ["shop/svc-0", "shop/svc-1"]
    assert "shop" in objects.namespaces


# -- pods --------------------------------------------------------------------------------------------------------------


def test_pods_without_a_namespace_get_one_of_their_operation(tmp_path: Path) -> None:
    run = run_of(tmp_path, [NODES, PODS, MEASURED])
    assert Counter(key.partition("/")[0] for key in run.world.pods) == {"namespace-1": 4, "namespace-2": 1}
    assert all(placements(run).values())


def test_a_set_of_pods_is_made_in_every_namespace(tmp_path: Path) -> None:
    operation = {
        "opcode": "createPodSets",
        "countParam": "$sets",
        "namespacePrefix": "team",
        "createPodsOp": {"opcode": "createPods", "countPerNodeParam": "$perNode", "podTemplatePath": "pod.yaml"},
    }
    run = run_of(tmp_path, [NODES, operation, MEASURED], params={"sets": 2, "perNode": 0.7})
    assert Counter(key.partition("/")[0] for key in run.world.pods) == {"team-0": 2, "team-1": 2, "namespace-2": 1}


def test_only_the_window_is_measured(tmp_path: Path) -> None:
    result = run_workload(workload_of(tmp_path, [NODES, PODS, {**MEASURED, "count": 3}, PODS]))
    assert (result.nodes, result.pods, result.scheduled, result.attempts) == (3, 3, 3, 3)
    assert result.problem == ""
    assert result.pods_per_s > 0
    assert 0 < result.p50_us <= result.p90_us <= result.p99_us


def test_a_window_counts_pods_of_its_namespaces_and_labels(tmp_path: Path) -> None:
    window = {"opcode": "startCollectingMetrics", "namespaces": ["shop"], "labelSelector": {"app": "web"}}
    operations = [
        NODES,
        {**PODS, "count": 2, "namespace": "shop"},
        window,
        {**PODS, "count": 3, "namespace": "shop"},
        {**PODS, "count": 1, "namespace": "elsewhere"},
        {"opcode": "stopCollectingMetrics"},
    ]
    result = run_workload(workload_of(tmp_path, operations))
    assert (result.pods, result.scheduled, result.attempts) == (3, 3, 4)


def test_pods_that_fit_nowhere_are_a_problem_that_names_one(tmp_path: Path) -> None:
    operations = [NODES, {**MEASURED, "podTemplatePath": "large.yaml", "count": 2}]
    result = run_workload(workload_of(tmp_path, operations))
    assert (result.pods, result.scheduled) == (2, 0)
    assert result.problem.startswith(
        "operation 1 (createPods): 2 of 2 pods were not placed; namespace-1/large-0: "
        "0/3 nodes are available: 3 Insufficient cpu."
    )


def test_a_steady_state_replaces_every_pod_that_is_placed(tmp_path: Path) -> None:
    operation = {**MEASURED, "count": 5, "steadyState": True, "durationParam": "$duration"}
    result = run_workload(workload_of(tmp_path, [NODES, operation], params={"duration": "2s"}))
    n_decisions = round(2 / DECISION_S)
    assert (result.attempts, result.scheduled, result.pods) == (n_decisions, n_decisions, n_decisions + 5)


# -- waiting -----------------------------------------------------------------------------------------------------------


def test_a_barrier_waits_for_pods_that_nobody_waited_for(tmp_path: Path) -> None:
    later = {**PODS, "skipWaitToCompletion": True}
    run = run_of(tmp_path, [NODES, later, {"opcode": "barrier"}, MEASURED])
    assert all(placements(run).values())
    assert run.not_awaited == set()


def test_a_barrier_may_be_content_with_an_attempt(tmp_path: Path) -> None:
    later = {**PODS, "count": 2, "podTemplatePath": "large.yaml", "skipWaitToCompletion": True}
    run = run_of(tmp_path, [NODES, later, {"opcode": "barrier", "stageRequirement": "Attempted"}, MEASURED])
    assert Counter(bool(node) for node in placements(run).values()) == {False: 2, True: 1}
    assert len(run.not_awaited) == 2


def test_a_barrier_for_some_labels_does_not_wait_for_others(tmp_path: Path) -> None:
    operations = [
        NODES,
        {**PODS, "podTemplatePath": "large.yaml", "skipWaitToCompletion": True},
        {**PODS, "skipWaitToCompletion": True},
        {"opcode": "barrier", "labelSelector": {"app": "web"}},
        MEASURED,
    ]
    assert len(run_of(tmp_path, operations).not_awaited) == 4


def test_a_gated_pod_counts_as_attempted(tmp_path: Path) -> None:
    gated = "{apiVersion: v1, kind: Pod, metadata: {generateName: g-}, spec: {schedulingGates: [{name: a/b}]}}"
    later = {**PODS, "podTemplatePath": "gated.yaml", "skipWaitToCompletion": True}
    operations = [NODES, later, {"opcode": "barrier", "stageRequirement": "Attempted"}, MEASURED]
    run = run_of(tmp_path, operations, {"gated.yaml": gated})
    assert len(run.world.loop.queue.contents.gated) == 4
    assert sum(not node for node in placements(run).values()) == 4


def test_sleeping_lets_virtual_time_pass(tmp_path: Path) -> None:
    run = run_of(tmp_path, [NODES, {"opcode": "sleep", "duration": "90s"}, MEASURED])
    assert run.world.now_s == pytest.approx(90 + DECISION_S)


# -- what goes on beside -----------------------------------------------------------------------------------------------


def test_churn_creates_objects_at_its_interval(tmp_path: Path) -> None:
    churn = {"opcode": "churn", "mode": "create", "templatePaths": ["large.yaml"], "intervalMilliseconds": 100}
    run = run_of(tmp_path, [NODES, churn, {"opcode": "sleep", "duration": "1050ms"}, MEASURED])
    assert sum(key.startswith("namespace-1/large-") for key in run.world.pods) == 10


def test_churn_stops_at_its_number(tmp_path: Path) -> None:
    churn = {"opcode": "churn", "mode": "create", "number": 3, "templatePaths": ["large.yaml"], "namespace": "x"}
    run = run_of(tmp_path, [NODES, churn, {"opcode": "sleep", "duration": "1m"}, MEASURED])
    assert sum(key.startswith("x/large-") for key in run.world.pods) == 3


def test_churn_may_create_and_delete_by_turns(tmp_path: Path) -> None:
    churn = {"opcode": "churn", "mode": "recreate", "number": 2, "templatePaths": ["churn.yaml", "large.yaml"]}
    node = "{apiVersion: v1, kind: Node, metadata: {generateName: churn-}, status: {capacity: {pods: '0'}}}"
    standing = []
    for seconds in ("0.6s", "1.1s", "1.6s", "2.1s"):
        operations = [NODES, churn, {"opcode": "sleep", "duration": seconds}, MEASURED]
        rows = run_of(tmp_path, operations, {"churn.yaml": node}).world.loop.cluster.table.rows
        standing.append([name for name in rows if name.startswith("churn")])
    assert standing == [["churn-0"], ["churn-0", "churn-1"], ["churn-1"], []]


@pytest.mark.parametrize("waits", [True, False])
def test_pods_are_deleted_one_after_another(waits: bool, tmp_path: Path) -> None:
    delete = {"opcode": "deletePods", "namespace": "shop", "deletePodsPerSecond": 10, "skipWaitToCompletion": not waits}
    run = run_of(tmp_path, [NODES, {**PODS, "namespace": "shop"}, delete, {**MEASURED, "namespace": "other"}])
    assert sum(pod.namespace == "shop" for pod in run.world.pods.values()) == (0 if waits else 4)


def test_pods_are_deleted_by_label_all_at_once(tmp_path: Path) -> None:
    operations = [
        NODES,
        {**PODS, "namespace": "shop", "skipWaitToCompletion": True, "podTemplatePath": "large.yaml"},
        {**PODS, "namespace": "shop"},
        {"opcode": "deletePods", "namespace": "shop", "labelSelector": {"app": "large"}},
        MEASURED,
    ]
    assert Counter(pod.labels["app"] for pod in run_of(tmp_path, operations).world.pods.values()) == {"web": 5}


def test_a_pod_with_a_finalizer_stays_and_is_not_scheduled(tmp_path: Path) -> None:
    held = "{apiVersion: v1, kind: Pod, metadata: {generateName: held-, finalizers: [a/b]}}"
    operations = [
        {**PODS, "namespace": "shop", "podTemplatePath": "held.yaml", "skipWaitToCompletion": True},
        {"opcode": "deletePods", "namespace": "shop"},
        NODES,
        MEASURED,
    ]
    run = run_of(tmp_path, operations, {"held.yaml": held})
    assert [pod.spec.node_name for pod in run.world.pods.values() if pod.is_terminating] == [""] * 4


def test_an_update_can_make_pods_fit(tmp_path: Path) -> None:
    closed = "{apiVersion: v1, kind: Node, metadata: {name: 'n-{{ .Index }}'}, spec: {unschedulable: true},\n"
    opened = "{apiVersion: v1, kind: Node, metadata: {name: 'n-{{ .Index }}'},\n"
    room = " status: {capacity: {cpu: '4', memory: 4Gi, pods: '10'}}}"
    operations = [
        {"opcode": "createNodes", "count": 1, "nodeTemplatePath": "closed.yaml"},
        {**PODS, "skipWaitToCompletion": True},
        {"opcode": "barrier", "stageRequirement": "Attempted"},
        {"opcode": "updateAny", "templatePath": "opened.yaml", "updatePerSecond": 100},
        {"opcode": "barrier"},
        MEASURED,
    ]
    run = run_of(tmp_path, operations, {"closed.yaml": closed + room, "opened.yaml": opened + room})
    assert set(placements(run).values()) == {"n-0"}


def test_a_resize_changes_only_what_containers_ask_for(tmp_path: Path) -> None:
    large = POD_OF.format(cpu="2")
    small = POD_OF.format(cpu="100m")
    operations = [
        {**NODES, "count": 1},
        {**PODS, "count": 1, "namespace": "shop", "podTemplatePath": "a.yaml"},
        {"opcode": "updateAny", "namespace": "shop", "templatePath": "b.yaml", "subresources": ["resize"]},
        {**MEASURED, "count": 3},
    ]
    run = run_of(tmp_path, operations, {"a.yaml": large, "b.yaml": small.replace("app: web", "app: other")})
    pod = run.world.pods["shop/fixed"]  # type: ignore[index]
    assert (pod.labels, pod.spec.node_name) == ({"app": "web"}, "node-0")


POD_OF = """
apiVersion: v1
kind: Pod
metadata: {{name: fixed, labels: {{app: web}}}}
spec: {{containers: [{{name: app, resources: {{requests: {{cpu: {cpu}}}}}}}]}}
"""


# -- mistakes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operation", "problem"),
    [
        pytest.param(
            {"opcode": "churn", "mode": "burn", "templatePaths": []},
            "operation 0 (churn): mode: create or recreate is expected, not 'burn'",
            id="a mode of churn",
        ),
        pytest.param(
            {"opcode": "barrier", "stageRequirement": "Bound"},
            "operation 0 (barrier): stageRequirement: Attempted or Scheduled is expected, not 'Bound'",
            id="a stage",
        ),
        pytest.param(
            {"opcode": "sleep", "duration": "soon"},
            'operation 0 (sleep): time: invalid duration "soon"',
            id="a duration",
        ),
        pytest.param(
            {"opcode": "updateAny", "templatePath": "node.yaml"},
            "operation 0 (updateAny): Node node-0 does not exist",
            id="an update of nothing",
        ),
        pytest.param(
            {"opcode": "updateAny", "templatePath": "node.yaml", "subresources": ["scale"]},
            "operation 0 (updateAny): subresources: 'scale' is not known",
            id="a subresource",
        ),
        pytest.param(
            {"opcode": "createNodes", "count": 1, "nodeTemplatePath": "pod.yaml"},
            "pod.yaml: kind: a Node is expected, not Pod",
            id="a pod for a node",
        ),
        pytest.param(
            {"opcode": "createPods", "count": 1, "podTemplatePath": "node.yaml"},
            "node.yaml: kind: a Pod is expected, not Node",
            id="a node for a pod",
        ),
        pytest.param(
            {"opcode": "stopCollectingMetrics"},
            "operation 0 (stopCollectingMetrics): no metrics are being collected",
            id="an end without a beginning",
        ),
        pytest.param(
            {"opcode": "createPods", "countParam": "$n"},
            "operation 0 (createPods): parameter $n is not defined",
            id="a parameter",
        ),
    ],
)
def test_an_operation_that_cannot_be_run_is_refused(operation: dict[str, Any], problem: str, tmp_path: Path) -> None:
    workload = workload_of(tmp_path, [operation, MEASURED])
    with pytest.raises(WorkloadError) as refused:
        run_workload(workload)
    assert problem in str(refused.value)
    assert str(refused.value).startswith(str(tmp_path))


# -- arrivals ----------------------------------------------------------------------------------------------------------

ARRIVALS = {
    "opcode": "arrivePods",
    "namespace": "plain",
    "besideNamespace": "beside",
    "count": 4,
    "perSecond": 2,
    "podTemplatePath": "pod.yaml",
    "besidePodTemplatePath": "pod.yaml",
    "besideBunch": 3,
    "besidesPerSecond": 1,
}


def test_pods_arrive_one_by_one_and_others_in_bunches_beside_them(tmp_path: Path) -> None:
    run = run_of(tmp_path, [NODES, ARRIVALS])
    assert Counter(key.partition("/")[0] for key in placements(run)) == {"plain": 4, "beside": 6}
    measured = run.measurement
    assert (measured.n_pods, measured.n_scheduled, measured.n_attempts) == (4, 4, 4)
    assert all(0 < took_ns < 10**9 for took_ns in measured.took_ns)  # not the seconds between arrivals
    last_s = max(at_s for at_s, _ in at_random([[]] * 4, 2, "measured"))
    assert run.world.now_s >= last_s


def test_the_same_pods_come_at_the_same_times_whatever_comes_beside_them(tmp_path: Path) -> None:
    alone = run_of(tmp_path, [NODES, {**ARRIVALS, "besidesPerSecond": 0}])
    beside = run_of(tmp_path, [NODES, ARRIVALS])
    assert alone.waited_ns.keys() == {key for key in placements(beside) if key.startswith("plain/")}
    assert list(at_random([[]] * 3, 5, "measured")) == list(at_random([[]] * 3, 5, "measured"))


def test_who_comes_behind_others_waits_for_them(tmp_path: Path) -> None:
    """Each call takes a tenth of a second here, and all come at once."""
    ticking = BenchSettings(clock_ns=partial(next, itertools.count(0, 10**8)))
    operations = [NODES, {**ARRIVALS, "perSecond": 10**9, "besidesPerSecond": 0}]
    run = BenchRun(workload_of(tmp_path, operations), ticking)
    run_operations(run)
    # Four are told, then one after the other is decided. What became of the first two (an answer, and what a watch
    # sees) is heard of before the third.
    assert [round(ns / 10**8) for ns in run.waited_ns.values()] == [5, 6, 11, 12]


@pytest.mark.parametrize("field", ["perSecond", "besideBunch"])
def test_arrivals_need_a_rate(tmp_path: Path, field: str) -> None:
    with pytest.raises(WorkloadError, match="perSecond and besideBunch: 1 or more is expected"):
        run_of(tmp_path, [NODES, {**ARRIVALS, field: 0}])
