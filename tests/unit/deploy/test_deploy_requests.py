"""Every request that kubesched makes is one that its roles allow, and every right to write is used by one."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Mapping

import msgspec
import pytest
from deploy_rights import CLUSTER, LEASE, READ, Right, is_allowed, right_for

from kubesched.framework.effects import BindPod, EvictPod, PatchPodStatus
from kubesched.k8s.client.event_forms import CoreV1Form, EventsV1Form
from kubesched.k8s.client.lease import LeaseLock, LeaseSpec
from kubesched.k8s.model.core import PodCondition
from kubesched.k8s.model.meta import ObjectMeta, PodKey
from kubesched.k8s.model.resource import AllocationResult, ResourceClaim
from kubesched.k8s.model.storage import ObjectReference
from kubesched.live.serving import server
from kubesched.live.serving.authentication import TOKEN_REVIEWS_PATH
from kubesched.live.writes.claim_writes import ClaimWrites, VolumeWrites
from kubesched.live.writes.object_writes import PodWrites
from kubesched.scheduler.plugins.dynamic_resources import effects as claims
from kubesched.scheduler.plugins.volume_binding.binding import BindVolumeToClaim, SelectNodeForClaim

POD, UID, CLAIM = PodKey("shop/web"), "u-1", "shop/gpu"
CONDITION = PodCondition(type="DisruptionTarget", status="True")
_ANSWER = {"metadata": {"name": "it", "namespace": "shop", "uid": UID, "resourceVersion": "1"}, "spec": {}}
_BY_GRANULAR_AUTHORIZATION = Right("resource.k8s.io", "resourceclaims/binding", "update")
"""No request has this path: the API server asks for it when resourceclaims/status is updated."""


class NotingRequester:
    """Says yes to everything, and notes what was asked."""

    def __init__(self) -> None:
        self.needed: list[Right] = []

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        timeout_s: float | None = None,
        gzip: bool = False,
    ) -> bytes:
        self.needed.append(right_for(method, path))
        return msgspec.json.encode(_ANSWER)


async def _write_everything(requests: NotingRequester) -> None:
    pods = PodWrites(requests, lambda key: None)
    await pods.bind(BindPod(POD, UID, "node-1"))
    await pods.patch_status(PatchPodStatus(POD, UID, CONDITION))
    await pods.evict(EvictPod(POD, UID, CONDITION, PodKey("shop/urgent")))
    volumes = VolumeWrites(requests)
    await volumes.bind_volume(BindVolumeToClaim("pv-1", "1", ObjectReference(name="data", namespace="shop"), True))
    await volumes.select_node(SelectNodeForClaim("shop", "data", "1", "node-1"))
    devices = ClaimWrites(requests)
    claim = ResourceClaim(metadata=ObjectMeta(namespace="shop"))
    await devices.create(claims.CreateResourceClaim(claim, "web-extended-resources-"))
    await devices.read(claims.ReadResourceClaim(CLAIM))
    await devices.add_finalizer(claims.AddClaimFinalizer(CLAIM, UID, "1"))
    await devices.update_status(claims.UpdateClaimStatus(CLAIM, UID, "1", AllocationResult(), ()))
    await devices.tell_pod(claims.PatchPodExtendedResourceClaimStatus(POD, UID, "gpu", ()))
    await devices.carry_out(claims.DeallocateClaim(CLAIM, UID, "1"))
    await devices.carry_out(claims.RemoveReservation(CLAIM, UID, "u-2"))
    await devices.carry_out(claims.DeleteResourceClaim(CLAIM, UID))


@functools.cache
def needed() -> list[Right]:
    """What the effects of the loop, events and questions about others ask for."""
    requests = NotingRequester()
    asyncio.run(_write_everything(requests))
    for form in (EventsV1Form("host"), CoreV1Form()):
        requests.needed += [right_for("POST", form.path("shop")), right_for("PATCH", f"{form.path('shop')}/web.1")]
    requests.needed += [right_for("POST", path) for path in (TOKEN_REVIEWS_PATH, server.PATH)]
    return requests.needed


def test_a_request_is_read_as_an_api_server_reads_it() -> None:
    assert right_for("POST", "/api/v1/namespaces/shop/pods/web/binding") == ("", "pods/binding", "create", "web")
    assert right_for("GET", "/api/v1/namespaces/shop") == ("", "namespaces", "get", "shop")
    assert right_for("PUT", "/apis/resource.k8s.io/v1/namespaces/shop/resourceclaims/gpu") == (
        "resource.k8s.io",
        "resourceclaims",
        "update",
        "gpu",
    )


def test_every_request_is_allowed() -> None:
    assert [right for right in needed() if not is_allowed(right, CLUSTER)] == []


def test_every_right_to_write_is_needed_by_a_request() -> None:
    writes = {right for right in CLUSTER if right.verb not in READ}
    used = {right._replace(name="") for right in needed()}
    assert writes - used == {_BY_GRANULAR_AUTHORIZATION}


def test_the_lease_is_read_created_and_renewed_with_no_right_to_spare() -> None:
    requests = NotingRequester()

    async def elect() -> None:
        lock = LeaseLock(requests, "kubesched-1_x", name="kubesched")
        await lock.get()
        await lock.create(LeaseSpec())
        await lock.update(LeaseSpec())

    asyncio.run(elect())
    assert set(requests.needed) == LEASE


@pytest.mark.parametrize(
    "right",
    [
        pytest.param(right_for("DELETE", "/api/v1/nodes/node-1"), id="remove a node"),
        pytest.param(right_for("GET", "/api/v1/namespaces/shop/secrets/key"), id="read a secret"),
        pytest.param(right_for("POST", "/api/v1/namespaces/shop/pods"), id="create a pod"),
        pytest.param(right_for("PUT", "/apis/coordination.k8s.io/v1/namespaces/x/leases/other"), id="take a lease"),
    ],
)
def test_what_no_scheduler_does_is_not_allowed(right: Right) -> None:
    assert not is_allowed(right, CLUSTER | LEASE)
