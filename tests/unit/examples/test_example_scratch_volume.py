"""A pod is bound once the object that the plugin created for it is ready."""

from __future__ import annotations

from typing import Any

from example_plugins import config_with, objects_of, plugin_of
from msgspec.structs import replace

import kubesched
from kubesched.k8s.model import manifests
from kubesched.k8s.model.storage import PersistentVolumeClaim, PersistentVolumeClaimStatus
from kubesched.scheduler.build import build_loop
from kubesched.scheduler.config import load
from kubesched.scheduler.engine.score import ByName
from kubesched.scheduler.plugin_loading import assemble, plugins_from_classes
from kubesched.testing.world import World

SCRATCH = plugin_of("scratch-volume")
KEY = "default/scratch-sort"


def world(args: dict[str, Any]) -> World:
    """One in which nobody serves claims."""
    found = assemble(load(config_with("ScratchVolume", args), "test"), given=plugins_from_classes([SCRATCH]))
    it = World(build_loop(found.config, ByName(), registry=found.registry))
    it.add(*manifests.from_dicts(objects_of("scratch-volume")).objects)
    it.run()
    return it


def test_a_claim_is_created_for_the_pod_and_belongs_to_it() -> None:
    it = world({})
    assert it.bound == {"default/web": "node-1"}, "it asks for no scratch space"
    claim = it.objects.find(PersistentVolumeClaim, KEY)
    assert claim is not None and claim.spec.storage_class_name == "scratch"
    assert [(owner.kind, owner.name) for owner in claim.metadata.owner_references or ()] == [("Pod", "sort")]


def test_the_pod_is_bound_when_the_claim_is() -> None:
    it = world({})
    claim = it.objects.find(PersistentVolumeClaim, KEY)
    assert claim is not None
    it.add(replace(claim, status=PersistentVolumeClaimStatus("Bound")))
    it.run()
    assert it.bound == {"default/web": "node-1", "default/sort": "node-1"}
    assert it.now_s == 0.0


def test_a_claim_that_is_not_served_in_time_costs_the_attempt_and_is_found_by_the_next() -> None:
    it = world({"timeoutS": 5})
    it.run(for_s=5)
    (note,) = [event.note for event in it.events if event.reason == "FailedScheduling"]
    assert note == ('running PreBind plugin "ScratchVolume": waiting for the scratch volume: context deadline exceeded')
    claim = it.objects.find(PersistentVolumeClaim, KEY)
    assert claim is not None
    it.add(replace(claim, status=PersistentVolumeClaimStatus("Bound")))
    it.run(for_s=20)
    assert it.bound["default/sort"] == "node-1"  # type: ignore[index]


def test_in_a_simulation_a_provisioner_serves_it() -> None:
    report = kubesched.simulate(objects_of("scratch-volume"), plugins=[SCRATCH]).to_dict()
    assert {pod["name"]: pod["node"] for pod in report["pods"]} == {"sort": "node-1", "web": "node-1"}
