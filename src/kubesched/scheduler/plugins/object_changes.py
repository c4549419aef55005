"""Which objects of a mapping were added, changed or removed since the last call.

Plugins that keep an index over objects (volumes by class, say) bring it up to date with this, so that a decision costs
what changed. A map that logs its changes says which keys to look at; of any other all objects are looked at. Objects
are frozen, so one that changed is another object: comparing identities is enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import is_
from typing import Generic, TypeVar

from kubesched.k8s.model.meta import KubeObject
from kubesched.scheduler.cluster.objects import ObjectMap

Known = TypeVar("Known", bound=KubeObject)

_NOTHING: tuple[()] = ()


class ObjectChanges(Generic[Known]):
    """Remembers the objects as they were at the last `take`; at first, that there were none."""

    __slots__ = ("_map", "_place", "_seen")

    def __init__(self) -> None:
        self._seen: dict[str, Known] = {}
        self._map: ObjectMap[Known] | None = None
        self._place = 0

    def take(self, current: Mapping[str, Known]) -> Iterable[tuple[Known | None, Known | None]]:
        """(before, now) of each object that is not what it was; None before an object came, and after it went."""
        if current is self._map and self._place == self._map.changed.end:
            return _NOTHING
        changed: list[tuple[Known | None, Known | None]] = []
        seen = self._seen
        for key in self._keys(current):
            before, now = seen.get(key), current.get(key)
            if before is now:
                continue
            changed.append((before, now))
            if now is None:
                del seen[key]
            else:
                seen[key] = now
        return changed

    def _keys(self, current: Mapping[str, Known]) -> Iterable[str]:
        """Of the objects that may have changed."""
        keys = None
        if isinstance(current, ObjectMap):
            if current is self._map:
                keys = current.changed.since(self._place)
            self._map, self._place = current, current.changed.end
        if keys is not None:
            return dict.fromkeys(keys)
        seen = self._seen
        if len(seen) == len(current) and all(map(is_, seen.values(), current.values())):
            return _NOTHING
        return [*current, *(key for key in seen if key not in current)]
