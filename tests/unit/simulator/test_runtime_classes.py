"""Runtime classes: what running a pod costs by itself, and where it may run, for pods that no API server has seen."""

from __future__ import annotations

from typing import Any

import pytest

import kubesched
from kubesched.testing import make

KATA = {
    "apiVersion": "node.k8s.io/v1",
    "kind": "RuntimeClass",
    "metadata": {"name": "kata"},
    "handler": "kata",
    "overhead": {"podFixed": {"cpu": "3", "memory": "1Gi"}},
    "scheduling": {"nodeSelector": {"sandbox": "kata"}, "tolerations": [make.toleration("sandbox")]},
}
NODES = [
    make.node("plain", cpu=4),
    make.node("kata-1", cpu=4, labels={"sandbox": "kata"}, taints=[make.taint("sandbox")]),
    make.node("kata-2", cpu=4, labels={"sandbox": "kata"}, taints=[make.taint("sandbox")]),
]


def _sandboxed(name: str = "p", runtime: str = "kata", **spec: Any) -> dict[str, Any]:
    written = make.pod(name, cpu=1, spec={"runtimeClassName": runtime, **spec})
    del written["metadata"]["uid"]
    return written


def _deployment(replicas: int) -> dict[str, Any]:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": _sandboxed()["spec"]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }


def test_a_pod_goes_where_its_runtime_is_and_pays_for_it() -> None:
    full = make.pod("full", cpu=1, on="kata-1")
    explanation = kubesched.explain([*NODES, KATA, full, _sandboxed()], "default/p")
    assert explanation.to_dict()["best"] == ["kata-2"]
    alone = kubesched.explain([*NODES[:2], KATA, full, _sandboxed()], "default/p")
    assert "needs 4 cpu (3 cpu of it overhead of its runtime class)" in alone.headline
    assert "nodeSelector sandbox=kata" in alone.headline


def test_a_selector_of_the_runtime_class_is_told_as_such() -> None:
    explanation = kubesched.explain([NODES[0], KATA, _sandboxed()], "default/p")
    assert "asks for nodeSelector sandbox=kata (of its RuntimeClass kata); no node has a label" in explanation.headline


def test_a_pod_of_a_server_has_had_its_overhead() -> None:
    stored = _sandboxed(nodeSelector={"sandbox": "kata"}, tolerations=[make.toleration("sandbox")])
    stored["metadata"]["uid"] = "1"
    explanation = kubesched.explain([*NODES, KATA, make.pod("full", cpu=1, on="kata-1"), stored], "default/p")
    assert explanation.to_dict()["best"] == ["kata-2"]  # the emptier one; both have room for 1 cpu


def test_a_runtime_class_that_is_not_there_is_named() -> None:
    cause = kubesched.explain([*NODES, KATA, _sandboxed(runtime="gvisor")], "default/p").cause
    assert cause.kind.value == "missing-runtime-class"
    assert cause.text.startswith("its RuntimeClass gvisor does not exist")
    assert cause.text.endswith("there is kata")


def test_without_any_runtime_class_none_is_missed() -> None:
    assert kubesched.explain([*NODES, _sandboxed(runtime="gvisor")], "default/p").fits


def test_pods_of_a_template_get_it_too() -> None:
    report = kubesched.simulate([*NODES, KATA, _deployment(3)])
    assert report.summary["states"] == {"Running": 2, "Pending": 1}
    assert {row.node for row in report.pods.named() if row.node} == {"kata-1", "kata-2"}
    refused = kubesched.explain([*NODES, {**KATA, "metadata": {"name": "other"}}, _deployment(3)], "deployment/web")
    assert 'RuntimeClass "kata" not found' in refused.headline
    assert "correct runtimeClassName" in refused.headline


def test_more_replicas_and_daemons_are_counted_with_it() -> None:
    world = [*NODES, KATA, _deployment(1)]
    assert kubesched.capacity(world, workloads="deployment/default/web", remedies=False).fits == 1


@pytest.mark.parametrize(
    ("pod", "told"),
    [
        (
            _sandboxed(nodeSelector={"sandbox": "none"}),
            "spec.runtimeClassName: spec.nodeSelector[sandbox]: none, while",
        ),
        (_sandboxed(overhead={"cpu": "1"}), "spec.overhead does not match that of RuntimeClass kata"),
        (_sandboxed(runtime="gvisor"), 'spec.runtimeClassName: RuntimeClass "gvisor" not found'),
    ],
)
def test_what_an_api_server_refuses_ends_a_simulation(pod: dict[str, Any], told: str) -> None:
    with pytest.raises(kubesched.KubeschedError, match="Pod default/p") as caught:
        kubesched.simulate([*NODES, KATA, pod])
    assert told in str(caught.value)
