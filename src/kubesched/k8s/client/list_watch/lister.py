"""The objects of one kind as last heard, to be looked up by name, by namespace and by indexes of one's own.

Nobody but the informer writes here. Next: `informer`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Generic

from kubesched.k8s.client.list_watch.decoding import K

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
