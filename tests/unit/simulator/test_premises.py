"""A cluster as a question supposes it: autoscalers at their bounds, something left out, workloads that were scaled."""

from __future__ import annotations

import json
from typing import Any

import pytest

import kubesched
from kubesched.k8s.model.manifests import ManifestError
from kubesched.simulator.premises import PremiseError

Manifest = dict[str, Any]
LABELS = {"app": "web"}


def node(name: str) -> Manifest:
    amounts = {"cpu": "8", "memory": "16Gi", "pods": "110"}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {"allocatable": amounts}}


def pod_spec(cpu: str = "1") -> Manifest:
    return {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]}


def owned(kind: str, name: str) -> list[Manifest]:
    return [{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": f"{kind}-{name}", "controller": True}]


def running(kind: str, name: str, number: int, where: str = "a") -> Manifest:
    about = {"name": f"{name}-{number}", "namespace": "default", "labels": LABELS, "ownerReferences": owned(kind, name)}
    placed = {"nodeName": where} if where else {}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": {**pod_spec(), **placed}}


def made(kind: str, name: str, replicas: int, owner: list[Manifest] | None = None) -> Manifest:
    about = {"name": name, "namespace": "default", "uid": f"{kind}-{name}", "ownerReferences": owner}
    template = {"metadata": {"labels": LABELS}, "spec": pod_spec()}
    spec = {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": template}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": about, "spec": spec}


def deployment(wanted: int, there: int) -> list[Manifest]:
    """As a dump has it, with its set and pods."""
    of = owned("Deployment", "web")
    pods = [running("ReplicaSet", "web-1", n) for n in range(there)]
    return [node("a"), made("Deployment", "web", wanted), made("ReplicaSet", "web-1", there, of), *pods]


def scaler(least: int | None, most: int, kind: str = "Deployment", name: str = "web") -> Manifest:
    target = {"apiVersion": "apps/v1", "kind": kind, "name": name}
    spec = {"scaleTargetRef": target, "minReplicas": least, "maxReplicas": most}
    about = {"name": name, "namespace": "default"}
    return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": about, "spec": spec}


@pytest.mark.parametrize(("wanted", "there"), [(5, 3), (3, 3), (1, 3), (0, 3), (4, 0)])
def test_a_deployment_that_was_scaled_has_its_size(wanted: int, there: int) -> None:
    world = kubesched.world(deployment(wanted, there))
    assert len(world.placed) == min(wanted, there)
    assert len(world.pending) == max(0, wanted - there)


def test_a_deployment_that_is_being_rolled_out_keeps_the_pods_of_its_old_set() -> None:
    objects = deployment(2, 2)
    objects[1]["spec"]["template"] = {"metadata": {"labels": LABELS}, "spec": pod_spec("2")}
    world = kubesched.world(objects)
    assert len(world.placed) == 2 and world.pending


def test_a_stateful_set_that_shrinks_loses_its_last_pods() -> None:
    pods = [running("StatefulSet", "db", n) for n in range(3)]
    world = kubesched.world([node("a"), made("StatefulSet", "db", 1), *pods])
    assert list(world.placed) == ["default/db-0"]


# -- autoscalers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("replicas", "expected"), [("current", 3), ("min", 2), ("max", 6)])
def test_an_autoscaled_workload_is_at_its_bound(replicas: str, expected: int) -> None:
    cluster = kubesched.load([*deployment(3, 3), scaler(2, 6)], replicas=replicas)
    world = kubesched.world(cluster)
    assert len(world.placed) + len(world.pending) == expected


def test_the_least_is_one_if_nothing_says_it() -> None:
    assert len(kubesched.world(kubesched.load([*deployment(3, 3), scaler(None, 6)], replicas="min")).placed) == 1


def test_a_workload_without_replicas_is_not_autoscaled() -> None:
    world = kubesched.world(kubesched.load([*deployment(0, 0), scaler(2, 6)], replicas="max"))
    assert not world.pending


def test_an_autoscaler_is_told_if_it_is_not_played() -> None:
    assert any(
        "HorizontalPodAutoscaler is not played" in one
        for one in kubesched.world([*deployment(1, 1), scaler(1, 2)]).guesses
    )
    assert not kubesched.world(deployment(1, 1)).guesses


def test_bounds_that_contradict_each_other_are_an_error_that_names_them() -> None:
    with pytest.raises(
        ManifestError, match=r"HorizontalPodAutoscaler default/web: spec.maxReplicas: 1 is less than .* 2"
    ):
        kubesched.load([*deployment(1, 1), scaler(2, 1)], replicas="max")


def test_other_words_are_an_error() -> None:
    with pytest.raises(PremiseError, match='replicas "most" is none of current, min, max'):
        kubesched.load(deployment(1, 1), replicas="most")
    with pytest.raises(PremiseError, match='ignore "jobs" is none of'):
        kubesched.load(deployment(1, 1), ignore=["jobs"])


# -- left out ----------------------------------------------------------------------------------------------------------


def test_pending_pods_are_left_out_and_nobody_makes_them_again() -> None:
    waiting = running("ReplicaSet", "web-1", 9, where="")
    assert kubesched.world([*deployment(5, 3), waiting]).pending
    world = kubesched.world(kubesched.load([*deployment(5, 3), waiting], ignore=["pending"]))
    assert len(world.placed) == 3 and not world.pending


def test_daemons_are_left_out() -> None:
    objects = [node("a"), node("b"), made("DaemonSet", "agent", 0), running("DaemonSet", "agent", 0)]
    world = kubesched.world(kubesched.load(objects, ignore=["daemons"]))
    assert not world.placed and not world.pending


def test_budgets_are_left_out() -> None:
    about = {"name": "web", "namespace": "default"}
    spec = {"maxUnavailable": 0, "selector": {"matchLabels": LABELS}}
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": about, "spec": spec}
    cluster = kubesched.load([*deployment(1, 1), budget], ignore=["budgets"])
    assert "PodDisruptionBudget" not in cluster.kinds
    assert json.dumps(list(cluster))
