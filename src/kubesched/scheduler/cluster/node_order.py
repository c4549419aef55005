"""The order in which nodes are checked: one from each zone in turn, so that a search cut short covers all zones;
and the order of their names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from kubesched.framework.nodes import RowArray
from kubesched.k8s.model.core import Node

ZONE_LABELS = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")
REGION_LABELS = ("topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region")

Zone = tuple[str, str]


class NodeOrder:
    """Node names by zone, in the order in which zones and nodes came."""

    def __init__(self) -> None:
        self._zones: dict[Zone, dict[str, None]] = {}
        self._zone_of: dict[str, Zone] = {}

    def copy(self) -> NodeOrder:
        copied = NodeOrder()
        copied._zones = {zone: dict(names) for zone, names in self._zones.items()}
        copied._zone_of = dict(self._zone_of)
        return copied

    def changes_with(self, node: Node) -> bool:
        """Whether the node is new, or in another zone than it was."""
        return self._zone_of.get(node.name) != zone_of(node)

    def put(self, node: Node) -> bool:
        """A new node, or one that may have changed its zone. Whether that changed the order."""
        if not self.changes_with(node):
            return False
        zone = zone_of(node)
        self.remove(node.name)
        self._zones.setdefault(zone, {})[node.name] = None
        self._zone_of[node.name] = zone
        return True

    def remove(self, name: str) -> None:
        zone = self._zone_of.pop(name, None)
        if zone is not None:
            del self._zones[zone][name]
            if not self._zones[zone]:
                del self._zones[zone]

    def __iter__(self) -> Iterator[str]:
        if len(self._zones) == 1:
            return iter(*self._zones.values())
        return self._by_turns()

    def _by_turns(self) -> Iterator[str]:
        turns = [iter(names) for names in self._zones.values()]
        while turns:
            still_going = []
            for turn in turns:
                name = next(turn, None)
                if name is not None:
                    yield name
                    still_going.append(turn)
            turns = still_going


def zone_of(node: Node) -> Zone:
    """(region, zone); both empty for a node that names neither."""
    return _first_label(node, REGION_LABELS), _first_label(node, ZONE_LABELS)


def _first_label(node: Node, keys: tuple[str, ...]) -> str:
    labels = node.labels
    return next((labels[key] for key in keys if key in labels), "")


class NameOrder:
    """Rows by the names of their nodes."""

    __slots__ = ("ranks", "rows")

    def __init__(self, names: Sequence[str]) -> None:
        self.rows: RowArray = np.argsort(np.array(names))
        """(n_nodes,) the lowest name first."""
        self.ranks: RowArray = np.empty(len(names), dtype=np.intp)
        """(n_nodes,) by row, its place among them."""
        self.ranks[self.rows] = np.arange(len(names))
