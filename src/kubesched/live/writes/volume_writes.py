"""What is written about volumes before a pod is bound: which claim a volume is for, which node a volume is made for.

Both are patches that hold only for the version they are based on, so that what else is in the object stays as it is.
"""

from __future__ import annotations

from typing import Any

import msgspec

from kubesched.framework.effects import Failed
from kubesched.k8s.client.errors import AnswerLost, ApiError, Unreachable
from kubesched.k8s.client.requester import MERGE_PATCH, Requester
from kubesched.k8s.client.resources import resource_of
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.storage import PersistentVolume, PersistentVolumeClaim
from kubesched.live.writes.outcomes import failed
from kubesched.scheduler.plugins.volume_binding.effects import BindVolumeToClaim, SelectNodeForClaim, Written

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
