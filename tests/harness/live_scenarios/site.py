"""Where a scenario takes place: one server, one namespace, one scheduler's name; what was made, and what became of it.

Next: `pod_follower` for how pods are watched, `placement` for the first scenarios.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from harness.live_scenarios import manifests
from harness.live_scenarios.manifests import Manifest
from harness.live_scenarios.pod_follower import PodFollower
from kubesched.k8s.client.errors import ApiError
from kubesched.k8s.client.rest import RestClient

AT_ONCE = 32
"""Requests under way at a time."""
PAGE_SIZE = 500
LOOK_AGAIN_S = 0.1

_encode = msgspec.json.Encoder().encode


class ScenarioFailedError(Exception):
    """Something is not as it should be; one line for each finding."""


@dataclass(frozen=True, slots=True)
class ScenarioSize:
    n_nodes: int = 1000
    n_pods: int = 2000


class Site:
    """`patience_s` is how long the scheduler may take until nothing is left to do."""

    def __init__(
        self, client: RestClient, run_id: str, scheduler_name: str, size: ScenarioSize, patience_s: float = 60.0
    ) -> None:
        self.client = client
        self.run_id = run_id
        self.scheduler_name = scheduler_name
        self.size = size
        self.patience_s = patience_s
        self.victims_are_told_names = False
        """Victims are told the name of their preemptor, as older schedulers did, and not its uid."""
        self.namespace = f"kubesched-{run_id}"
        self.pods = PodFollower(client, self.namespace)
        self.nodes: dict[str, Manifest] = {}

    # -- making --------------------------------------------------------------------------------------------------------

    async def open(self) -> None:
        await self.create(manifests.marked("Namespace", self.namespace, self.run_id))
        try:
            # Servers that give every pod an account refuse pods until it is there.
            await self.create(manifests.marked("ServiceAccount", "default", self.run_id))
        except ApiError as problem:
            if not (problem.is_already_exists or problem.is_not_found):
                raise
        await self.pods.start()

    async def create(self, manifest: Manifest) -> None:
        path = manifests.collection(manifest["kind"], self.namespace)
        await self.client.request("POST", path, body=_encode(manifest))

    async def create_all(self, wanted: Iterable[Manifest]) -> None:
        """Many at once, in this order as far as that goes."""
        rest = iter(wanted)

        async def create_some() -> None:
            for manifest in rest:
                if manifest["kind"] == "Pod":
                    self.pods.expect(manifest["metadata"]["name"])
                await self.create(manifest)

        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(create_some())

    async def add_nodes(self, *, cpu: int, prefix: str = "node") -> None:
        """As many as the size says, in zones of equal size."""
        n_zones = self.n_zones
        made = [
            manifests.node(f"{self.run_id}-{prefix}-{i}", self.run_id, zone=f"zone-{i % n_zones}", cpu=cpu)
            for i in range(self.size.n_nodes)
        ]
        self.nodes.update((one["metadata"]["name"], one) for one in made)
        await self.create_all(made)

    @property
    def n_zones(self) -> int:
        return next(n for n in (4, 3, 5, 2, 7, 1) if self.size.n_nodes % n == 0)

    def pod(self, name: str, **more: Any) -> Manifest:
        return manifests.pod(name, self.run_id, self.scheduler_name, **more)

    # -- looking -------------------------------------------------------------------------------------------------------

    async def listed(self, kind: str) -> list[dict[str, Any]]:
        """All objects of a kind that this run made, or of its namespace where it did not make them itself."""
        params = {"limit": str(PAGE_SIZE)}
        if kind != "Event":
            params["labelSelector"] = f"{manifests.RUN_KEY}={self.run_id}"
        items: list[dict[str, Any]] = []
        while True:
            path = manifests.collection(kind, self.namespace)
            page = msgspec.json.decode(await self.client.request("GET", path, params=params))
            items += page["items"]
            token = page["metadata"].get("continue")
            if not token:
                return items
            params["continue"] = token

    async def until(self, condition: Callable[[], object], what: str) -> None:
        """Until what is known about pods makes it true."""
        if not await self.pods.until(condition, self.patience_s):
            raise ScenarioFailedError(f"not within {self.patience_s:g} s: {what}; {self.pods.describe()}")

    async def settle(self, find_problems: Callable[[], Awaitable[list[str]]], within_s: float = 10.0) -> None:
        """For what is written a little later: asks again until there are no problems left."""
        end_s = time.monotonic() + within_s
        while problems := await find_problems():
            if time.monotonic() >= end_s:
                raise ScenarioFailedError("\n".join(problems))
            await asyncio.sleep(LOOK_AGAIN_S)

    # -- taking away ---------------------------------------------------------------------------------------------------

    async def close(self) -> None:
        """Takes away all that was made."""
        await self.pods.stop()
        here = {"gracePeriodSeconds": "0"}
        for kind in ("Pod", "PersistentVolumeClaim"):
            await self._delete(manifests.collection(kind, self.namespace), here)
        ours = {"labelSelector": f"{manifests.RUN_KEY}={self.run_id}"}
        for kind in ("PersistentVolume", "StorageClass", "PriorityClass", "Node"):
            await self._delete(manifests.collection(kind), ours)
        await self._delete(f"{manifests.collection('Namespace')}/{self.namespace}", {})

    async def _delete(self, path: str, params: dict[str, str]) -> None:
        try:
            await self.client.request("DELETE", path, params=params, timeout_s=120.0)
        except ApiError as problem:
            if not problem.is_not_found:
                raise
