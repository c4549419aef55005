"""Keeps the cluster up to date: list and watch every kind that a plugin may look at, as the scheduler does.

Next: `kubesched.k8s.client.list_watch` for how a kind is followed.
"""

from __future__ import annotations

import logging

import msgspec

from kubesched.k8s.client.errors import ApiError
from kubesched.k8s.client.list_watch import Pace, scheduler_informers
from kubesched.k8s.client.resources import resource_of
from kubesched.k8s.client.rest import RestClient
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import KubeObject, PodKey
from kubesched.scheduler.cluster import Cluster

NAME = "kubesched-extender"

_log = logging.getLogger("kubesched.extender")
_decode_pod = msgspec.json.Decoder(Pod).decode
_PODS = resource_of(Pod)


class ClusterFollower:
    """An informer's handler. `start` it, wait for `synced`, and `stop` it at the end."""

    def __init__(self, cluster: Cluster, client: RestClient, pace: Pace | None = None) -> None:
        self._cluster = cluster
        self.client = client
        self._informers = scheduler_informers(client, NAME, pace)

    @property
    def has_synced(self) -> bool:
        return self._informers.has_synced

    def start(self) -> None:
        self._informers.add_handler(self)
        self._informers.start()

    async def synced(self) -> None:
        """Until everything was listed once."""
        await self._informers.wait_for_sync(NAME)

    async def stop(self) -> None:
        await self._informers.stop()

    async def read_pod(self, key: PodKey) -> Pod | None:
        """As the API server has it; None if it has none. Raises what the client raises."""
        namespace, _, name = key.partition("/")
        try:
            return _decode_pod(await self.client.request("GET", _PODS.path(namespace, name)))
        except ApiError as answer:
            if answer.is_not_found:
                return None
            raise

    # -- facts ---------------------------------------------------------------------------------------------------------

    def put(self, item: KubeObject) -> None:
        try:
            self._cluster.put(item)
        except Exception as problem:  # noqa: BLE001  one object that cannot be used must not stop the others
            fields = {"kind": type(item).__name__, "object": item.key, "err": str(problem)}
            _log.error("Could not take in object", extra={"fields": fields})

    def remove(self, item: KubeObject) -> None:
        self._cluster.remove(item)
