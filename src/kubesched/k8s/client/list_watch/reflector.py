"""How one kind is followed: list, then watch from the list's version on, and again after every interruption.

- The first list may come from the server's cache (version 0); after 410 Gone it must be current (no version).
- Where the server can, list and watch are one request: a watch that first tells everything (`sendInitialEvents`).
- A watch that ends or breaks is resumed from the last version heard of; bookmarks keep that version young.
- Attempts that fail at once are repeated ever more slowly (`RetryBackoff`); `log_lines` says what is wrong.
- A kind that the server lacks is tried in its older versions and then left alone for a while.

It never ends by itself: cancel its task. Next: `informer`, which takes what is found here.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Generic

import msgspec

from kubesched.k8s.client.errors import AnswerLost, ApiError, ClientConfigError, Unreachable
from kubesched.k8s.client.list_watch import exchange, log_lines
from kubesched.k8s.client.list_watch.exchange import (
    AnswerSignal,
    K,
    KindDecoder,
    Listing,
    ListOptions,
    ListWatchApi,
    Pace,
    RetryBackoff,
    Unread,
)
from kubesched.k8s.client.list_watch.informer import SharedInformer
from kubesched.k8s.client.list_watch.log_lines import TroubleLog, VeryShortWatchError, WatchError

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
MISSING_RETRY_S = 300.0
"""A kind that was missing may come with an upgrade of the server."""

NO_OBJECT = "object does not implement the Object interfaces"
CHANGES = ("ADDED", "MODIFIED", "DELETED")

HASTY_S = 1.0
"""An attempt that ended sooner is followed by a pause."""


@dataclass(slots=True)
class ServerAbilities:
    """What the server turned out to be able to do; shared by the reflectors of one server."""

    streams_lists: bool = True
    initial_events_within_s: float = 30.0
    answers_within_s: float = 60.0
    answers: AnswerSignal = field(default_factory=AnswerSignal)
    """Given whenever it answers one of them."""


class Reflector(Generic[K]):
    def __init__(
        self,
        api: ListWatchApi,
        informer: SharedInformer[K],
        decoder: KindDecoder[K],
        *,
        list_options: ListOptions,
        abilities: ServerAbilities,
        pace: Pace,
        page_size: int = exchange.PAGE_SIZE,
        resync_s: float = 0.0,
        name: str = "informers",
        ahead: Awaitable[bytes] | None = None,
    ) -> None:
        """`resync_s` and `name` are for the log alone. `ahead` is a list that was asked for before."""
        self._api = api
        self._informer = informer
        self._decoder = decoder
        self._list_options = list_options
        self._abilities = abilities
        self._pace = pace
        self._page_size = page_size
        self._backoff = RetryBackoff(pace)
        self._resync = log_lines.go_duration(resync_s)
        self._name = name
        self._ahead = ahead
        self._trouble = TroubleLog()
        self._on_error = informer.watch_error_handler or self._trouble.report
        self._versions = tuple(informer.resource.versions())
        self._must_list = True
        self._is_listing = False
        """Whether that was said, and nothing went wrong since."""
        self._version = exchange.FROM_CACHE
        self._doing = "list"
        self._opened_at_s: float | None = None

    async def run(self) -> None:
        log_lines.STARTING.write(self._type, self._resync, self._name)
        try:
            await self._follow_forever()
        finally:
            log_lines.STOPPING.write(self._type, self._resync, self._name)

    async def _follow_forever(self) -> None:
        while True:
            self._opened_at_s = None
            try:
                await self._follow()
                await self._after_end()
            except ApiError as problem:
                await self._after_refusal(problem)
            except (Unreachable, AnswerLost, ClientConfigError) as problem:
                await self._after_trouble(problem)
            except msgspec.DecodeError as problem:
                self._must_list = True  # the same line would come again
                await self._after_trouble(problem)
            except Exception:  # noqa: BLE001 - a bug here must not leave the scheduler blind
                log_lines.FOLLOWING_FAILED.write(self._name, self._type, exc_info=True)
                self._must_list = True
                await self._backoff.wait()

    async def _follow(self) -> None:
        """Until the server ends the watch."""
        if self._must_list and not self._is_listing:
            self._is_listing = True
            log_lines.LISTING.write(self._type, self._name)
        if (listing := await self._list_ahead()) is not None:
            await self._listed(listing)
        if self._must_list and self._abilities.streams_lists:
            await self._list_and_watch_in_one()
            return
        if self._must_list:
            await self._list()
        await self._watch()

    # -- list ----------------------------------------------------------------------------------------------------------

    async def _list_ahead(self) -> Listing[K] | None:
        """The list that was asked for before, once. Whatever is wrong with it shows when we ask for our own."""
        ahead, self._ahead = self._ahead, None
        if ahead is None:
            return None
        try:
            listing = self._decoder.page(await ahead)
        except (ApiError, Unreachable, AnswerLost, ClientConfigError, msgspec.DecodeError):
            return None
        return listing if listing.version and not listing.continue_token else None

    async def _list(self) -> None:
        self._doing = "list"
        try:
            listing = await self._all_pages(self._version, self._page_size)
        except ApiError as problem:
            if not problem.is_gone:
                raise
            listing = await self._all_pages(exchange.CONSISTENT, 0)  # too old while paging: all at once
        await self._listed(listing)

    async def _all_pages(self, version: str, page_size: int) -> Listing[K]:
        whole: Listing[K] = Listing()
        while True:
            params = exchange.list_params(self._list_options, version, page_size, whole.continue_token)
            limit_s = exchange.LIST_TIMEOUT_S
            body = await self._api.request("GET", self._path, params=params, timeout_s=limit_s, gzip=True)
            page = self._decoder.page(body)
            whole.items += page.items
            whole.unread += page.unread
            whole.version, whole.continue_token = page.version, page.continue_token
            if not whole.continue_token:
                return whole

    async def _listed(self, listing: Listing[K]) -> None:
        await self._informer.replace(listing)
        self._version = listing.version
        self._must_list = self._is_listing = False
        log_lines.POPULATED.write(self._type, self._name)

    async def _list_and_watch_in_one(self) -> None:
        self._doing = "watch"
        known = "" if self._version == exchange.FROM_CACHE else self._version
        params = exchange.streamed_list_params(self._list_options, known, self._pace.dice)
        began_s = self._pace.now_s()
        async with self._opened_stream(params) as lines:
            try:
                async with asyncio.timeout(self._abilities.initial_events_within_s):
                    found = await self._initial_events(lines)
            except TimeoutError:
                self._stop_streaming_lists("the end of the initial events did not come")
                return
            if found is None:
                return
            n_told = len(found.items) + len(found.unread) + 1  # and the mark
            log_lines.INITIAL_EVENTS_ENDED.write(
                self._name, n_told, log_lines.go_duration(self._pace.now_s() - began_s)
            )
            await self._listed(found)
            self._opened()
            await self._changes(lines)

    async def _initial_events(self, lines: AsyncIterator[bytes]) -> Listing[K] | None:
        """All objects and their version; `None` if the stream ended before its mark."""
        found: dict[str, K] = {}
        unread: list[Unread[K]] = []
        async for line in lines:
            try:
                event = self._decoder.event(line)
            except msgspec.DecodeError:  # no JSON: the stream would have it again, whatever it is
                unread.append(Unread(self._decoder.kind, None, f"line {len(found) + len(unread) + 1}"))
                continue
            if isinstance(event, Unread):
                if event.change in CHANGES:
                    unread.append(event)
                elif event.change != "BOOKMARK":
                    self._unknown(event.change, event.metadata.name)
                elif INITIAL_EVENTS_END in event.annotations:
                    return Listing(list(found.values()), event.metadata.resource_version, unread=unread)
                continue
            item = event.object
            if event.type in ("ADDED", "MODIFIED"):
                found[item.key] = item
            elif event.type == "DELETED":
                found.pop(item.key, None)
            elif event.type != "BOOKMARK":
                self._unknown(event.type, item.key)
            elif INITIAL_EVENTS_END in (item.metadata.annotations or ()):
                return Listing(list(found.values()), item.metadata.resource_version, unread=unread)
        return None

    def _stop_streaming_lists(self, why: str) -> None:
        if self._abilities.streams_lists:
            self._abilities.streams_lists = False
            log_lines.NO_STREAMED_LISTS.write(why)

    # -- watch ---------------------------------------------------------------------------------------------------------

    async def _watch(self) -> None:
        self._doing = "watch"
        params = exchange.watch_params(self._list_options, self._version, self._pace.dice)
        async with self._opened_stream(params) as lines:
            self._opened()
            await self._changes(lines)

    async def _changes(self, lines: AsyncIterator[bytes]) -> None:
        """The hot path: lines that came together are handled without giving way between them."""
        decode, put = self._decoder.event, self._informer.put
        n_lines = 0
        async for line in lines:
            n_lines += 1
            event = decode(line)
            if isinstance(event, Unread):
                self._unread_event(event)
                continue
            change, item = event.type, event.object
            if change == "MODIFIED" or change == "ADDED":
                put(item)
            elif change == "DELETED":
                self._informer.remove(item)
            elif change != "BOOKMARK":
                self._unknown(change, item.key)
            self._version = item.metadata.resource_version
        self._ended(n_lines)

    def _unread_event(self, event: Unread[K]) -> None:
        if event.change in CHANGES:
            if not event.has_metadata:
                log_lines.NOT_UNDERSTOOD.write(NO_OBJECT, self._name, event.change)
            self._informer.put_aside(event)
        elif event.change != "BOOKMARK":
            self._unknown(event.change, event.metadata.name)
        self._version = event.metadata.resource_version or self._version

    def _unknown(self, change: str, what: str) -> None:
        """Its content stays out of the log: it may be a secret."""
        log_lines.UNKNOWN_EVENT.write(self._name, f"{change} {self._type} {what}")

    def _ended(self, n_lines: int) -> None:
        """As the server wanted."""
        if n_lines == 0 and self._was_hasty:
            self._tell(VeryShortWatchError(self._name))
        else:
            log_lines.WATCH_CLOSE.write(self._name, self._type, n_lines)

    @asynccontextmanager
    async def _opened_stream(self, params: dict[str, str]) -> AsyncIterator[AsyncIterator[bytes]]:
        """A watch may be silent for minutes, but not before it has begun."""
        async with AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(self._abilities.answers_within_s):
                    lines = await stack.enter_async_context(self._api.stream(self._path, params))
            except TimeoutError:
                limit_s = self._abilities.answers_within_s
                raise AnswerLost(f"the server did not begin to answer a watch within {limit_s:g} s") from None
            yield lines

    def _opened(self) -> None:
        self._opened_at_s = self._pace.now_s()
        self._trouble.over(self._informer.resource, self._name)
        self._abilities.answers.answered()

    # -- after an interruption -----------------------------------------------------------------------------------------

    async def _after_end(self) -> None:
        if self._was_hasty:
            await self._backoff.wait()

    async def _after_trouble(self, problem: Exception, at_least_s: float = 0.0) -> None:
        self._tell(problem)
        if not self._was_hasty:
            return
        if isinstance(problem, Unreachable | AnswerLost):
            await self._backoff.wait_for(self._abilities.answers)
        else:
            await self._backoff.wait(at_least_s)

    def _tell(self, problem: Exception) -> None:
        self._is_listing = False
        was_open = self._opened_at_s is not None
        lists = self._must_list and self._doing == "watch"
        error = WatchError(
            self._informer.resource, self._name, self._doing, problem, was_open, was_open and self._was_hasty, lists
        )
        try:
            self._on_error(error)
        except Exception:  # noqa: BLE001 - logged; the next attempt comes anyway
            log_lines.HANDLER_PANICKED.write(self._name, self._type, exc_info=True)

    async def _after_refusal(self, problem: ApiError) -> None:
        asked_to_stream = self._must_list and self._doing == "watch"
        if problem.is_not_found:
            await self._after_missing(problem)
        elif problem.is_gone or _is_too_new(problem):
            self._tell(problem)
            self._must_list = True
            self._version = exchange.CONSISTENT
            await self._after_end()
        elif problem.status in (400, 422) and asked_to_stream:
            self._stop_streaming_lists(problem.message)
        else:
            if problem.status in (400, 422):
                self._must_list = True
            await self._after_trouble(problem, problem.retry_after_s or 0.0)

    async def _after_missing(self, problem: ApiError) -> None:
        """Go on with the next older version, if there is one. A kind that every server has, or that this one had
        before, is not missing: then something is wrong between us and the server."""
        informer = self._informer
        self._must_list = True
        at = self._versions.index(informer.resource) + 1
        if at < len(self._versions):
            informer.resource = self._versions[at]
            return
        informer.resource = self._versions[0]
        if not informer.resource.group or (informer.has_synced and not informer.is_missing):
            await self._after_trouble(problem)
            return
        if not informer.is_missing:
            log_lines.KIND_MISSING.write(
                self._name, self._type, [one.version for one in self._versions], apart=informer.name
            )
            informer.kind_is_missing()
        await self._pace.sleep(MISSING_RETRY_S)

    @property
    def _was_hasty(self) -> bool:
        return self._opened_at_s is None or self._pace.now_s() - self._opened_at_s < HASTY_S

    @property
    def _type(self) -> str:
        return self._informer.resource.go_type

    @property
    def _path(self) -> str:
        return self._informer.resource.path(self._list_options.namespace)


def _is_too_new(problem: ApiError) -> bool:
    """A server that has fallen behind what we have seen from another."""
    return any(cause.reason == "ResourceVersionTooLarge" for cause in problem.causes)
