"""One shared informer per kind that a scheduler watches, started and stopped together.

    informers = Informers(client)
    informers.add_handler(handler)              # for all kinds
    informers.start()
    await informers.wait_for_sync("scheduler")
    informers.of(Node).lister.get("node-1")
    await informers.stop()

Next: `reflector` for how a kind is followed, `informer` for what handlers can rely on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self, cast

from kubesched.client.ending_tasks import end_all
from kubesched.client.list_watch import requests, sync
from kubesched.client.list_watch.decoding import K, KindDecoder
from kubesched.client.list_watch.informer import InformerHandler, SharedInformer
from kubesched.client.list_watch.pace import Pace
from kubesched.client.list_watch.reflector import Reflector, ServerAbilities
from kubesched.client.list_watch.requests import ListWatchApi, Narrowing
from kubesched.client.list_watch.set_aside import SetAside
from kubesched.client.resources import RESOURCES, Resource
from kubesched.model.core import Pod
from kubesched.model.meta import KubeObject

UNFINISHED_PODS = Narrowing(field_selector="status.phase!=Succeeded,status.phase!=Failed")
"""Pods that hold something or will; a pod that finishes looks deleted from here."""


@dataclass(frozen=True)
class InformerSettings:
    """`resync_s` 0 is never, as in kube-scheduler. `transforms` may make objects of a kind smaller before they are
    kept. `streams_lists` asks for lists as part of the watch where the server can do that; such a list is given up
    when it takes longer than `initial_events_within_s`, and any watch that does not begin in `answers_within_s`."""

    narrowings: Mapping[type[KubeObject], Narrowing] = field(default_factory=lambda: {Pod: UNFINISHED_PODS})
    transforms: Mapping[type[KubeObject], Callable[[Any], Any]] = field(default_factory=dict)
    resync_s: float = 0.0
    page_size: int = requests.PAGE_SIZE
    streams_lists: bool = True
    initial_events_within_s: float = 30.0
    answers_within_s: float = 60.0


class Informers:
    def __init__(
        self,
        api: ListWatchApi,
        resources: Iterable[Resource] = RESOURCES,
        settings: InformerSettings | None = None,
        pace: Pace | None = None,
    ) -> None:
        self._api = api
        self._settings = settings or InformerSettings()
        self._pace = pace or Pace()
        self._abilities = ServerAbilities(
            self._settings.streams_lists, self._settings.initial_events_within_s, self._settings.answers_within_s
        )
        self.set_aside = SetAside()
        """What could not be read, of all kinds."""
        self._informers: dict[type[KubeObject], SharedInformer[Any]] = {
            resource.type: SharedInformer(resource, self._settings.transforms.get(resource.type), self.set_aside)
            for resource in resources
        }
        self._tasks: list[asyncio.Task[None]] = []

    def of(self, kind: type[K]) -> SharedInformer[K]:
        return cast("SharedInformer[K]", self._informers[kind])

    def all(self) -> list[SharedInformer[Any]]:
        return list(self._informers.values())

    def add_handler(self, handler: InformerHandler) -> None:
        """For all kinds. For some: `of(kind).add_handler`."""
        for informer in self._informers.values():
            informer.add_handler(handler)

    def start(self) -> None:
        """Needs a running event loop. Starting twice is starting once."""
        if self._tasks:
            return
        for kind, informer in self._informers.items():
            reflector = self._reflector(kind, informer)
            self._tasks.append(asyncio.create_task(reflector.run(), name=f"reflector {informer.name}"))
            if self._settings.resync_s > 0:
                resyncing = self._resync_forever(informer)
                self._tasks.append(asyncio.create_task(resyncing, name=f"resync {informer.name}"))

    async def stop(self) -> None:
        """Ends all watches; what is known stays known. After this no handler is called any more."""
        tasks, self._tasks = self._tasks, []
        await end_all(tasks)

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.stop()

    @property
    def has_synced(self) -> bool:
        return all(informer.has_synced for informer in self._informers.values())

    async def wait_for_sync(self, name: str) -> None:
        """Until all kinds are synced; the log says who waits, and for what if it takes long."""
        await sync.wait_for_named_cache_sync(name, self._informers.values())

    def _reflector(self, kind: type[KubeObject], informer: SharedInformer[Any]) -> Reflector[Any]:
        return Reflector(
            self._api,
            informer,
            KindDecoder(kind),
            narrowing=self._settings.narrowings.get(kind, Narrowing()),
            abilities=self._abilities,
            pace=self._pace,
            page_size=self._settings.page_size,
        )

    async def _resync_forever(self, informer: SharedInformer[Any]) -> None:
        while True:
            await self._pace.sleep(self._settings.resync_s)
            informer.resync()
