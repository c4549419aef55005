"""PodGroupPodsCount: prefers the placement that takes most pods of a group, those that have a node already included."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from kubesched.framework.groups import CountedPlacements, GroupCycle, PlacementAssignments
from kubesched.framework.handle import Handle
from kubesched.framework.nodes import IntArray
from kubesched.framework.results import MAX_NODE_SCORE
from kubesched.framework.status import PluginFault

_NONE = "no pods from pod group are assigned to any of the candidate placements"


class PodGroupPodsCount:
    name: ClassVar[str] = "PodGroupPodsCount"
    prefers_more_pods: ClassVar[bool] = True

    def __init__(self, _args: object, handle: Handle) -> None:
        self._handle = handle

    def score_placement(self, group: GroupCycle, proposed: PlacementAssignments) -> int:
        return len(proposed.assignments) + self._n_scheduled(group)

    def score_counted(self, group: GroupCycle, counted: CountedPlacements) -> IntArray:
        n_pods = counted.counts + self._n_scheduled(group)
        scores: IntArray = n_pods * MAX_NODE_SCORE // n_pods.max()
        return scores

    def _n_scheduled(self, group: GroupCycle) -> int:
        members = self._handle.group_members(group.key)
        return 0 if members is None else members.n_scheduled

    def normalize_placement_scores(self, group: GroupCycle, scores: Sequence[int]) -> Sequence[int]:
        most = max(scores, default=0)
        if most == 0:
            raise PluginFault(_NONE)
        return [score * MAX_NODE_SCORE // most for score in scores]
