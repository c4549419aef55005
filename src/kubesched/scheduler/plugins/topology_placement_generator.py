"""TopologyPlacementGenerator: proposes the nodes of each rack, zone or the like, for pod groups to stay together.

The PodGroup names a label; nodes that have the same value of it are one placement. Pods of the group that have a node
already pin it: only theirs is left. A group without such a constraint may go anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kubesched.framework.groups import GroupCycle, Placement, PlacementsResult
from kubesched.framework.handle import Handle
from kubesched.framework.nodes import MISSING, CodeArray, RowArray
from kubesched.framework.status import Status

_MOST_LABELS = 16
_PINNED = "cannot determine domain for already scheduled pods"


@dataclass(frozen=True, slots=True)
class _Partition:
    """Nodes by the value that they have of a label, as long as they have these."""

    rows: RowArray
    """The nodes, in this order."""
    codes: CodeArray
    """Of all nodes there are."""
    values: Sequence[str]
    placements: Sequence[Placement]
    """In the order in which a search comes to the first node of each."""

    def is_of(self, rows: RowArray, codes: CodeArray, values: Sequence[str]) -> bool:
        return (
            self.values is values
            and len(self.codes) == len(codes)
            and not (self.codes != codes).any()
            and (self.rows is rows or np.array_equal(self.rows, rows))
        )


class TopologyPlacementGenerator:
    name: ClassVar[str] = "TopologyPlacementGenerator"

    def __init__(self, _args: object, handle: Handle) -> None:
        self._handle = handle
        self._partitions: dict[str, _Partition] = {}
        """The last one of each label."""

    def generate_placements(self, group: GroupCycle, parent: Placement) -> PlacementsResult:
        """In the order in which a search comes to the first node of each."""
        pod_group = self._handle.group(group.key)
        if pod_group is None:
            name = group.key.partition("/")[2]
            return PlacementsResult(Status.error(f'podgroup.scheduling.k8s.io "{name}" not found'))
        key = pod_group.topology_key
        if not key:
            return PlacementsResult(placements=[parent])
        pinned = self._pinned(group, key)
        if isinstance(pinned, Status):
            return PlacementsResult(pinned)
        found = self._partition(key, parent.rows).placements
        if pinned is not None:
            found = [placement for placement in found if placement.name == pinned]
        return PlacementsResult(placements=found)

    def _partition(self, key: str, rows: RowArray) -> _Partition:
        column = self._handle.nodes.label(key)
        codes, values = column.codes, column.values
        known = self._partitions.get(key)
        if known is None or not known.is_of(rows, codes, values):
            if len(self._partitions) >= _MOST_LABELS:
                self._partitions.clear()
            placements = _by_value(rows, codes[rows], values)
            known = self._partitions[key] = _Partition(rows, codes.copy(), values, placements)
        return known

    def _pinned(self, group: GroupCycle, key: str) -> str | Status | None:
        """The value that pods with a node have; None if there are none, an error if it is not one."""
        members = self._handle.group_members(group.key)
        values: dict[str, None] = {}
        nodes = self._handle.nodes
        for pod in members.scheduled_pods() if members is not None else ():
            row = nodes.row_of(pod.spec.node_name)
            if row is None:
                missing = f'nodeinfo not found for node name "{pod.spec.node_name}"'
                return Status.error(f"{_PINNED}: getting node for pod {pod.key}: {missing}")
            value = nodes.at(row).labels.get(key)
            if value is None:
                return Status.error(f"{_PINNED}: no topology domain found for pod {pod.key}")
            values[value] = None
        if len(values) > 1:
            return Status.error(f"{_PINNED}: more than 1 domain found for pod group: {', '.join(sorted(values))}")
        return next(iter(values), None)


def _by_value(rows: RowArray, codes: CodeArray, values: Sequence[str]) -> Sequence[Placement]:
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=MISSING - 1))
    firsts = order[starts]
    parts = np.split(order, starts[1:])
    places = [place for place in np.argsort(firsts, kind="stable").tolist() if codes[firsts[place]] != MISSING]
    return [Placement(values[codes[firsts[place]]], rows[parts[place]]) for place in places]
