"""What has to be supposed about a cluster is told, and can be made an error."""

from __future__ import annotations

from typing import Any

import pytest

import kubesched
from kubesched.simulator.guesses import GuessedError, guesses_about

ZONE = "topology.kubernetes.io/zone"
Manifest = dict[str, Any]


def node(name: str, zone: str = "") -> Manifest:
    about = {"name": name, "labels": {ZONE: zone} if zone else {}}
    amounts = {"cpu": "8", "memory": "16Gi", "pods": "110"}
    return {"apiVersion": "v1", "kind": "Node", "metadata": about, "status": {"allocatable": amounts}}


def pod(name: str, cpu: str = "1", *claims: str) -> Manifest:
    resources = {"requests": {"cpu": cpu}} if cpu else {}
    volumes = [{"name": claim, "persistentVolumeClaim": {"claimName": claim}} for claim in claims]
    spec = {"nodeName": "a", "containers": [{"name": "c", "resources": resources}], "volumes": volumes}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "shop"}, "spec": spec}


def other(version: str, kind: str) -> Manifest:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "x"}}


def told(*objects: Manifest) -> str:
    return "\n".join(guesses_about(kubesched.load(list(objects)).found))


def test_what_says_everything_leaves_nothing_to_guess() -> None:
    assert told(node("a", "z"), node("b", "z"), pod("web")) == ""


@pytest.mark.parametrize(
    ("extra", "expected"),
    [
        pytest.param([pod("web", "")], "1 pod requests nothing, so there is always room for it.", id="a silent pod"),
        pytest.param(
            [{**other("apps/v1", "Deployment"), "spec": {"template": {"spec": {"containers": [{"name": "c"}]}}}}],
            "pods of Deployment default/x request nothing, so there is always room for them.",
            id="a silent template",
        ),
        pytest.param(
            [other("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration")],
            "1 MutatingWebhookConfiguration is not asked: they might change or refuse pods.",
            id="a webhook",
        ),
        pytest.param(
            [other("argoproj.io/v1alpha1", "Rollout")],
            "1 Rollout.argoproj.io is not simulated: no controller acts on them.",
            id="an operator's object",
        ),
        pytest.param([node("c")], "1 node of 2 without a zone (c): no zone's failure meets them.", id="no zone"),
        pytest.param(
            [pod("db", "1", "data")],
            "1 claim of running pods not given: their volumes are not known (shop/data).",
            id="a claim that is not there",
        ),
    ],
)
def test_what_is_not_said_is_told(extra: list[Manifest], expected: str) -> None:
    assert told(node("a", "z"), *extra) == expected


def test_an_extender_is_not_called() -> None:
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "extenders": [{"urlPrefix": "http://127.0.0.1:1", "filterVerb": "filter"}],
    }
    assert kubesched.world([node("a")], config=config).guesses == ("1 extender of the configuration is not called.",)


def test_a_report_that_had_to_guess_can_be_refused() -> None:
    silent = kubesched.load([node("a"), pod("web", "")])
    report = kubesched.capacity(silent, shapes=["1/1Gi"])
    assert any("requests nothing" in one for one in report.assumptions)
    with pytest.raises(GuessedError, match="strict: 1 pod requests nothing"):
        report.strictly()
    plain = kubesched.capacity(kubesched.load([node("a"), pod("web")]), shapes=["1/1Gi"])
    assert plain.strictly() is plain
