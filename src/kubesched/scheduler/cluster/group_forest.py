"""Pod groups, and groups of groups: who is whose parent, and which group is the root of it all (v1.37).

A group names its parent; a parent does not know its children. What is written may be incomplete, or go round in a
circle: then there is no root. The children of a group that is not there (yet) are known all the same.

Groups are known by their `group_key`: that of a PodGroup is `namespace/name`, that of a CompositePodGroup is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from kubesched.k8s.model.scheduling import AnyGroup, CompositePodGroup, PodGroup, composite_key, is_composite, plain_key
from kubesched.scheduler.cluster.objects import ObjectMap

MOST_LEVELS = 4
"""From a PodGroup up, itself included: so far whoever asks about evictions and scores looks."""


class GroupForest:
    """Follows the objects: it is up to date whenever it is asked."""

    def __init__(
        self, pod_groups: ObjectMap[PodGroup], composites: ObjectMap[CompositePodGroup], *, has_composites: bool
    ) -> None:
        """Without composites, every PodGroup stands for itself, whatever parent it names."""
        self._pod_groups = pod_groups
        self._composites = composites
        self._has_composites = has_composites
        self._pod_groups_at = self._composites_at = -1
        """Up to where the changes of either kind are known."""
        self._parents: dict[str, str] = {}
        self._children: dict[str, dict[str, None]] = {}

    def get(self, key: str) -> AnyGroup | None:
        return self._composites.get(plain_key(key)) if is_composite(key) else self._pod_groups.get(key)

    def parent_of(self, group: AnyGroup) -> str:
        """The key of the parent that it names; empty if it names none."""
        name = group.spec.parent_composite_pod_group_name if self._has_composites else ""
        return composite_key(group.metadata.namespace, name) if name else ""

    def root_of(self, key: str) -> str:
        """The key of the topmost group; empty if one on the way is not there, or there is none."""
        visited: set[str] = set()
        while key not in visited:
            visited.add(key)
            group = self.get(key)
            if group is None:
                return ""
            parent = self.parent_of(group)
            if not parent:
                return key
            key = parent
        return ""

    def upwards(self, key: str) -> Iterator[AnyGroup]:
        """The group, its parent and so on, as far as they are there, and not further than `MOST_LEVELS`."""
        for _ in range(MOST_LEVELS):
            group = self.get(key)
            if group is None:
                return
            yield group
            key = self.parent_of(group)

    def children(self, key: str) -> list[AnyGroup]:
        """The oldest first; of equals, by name."""
        self._catch_up()
        found = [child for name in self._children.get(key, ()) if (child := self.get(name)) is not None]
        return sorted(found, key=lambda child: (child.metadata.creation_timestamp or "", child.name))

    def leaves(self, key: str) -> Iterator[str]:
        """The keys of all PodGroups below, in the order of their parents; of a PodGroup, its own."""
        yield from self._leaves(key, set())

    def _leaves(self, key: str, visited: set[str]) -> Iterator[str]:
        if not is_composite(key):
            yield key
        elif key not in visited:
            visited.add(key)
            for child in self.children(key):
                yield from self._leaves(child.group_key, visited)

    # -- children ------------------------------------------------------------------------------------------------------

    def _catch_up(self) -> None:
        if not self._has_composites:
            return
        self._pod_groups_at = self._follow(self._pod_groups, self._pod_groups_at, of_composites=False)
        self._composites_at = self._follow(self._composites, self._composites_at, of_composites=True)

    def _follow(self, objects: ObjectMap[Any], place: int, *, of_composites: bool) -> int:
        log = objects.changed
        if place == log.end:
            return place
        changed: Iterable[str] | None = log.since(place) if place >= 0 else None
        if changed is None:
            known = [plain_key(key) for key in self._parents if is_composite(key) == of_composites]
            changed = [*known, *objects]
        for key in changed:
            namespace, _, name = key.partition("/")
            self._link(composite_key(namespace, name) if of_composites else key)
        return log.end

    def _link(self, key: str) -> None:
        group = self.get(key)
        parent = "" if group is None else self.parent_of(group)
        known = self._parents.pop(key, "")
        if known and known != parent:
            siblings = self._children[known]
            siblings.pop(key, None)
            if not siblings:
                del self._children[known]
        if parent:
            self._parents[key] = parent
            self._children.setdefault(parent, {})[key] = None
