"""What is written about claims, for devices and for volumes, before a pod is bound.

Claims for devices are updated whole, as kube-scheduler may: read, changed in the one place that the action is about,
and written back if they are still of the version that the action is based on. What we do not know of them stays as it
is.

Which claim a volume is for, and which node a volume is made for, are patches that hold only for the version they are
based on, so that what else is in the object stays as it is.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import msgspec

from kubesched.framework.effects import Done, Failed, Written
from kubesched.k8s.client.errors import AnswerLost, ApiError, Unreachable
from kubesched.k8s.client.requester import MERGE_PATCH, STRATEGIC_PATCH, Requester
from kubesched.k8s.client.resources import Resource, resource_of
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.resource import ResourceClaim
from kubesched.k8s.model.storage import PersistentVolume, PersistentVolumeClaim
from kubesched.live.writes.object_writes import failed, utc_now
from kubesched.scheduler.plugins.dynamic_resources.effects import (
    AddClaimFinalizer,
    ClaimConflict,
    ClaimRequest,
    CreateResourceClaim,
    DeallocateClaim,
    DeleteResourceClaim,
    PatchPodExtendedResourceClaimStatus,
    ReadResourceClaim,
    RemoveReservation,
    UpdateClaimStatus,
)
from kubesched.scheduler.plugins.volume_binding.binding import BindVolumeToClaim, SelectNodeForClaim

_encode = msgspec.json.Encoder().encode
_decode_meta = msgspec.json.Decoder(KubeObject).decode
_VOLUMES = resource_of(PersistentVolume)
_CLAIMS = resource_of(PersistentVolumeClaim)

BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
SELECTED_NODE = "volume.kubernetes.io/selected-node"


class VolumeWrites:
    """A lost answer counts as a failure: the pod is tried again, and finds the volume as it is then."""

    def __init__(self, requests: Requester) -> None:
        self._requests = requests

    async def bind_volume(self, action: BindVolumeToClaim) -> Written | Failed:
        claim = action.claim
        reference: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": claim.namespace,
            "name": claim.name,
            "uid": claim.uid,
        }
        if claim.resource_version:
            reference["resourceVersion"] = claim.resource_version
        metadata: dict[str, Any] = {"resourceVersion": action.resource_version}
        if action.is_ours:
            metadata["annotations"] = {BOUND_BY_CONTROLLER: "yes"}
        body = {"metadata": metadata, "spec": {"claimRef": reference}}
        return await self._patch(_VOLUMES.path(name=action.volume_name), body)

    async def select_node(self, action: SelectNodeForClaim) -> Written | Failed:
        metadata = {"resourceVersion": action.resource_version, "annotations": {SELECTED_NODE: action.node_name}}
        return await self._patch(_CLAIMS.path(action.namespace, action.claim_name), {"metadata": metadata})

    async def _patch(self, path: str, body: dict[str, Any]) -> Written | Failed:
        try:
            answer = await self._requests.request("PATCH", path, body=_encode(body), content_type=MERGE_PATCH)
        except (ApiError, Unreachable, AnswerLost) as problem:
            return failed(problem)
        return Written(_decode_meta(answer).metadata.resource_version)


_log = logging.getLogger("kubesched.writes")

_decode_claim = msgspec.json.Decoder(ResourceClaim).decode
_decode_raw = msgspec.json.Decoder(dict[str, Any]).decode
_PODS = resource_of(Pod)
_TRIES = 5
_MODIFIED = (
    'Operation cannot be fulfilled on resourceclaims.resource.k8s.io "%s": the object has been modified; '
    "please apply your changes to the latest version and try again"
)
"""In the API server's words: it would say so of a claim that changed just after it was read."""

RawClaim = dict[str, Any]
ClaimAnswer = ResourceClaim | ClaimConflict | Failed


