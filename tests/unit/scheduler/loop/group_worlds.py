"""Worlds in which pod groups are scheduled, and what goes into them."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from kubesched.framework.handle import Registry
from kubesched.k8s.model.core import Node, Pod, PodDisruptionBudget
from kubesched.k8s.model.meta import KubeObject, PodKey
from kubesched.k8s.model.scheduling import GroupCondition, PodGroup
from kubesched.scheduler.build import build_loop
from kubesched.scheduler.config import load
from kubesched.scheduler.config.defaults import with_gates
from kubesched.scheduler.engine.score import ByName
from kubesched.scheduler.engine.self_check import AnswerLimit
from kubesched.scheduler.plugins.registry import REGISTRY
from kubesched.testing.world import World

GANGS = ("GenericWorkload", "GangScheduling")
TOPOLOGY = (*GANGS, "TopologyAwareWorkloadScheduling")
PREEMPTION = (*GANGS, "WorkloadAwarePreemption")
ALPHA = "1.36-alpha"
_HEADER = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


def group_world(
    *gates: str,
    emulate: str | None = None,
    registry: Registry = REGISTRY,
    config: dict[str, Any] | None = None,
    keeps_classes: bool = True,
    answer_limit: AnswerLimit | None = None,
) -> World:
    """With these feature gates."""
    base = with_gates(load({**_HEADER, **(config or {})}, "test"), dict.fromkeys(gates, True))
    config_of_loop = replace(base, emulate=emulate)
    return World(
        build_loop(config_of_loop, ByName(), registry=registry, keeps_classes=keeps_classes, answer_limit=answer_limit)
    )


def add(world: World, *items: KubeObject) -> None:
    for item in items:
        world.objects.create(item)


def node(name: str = "n", cpu: str = "4", **labels: str) -> Node:
    manifest = {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
        "status": {"allocatable": {"cpu": cpu, "memory": "64Gi", "pods": "110"}},
    }
    return msgspec.convert(manifest, Node)


def pod(name: str, group: str = "", cpu: str = "1", priority: int = 100, **spec: Any) -> Pod:
    manifest = {
        "metadata": {"name": name, "namespace": "d", "labels": spec.pop("labels", {})},
        "spec": {
            "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu, "memory": "1Mi"}}}],
            "priority": priority,
            **({"schedulingGroup": {"podGroupName": group}} if group else {}),
            **spec,
        },
    }
    return msgspec.convert(manifest, Pod)


def group(name: str = "g", gang: int = 0, *, rack: str = "", **spec: Any) -> PodGroup:
    """A gang, or a basic group."""
    policy = {"gang": {"minCount": gang}} if gang else {"basic": {}}
    constraints = {"schedulingConstraints": {"topology": [{"key": rack}]}} if rack else {}
    manifest = {
        "metadata": {"name": name, "namespace": "d", "generation": 1},
        "spec": {"schedulingPolicy": policy, **constraints, **spec},
    }
    return msgspec.convert(manifest, PodGroup)


def budget(allowed: int, app: str = "a", disrupted: tuple[str, ...] = ()) -> PodDisruptionBudget:
    """For pods with this label; of some of them the API server knows already."""
    return msgspec.convert(
        {
            "metadata": {"name": "b", "namespace": "d"},
            "spec": {"selector": {"matchLabels": {"app": app} if app else {}}},
            "status": {
                "disruptionsAllowed": allowed,
                "disruptedPods": dict.fromkeys(disrupted, "2026-01-01T00:00:00Z"),
            },
        },
        PodDisruptionBudget,
    )


def members(name: str = "g", n: int = 3, **fields: Any) -> list[Pod]:
    return [pod(f"{name}-{i}", name, **fields) for i in range(n)]


def bound(world: World) -> dict[str, str]:
    return {pod.name: pod.spec.node_name for pod in world.pods.values() if pod.spec.node_name}


def told(world: World, name: str) -> str:
    """The message of the pod's condition; `gated` if it has none."""
    for condition in world.pods[PodKey(f"d/{name}")].status.conditions or ():
        if condition.type == "PodScheduled" and condition.status == "False":
            return condition.message
    return "gated"


def condition(world: World, name: str = "g") -> GroupCondition | None:
    return world.objects.of(PodGroup)[f"d/{name}"].condition("PodGroupScheduled")


def shown(world: World, name: str = "g") -> tuple[str, str, str]:
    """Status, reason and message of the group's condition."""
    found = condition(world, name)
    return ("", "", "") if found is None else (found.status, found.reason, found.message)
