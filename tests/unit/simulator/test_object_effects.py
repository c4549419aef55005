"""What plugins write, on typed objects: created, replaced, patched, and refused as an API server refuses it."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.framework.effects import Failed, PatchObject, WriteObject, Written
from kubesched.k8s.model.core import Node, Service
from kubesched.k8s.model.storage import PersistentVolumeClaim
from kubesched.k8s.workloads.actions import SeededNames
from kubesched.simulator.api_model import ObjectEffects
from kubesched.simulator.virtual.store import ClusterStore, VirtualClock

CLAIM = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}


class Scene:
    def __init__(self) -> None:
        names = SeededNames(1)
        self.store = ClusterStore(VirtualClock(0.0), names)
        self.writes = ObjectEffects(self.store, names.name)

    def write(self, name: str = "data", **metadata: Any) -> Written | Failed:
        named = {"name": name} if name else {}
        return self.writes.write(WriteObject({**CLAIM, "metadata": {**named, **metadata}}))

    def patch(self, patch: dict[str, Any], key: str = "default/data", **fields: Any) -> Written | Failed:
        return self.writes.patch(PatchObject("v1", "PersistentVolumeClaim", key, patch, **fields))

    def claim(self, key: str = "default/data") -> PersistentVolumeClaim:
        found = self.store.find(PersistentVolumeClaim, key)
        assert found is not None
        return found


def test_an_object_is_created_once() -> None:
    it = Scene()
    answer = it.write(labels={"a": "1"})
    claim = it.claim()
    assert answer == Written(claim.metadata.resource_version, "data", claim.metadata.uid)
    assert it.write() == Failed('persistentvolumeclaims "data" already exists', reason="AlreadyExists")


def test_a_name_is_made_where_one_is_asked_for() -> None:
    it = Scene()
    first, second = it.write("", generateName="data-"), it.write("", generateName="data-")
    assert isinstance(first, Written) and isinstance(second, Written)
    assert first.name.startswith("data-") and first.name != second.name


def test_only_the_version_that_is_known_is_replaced() -> None:
    it = Scene()
    it.write(labels={"a": "1"})
    version = it.claim().metadata.resource_version
    assert isinstance(it.write(labels={"b": "2"}, resourceVersion=version), Written)
    assert it.claim().metadata.labels == {"b": "2"}
    late = it.write(labels={"c": "3"}, resourceVersion=version)
    assert isinstance(late, Failed) and late.reason == "Conflict"
    nobody = it.write("other", resourceVersion=version)
    assert nobody == Failed('persistentvolumeclaims "other" not found', is_gone=True, reason="NotFound")


def test_a_patch_changes_what_it_names() -> None:
    it = Scene()
    it.write(labels={"a": "1", "b": "2"})
    assert isinstance(it.patch({"metadata": {"labels": {"b": None, "c": "3"}}}), Written)
    assert it.claim().metadata.labels == {"a": "1", "c": "3"}


@pytest.mark.parametrize("subresource", ["", "status"])
def test_the_status_is_a_part_of_its_own(subresource: str) -> None:
    it = Scene()
    it.write()
    it.patch({"metadata": {"labels": {"a": "1"}}, "status": {"phase": "Bound"}}, subresource=subresource)
    is_status = bool(subresource)
    assert it.claim().status.phase == ("Bound" if is_status else "")
    assert it.claim().metadata.labels == (None if is_status else {"a": "1"})


@pytest.mark.parametrize("field", ["uid", "resourceVersion"])
def test_a_patch_may_be_meant_for_one_object_only(field: str) -> None:
    it = Scene()
    it.write()
    answer = it.patch({"metadata": {field: "other", "labels": {"a": "1"}}})
    assert isinstance(answer, Failed) and answer.reason == "Conflict"
    assert it.claim().metadata.labels is None


def test_what_is_not_there_is_told() -> None:
    it = Scene()
    assert it.patch({}) == Failed('persistentvolumeclaims "data" not found', is_gone=True, reason="NotFound")
    unknown = it.writes.write(WriteObject({"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": "f"}}))
    assert isinstance(unknown, Failed) and unknown.message == 'no matches for kind "Foo" in version "example.com/v1"'
    slices = it.writes.patch(PatchObject("resource.k8s.io/v1", "DeviceClass", "gpu", {}))
    assert isinstance(slices, Failed) and slices.message == 'deviceclasses.resource.k8s.io "gpu" not found'


def test_a_manifest_that_cannot_be_read_is_invalid() -> None:
    it = Scene()
    answer = it.writes.write(WriteObject({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "spec": 3}))
    assert isinstance(answer, Failed) and answer.reason == "Invalid"
    assert it.store.find(Node, "n") is None and it.store.find(Service, "default/n") is None
