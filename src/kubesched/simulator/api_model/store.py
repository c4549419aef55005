"""Typed objects by kind and key, with versions, and who is notified of changes.

Listeners hear of every change to the kinds that they care about, in the order in which they were added, as (before,
after). Below the store, how kube-apiserver refuses a write to it, as the answer to an effect.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, TypeVar

from msgspec.structs import replace

from kubesched.framework.effects import Failed
from kubesched.k8s.model.meta import KubeObject

Item = TypeVar("Item", bound=KubeObject)
Listener = Callable[[KubeObject | None, KubeObject | None], None]
"""(before, after): no before for a new object, no after for one that is gone."""


class TypedStore:
    """`next_version` gives versions, each only once, and `new_uid` an identity to an object that has none."""

    def __init__(
        self, next_version: Callable[[], str] | None = None, new_uid: Callable[[KubeObject], str] | None = None
    ) -> None:
        self._numbers = count(1)
        self.next_version = next_version or self._next_number
        self._new_uid = new_uid or (lambda item: f"{item.name}-{self._next_number()}")
        self._objects: defaultdict[type[KubeObject], dict[str, Any]] = defaultdict(dict)
        self._listeners: list[tuple[Listener, tuple[type[KubeObject], ...]]] = []
        self._told: dict[type[KubeObject], tuple[Listener, ...]] = {}
        """Who cares about a kind, for the kinds that have been written."""

    def listen(self, listener: Listener, *kinds: type[KubeObject]) -> None:
        """From here on, changes to objects of these kinds are told; without kinds, those of all."""
        self._listeners.append((listener, kinds or (KubeObject,)))
        self._told.clear()

    def _listeners_of(self, kind: type[KubeObject]) -> tuple[Listener, ...]:
        self._told[kind] = found = tuple(told for told, kinds in self._listeners if issubclass(kind, kinds))
        return found

    # -- to read -------------------------------------------------------------------------------------------------------

    def of(self, kind: type[Item]) -> dict[str, Item]:
        """All objects of a kind by key; not to be changed."""
        return self._objects[kind]

    def find(self, kind: type[Item], key: str) -> Item | None:
        return self._objects[kind].get(key)

    def __iter__(self) -> Iterator[KubeObject]:
        for items in self._objects.values():
            yield from items.values()

    # -- to write ------------------------------------------------------------------------------------------------------

    def create(self, item: Item) -> Item:
        """A new object, of a name that is free."""
        metadata = item.metadata
        return self.write(item, metadata=replace(metadata, uid=metadata.uid or self._new_uid(item)))

    def write(self, item: Item, **fields: Any) -> Item:
        """The object, with these fields changed, is as it is to be from now on, in a new version."""
        metadata = replace(fields.get("metadata") or item.metadata, resource_version=self.next_version())
        fields["metadata"] = metadata
        return self.keep(replace(item, **fields))

    def update(self, item: Item) -> Item:
        """The object as it is to be from now on."""
        return self.write(item)

    def keep(self, item: Item, key: str = "") -> Item:
        """As `write`, for an object that brings its version; and its key, where the caller knows it."""
        kind = type(item)
        objects, key = self._objects[kind], key or item.key
        known = objects.get(key)
        objects[key] = item
        for listener in self._told.get(kind) or self._listeners_of(kind):
            listener(known, item)
        return item

    def remove(self, item: KubeObject) -> None:
        """The object is gone, at once."""
        kind = type(item)
        known = self._objects[kind].pop(item.key, None)
        if known is not None:
            for listener in self._told.get(kind) or self._listeners_of(kind):
                listener(known, None)

    def versioned(self, item: Item) -> Item:
        """In a new version, and not kept: what a watch says of a deletion."""
        return replace(item, metadata=replace(item.metadata, resource_version=self.next_version()))

    def _next_number(self) -> str:
        return str(next(self._numbers))


_MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def not_found(resource: str, name: str, *, reason: str = "") -> Failed:
    """As the answer to an effect; `reason` is Kubernetes' word where an object was to be written."""
    return Failed(f'{resource} "{name}" not found', is_gone=True, reason=reason)


def conflict(resource: str, name: str, problem: str = _MODIFIED, *, reason: str = "") -> Failed:
    return Failed(f'Operation cannot be fulfilled on {resource} "{name}": {problem}', reason=reason)


def bound_other_uid(key: str, wanted: str, found: str) -> Failed:
    """A binding of a pod, and the one of this name is another one."""
    problem = (
        f"StorageError: invalid object, Code: 4, Key: /registry/pods/{key}, ResourceVersion: 0, "
        f"AdditionalErrorMsg: Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}"
    )
    return conflict("pods", key.rpartition("/")[2], problem)


def patched_other_uid(key: str, wanted: str) -> Failed:
    """A patch of a pod, which includes the condition of an eviction, and the one of this name is another one."""
    name = key.rpartition("/")[2]
    return Failed(f'Pod "{name}" is invalid: metadata.uid: Invalid value: "{wanted}": field is immutable')
