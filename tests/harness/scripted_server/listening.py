"""Following a scripted server in a test: informers that never wait, and a handler that checks what it is told.

async with ScriptedServer() as server, following(server, Pod) as listened:
    await until(lambda: listened.informers.has_synced)
    assert listened.heard == [("put", "default/a")]
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from harness.scripted_server.server import ScriptedServer
from kubesched.k8s.client.list_watch import Informers, InformerSettings, Pace
from kubesched.k8s.client.list_watch.informers import UNFINISHED_PODS
from kubesched.k8s.client.resources import resource_of
from kubesched.k8s.client.rest import RestClient
from kubesched.k8s.client.target import ServerTarget
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.partial_reading import stand_in_for

LONGEST_SKIPPED_S = 100.0


class SkippedSleeps:
    """Sleeps that are over at once, and remembered. Longer ones never end: what waits that long is not under test."""

    def __init__(self, longest_s: float = LONGEST_SKIPPED_S) -> None:
        self.delays_s: list[float] = []
        self._longest_s = longest_s

    async def __call__(self, delay_s: float) -> None:
        self.delays_s.append(delay_s)
        if delay_s > self._longest_s:
            await asyncio.Event().wait()
        await asyncio.sleep(0)


class ConsistentHandler:
    """Remembers what it was told, and complains of what an informer must not tell."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, str]] = []
        self.known: dict[tuple[type[KubeObject], str], KubeObject] = {}
        self.complaints: list[str] = []

    def put(self, item: KubeObject) -> None:
        self.heard.append(("put", item.key))
        old = self.known.get((type(item), item.key))
        if old is not None and old.metadata.uid != item.metadata.uid:
            self.complaints.append(f"{item.key} was put with a new uid before the old one was removed")
        if old is not None and old.metadata.resource_version == item.metadata.resource_version:
            self.complaints.append(f"{item.key} was put twice in version {item.metadata.resource_version}")
        self.known[type(item), item.key] = item

    def remove(self, item: KubeObject) -> None:
        self.heard.append(("remove", item.key))
        if self.known.pop((type(item), item.key), None) is None:
            self.complaints.append(f"{item.key} was removed and never put")


@dataclass(slots=True)
class Listened:
    """What `following` gives."""

    informers: Informers
    handler: ConsistentHandler
    client: RestClient
    sleeps: SkippedSleeps = field(default_factory=SkippedSleeps)

    @property
    def heard(self) -> list[tuple[str, str]]:
        return self.handler.heard


@asynccontextmanager
async def following(
    server: ScriptedServer,
    *kinds: type[KubeObject],
    longest_skipped_s: float = LONGEST_SKIPPED_S,
    **settings: Any,
) -> AsyncIterator[Listened]:
    """Informers of these kinds, started; `settings` are those of `InformerSettings`. Finished pods look deleted and
    damaged objects count as for a scheduler, unless they say otherwise."""
    sleeps = SkippedSleeps(longest_skipped_s)
    client = RestClient(ServerTarget(url=server.url), qps=0, sleep=sleeps)
    informers = Informers(
        client,
        [resource_of(kind) for kind in kinds],
        InformerSettings(**{"list_options": {Pod: UNFINISHED_PODS}, "stand_in": stand_in_for, **settings}),
        Pace(sleep=sleeps, dice=random.Random(1)),
    )
    handler = ConsistentHandler()
    informers.add_handler(handler)
    try:
        async with informers:
            yield Listened(informers, handler, client, sleeps)
    finally:
        await client.close()
