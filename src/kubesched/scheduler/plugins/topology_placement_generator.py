"""TopologyPlacementGenerator: proposes the nodes of each rack, zone or the like, for pod groups to stay together.

The PodGroup names a label; nodes that have the same value of it are one placement. Pods of the group that have a node
already pin it: only theirs is left. A group without such a constraint may go anywhere.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from kubesched.framework.groups import GroupCycle, Placement, PlacementsResult
from kubesched.framework.handle import Handle
from kubesched.framework.nodes import MISSING
from kubesched.framework.status import Status

_PINNED = "cannot determine domain for already scheduled pods"


class TopologyPlacementGenerator:
    name: ClassVar[str] = "TopologyPlacementGenerator"

    def __init__(self, _args: object, handle: Handle) -> None:
        self._handle = handle

    def generate_placements(self, group: GroupCycle, parent: Placement) -> PlacementsResult:
        """In the order in which a search comes to the first node of each."""
        pod_group = self._handle.objects.pod_groups.get(group.key)
        if pod_group is None:
            name = group.key.partition("/")[2]
            return PlacementsResult(Status.error(f'podgroup.scheduling.k8s.io "{name}" not found'))
        key = pod_group.topology_key
        if not key:
            return PlacementsResult(placements=[parent])
        pinned = self._pinned(group, key)
        if isinstance(pinned, Status):
            return PlacementsResult(pinned)
        column = self._handle.nodes.label(key)
        codes = column.codes[parent.rows]
        found = []
        values, firsts = np.unique(codes, return_index=True)
        for place in np.argsort(firsts, kind="stable").tolist():
            code = values[place]
            if code != MISSING and pinned in (None, column.values[code]):
                found.append(Placement(column.values[code], parent.rows[codes == code]))
        return PlacementsResult(placements=found)

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
