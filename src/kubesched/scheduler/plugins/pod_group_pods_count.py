"""PodGroupPodsCount: prefers the placement that takes most pods of a group, those that have a node already included."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from kubesched.framework.groups import GroupCycle, PlacementAssignments
from kubesched.framework.handle import Handle
from kubesched.framework.results import MAX_NODE_SCORE
from kubesched.framework.status import PluginFault

_NONE = "no pods from pod group are assigned to any of the candidate placements"


class PodGroupPodsCount:
    name: ClassVar[str] = "PodGroupPodsCount"

    def __init__(self, _args: object, handle: Handle) -> None:
        self._handle = handle

    def score_placement(self, group: GroupCycle, proposed: PlacementAssignments) -> int:
        members = self._handle.group_members(group.key)
        return len(proposed.assignments) + (0 if members is None else members.n_scheduled)

    def normalize_placement_scores(self, group: GroupCycle, scores: Sequence[int]) -> Sequence[int]:
        most = max(scores, default=0)
        if most == 0:
            raise PluginFault(_NONE)
        return [score * MAX_NODE_SCORE // most for score in scores]
