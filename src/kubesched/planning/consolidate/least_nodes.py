"""How many nodes a pool of the catalogue has at least, in all or in a zone: so many stay, whatever they hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kubesched.k8s.model.core import Node
from kubesched.planning.catalogue import POOL, ZONE, Option, Pool
from kubesched.planning.consolidate.rules import KeepReason

MIN_SIZE = "NodeGroupMinSizeReached"
"""As Cluster Autoscaler names it."""


@dataclass(frozen=True, slots=True)
class LeastNodes:
    pools: tuple[Pool, ...] = ()

    @staticmethod
    def of(pools: Iterable[Pool]) -> LeastNodes:
        return LeastNodes(tuple(one for one in pools if one.least_nodes or one.least_by_zone))

    def what_keeps(
        self, there: Sequence[Node], going: Iterable[str], coming: Iterable[Option] = ()
    ) -> KeepReason | None:
        """Why these cannot go together, of the nodes that are there."""
        if not self.pools:
            return None
        gone = set(going)
        spare = self._spare(there)
        leaving = Counter(key for node in there if node.name in gone for key in _groups(node.metadata.labels or {}))
        arriving = Counter(key for option in coming for key in _groups(option.labels))
        short = [key for key, n in leaving.items() if key in spare and n - arriving[key] > max(0, spare[key])]
        return self._reason(min(short)) if short else None

    def blocked(self, there: Sequence[Node]) -> dict[str, KeepReason]:
        """Nodes of which not even one may go."""
        spare = self._spare(there) if self.pools else {}
        found = {}
        for node in there if spare else ():
            short = [key for key in _groups(node.metadata.labels or {}) if spare.get(key, 1) < 1]
            if short:
                found[node.name] = self._reason(min(short))
        return found

    def together(self, there: Sequence[Node], names: Sequence[str]) -> list[str]:
        """Those that may go at once, in their order."""
        if not self.pools:
            return list(names)
        spare, found = self._spare(there), []
        labels = {node.name: node.metadata.labels or {} for node in there}
        for name in names:
            keys = [key for key in _groups(labels.get(name, {})) if key in spare]
            if all(spare[key] > 0 for key in keys):
                found.append(name)
                for key in keys:
                    spare[key] -= 1
        return found

    def _spare(self, there: Iterable[Node]) -> dict[tuple[str, str], int]:
        """Of each pool, and zone of it, how many nodes there are more than there must be."""
        n = Counter(key for node in there for key in _groups(node.metadata.labels or {}))
        return {key: n[key] - least for key, least in self._least().items()}

    def _least(self) -> dict[tuple[str, str], int]:
        found = {(pool.name, ""): pool.least_nodes for pool in self.pools}
        return found | {(pool.name, zone): n for pool in self.pools for zone, n in pool.least_by_zone.items()}

    def _reason(self, key: tuple[str, str]) -> KeepReason:
        pool, zone = key
        where = f" in zone {zone}" if zone else ""
        return KeepReason(MIN_SIZE, f"pool {pool} has at least {self._least()[key]} nodes{where}")


def _groups(labels: dict[str, str]) -> list[tuple[str, str]]:
    pool, zone = labels.get(POOL), labels.get(ZONE, "")
    return [] if pool is None else [(pool, ""), *([(pool, zone)] if zone else [])]
