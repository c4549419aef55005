"""Device claims of pod groups: allocated once, used by all of its pods, and reserved for the group as a whole."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from group_worlds import ALPHA, GANGS, add, bound, group, group_world, members, node, pod, told
from msgspec.structs import replace

from kubesched.k8s.model import manifests
from kubesched.k8s.model.core import PodStatus
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.resource import ResourceClaim, ResourceClaimStatus
from kubesched.testing.world import World

CLAIMS = (*GANGS, "DRAWorkloadResourceClaims")
_API = "resource.k8s.io/v1"
_ENTRY = {"name": "net", "resourceClaimName": "shared"}
_GENERATED = {"name": "net", "resourceClaimTemplateName": "template"}
_STATUS = {"name": "net", "resourceClaimName": "shared"}


def _read(*objects: dict[str, Any]) -> list[KubeObject]:
    return list(manifests.from_dicts(objects).objects)


def _devices(*names: str, node_name: str = "", generation: int = 1) -> list[KubeObject]:
    """Devices of one node, or of all."""
    where = {"nodeName": node_name} if node_name else {"allNodes": True}
    pool = {"name": node_name or "fabric", "generation": generation, "resourceSliceCount": 1}
    slice_ = {
        "apiVersion": _API,
        "kind": "ResourceSlice",
        "metadata": {"name": f"slice-{node_name or 'all'}"},
        "spec": {"driver": "net.example.com", "pool": pool, "devices": [{"name": name} for name in names], **where},
    }
    return _read(slice_, {"apiVersion": _API, "kind": "DeviceClass", "metadata": {"name": "net"}})


def _claim(name: str = "shared", **metadata: Any) -> KubeObject:
    request = {"name": "r", "exactly": {"deviceClassName": "net", "allocationMode": "ExactCount", "count": 1}}
    (claim,) = _read(
        {
            "apiVersion": _API,
            "kind": "ResourceClaim",
            "metadata": {"name": name, "namespace": "d", "uid": f"uid-{name}", **metadata},
            "spec": {"devices": {"requests": [request]}},
        }
    )
    return claim


def _consumers(world: World, name: str = "shared") -> list[tuple[str, str, str]]:
    claim = world.objects.of(ResourceClaim)[f"d/{name}"]
    assert isinstance(claim, ResourceClaim)
    return [(one.api_group, one.resource, one.name) for one in claim.status.reserved_for or ()]


def _world(*gates: str, emulate: str | None = None) -> World:
    world = group_world(*gates, emulate=emulate)
    add(world, node("n-0"), node("n-1"), *_devices("d"), _claim())
    return world


def test_a_claim_of_the_group_is_reserved_for_it_once() -> None:
    world = _world(*CLAIMS)
    add(world, group(gang=6, resourceClaims=[_ENTRY]), *members(n=6, resourceClaims=[_ENTRY]))
    world.run(for_s=0.5)
    assert len(bound(world)) == 6
    assert _consumers(world) == [("scheduling.k8s.io", "podgroups", "g")]


def test_pods_that_come_later_use_it_too() -> None:
    world = _world(*CLAIMS)
    add(world, group(gang=2, resourceClaims=[_ENTRY]), *members(n=2, resourceClaims=[_ENTRY]))
    world.run(for_s=1)
    add(world, *members(n=4, resourceClaims=[_ENTRY])[2:])
    world.run(for_s=1)
    assert len(bound(world)) == 4
    assert _consumers(world) == [("scheduling.k8s.io", "podgroups", "g")]


@pytest.mark.parametrize(
    "entry", [{**_ENTRY, "name": "other"}, {"name": "net", "resourceClaimName": "another"}], ids=["name", "claim"]
)
def test_a_claim_that_the_group_names_in_other_words_is_reserved_for_each_pod(entry: dict[str, str]) -> None:
    world = _world(*CLAIMS)
    add(world, group(gang=2, resourceClaims=[entry]), *members(n=2, resourceClaims=[_ENTRY]))
    world.run(for_s=5)
    assert len(bound(world)) == 2
    assert sorted(_consumers(world)) == [("", "pods", "g-0"), ("", "pods", "g-1")]


def test_with_the_gate_off_it_is_reserved_for_each_pod() -> None:
    world = _world(*GANGS)
    add(world, group(gang=2, resourceClaims=[_ENTRY]), *members(n=2, resourceClaims=[_ENTRY]))
    world.run(for_s=5)
    assert len(bound(world)) == 2
    assert sorted(_consumers(world)) == [("", "pods", "g-0"), ("", "pods", "g-1")]


@pytest.mark.parametrize("emulate", [ALPHA, "1.37"])
def test_all_but_the_first_that_write_the_allocation_fail(emulate: str) -> None:
    world = _world(*CLAIMS, emulate=emulate)
    add(world, group(gang=3, resourceClaims=[_ENTRY]), *members(n=3, resourceClaims=[_ENTRY], priority=0))
    while len(bound(world)) < 3:
        world.run(for_s=0.5)
    notes = {event.note for event in world.events if event.reason == "FailedScheduling"}
    assert notes == {
        'running PreBind plugin "DynamicResources": claim d/shared got allocated elsewhere in the meantime'
    }
    assert _consumers(world) == [("scheduling.k8s.io", "podgroups", "g")]


def _on_devices_of_one_node(emulate: str | None) -> World:
    world = group_world(*CLAIMS, emulate=emulate)
    add(world, node("n-0", cpu="2"), node("n-1"), *_devices("d", node_name="n-0"), _claim())
    add(world, group(gang=3, resourceClaims=[_ENTRY]), *members(n=3, resourceClaims=[_ENTRY]))
    world.run(for_s=0.5)
    return world


def test_what_the_first_was_given_decides_where_the_others_can_go() -> None:
    world = _on_devices_of_one_node(None)
    assert bound(world) == {}
    assert "resourceclaim not available on the node" in told(world, "g-2")


def test_v1_36_does_not_ask_where_a_shared_device_is() -> None:
    world = _on_devices_of_one_node(ALPHA)
    assert len(_consumers(world)) == 1


def _generated_for(kind: str, name: str, uid: str) -> dict[str, Any]:
    owner = {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": kind, "name": name, "uid": uid, "controller": True}
    return {"ownerReferences": [owner]}


@pytest.mark.parametrize("owner", ["g", "h"])
def test_a_claim_from_a_template_belongs_to_the_group(owner: str) -> None:
    world = group_world(*CLAIMS)
    add(world, node("n-0"), *_devices("d"), _claim(**_generated_for("PodGroup", owner, "uid-g")))
    add(world, group(gang=2, resourceClaims=[_GENERATED]))
    known = msgspec.convert({"resourceClaimStatuses": [_STATUS]}, PodStatus)
    add(world, *[replace(one, status=known) for one in members(n=2, resourceClaims=[_GENERATED])])
    world.run(for_s=1)
    if owner == "g":
        assert len(bound(world)) == 2
        assert _consumers(world) == [("scheduling.k8s.io", "podgroups", "g")]
        return
    assert bound(world) == {}
    assert told(world, "g-0") == "gated"


def _allocated_for_the_group(node_name: str) -> KubeObject:
    """As an attempt left it behind that came no further."""
    claim = _claim()
    assert isinstance(claim, ResourceClaim)
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node_name]}]}
    result = {"request": "r", "driver": "net.example.com", "pool": node_name, "device": "d"}
    status = {
        "allocation": {"devices": {"results": [result]}, "nodeSelector": {"nodeSelectorTerms": [term]}},
        "reservedFor": [{"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": "uid-g"}],
    }
    return replace(claim, status=msgspec.convert(status, ResourceClaimStatus))


@pytest.mark.parametrize("n_placed", [0, 1])
def test_a_claim_that_keeps_the_group_away_is_given_up_unless_a_pod_of_it_has_a_node(n_placed: int) -> None:
    world = group_world(*CLAIMS)
    devices = [*_devices("d", node_name="n-0"), *_devices("d", node_name="n-1")[:1]]
    add(world, node("n-0", cpu="1"), node("n-1"), *devices, _allocated_for_the_group("n-0"))
    gang = group(gang=3, resourceClaims=[_ENTRY])
    add(world, replace(gang, metadata=replace(gang.metadata, uid="uid-g")))
    if n_placed:
        add(world, pod("early", "g", nodeName="n-0", resourceClaims=[_ENTRY]))
    add(world, *members(n=3, resourceClaims=[_ENTRY]))
    world.run(for_s=30)
    notes = [event.note for event in world.events if event.reason == "FailedScheduling"]
    is_given_up = any("ResourceClaim unreserved for PodGroup" in note for note in notes)
    assert is_given_up == (not n_placed)
    assert any("still not schedulable" in note for note in notes) == bool(n_placed)
    assert {bound(world).get(f"g-{i}") for i in range(3)} == ({None} if n_placed else {"n-1"})
