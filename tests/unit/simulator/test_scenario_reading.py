"""Scenario files and annotations: what they say, and validation errors in them, by file and field."""

from __future__ import annotations

from typing import Any

import pytest
from simulated_clusters import cron_job, scenario, workload

from kubesched.k8s.model import manifests
from kubesched.k8s.model.core import Node
from kubesched.k8s.model.manifests import ManifestError
from kubesched.simulator.loading import SIMULATED_KINDS, SimulationInput, load
from kubesched.testing import make
from kubesched.testing.make import Manifest

BATCH = {"count": 2, "template": {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": 1}}}}


def _load(*items: Manifest) -> SimulationInput:
    return load(manifests.from_dicts([make.node("a"), make.node("n-1"), *items], "file.yaml", kinds=SIMULATED_KINDS))


def test_steps_come_in_the_order_of_their_times() -> None:
    given = _load(
        scenario({"at": "2h", "drain": ["a", "n-1"]}, {"at": "90m", "fail": "a"}),
        scenario({"at": "1h45m", "recover": "a"}, name="more"),
    )
    assert [(step.at_s, step.verb, step.node_names) for step in given.steps] == [
        (5400, "fail", ("a",)),
        (6300, "recover", ("a",)),
        (7200, "drain", ("a", "n-1")),
    ]


def test_new_nodes_are_numbered_on_and_may_be_named_later() -> None:
    given = _load(scenario({"at": "1m", "addNodes": BATCH}, {"at": "2m", "drain": "n-3"}))
    found = [item for item in given.steps[0].objects if isinstance(item, Node)]
    assert [(node.name, node.labels[make.HOSTNAME]) for node in found] == [("n-2", "n-2"), ("n-3", "n-3")]


@pytest.mark.parametrize(
    ("event", "problem"),
    [
        pytest.param({"drain": "a"}, "events[0]: object missing required field at", id="no time"),
        pytest.param({"at": "soon", "drain": "a"}, 'events[0].at: time: invalid duration "soon"', id="not a time"),
        pytest.param({"at": "-1h", "drain": "a"}, 'events[0].at: "-1h" is negative', id="before the start"),
        pytest.param(
            {"at": "1h"},
            "events[0]: exactly one of addNodes, drain, cordon, uncordon, fail, recover, apply, delete is expected; "
            "none is set",
            id="nothing to do",
        ),
        pytest.param(
            {"at": "1h", "drain": "a", "fail": "a"},
            "events[0]: exactly one of addNodes, drain, cordon, uncordon, fail, recover, apply, delete is expected; "
            "drain and fail are set",
            id="two things at once",
        ),
        pytest.param({"at": "1h", "explode": "a"}, "unknown field explode", id="no such verb"),
        pytest.param({"at": "1h", "drain": "z"}, 'events[0].drain: there is no node "z"', id="no such node"),
        pytest.param(
            {"at": "1h", "addNodes": {**BATCH, "count": 0}},
            "events[0].addNodes.count: at least 1 is expected, not 0",
            id="no nodes to add",
        ),
        pytest.param(
            {"at": "1h", "addNodes": {"template": {}}},
            "events[0].addNodes.template.metadata.name: a name is required",
            id="nodes without a name",
        ),
        pytest.param(
            {"at": "1h", "apply": [{"kind": "Pod", "apiVersion": "v1", "spec": 7}]},
            "events[0].apply: Pod [0]: spec: expected object, got int",
            id="a manifest that is none",
        ),
        pytest.param(
            {"at": "1h", "apply": [{"kind": "Secret", "apiVersion": "v1"}]},
            "events[0].apply: v1 Secret is not a kind that is simulated",
            id="a kind that means nothing here",
        ),
        pytest.param(
            {"at": "1h", "delete": [{"kind": "Poodle", "name": "x"}]},
            'events[0].delete[0].kind: "Poodle" is not a kind that is simulated',
            id="no such kind",
        ),
    ],
)
def test_mistakes_name_file_scenario_and_field(event: dict[str, Any], problem: str) -> None:
    with pytest.raises(ManifestError) as caught:
        _load(scenario(event))
    text = str(caught.value)
    assert text.startswith("file.yaml: Scenario test: ")
    assert problem in text


def test_a_scenario_of_another_version_is_refused() -> None:
    with pytest.raises(ManifestError, match=r"apiVersion: kubesched\.dev/v1alpha1 is expected"):
        _load({**scenario(), "apiVersion": "kubesched.dev/v9"})


def test_two_objects_of_one_uid_are_a_mistake() -> None:
    first, second = make.pod("p"), make.pod("q", metadata={"uid": "uid-default-p"})
    with pytest.raises(
        ManifestError, match=r"Pod default/q: metadata\.uid: uid-default-p is also the uid of Pod default/p"
    ):
        _load(first, second)


BUDGET = make.budget("b", {"app": "web"}, allowed=0)


@pytest.mark.parametrize(
    ("manifest", "problem"),
    [
        pytest.param(
            workload("Deployment", "web", pod={"cpu": "a lot"}),
            "file.yaml: Deployment default/web: spec.template.spec.containers[0].resources.requests.cpu: invalid",
            id="an amount in a template",
        ),
        pytest.param(
            workload("Job", "sum", pod={"duration": "5 minutes"}),
            "Job default/sum: spec.template.metadata.annotations: kubesched.dev/duration: time: unknown unit",
            id="a duration",
        ),
        pytest.param(
            workload("Job", "sum", pod={"result": "Maybe"}),
            'kubesched.dev/result: "Maybe" is neither Succeeded nor Failed',
            id="a result",
        ),
        pytest.param(
            cron_job("tick", "often"),
            'CronJob default/tick: spec: schedule "often": expected exactly 5 fields, found 1: [often]',
            id="a schedule",
        ),
        pytest.param(
            cron_job("tick", "@daily", pod={"cpu": "x"}),
            "spec.jobTemplate.spec.template.spec.containers[0].resources.requests.cpu",
            id="an amount in a cron job",
        ),
        pytest.param(
            workload("Deployment", "web", strategy={"rollingUpdate": {"maxSurge": "some"}}),
            'Deployment default/web: spec.strategy.rollingUpdate: invalid value "some"',
            id="a share",
        ),
        pytest.param(
            {**BUDGET, "spec": {"maxUnavailable": "x%"}},
            'PodDisruptionBudget default/b: spec.maxUnavailable: invalid value "x%"',
            id="a budget",
        ),
        pytest.param(
            make.pod("p", spec={"priorityClassName": "nope"}),
            "Pod default/p: spec.priorityClassName: no PriorityClass with name nope was found",
            id="a priority class that is not there",
        ),
        pytest.param(make.node("z", cpu="x"), "Node z: status.allocatable.cpu: invalid quantity", id="a node"),
        pytest.param(
            scenario({"at": "1h", "apply": [workload("Deployment", "web", pod={"cpu": "x"})]}),
            "file.yaml: Deployment default/web: spec.template.spec.containers[0]",
            id="what a scenario applies",
        ),
    ],
)
def test_mistakes_in_objects_are_found_before_the_run(manifest: Manifest, problem: str) -> None:
    with pytest.raises(ManifestError) as caught:
        _load(manifest)
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("manifest", "expected"),
    [
        pytest.param(workload("Deployment", "web"), True, id="pods that run on"),
        pytest.param(workload("Deployment", "web", pod={"duration": "1h"}), False, id="pods that are replaced"),
        pytest.param(workload("Job", "sum", pod={"duration": "1h"}), True, id="a job"),
        pytest.param(cron_job("tick", "@daily"), False, id="a cron job"),
        pytest.param(cron_job("tick", "@daily", suspend=True), True, id="a suspended cron job"),
        pytest.param(scenario({"at": "1h", "apply": [cron_job("tick", "@daily")]}), False, id="a cron job to come"),
    ],
)
def test_what_never_ends_is_known_before(manifest: Manifest, expected: bool) -> None:
    assert _load(manifest).ends_by_itself is expected