class ClaimWrites:
    """`served_as` tells in which version the server has claims."""

    def __init__(
        self,
        requests: Requester,
        served_as: Callable[[], Resource] = lambda: resource_of(ResourceClaim),
        now: Callable[[], str] = utc_now,
    ) -> None:
        self._requests = requests
        self._served_as = served_as
        self._now = now

    # -- waited for ----------------------------------------------------------------------------------------------------

    async def create(self, action: CreateResourceClaim) -> ClaimAnswer:
        resource = self._served_as()
        raw: RawClaim = msgspec.to_builtins(action.claim)
        raw |= {"apiVersion": resource.api_version, "kind": "ResourceClaim"}
        raw["metadata"] = {**raw.get("metadata", {}), "generateName": action.generate_name}
        raw["metadata"].pop("name", None)
        path = resource.path(action.claim.namespace)
        return await self._answer(lambda: self._requests.request("POST", path, body=_encode(raw)))

    async def read(self, action: ReadResourceClaim) -> ClaimAnswer:
        return await self._answer(lambda: self._requests.request("GET", self._path(action.key)))

    async def add_finalizer(self, action: AddClaimFinalizer) -> ClaimAnswer:
        def change(raw: RawClaim) -> None:
            finalizers = raw["metadata"].setdefault("finalizers", [])
            if action.finalizer not in finalizers:
                finalizers.append(action.finalizer)

        return await self._answer(lambda: self._update(action.key, action.uid, action.resource_version, change))

    async def update_status(self, action: UpdateClaimStatus) -> ClaimAnswer:
        allocation = msgspec.to_builtins(action.allocation)
        allocation.setdefault("allocationTimestamp", self._now())

        def change(raw: RawClaim) -> None:
            reserved_for = msgspec.to_builtins(action.reserved_for)
            raw["status"] = {**raw.get("status", {}), "allocation": allocation, "reservedFor": list(reserved_for)}

        return await self._answer(
            lambda: self._update(action.key, action.uid, action.resource_version, change, subresource="status")
        )

    async def tell_pod(self, action: PatchPodExtendedResourceClaimStatus) -> Done | Failed:
        namespace, _, name = action.pod.partition("/")
        claim_status = {
            "resourceClaimName": action.resource_claim_name,
            "requestMappings": list(msgspec.to_builtins(action.request_mappings)),
        }
        body = _encode({"metadata": {"uid": action.uid}, "status": {"extendedResourceClaimStatus": claim_status}})
        path = _PODS.path(namespace, name, "status")
        try:
            await self._requests.request("PATCH", path, body=body, content_type=STRATEGIC_PATCH)
        except (ApiError, Unreachable, AnswerLost) as problem:
            return failed(problem)
        return Done()

    # -- not waited for ------------------------------------------------------------------------------------------------

    async def carry_out(self, action: ClaimRequest) -> None:
        try:
            await self._carry_out(action)
        except (ApiError, Unreachable, AnswerLost) as problem:
            if not (isinstance(problem, ApiError) and problem.is_not_found):
                fields = {"claim": action.key, "action": type(action).__name__, "err": str(problem)}
                _log.error("Could not update resource claim", extra={"fields": fields})

    async def _carry_out(self, action: ClaimRequest) -> None:
        if isinstance(action, DeallocateClaim):
            await self._update(action.key, action.uid, action.resource_version, _cleared, subresource="status")
        elif isinstance(action, RemoveReservation):
            await self._update_at_last(action.key, action.uid, lambda raw: _without_consumer(raw, action.consumer_uid))
        else:
            await self._delete(action)

    async def _delete(self, action: DeleteResourceClaim) -> None:
        def change(raw: RawClaim) -> None:
            finalizers = raw["metadata"].get("finalizers", [])
            raw["metadata"]["finalizers"] = [name for name in finalizers if name != action.finalizer]

        await self._update_at_last(action.key, action.uid, change, subresource="")
        body = _encode({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": action.uid}})
        await self._requests.request("DELETE", self._path(action.key), body=body)

    # -- read, change, write -------------------------------------------------------------------------------------------

    async def _update_at_last(
        self, key: str, uid: str, change: Callable[[RawClaim], None], subresource: str = "status"
    ) -> None:
        """Whatever else changes in between."""
        for left in reversed(range(_TRIES)):
            try:
                await self._update(key, uid, "", change, subresource=subresource)
                return
            except ApiError as problem:
                if not problem.is_conflict or not left:
                    raise

    async def _update(
        self, key: str, uid: str, version: str, change: Callable[[RawClaim], None], *, subresource: str = ""
    ) -> bytes:
        """Without a version: based on what is there now."""
        raw = _decode_raw(await self._requests.request("GET", self._path(key)))
        metadata = raw.get("metadata", {})
        name = key.rpartition("/")[2]
        if metadata.get("uid") != uid:
            raise ApiError(404, "NotFound", f'resourceclaims.resource.k8s.io "{name}" not found')
        if version and metadata.get("resourceVersion") != version:
            raise ApiError(409, "Conflict", _MODIFIED % name)
        change(raw)
        return await self._requests.request("PUT", self._path(key, subresource), body=_encode(raw))

    async def _answer(self, ask: Callable[[], Any]) -> ClaimAnswer:
        try:
            return _decode_claim(await ask())
        except ApiError as problem:
            return ClaimConflict(problem.message) if problem.is_conflict else failed(problem)
        except (Unreachable, AnswerLost) as problem:
            return failed(problem)

    def _path(self, key: str, subresource: str = "") -> str:
        namespace, _, name = key.partition("/")
        return self._served_as().path(namespace, name, subresource or None)


def _cleared(raw: RawClaim) -> None:
    raw["status"] = {}


def _without_consumer(raw: RawClaim, consumer_uid: str) -> None:
    status = raw.setdefault("status", {})
    status["reservedFor"] = [entry for entry in status.get("reservedFor", []) if entry.get("uid") != consumer_uid]
