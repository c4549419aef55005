"""A stand-in for the volume controller, for servers without one: it completes what the scheduler has begun.

A new volume becomes available. A volume that is for a claim (`claimRef`) and a claim that waits become bound to each
other. It knows nothing else: neither provisioning nor reclaiming.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import msgspec

from kubesched.k8s.client.errors import ApiError
from kubesched.k8s.client.list_watch import Informers
from kubesched.k8s.client.requester import MERGE_PATCH
from kubesched.k8s.client.resources import resource_of
from kubesched.k8s.client.rest import RestClient
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.storage import ObjectReference, PersistentVolume, PersistentVolumeClaim

_VOLUMES, _CLAIMS = resource_of(PersistentVolume), resource_of(PersistentVolumeClaim)
_ANNOTATIONS = {"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"}


class VolumeControllerStandIn:
    def __init__(self, client: RestClient) -> None:
        self._client = client
        self._informers = Informers(client, [_VOLUMES, _CLAIMS])
        self._informers.add_handler(self)
        self._changed: asyncio.Queue[PersistentVolume] = asyncio.Queue()

    def put(self, item: KubeObject) -> None:
        if isinstance(item, PersistentVolume) and item.status.phase != _phase(item):
            self._changed.put_nowait(item)

    def remove(self, item: KubeObject) -> None:
        """Nothing is reclaimed."""

    async def run(self) -> None:
        async with self._informers:
            while True:
                volume = await self._changed.get()
                with contextlib.suppress(ApiError):  # gone, or changed: then it comes again
                    if volume.spec.claim_ref is None:
                        await self._tell_phase(volume)
                    else:
                        await self._complete(volume, volume.spec.claim_ref)

    async def _complete(self, volume: PersistentVolume, reference: ObjectReference) -> None:
        at = _CLAIMS.path(reference.namespace, reference.name)
        claim = msgspec.json.decode(await self._client.request("GET", at), type=PersistentVolumeClaim)
        if claim.metadata.uid != reference.uid or claim.spec.volume_name not in (None, "", volume.metadata.name):
            return
        named = {"metadata": {"annotations": _ANNOTATIONS}, "spec": {"volumeName": volume.metadata.name}}
        await self._patch(at, named)
        await self._patch(f"{at}/status", {"status": {"phase": "Bound"}})
        await self._tell_phase(volume)

    async def _tell_phase(self, volume: PersistentVolume) -> None:
        at = _VOLUMES.path(None, volume.metadata.name, "status")
        await self._patch(at, {"status": {"phase": _phase(volume)}})

    async def _patch(self, path: str, body: dict[str, Any]) -> None:
        await self._client.request("PATCH", path, body=msgspec.json.encode(body), content_type=MERGE_PATCH)


def _phase(volume: PersistentVolume) -> str:
    """The one it should be in."""
    return "Available" if volume.spec.claim_ref is None else "Bound"


@contextlib.asynccontextmanager
async def volume_controller(client: RestClient) -> AsyncIterator[None]:
    """As long as this lasts, chosen volumes become bound."""
    running = asyncio.create_task(VolumeControllerStandIn(client).run(), name="volume controller")
    try:
        yield
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
