"""How far preferences are met, and how uneven soft spreading is."""

from __future__ import annotations

from typing import Any

import pytest

import kubesched
from kubesched.planning.soft_constraints import preferences_met_percent, soft_skew
from kubesched.testing import make
from kubesched.testing.make import Manifest

NODES = [make.node(f"n{i}", labels={make.ZONE: "aab"[i], "disk": "ssd" if i == 0 else "hdd"}) for i in range(3)]


def prefers_ssd(weight: int) -> Manifest:
    wanted = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
    term = {"weight": weight, "preference": wanted}
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}


def prefers_pods(kind: str, weight: int, key: str = make.ZONE) -> Manifest:
    term = {"weight": weight, "podAffinityTerm": make.affinity_term(key, {"app": "web"})}
    return {kind: {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}


def pod(name: str, on: str, app: str = "web", **spec: Any) -> Manifest:
    return make.pod(name, cpu="100m", on=on, labels={"app": app}, spec=spec)


@pytest.mark.parametrize(
    ("pods", "percent"),
    [
        pytest.param([pod("p", "n0")], 100, id="nobody prefers anything"),
        pytest.param(
            [pod("p", "n0", affinity=prefers_ssd(30)), pod("q", "n1", affinity=prefers_ssd(10))], 75, id="by weight"
        ),
        pytest.param(
            [pod(f"p{i}", f"n{i}", affinity=prefers_ssd(10)) for i in range(3)], 100 / 3, id="each pod by itself"
        ),
        pytest.param(
            [pod("w", "n1"), pod("p", "n0", "db", affinity=prefers_pods("podAffinity", 5))], 100, id="in one zone"
        ),
        pytest.param(
            [pod("w", "n2"), pod("p", "n0", "db", affinity=prefers_pods("podAffinity", 5))], 0, id="in another zone"
        ),
        pytest.param([pod("p", "n0", affinity=prefers_pods("podAffinity", 5))], 0, id="a pod is no company for itself"),
        pytest.param([pod("p", "n0", affinity=prefers_pods("podAntiAffinity", 5))], 100, id="nor against itself"),
        pytest.param(
            [pod(f"p{i}", f"n{i}", affinity=prefers_pods("podAntiAffinity", 5)) for i in (0, 1, 2)],
            100 / 3,
            id="two of three share a zone",
        ),
    ],
)
def test_preferences_by_weight(pods: list[Manifest], percent: float) -> None:
    assert preferences_met_percent(kubesched.world([*NODES, *pods]).cluster) == pytest.approx(percent)


def test_soft_spreading_is_how_far_the_fullest_is_ahead() -> None:
    soft = {"maxSkew": 1, "topologyKey": make.ZONE, "whenUnsatisfiable": "ScheduleAnyway"}
    spread = [{**soft, "labelSelector": {"matchLabels": {"app": "web"}}}]
    pods = [pod(f"p{i}", "n0", topologySpreadConstraints=spread) for i in range(3)]
    assert soft_skew(kubesched.world([*NODES, *pods]).cluster) == 3
    assert soft_skew(kubesched.world([*NODES, *pods, pod("other", "n2")]).cluster) == 2
    assert soft_skew(kubesched.world([*NODES, pod("hard", "n0")]).cluster) == 0


def test_they_are_compared() -> None:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {**pod("x", "")["spec"], "affinity": prefers_ssd(100)}}
    template["spec"].pop("nodeName", None)
    web = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template},
    }
    without = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"score": {"disabled": [{"name": "NodeAffinity"}]}}}],
    }
    found = kubesched.compare([*NODES, web], {"base": {}, "deaf": {"config": without}}, seeds=3)
    preferences = found["deaf"].difference("preferences")
    assert preferences.baseline == 100
    assert preferences.verdict == "worse"
