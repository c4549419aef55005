"""Which objects of a mapping were added, changed or removed since the last call.

Plugins that keep an index over objects (volumes by class, say) bring it up to date with this, so that a decision costs
what changed, and a glance at each object that there is. Objects are frozen, so one that changed is another object:
comparing identities is enough.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import is_
from typing import Generic, TypeVar

from kubesched.k8s.model.meta import KubeObject

Known = TypeVar("Known", bound=KubeObject)


class ObjectChanges(Generic[Known]):
    """Remembers the objects as they were at the last `take`; at first, that there were none."""

    __slots__ = ("_seen",)

    def __init__(self) -> None:
        self._seen: dict[str, Known] = {}

    def take(self, current: Mapping[str, Known]) -> list[tuple[Known | None, Known | None]]:
        """(before, now) of each object that is not what it was; None before an object came, and after it went."""
        seen = self._seen
        if len(seen) == len(current) and all(map(is_, seen.values(), current.values())):
            return []
        changed: list[tuple[Known | None, Known | None]] = [
            (seen.get(key), item) for key, item in current.items() if seen.get(key) is not item
        ]
        changed.extend((item, None) for key, item in seen.items() if key not in current)
        self._seen = dict(current)
        return changed
