"""Workload files: what is read, what is refused, what is chosen."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from bench_files import MEASURED, workload_of, write_file

from kubesched.simulator.bench.operations import OPERATIONS, CreateNodesOp, WorkloadError
from kubesched.simulator.bench.workload_file import load_workloads, read_workloads, resized, select_workloads


def test_a_workload_has_the_operations_of_its_case_and_its_own_parameters(tmp_path: Path) -> None:
    path = write_file(
        tmp_path,
        [{"opcode": "createNodes", "countParam": "$initNodes"}, MEASURED],
        {},
        labels=["all"],
        workloads=[
            {"name": "default", "params": {"initNodes": 5}, "threshold": 40},
            {
                "name": "large",
                "params": {"initNodes": 500},
                "labels": ["slow"],
                "featureGates": {"A": True, "B": False},
            },
        ],
    )
    small, large = read_workloads(path)
    assert (small.title, large.title) == ("case", "case/large")
    assert (sorted(small.labels), sorted(large.labels)) == (["all"], ["all", "slow"])
    assert (small.gates_off, large.gates_off) == ((), ("B",))
    assert small.operations == large.operations
    nodes = small.operations[0]
    assert isinstance(nodes, CreateNodesOp)
    assert [w.number("", nodes.count, nodes.count_param) for w in (small, large)] == [5, 500]


@pytest.mark.parametrize(
    ("operation", "problem"),
    [
        pytest.param({"opcode": "createMoons"}, "operation 0: opcode: unknown operation 'createMoons'", id="opcode"),
        pytest.param({"count": 3}, "operation 0: opcode: an operation is expected", id="no opcode"),
        pytest.param(
            {"opcode": "createNodes", "cuont": 3},
            "operation 0 (createNodes): object contains unknown field cuont",
            id="a field that no such operation has",
        ),
        pytest.param(
            {"opcode": "createNodes", "count": "three"},
            "operation 0 (createNodes): count: expected int, got str",
            id="a text for a number",
        ),
        pytest.param(
            {"opcode": "createNodes", "labelNodePrepareStrategy": {"key": "zone"}},
            "operation 0 (createNodes): labelNodePrepareStrategy: object",
            id="a field inside a field",
        ),
        pytest.param({"opcode": "deletePods"}, "missing required field namespace", id="a field that is required"),
        pytest.param(
            {"opcode": "createPods", "collectMetrics": True, "skipWaitToCompletion": True},
            "collectMetrics and skipWaitToCompletion cannot both be true",
            id="measured but not awaited",
        ),
        pytest.param(
            {"opcode": "createPods", "persistentVolumeTemplatePath": "pv.yaml"},
            "persistentVolumeTemplatePath needs persistentVolumeClaimTemplatePath",
            id="a volume without a claim",
        ),
    ],
)
def test_what_is_not_known_is_refused_with_file_and_field(
    operation: dict[str, Any], problem: str, tmp_path: Path
) -> None:
    path = write_file(tmp_path, [operation, MEASURED], {})
    with pytest.raises(WorkloadError) as refused:
        read_workloads(path)
    assert str(refused.value).startswith(f"{path}: case: ")
    assert problem in str(refused.value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("{}", "a list of test cases is expected", id="no list"),
        pytest.param("[", "not YAML", id="no YAML"),
        pytest.param(
            "[{name: x}]", "x: object missing required field workloadTemplate", id="a case without operations"
        ),
        pytest.param(
            "[{name: x, workloadTemplate: [], workloads: []}]", "no operation collects", id="nothing measured"
        ),
    ],
)
def test_a_file_that_is_none_is_refused(text: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "w.yaml"
    path.write_text(text)
    with pytest.raises(WorkloadError) as refused:
        read_workloads(path)
    assert str(refused.value).startswith(f"{path}: ")
    assert problem in str(refused.value)


@pytest.mark.parametrize(
    ("params", "param", "problem"),
    [
        pytest.param({}, "$count", "operation 0: parameter $count is not defined", id="not defined"),
        pytest.param({"n": 3}, "n", "a parameter begins with $", id="without a dollar"),
        pytest.param({"count": "x"}, "$count", "$count: a number is expected, not 'x'", id="a text"),
        pytest.param({"count": True}, "$count", "$count: a number is expected, not True", id="a truth"),
        pytest.param({"count": -1}, "$count", "a count of 0 or more is expected, not -1", id="below zero"),
    ],
)
def test_a_parameter_must_be_a_count(params: dict[str, Any], param: str, problem: str, tmp_path: Path) -> None:
    workload = workload_of(tmp_path, [MEASURED], params=params)
    with pytest.raises(WorkloadError) as refused:
        workload.number("operation 0", 0, param)
    assert problem in str(refused.value)


def test_errors_and_workloads_travel_between_processes(tmp_path: Path) -> None:
    workload = workload_of(tmp_path, [{"opcode": "createNodes", "count": 2}, MEASURED], params={"n": 1})
    assert pickle.loads(pickle.dumps(workload)) == workload
    error = WorkloadError("file", "field", "problem")
    assert str(pickle.loads(pickle.dumps(error))) == "file: field: problem"


# -- choosing ----------------------------------------------------------------------------------------------------------


def _families() -> list[str]:
    return list(dict.fromkeys(workload.case for workload in load_workloads(())))


def test_the_families_that_are_promised_are_there() -> None:
    promised = {
        "basic", "daemonset", "node-affinity", "affinity", "anti-affinity", "preferred-affinity",
        "preferred-anti-affinity", "namespace-selector", "topology-spreading", "preferred-topology-spreading",
        "preemption-basic", "preemption-async", "unschedulable", "mixed-churn", "csi-volumes", "gated",
        "overload", "overload-priorities",
    }  # fmt: skip
    assert promised <= set(_families())


def test_every_family_has_a_default_and_a_small_workload_and_says_what_it_is() -> None:
    known = load_workloads(())
    for family in _families():
        of_family = {workload.name: workload for workload in known if workload.case == family}
        assert {"default", "small"} <= set(of_family)
        assert "small" in of_family["small"].labels
        assert of_family["default"].description


@pytest.mark.parametrize(
    ("names", "labels", "titles"),
    [
        pytest.param(["basic"], [], ["basic"], id="a family stands for its default workload"),
        pytest.param(["basic/small"], [], ["basic/small"], id="one workload by its full name"),
        pytest.param(["basic/default"], [], ["basic"], id="the default one too"),
        pytest.param(["gated", "basic"], ["small"], ["gated/small", "basic/small"], id="by name and label, in order"),
    ],
)
def test_workloads_are_chosen_by_name_and_label(names: list[str], labels: list[str], titles: list[str]) -> None:
    assert [workload.title for workload in select_workloads(load_workloads(()), names, labels)] == titles


def test_without_a_name_all_families_are_chosen() -> None:
    assert [workload.title for workload in select_workloads(load_workloads(()), [], [])] == _families()


@pytest.mark.parametrize(
    ("names", "labels", "problem"),
    [
        pytest.param(["baisc"], [], "unknown workload 'baisc' (did you mean \"basic\"?)", id="a slip"),
        pytest.param(["xyz"], [], "unknown workload 'xyz'", id="something else"),
        pytest.param(["basic"], ["huge"], "no workload has the label huge", id="a label that none has"),
    ],
)
def test_what_cannot_be_chosen_is_named(names: list[str], labels: list[str], problem: str) -> None:
    with pytest.raises(WorkloadError) as refused:
        select_workloads(load_workloads(()), names, labels)
    assert str(refused.value) == problem


def test_sizes_can_be_changed_where_the_workload_has_them(tmp_path: Path) -> None:
    (basic,) = select_workloads(load_workloads(()), ["basic"], [])
    changed = resized(basic, 7, 9)
    assert (changed.params["initNodes"], changed.params["measurePods"]) == (7, 9)
    assert changed.expected_pods() == 9 + 1
    assert resized(basic, None, None) is basic
    fixed = workload_of(tmp_path, [MEASURED])
    with pytest.raises(WorkloadError, match="has no parameter initNodes or nodes, so --nodes cannot change it"):
        resized(fixed, 7, None)


def test_every_operation_has_a_step() -> None:
    from kubesched.simulator.bench.runner import STEPS

    assert set(STEPS) == set(OPERATIONS.values())
