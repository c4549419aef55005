"""A world whose loop decides as a version did. Volumes and bindings can be made to fail, and extenders answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from kubesched.framework.effects import BindPod, CallExtender, Failed, PatchPodStatus
from kubesched.k8s.model import manifests
from kubesched.k8s.model.meta import PodKey
from kubesched.older.config import emulate, generation_of
from kubesched.older.engine.build import variant_of
from kubesched.scheduler.build import build_loop
from kubesched.scheduler.config import load
from kubesched.scheduler.engine.metrics.timing import Clock
from kubesched.scheduler.engine.score import ByName
from kubesched.scheduler.plugins.volume_binding.binding import BindVolumeToClaim
from kubesched.testing.make import Manifest
from kubesched.testing.world import World

EXTENDER_URL = "http://extender.example/scheduler"

Serve = Callable[[str, dict[str, Any]], Any]
"""(verb, what was asked) -> what is answered, as JSON."""


class OlderWorld(World):
    def __init__(
        self,
        version: str,
        *items: Manifest,
        verbs: tuple[str, ...] = (),
        serve: Serve | None = None,
        clock: Clock | None = None,
    ) -> None:
        generation = generation_of(version)
        assert generation is not None
        emulation = emulate(generation)
        if serve is not None:
            verb_fields = {f"{verb}Verb": verb for verb in verbs}
            extender = {"urlPrefix": EXTENDER_URL, "weight": 1, "nodeCacheCapable": True, **verb_fields}
            config = load(
                {
                    "apiVersion": "kubescheduler.config.k8s.io/v1",
                    "kind": "KubeSchedulerConfiguration",
                    "extenders": [extender],
                },
                "test",
            )
            emulation = replace(emulation, config=config)
        super().__init__(build_loop(emulation.config, ByName(), variant=variant_of(emulation), clock=clock))
        self._serve = serve
        self.binding_fails = self.volume_fails = ""
        self.patches: list[PatchPodStatus] = []
        self.put(*items)

    def put(self, *items: Manifest) -> None:
        self.add(*manifests.from_dicts(items).objects)

    def carry_out(self, action: object) -> object:
        if isinstance(action, BindPod) and self.binding_fails:
            return Failed(self.binding_fails)
        if isinstance(action, BindVolumeToClaim):
            return Failed(self.volume_fails)
        if isinstance(action, PatchPodStatus):
            self.patches.append(action)
        if isinstance(action, CallExtender):
            assert self._serve is not None
            return json.dumps(self._serve(action.verb, json.loads(action.body))).encode()
        return super().carry_out(action)

    def notes(self, reason: str = "FailedScheduling") -> list[str]:
        return [event.note for event in self.events if event.reason == reason]

    def condition(self, name: str) -> tuple[str, str]:
        """(reason, message) of what the pod is told about being scheduled."""
        [found] = [c for c in self.pods[PodKey(f"default/{name}")].status.conditions or () if c.type == "PodScheduled"]
        return found.reason, found.message


def volume_of_a_node(node: str) -> list[Manifest]:
    """A claim that waits for its pod, and the one volume for it, on this node."""
    where = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    storage = "storage.k8s.io/v1"
    return [
        {
            "apiVersion": storage,
            "kind": "StorageClass",
            "metadata": {"name": "local"},
            "provisioner": "kubernetes.io/no-provisioner",
            "volumeBindingMode": "WaitForFirstConsumer",
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": "disk", "uid": "uid-disk"},
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "local",
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [where]}]}},
            },
            "status": {"phase": "Available"},
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data", "namespace": "default", "uid": "uid-data"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "local",
                "resources": {"requests": {"storage": "1Gi"}},
            },
        },
    ]


def with_claim(claim: str = "data") -> dict[str, Any]:
    """The part of a pod's spec that mounts a claim."""
    return {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]}
