"""`kubesched.explain` about more than pods, and `kubesched.load` of dumps that lack something."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import kubesched
from harness.workload_manifests import workload
from kubesched.cli.main import main
from kubesched.testing import make

EXAMPLE = Path(__file__).parents[3] / "examples" / "explain"
ASKED = [
    ("shop/report", {}),
    ("shop/pod/report", {}),
    ("shop/report", {"node": "gpu-1"}),
    ("shop/web-1", {}),
    ("namespace/shop", {}),
    ("ns/lab", {}),
    ("node/general-2", {}),
]
ONE_NODE = [make.node("small", cpu=1)]


def by_command(what: str, node: str | None = None) -> dict[str, Any]:
    options = [] if node is None else ["--node", node]
    result = CliRunner().invoke(main, ["explain", what, "-f", str(EXAMPLE), "-o", "json", *options])
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.mark.parametrize(("what", "how"), ASKED)
def test_the_library_answers_as_the_command_line_does(what: str, how: dict[str, Any]) -> None:
    answer = kubesched.explain(EXAMPLE, what, **how)
    told = answer.report() if isinstance(answer, kubesched.Explanation) else answer.to_dict()
    assert json.loads(json.dumps(told)) == by_command(what, **how)


@pytest.mark.parametrize(("what", "how"), ASKED)
def test_every_answer_has_a_line_a_text_and_html(what: str, how: dict[str, Any]) -> None:
    answer = kubesched.explain(EXAMPLE, what, **how)
    assert str(answer).splitlines()[0] == answer.headline
    assert answer.headline in repr(answer) and "\n" not in repr(answer)
    assert answer._repr_html_().count("<table>") >= 1


def test_a_bound_pod_is_told_why_it_is_there() -> None:
    bound = kubesched.load(EXAMPLE).pods[0]
    answer = kubesched.explain(EXAMPLE, bound)
    assert answer.placed_on and answer.cause.kind.value == "bound"


def test_the_pods_of_a_workload_are_grouped_by_cause() -> None:
    pods = [make.pod(f"web-{number}", cpu=2) for number in range(3)]
    for pod in pods:
        pod["metadata"]["ownerReferences"] = [{"kind": "ReplicaSet", "name": "web-7f9", "uid": "u", "controller": True}]
    answer = kubesched.explain([*ONE_NODE, workload("Deployment", "web", replicas=3), *pods], "deployment/web")
    assert isinstance(answer, kubesched.PodsOverview)
    assert [len(group.pods) for group in answer.groups] == [3]
    assert "needs 2 cpu" in answer.headline


def test_a_workload_without_pods_is_explained_by_one_and_said_so() -> None:
    objects = [*ONE_NODE, workload("Deployment", "web", replicas=3, pod={"cpu": 2})]
    with pytest.warns(kubesched.KubeschedWarning, match="explained by one of its pods"):
        answer = kubesched.explain(objects, "deployment/web")
    assert not answer.fits


@pytest.mark.parametrize(
    ("item", "what", "said"),
    [
        pytest.param(
            workload("Job", "x", suspend=True), "job/x", "1 of 1 pod do not exist: it is suspended", id="suspended job"
        ),
        pytest.param(workload("Deployment", "x", paused=True), "deploy/x", "it is paused (spec.paused)", id="paused"),
        pytest.param(workload("DaemonSet", "x"), "ds/x", "has no pods: 1 of 1 nodes should have one", id="daemons"),
        pytest.param(
            workload("DaemonSet", "x", pod={"nodeSelector": {"disk": "ssd"}}),
            "ds/x",
            "has no pods: none of 1 nodes is for it",
            id="daemons for no node",
        ),
    ],
)
def test_why_a_workload_has_no_pods(item: dict[str, Any], what: str, said: str) -> None:
    answer = kubesched.explain([*ONE_NODE, item], what)
    assert said in answer.headline
    assert isinstance(answer, kubesched.PodsOverview) and answer.is_unschedulable


def test_a_quota_may_have_room_for_some_of_the_pods() -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "team", "namespace": "default"},
        "spec": {"hard": {"requests.cpu": "5"}},
        "status": {"hard": {"requests.cpu": "5"}, "used": {"requests.cpu": "1"}},
    }
    web = workload("Deployment", "web", replicas=3, pod={"cpu": 2})
    answer = kubesched.explain([*ONE_NODE, quota, web], "deployment/web")
    told = "quota team has room for 2 of the 3 that are missing: 1 of 5 requests.cpu used, a pod needs 2"
    assert told in answer.headline
    assert isinstance(answer, kubesched.PodsOverview)
    assert answer.missing is not None and answer.missing.kind.value == "quota"


def test_a_workload_that_does_not_exist_may_be_another() -> None:
    with pytest.raises(
        kubesched.NotExplainableError, match="Deployment default/wbe does not exist; there is default/web"
    ):
        kubesched.explain([*ONE_NODE, workload("Deployment", "web")], "deployment/wbe")


def test_a_namespace_may_be_named_apart() -> None:
    assert kubesched.explain(EXAMPLE, "report", namespace="shop").pod.key == "shop/report"
    with pytest.raises(kubesched.TargetError, match="specify the namespace once"):
        kubesched.explain(EXAMPLE, "shop/report", namespace="lab")


@pytest.mark.parametrize(
    ("what", "how", "message"),
    [
        ("deployment/none", {}, "Deployment default/none does not exist"),
        ("node/none", {}, "node none is not among"),
        ("shop/report", {"node": "none"}, "node none is not among"),
        ("ns/shop", {"node": "gpu-1"}, "a question about a pod"),
        ("ns/shop", {"emulate": "1.18"}, "pods only"),
    ],
)
def test_what_cannot_be_answered_is_one_line(what: str, how: dict[str, Any], message: str) -> None:
    with pytest.raises(kubesched.KubeschedError, match=message):
        kubesched.explain(EXAMPLE, what, **how)


# -- dumps -------------------------------------------------------------------------------------------------------------


def test_a_dump_without_a_kind_is_told_so(tmp_path: Path) -> None:
    node = make.node("a")
    node["metadata"]["uid"] = "u"
    dump = tmp_path / "dump.json"
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [node, make.pod("p")]}))
    with pytest.warns(kubesched.KubeschedWarning) as told:
        kubesched.load(dump)
    texts = [str(one.message) for one in told]
    assert any(text.startswith(f"{dump}: no Namespaces, although every cluster has some") for text in texts), texts
    assert all(one.filename == __file__ for one in told)


def test_what_is_no_dump_is_not_warned_of() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kubesched.load(EXAMPLE)
        kubesched.load([make.node("a"), make.pod("p")])
