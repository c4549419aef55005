"""A shared informer: one kind followed once, for as many handlers as there are.

A scheduler only needs to know what there is: `put` and `remove` are enough, and cost least (`InformerHandler`). Who
wants to know what an object was before, whether it was there from the beginning, or whether its deletion was seen, is a
`ResourceEventHandler`, which has client-go's three calls.

What a handler can rely on, whatever happened to the connection:
- it hears of an object first by `put` (`on_add`), and of nothing by `remove` (`on_delete`) that was not put before;
- a deletion that was not seen is found by the next list and becomes a `remove` with the last known state;
- an object that was deleted and recreated meanwhile (another uid) is removed and then put;
- the same version is not put twice, except by a resync;
- when it is called, the lister already knows;
- of an object that cannot be read it hears what that may count as meanwhile (`kubesched.k8s.model.partial_reading`).
A handler that is added later hears at once of everything there is. A handler that raises is logged; the others and
the lister go on. Those with `put` and `remove` are notified before those with client-go's calls, else in their order.

The lister has the objects as last heard, to be looked up by name, by namespace and by indexes of one's own; nobody but
the informer writes there.

Next: `reflector` brings the changes; `informers` has one informer per kind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from kubesched.k8s.client.list_watch import log_lines
from kubesched.k8s.client.list_watch.exchange import NAMELESS, K, Listing, SetAside, Unread
from kubesched.k8s.client.list_watch.log_lines import WatchErrorHandler
from kubesched.k8s.client.resources import Resource
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.partial_reading import StandIn, as_far_as_read, described

K_contra = TypeVar("K_contra", bound=KubeObject, contravariant=True)


class InformerHandler(Protocol):
    """Notified of every change, synchronously: it must be quick, and not wait."""

    def put(self, item: KubeObject) -> None: ...

    def remove(self, item: KubeObject) -> None: ...


class ResourceEventHandler(Protocol[K_contra]):
    """The same, in client-go's calls.

    `is_in_initial_list`: it was there when this handler came, or when the kind was first listed. A resync is an
    `on_update` with the same object twice. `is_final_state_unknown`: the deletion was missed, and found by a
    later list; `item` is what was last known (client-go's `DeletedFinalStateUnknown`)."""

    def on_add(self, item: K_contra, is_in_initial_list: bool) -> None: ...

    def on_update(self, old: K_contra, new: K_contra) -> None: ...

    def on_delete(self, item: K_contra, is_final_state_unknown: bool) -> None: ...


@dataclass(frozen=True)
class EventHandlerFuncs(Generic[K]):
    """A `ResourceEventHandler` of those functions that are given."""

    added: Callable[[K, bool], None] | None = None
    updated: Callable[[K, K], None] | None = None
    deleted: Callable[[K, bool], None] | None = None

    def on_add(self, item: K, is_in_initial_list: bool) -> None:
        if self.added is not None:
            self.added(item, is_in_initial_list)

    def on_update(self, old: K, new: K) -> None:
        if self.updated is not None:
            self.updated(old, new)

    def on_delete(self, item: K, is_final_state_unknown: bool) -> None:
        if self.deleted is not None:
            self.deleted(item, is_final_state_unknown)


SLICE = 500
"""After so many objects of a list the event loop may do something else (renew a lease, say)."""


class SharedInformer(Generic[K]):
    """`transform` sees every object before it is kept, and may make it smaller; it must keep names, uid and version.
    `stand_in` decides what an object counts as that cannot be read in full."""

    def __init__(
        self,
        resource: Resource,
        transform: Callable[[K], K] | None = None,
        set_aside: SetAside | None = None,
        stand_in: StandIn = as_far_as_read,
    ) -> None:
        self.resource = resource
        """In the version that this server has."""
        self.lister: IndexedLister[K] = IndexedLister()
        self.is_missing = False
        """The server does not have this kind; it counts as synced, with no objects."""
        self.has_started = False
        """Whether it is followed; set by who follows it."""
        self.watch_error_handler: WatchErrorHandler | None = None
        """See `set_watch_error_handler`."""
        self._transform = transform
        self._stand_in = stand_in
        self._kind = resource.type.__name__
        self._aside = SetAside() if set_aside is None else set_aside
        self._handlers: tuple[InformerHandler, ...] = ()
        self._event_handlers: tuple[ResourceEventHandler[K], ...] = ()
        self._synced = asyncio.Event()

    # -- for those who use it ------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return self.resource.full_name

    @property
    def has_synced(self) -> bool:
        """Whether all handlers have heard of everything that the first list had."""
        return self._synced.is_set()

    async def wait_synced(self) -> None:
        await self._synced.wait()

    def add_handler(self, handler: InformerHandler) -> None:
        """At any time; it hears of all known objects before this returns."""
        for item in self.lister:
            _tell(item, handler.put, item)
        self._handlers = (*self._handlers, handler)

    def add_event_handler(self, handler: ResourceEventHandler[K]) -> None:
        """The same, for one that wants client-go's calls."""
        for item in self.lister:
            _tell(item, handler.on_add, item, True)
        self._event_handlers = (*self._event_handlers, handler)

    def remove_handler(self, handler: InformerHandler | ResourceEventHandler[K]) -> None:
        """It hears nothing any more."""
        self._handlers = tuple(one for one in self._handlers if one is not handler)
        self._event_handlers = tuple(one for one in self._event_handlers if one is not handler)

    def set_watch_error_handler(self, handler: WatchErrorHandler) -> None:
        """Called, instead of what writes to the log, whenever a list or watch ended with an error; the next attempt
        comes by itself. Only before the start."""
        if self.has_started:
            raise RuntimeError("informer has already started")
        self.watch_error_handler = handler

    def resync(self) -> None:
        """Deliver everything to every handler again."""
        for item in self.lister:
            self._tell_put(item, item)

    # -- for the reflector ---------------------------------------------------------------------------------------------

    def put(self, item: K) -> None:
        if self._transform is not None:
            item = self._transform(item)
        metadata = item.metadata
        namespace = metadata.namespace
        key = f"{namespace}/{metadata.name}" if namespace else metadata.name
        if key not in self._aside.of(self._kind):
            self._put(key, item, anew=False)
            return
        n_noted = self._aside.n_noted
        self._put(key, item, anew=True)
        if self._aside.n_noted == n_noted:  # else a handler could not use it, either
            self._aside.forget(self._kind, key)

    def _put(self, key: str, item: K, *, anew: bool) -> None:
        """Even if the version is known, with `anew`."""
        metadata = item.metadata
        old = self.lister.get_by_key(key)
        if old is not None:
            known = old.metadata
            if known.uid != metadata.uid:
                self._vanished(key)
                old = None
            elif known.resource_version == metadata.resource_version != "" and not anew:
                return
        self.lister.put(key, item)
        self._tell_put(old, item)

    def remove(self, item: K) -> None:
        """As the server last saw it."""
        if self._transform is not None:
            item = self._transform(item)
        self._aside.forget(self._kind, item.key)
        if self.lister.remove(item.key) is not None:
            self._tell_remove(item, is_final_state_unknown=False)

    def put_aside(self, unread: Unread[K]) -> str:
        """An object exists that cannot be read in full, or is gone; gives the key that it has, or goes by."""
        key = unread.key(is_namespaced=self.resource.namespaced)
        if not key:
            known = self._known_by_uid(unread)
            if known is None:
                problems = unread.read().problems or [NAMELESS]
                goes_by = f"({unread.where}: {problems[0]})"
                self._aside.note(self._kind, goes_by, problems, described(None))
                return goes_by
            unread.take_name_of(known)
            key = known.key
        old = self.lister.get_by_key(key)
        if unread.change == "DELETED":
            self._aside.forget(self._kind, key)
            self._vanished(key)
            return key
        reading = unread.read(old, self._stand_in)
        item = reading.item
        if item is not None and not reading.problems:
            self.put(item)
            return key
        if item is not None and self._transform is not None:
            item = self._transform(item)
        if item is None:
            self._vanished(key)
        else:
            self._put(key, item, anew=key not in self._aside.of(self._kind))
        self._aside.note(self._kind, key, reading.problems, described(item))
        return key

    def _known_by_uid(self, unread: Unread[K]) -> K | None:
        uid = unread.metadata.uid
        return next((item for item in self.lister if item.metadata.uid == uid), None) if uid else None

    async def replace(self, listing: Listing[K]) -> None:
        """These exist and no others. Gives way now and then; lister and handlers stay in step."""
        present: set[str] = set()
        for index, item in enumerate(listing.items, start=1):
            present.add(item.key)
            self.put(item)
            if index % SLICE == 0:
                await asyncio.sleep(0)
        present.update([self.put_aside(unread) for unread in listing.unread])
        for key in self.lister.keys():  # noqa: SIM118 - a copy, since what vanished is taken out
            if key not in present:
                self._vanished(key)
        self._aside.keep_only(self._kind, present)
        self.is_missing = False
        self._synced.set()

    def kind_is_missing(self) -> None:
        """The server has no such kind: nothing to wait for."""
        self.is_missing = True
        self._synced.set()

    # ------------------------------------------------------------------------------------------------------------------

    def _vanished(self, key: str) -> None:
        last_known = self.lister.remove(key)
        if last_known is not None:
            self._tell_remove(last_known, is_final_state_unknown=True)

    def _tell_put(self, old: K | None, item: K) -> None:
        for handler in self._handlers:
            try:
                handler.put(item)
            except Exception:  # noqa: BLE001 - logged; the other handlers go on
                _log_broken(handler.put, item)
        for event_handler in self._event_handlers:
            if old is None:
                _tell(item, event_handler.on_add, item, not self._synced.is_set())
            else:
                _tell(item, event_handler.on_update, old, item)

    def _tell_remove(self, item: K, *, is_final_state_unknown: bool) -> None:
        for handler in self._handlers:
            _tell(item, handler.remove, item)
        for event_handler in self._event_handlers:
            _tell(item, event_handler.on_delete, item, is_final_state_unknown)


def _tell(item: KubeObject, told: Callable[..., None], *what: Any) -> None:
    try:
        told(*what)
    except Exception:  # noqa: BLE001 - logged; the other handlers go on
        _log_broken(told, item)


def _log_broken(told: Callable[..., None], item: KubeObject) -> None:
    log_lines.HANDLER_FAILED.write(type(item).__name__, item.key, repr(told), exc_info=True)


IndexFunction = Callable[[K], Iterable[str]]
"""Under which values an object is found in an index: `lambda pod: [pod.spec.node_name]`."""


class IndexedLister(Generic[K]):
    """Reading is free of copies where one object is asked for; lists are new."""

    def __init__(self, indexers: Mapping[str, IndexFunction[K]] | None = None) -> None:
        self._items: dict[str, K] = {}
        self._by_namespace: dict[str, set[str]] = {}
        self._indexers: dict[str, IndexFunction[K]] = {}
        self._indexes: dict[str, dict[str, set[str]]] = {}
        for name, function in (indexers or {}).items():
            self.add_index(name, function)

    # -- reading -------------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[K]:
        return iter(list(self._items.values()))

    def get(self, name: str, namespace: str = "") -> K | None:
        return self._items.get(f"{namespace}/{name}" if namespace else name)

    def get_by_key(self, key: str) -> K | None:
        """By `namespace/name`, or the name of a cluster-wide object."""
        return self._items.get(key)

    def list_all(self, namespace: str = "") -> list[K]:
        """All, or those of a namespace."""
        if not namespace:
            return list(self._items.values())
        return [self._items[key] for key in sorted(self._by_namespace.get(namespace, ()))]

    def by_index(self, index: str, value: str) -> list[K]:
        """Those for which the index's function gives this value."""
        return [self._items[key] for key in sorted(self._indexes[index].get(value, ()))]

    def keys(self) -> list[str]:
        return list(self._items)

    # -- writing, by the informer --------------------------------------------------------------------------------------

    def add_index(self, name: str, function: IndexFunction[K]) -> None:
        """At any time: what is there already is indexed too."""
        if name in self._indexers:
            raise ValueError(f"there is an index {name!r} already")
        self._indexers[name] = function
        self._indexes[name] = {}
        for key, item in self._items.items():
            _enter(self._indexes[name], function(item), key)

    def put(self, key: str, item: K) -> None:
        old = self._items.get(key)
        self._items[key] = item
        if old is None and (namespace := item.metadata.namespace):
            _enter(self._by_namespace, (namespace,), key)
        for name, function in self._indexers.items():
            index = self._indexes[name]
            if old is not None:
                _leave(index, function(old), key)
            _enter(index, function(item), key)

    def remove(self, key: str) -> K | None:
        """What was known of it; `None` if it was not known."""
        old = self._items.pop(key, None)
        if old is None:
            return None
        if namespace := old.metadata.namespace:
            _leave(self._by_namespace, (namespace,), key)
        for name, function in self._indexers.items():
            _leave(self._indexes[name], function(old), key)
        return old


def _enter(index: dict[str, set[str]], values: Iterable[str], key: str) -> None:
    for value in values:
        index.setdefault(value, set()).add(key)


def _leave(index: dict[str, set[str]], values: Iterable[str], key: str) -> None:
    for value in values:
        keys = index.get(value)
        if keys is not None:
            keys.discard(key)
            if not keys:
                del index[value]
