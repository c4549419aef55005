"""A loop with plugins from outside, in a world that does what it is asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubesched.k8s.model import manifests
from kubesched.k8s.model.core import PodCondition
from kubesched.scheduler.build import build_loop
from kubesched.scheduler.config import default, load
from kubesched.scheduler.engine.score import ByName
from kubesched.scheduler.plugin_loading import assemble, plugins_from_classes
from kubesched.testing.make import Manifest
from kubesched.testing.world import World

KIND = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


def world_with(*plugins: type, config: Mapping[str, Any] | None = None, keeps_classes: bool = True) -> World:
    configuration = default() if config is None else load({**KIND, **config}, "config.yaml")
    found = assemble(configuration, "config.yaml", given=plugins_from_classes(plugins))
    return World(build_loop(found.config, ByName(), registry=found.registry, keeps_classes=keeps_classes))


def add(world: World, *items: Manifest) -> None:
    world.add(*manifests.from_dicts(items).objects)


def notes(world: World, reason: str = "FailedScheduling") -> list[str]:
    return [event.note for event in world.events if event.reason == reason]


def condition_of(world: World, pod: str) -> PodCondition:
    found = next(item for key, item in world.pods.items() if key == pod)
    (condition,) = found.status.conditions or ()
    return condition
