"""Objects as they will be once pending writes are done, on top of the objects as they are.

A pod that was given a volume has it written only later, and the next pod must not be given it again. So the promised
object takes the place of the known one, until a newer one arrives or the promise is taken back.

Next: `binding`, which makes promises.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

from kubesched.k8s.model.meta import KubeObject

Item = TypeVar("Item", bound=KubeObject)


class AssumedObjects(Generic[Item]):
    """Promised objects by key. `known` is passed in, because whoever keeps it goes on changing it."""

    __slots__ = ("_promises", "_resource")

    def __init__(self, resource: str) -> None:
        self._resource = resource
        self._promises: dict[str, tuple[Item, Item]] = {}
        """Key to (object as it was known then, object as promised)."""

    def get(self, known: Mapping[str, Item], key: str) -> Item | None:
        current = known.get(key)
        if current is None:
            self._promises.pop(key, None)
            return None
        return self._promised(key, current)

    def promised(self, known: Mapping[str, Item]) -> dict[str, Item]:
        """By key, every promise that still holds."""
        found = {}
        for key, (_, item) in list(self._promises.items()):
            if self.get(known, key) is item:
                found[key] = item
        return found

    def not_found(self, key: str) -> str:
        return f'{self._resource} "{key}" not found'

    def assume(self, known: Mapping[str, Item], promised: Item) -> str | None:
        """Promises the object; or says why that cannot be."""
        key = promised.key
        current = known.get(key)
        if current is None:
            return self.not_found(key)
        version, wanted = current.metadata.resource_version, promised.metadata.resource_version
        if version != wanted:
            return f'"{key}" is out of sync (stored: {version}, assume: {wanted})'
        self._promises[key] = (current, promised)
        return None

    def restore(self, promised: Item) -> None:
        """Takes a promise back; a promise made on another version of the object stays."""
        promise = self._promises.get(promised.key)
        if promise is not None and promise[1].metadata.resource_version == promised.metadata.resource_version:
            del self._promises[promised.key]

    def _promised(self, key: str, current: Item) -> Item:
        promise = self._promises.get(key)
        if promise is None:
            return current
        based_on, promised = promise
        version = current.metadata.resource_version
        if current is based_on or (version and version == promised.metadata.resource_version):
            return promised
        del self._promises[key]
        return current
