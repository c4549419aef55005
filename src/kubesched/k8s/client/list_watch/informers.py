"""One shared informer per kind, made when it is first asked for, and started and stopped together.

    informers = Informers(client)
    informers.of(Node).add_handler(handler)
    informers.start()
    await informers.wait_for_sync("my-controller")
    informers.of(Node).lister.get("node-1")
    await informers.stop()

A kind that is asked for after the start is followed from the next `start` on. This is client-go's
`SharedInformerFactory`; `of` is its `InformerFor`. `scheduler_informers` has all kinds that a scheduler looks at, and
of pods only those that hold something or will.

Next: `reflector` for how a kind is followed, `informer` for what handlers can rely on.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self, cast

from kubesched.k8s.client.list_watch import exchange, log_lines
from kubesched.k8s.client.list_watch.exchange import K, KindDecoder, ListOptions, ListWatchApi, Pace, SetAside
from kubesched.k8s.client.list_watch.informer import InformerHandler, SharedInformer
from kubesched.k8s.client.list_watch.log_lines import WatchErrorHandler
from kubesched.k8s.client.list_watch.reflector import Reflector, ServerAbilities
from kubesched.k8s.client.resources import RESOURCES, Resource, resource_of
from kubesched.k8s.client.work_queue import end_all
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.partial_reading import StandIn, as_far_as_read, stand_in_for

REMIND_EVERY_S = 10.0


async def wait_for_cache_sync(
    informers: Iterable[SharedInformer[Any]], timeout_s: float | None = None, stopped: asyncio.Event | None = None
) -> bool:
    """Whether all were synced in time, and before `stopped`; without either it waits for as long as it takes."""
    informers = list(informers)
    waiting: list[asyncio.Future[Any]] = [asyncio.ensure_future(_all_synced(informers))]
    if stopped is not None:
        waiting.append(asyncio.ensure_future(stopped.wait()))
    try:
        await asyncio.wait(waiting, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for one in waiting:
            one.cancel()
    return all(informer.has_synced for informer in informers)


async def wait_for_named_cache_sync(
    name: str,
    informers: Iterable[SharedInformer[Any]],
    *,
    stopped: asyncio.Event | None = None,
    remind_every_s: float = REMIND_EVERY_S,
) -> bool:
    """The same, and the log says for whom it waits, what became of it, and now and then which kinds are still missing.
    To be cancelled is to be stopped."""
    informers = list(informers)
    began_s = time.monotonic()
    log_lines.WAITING_FOR_SYNC.write(name)
    try:
        while not await wait_for_cache_sync(informers, remind_every_s, stopped):
            if stopped is not None and stopped.is_set():
                log_lines.NOT_SYNCED.write(name)
                return False
            missing = [informer.name for informer in informers if not informer.has_synced]
            log_lines.STILL_WAITING.write(name, missing, round(time.monotonic() - began_s))
    except asyncio.CancelledError:
        log_lines.NOT_SYNCED.write(name)
        raise
    log_lines.SYNCED.write(name)
    return True


async def _all_synced(informers: list[SharedInformer[Any]]) -> None:
    for informer in informers:
        await informer.wait_synced()


@dataclass(frozen=True)
class InformerSettings:
    """`resync_s` 0 is never, as in kube-scheduler; `resyncs_s` has the kinds that differ. `transforms` may make objects
    of a kind smaller before they are kept. `stand_in` decides what an object counts as that cannot be read in full:
    what can be read of it, unless told otherwise. `watch_error_handler` gets errors instead of the log.
    `streams_lists` asks for lists as part of the watch where the server can do that; such a list is given up when it
    takes longer than `initial_events_within_s`, and any watch that does not begin in `answers_within_s`. `name` is what
    the log calls these informers."""

    list_options: Mapping[type[KubeObject], ListOptions] = field(default_factory=dict)
    transforms: Mapping[type[KubeObject], Callable[[Any], Any]] = field(default_factory=dict)
    resync_s: float = 0.0
    resyncs_s: Mapping[type[KubeObject], float] = field(default_factory=dict)
    stand_in: StandIn = as_far_as_read
    watch_error_handler: WatchErrorHandler | None = None
    page_size: int = exchange.PAGE_SIZE
    streams_lists: bool = True
    initial_events_within_s: float = 30.0
    answers_within_s: float = 60.0
    name: str = "informers"


class Informers:
    """`resources` have their informers from the beginning; others get theirs when they are asked for. `ahead` are lists
    that were asked for before, with the same options, by kind: the first list is taken from there if it comes."""

    def __init__(
        self,
        api: ListWatchApi,
        resources: Iterable[Resource] = (),
        settings: InformerSettings | None = None,
        pace: Pace | None = None,
        ahead: Mapping[type[KubeObject], Awaitable[bytes]] | None = None,
    ) -> None:
        self._api = api
        self._ahead = dict(ahead or {})
        self._settings = settings or InformerSettings()
        self._pace = pace or Pace()
        self._abilities = ServerAbilities(
            self._settings.streams_lists, self._settings.initial_events_within_s, self._settings.answers_within_s
        )
        self.set_aside = SetAside()
        """What could not be read, of all kinds."""
        self._informers: dict[type[KubeObject], SharedInformer[Any]] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._stopped = asyncio.Event()
        for resource in resources:
            self._make(resource)

    def of(self, kind: type[K], home: Resource | None = None) -> SharedInformer[K]:
        """The informer of a kind; made if this is the first to ask, and followed from the next `start` on. `home` says
        where the kind lives, for those that a scheduler does not watch. Raises `UnknownKindError` without."""
        informer = self._informers.get(kind)
        if informer is None:
            informer = self._make(resource_of(kind) if home is None else home)
        return cast("SharedInformer[K]", informer)

    def all(self) -> list[SharedInformer[Any]]:
        """Those that were asked for so far."""
        return list(self._informers.values())

    def add_handler(self, handler: InformerHandler) -> None:
        """For all kinds that were asked for so far. For one: `of(kind).add_handler`."""
        for informer in self._informers.values():
            informer.add_handler(handler)

    def start(self) -> None:
        """Follows the kinds that are not followed yet: call it again after asking for more. Needs a running event loop.
        After `stop` nothing is started any more."""
        if self._stopped.is_set():
            return
        for kind, informer in self._informers.items():
            if not informer.has_started:
                informer.has_started = True
                self._start(kind, informer)

    def _start(self, kind: type[KubeObject], informer: SharedInformer[Any]) -> None:
        resync_s = self._settings.resyncs_s.get(kind, self._settings.resync_s)
        reflector = Reflector(
            self._api,
            informer,
            KindDecoder(kind),
            list_options=self._settings.list_options.get(kind, ListOptions()),
            abilities=self._abilities,
            pace=self._pace,
            page_size=self._settings.page_size,
            resync_s=resync_s,
            name=self._settings.name,
            ahead=self._ahead.pop(kind, None),
        )
        self._tasks.append(asyncio.create_task(reflector.run(), name=f"reflector {informer.name}"))
        if resync_s > 0:
            resyncing = self._resync_forever(informer, resync_s)
            self._tasks.append(asyncio.create_task(resyncing, name=f"resync {informer.name}"))

    async def stop(self) -> None:
        """Ends all watches; what is known stays known. After this no handler is called any more, and who waits for the
        caches waits no longer."""
        self._stopped.set()
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

    async def wait_for_sync(self, name: str) -> bool:
        """Until all kinds that were started are synced; the log says who waits, and for what if it takes long. False
        if they were stopped before that."""
        started = [informer for informer in self._informers.values() if informer.has_started]
        return await wait_for_named_cache_sync(name, started, stopped=self._stopped)

    def _make(self, resource: Resource) -> SharedInformer[Any]:
        informer: SharedInformer[Any] = SharedInformer(
            resource, self._settings.transforms.get(resource.type), self.set_aside, self._settings.stand_in
        )
        informer.watch_error_handler = self._settings.watch_error_handler
        self._informers[resource.type] = informer
        return informer

    async def _resync_forever(self, informer: SharedInformer[Any], every_s: float) -> None:
        while True:
            await self._pace.sleep(every_s)
            log_lines.FORCING_RESYNC.write(self._settings.name)
            informer.resync()


UNFINISHED_PODS = ListOptions(field_selector="status.phase!=Succeeded,status.phase!=Failed")
"""A pod that finishes looks deleted from here."""
SCHEDULER_OPTIONS: Mapping[type[KubeObject], ListOptions] = {Pod: UNFINISHED_PODS}


def scheduler_informers(
    api: ListWatchApi,
    name: str,
    pace: Pace | None = None,
    more: Iterable[Resource] = (),
    ahead: Mapping[type[KubeObject], Awaitable[bytes]] | None = None,
) -> Informers:
    """`name` is what the log calls them; `more` are further kinds; `ahead` as in `Informers`."""
    settings = InformerSettings(list_options=SCHEDULER_OPTIONS, stand_in=stand_in_for, name=name)
    return Informers(api, (*RESOURCES, *more), settings, pace, ahead)
