"""Devices on the page: how many a node offers, how many are taken, and what a claim asks for."""

from __future__ import annotations

from typing import Any

import msgspec
from shown_cluster import NOW_S, ShownCluster, node, pod

from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.resource import ResourceClaim, ResourceSlice
from kubesched.playground.web.stream import StateReader, changes, claim_row, device_rows, pod_row

DRIVER = "gpu.example.com"


def device_slice(node_name: str, *devices: str, generation: int = 1) -> ResourceSlice:
    manifest = {
        "metadata": {"name": f"{node_name}-{generation}"},
        "spec": {
            "driver": DRIVER,
            "pool": {"name": node_name, "generation": generation},
            "nodeName": node_name,
            "devices": [{"name": device} for device in devices],
        },
    }
    return msgspec.convert(manifest, ResourceSlice)


def claim(name: str, *allocated: tuple[str, str], **request: Any) -> ResourceClaim:
    asked = {"name": "r", "exactly": {"deviceClassName": DRIVER, "count": 1, **request}}
    results = [{"request": "r", "driver": DRIVER, "pool": pool, "device": device} for pool, device in allocated]
    manifest: dict[str, Any] = {
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"devices": {"requests": [asked]}},
    }
    if results:
        manifest["status"] = {"allocation": {"devices": {"results": results}}}
    return msgspec.convert(manifest, ResourceClaim)


def test_devices_are_counted_by_node_and_driver() -> None:
    slices = [device_slice("a", "gpu-0", "gpu-1"), device_slice("b", "gpu-0")]
    assert device_rows(slices, [claim("c", ("a", "gpu-1")), claim("waiting")]) == {
        "a": {DRIVER: [1, 2]},
        "b": {DRIVER: [0, 1]},
    }


def test_only_the_newest_generation_of_a_pool_counts() -> None:
    slices = [device_slice("a", "gpu-0", "gpu-1"), device_slice("a", "gpu-0", generation=2)]
    assert device_rows(slices, []) == {"a": {DRIVER: [0, 1]}}


def test_a_claim_is_shown_with_what_it_asks_for_and_what_it_got() -> None:
    assert claim_row(claim("c", count=2)) == {"asks": [f"2 × {DRIVER}"]}
    assert claim_row(claim("c", ("a", "gpu-0"), allocationMode="All")) == {
        "asks": [f"all {DRIVER}"],
        "devices": ["a/gpu-0"],
    }


def test_a_pod_names_the_claim_that_was_made_for_it() -> None:
    body = msgspec.to_builtins(pod("p"))
    body["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]
    assert "claims" not in pod_row(msgspec.convert(body, Pod)), "as long as it is not made"
    body["status"]["resourceClaimStatuses"] = [{"name": "gpu", "resourceClaimName": "p-gpu-x7"}]
    assert pod_row(msgspec.convert(body, Pod))["claims"] == ["shop/p-gpu-x7"]


def test_an_allocation_is_a_change_of_its_node_and_its_claim_alone() -> None:
    cluster = ShownCluster()
    cluster.put(node("a"), node("b"))
    cluster.slices = [device_slice("a", "gpu-0"), device_slice("b", "gpu-0")]
    cluster.claims = [claim("c")]
    reader = StateReader(cluster.sources(), lambda: NOW_S)
    before = reader.read()
    assert changes(before, reader.read()) == {}
    cluster.claims = [claim("c", ("a", "gpu-0"))]
    found = changes(before, reader.read())
    assert (list(found), list(found["devices"]["put"])) == (["claims", "devices"], ["a"])
