"""A world that was loaded once is what every question of planning can be about."""

from __future__ import annotations

from typing import Any

import pytest

import kubesched
from kubesched.testing import make

PACKED = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"schedulerName": "mine"}],
}
MACHINES: dict[str, Any] = {
    "apiVersion": "kubesched.dev/v1alpha1",
    "kind": "Catalogue",
    "shapes": [{"name": "big", "allocatable": {"cpu": 8, "memory": "32Gi", "pods": 110}, "price": 0.3}],
}


def world() -> kubesched.LoadedWorld:
    """Its scheduler has another name, so that who does not know its configuration places nothing."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "u", "controller": True}
    spec = {"schedulerName": "mine"}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {**make.pod("x", cpu=1)["spec"], **spec}}
    web = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "web-1", "namespace": "default", "uid": "u"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template},
    }
    pods = [
        make.pod(f"web-{i}", cpu=1, labels={"app": "web"}, on=f"n{i}", spec=spec, metadata={"ownerReferences": [owner]})
        for i in range(2)
    ]
    nodes = [make.node(f"n{i}", cpu=4, labels={make.ZONE: "ab"[i]}) for i in range(2)]
    return kubesched.world([*nodes, web, *pods], config=PACKED)


def test_questions_that_play_it_know_its_scheduler() -> None:
    loaded = world()
    assert kubesched.outage(loaded, every="zone").survives
    assert kubesched.upgrade(loaded, max_surge=1).finishes
    assert kubesched.optimal(loaded, MACHINES, time_limit_s=5).least_nodes == 1
    assert len(kubesched.consolidate(loaded).steps) == 1
    assert kubesched.plan(loaded, MACHINES, time_limit_s=5).answer == "yes"
    found = kubesched.compare(
        loaded, {"base": {"config": PACKED}, "small": {"config": PACKED, "resize": "cpu*0.5"}}, seeds=2
    )
    assert found["small"].difference("pending").baseline == 0


def test_a_world_that_was_changed_is_not_played_as_it_was() -> None:
    loaded = world()
    with loaded.trial() as trial:
        trial.cordon("n0")
    assert kubesched.outage(loaded).survives
    with loaded.trial() as trial:
        trial.cordon("n0")
        trial.commit()
    with pytest.raises(kubesched.TrialError, match="a trial has changed it; give the files"):
        kubesched.outage(loaded)
