"""Pod groups, as plugins see them: who belongs to one, the cycle that tries its pods together, and where they could go.

In a group's cycle its pods are placed one after another as a trial, such that each sees those before it; then all that
found a node are bound, or none. With a topology constraint that is done once for each *placement*, a set of nodes, and
the placement with the highest score is taken.

| extension point (as configured) | method(s) | the answer |
|---|---|---|
| placementGenerate | `generate_placements` | the sets of nodes that the group could go to |
| placementScore | `score_placement` (`normalize_placement_scores`) | how good each of them is, 0 to 100 |
| (not configured) | `pod_group_post_filter` | what to do when the group fits nowhere |
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Protocol, runtime_checkable

import numpy as np

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.extension_points import Plugin
from kubesched.framework.nodes import IntArray, RowArray, RowSets
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import OK, Status
from kubesched.k8s.model.scheduling import AnyGroup


@dataclass(frozen=True, slots=True)
class GroupFeatures:
    """What is on about pod groups."""

    groups: bool = False
    """Members of a group are tried together."""
    gangs: bool = False
    topology: bool = False
    preemption: bool = False
    claims: bool = False
    """Groups have device claims of their own."""
    composites: bool = False
    """There are groups of groups (v1.37)."""
    own_preemption_policy: bool = False
    """Whether a group preempts is said by the group itself (v1.37)."""
    alpha: bool = False
    """With v1.36's flaws."""
    claims_race: bool = False
    """Of pods that share a claim, those fail that did not write its allocation first: v1.37 still has this flaw."""


class PodGroupMembers(Protocol):
    """The pods that name one group, whether the PodGroup exists or not."""

    @property
    def n_pods(self) -> int: ...
    @property
    def n_scheduled(self) -> int:
        """Those with a node, in a trial too."""
        ...

    def unscheduled_pods(self) -> Collection[PodInfo]: ...
    def scheduled_pods(self) -> Collection[PodInfo]: ...


@dataclass(slots=True)
class GroupCycle:
    """Of one group, kept in the cycle of each of its pods as long as they are placed for trial only."""

    key: str
    """`namespace/name` of the PodGroup; of a group of groups its `group_key`."""
    pods: Sequence[PodInfo]
    """Those that are tried, in order."""
    state: CycleState = field(default_factory=CycleState)
    """What plugins keep for all pods of the group together."""


@dataclass(frozen=True, slots=True)
class Placement:
    """A set of nodes that a group could go to."""

    name: str
    rows: RowArray
    """In the order in which nodes are searched."""


@dataclass(frozen=True, slots=True)
class PlacementsResult:
    status: Status = OK
    placements: Sequence[Placement] = ()


@dataclass(frozen=True, slots=True)
class PlacementAssignments:
    """What became of a group within a placement: its pods that found a node, and the row of each."""

    placement: Placement
    assignments: Sequence[tuple[PodInfo, int]]


@runtime_checkable
class PlacementGenerate(Plugin, Protocol):
    def generate_placements(self, group: GroupCycle, parent: Placement) -> PlacementsResult:
        """Parts of the parent placement."""
        ...


@runtime_checkable
class PlacementScore(Plugin, Protocol):
    def score_placement(self, group: GroupCycle, proposed: PlacementAssignments) -> int: ...


@runtime_checkable
class NormalizePlacementScores(Plugin, Protocol):
    def normalize_placement_scores(self, group: GroupCycle, scores: Sequence[int]) -> Sequence[int]:
        """Raw scores brought into 0 to 100."""
        ...


LARGE = 2**55
"""From here on a hundred times an amount may not fit in 64 bits."""


@dataclass(frozen=True, slots=True)
class CountedPlacements:
    """The same for many placements: how many pods of the group find a node in each, the first so many."""

    pods: Sequence[PodInfo]
    """Of the group, in order."""
    counts: IntArray
    _parts: RowSets
    _places: RowArray | None
    """Which of the parts these are; None: all."""

    def asked(self, resource: str) -> IntArray:
        """(n_placements,) what the containers of those that find a node ask for; as numbers of any size where that
        could run over 64 bits."""
        first = self.pods[0].signature
        if all(pod.signature is first for pod in self.pods):
            amount, most = first.resources.container_requests.get(resource, 0), len(self.pods)
            return self.counts * amount if amount < LARGE // most else self.counts.astype(object) * amount
        up_to = [0, *accumulate(pod.resources.container_requests.get(resource, 0) for pod in self.pods)]
        return np.array(up_to, dtype=np.int64 if up_to[-1] < LARGE else object).take(self.counts)

    def sums(self, values: IntArray, times: int = 0) -> IntArray:
        """(n_placements,) of a number for each row, the sum over each placement; as numbers of any size where so many
        times a sum could run over 64 bits."""
        return self._of_these(self._parts.sums(values, times))

    def kept_sums(self, name: str, values: IntArray, times: int = 0) -> IntArray:
        """The same of numbers that seldom change, such as what nodes have; they are known by this name."""
        return self._of_these(self._parts.kept_sums(name, values, times))

    def _of_these(self, sums: IntArray) -> IntArray:
        return sums if self._places is None else sums.take(self._places)


@runtime_checkable
class CountedPlacementScore(PlacementScore, Protocol):
    """Of plugins that look at nothing else of a group's pods than how many there are of them, and what they ask for.
    With the attribute `prefers_more_pods`, a placement never scores lower because more of them find a node there."""

    def score_counted(self, group: GroupCycle, counted: CountedPlacements) -> IntArray:
        """(n_placements,) what `score_placement` says of each, normalised."""
        ...


@runtime_checkable
class CompletesGroups(Plugin, Protocol):
    """Of a Permit plugin that asks for a number of pods."""

    def is_complete(self, key: str, n_scheduled: int) -> bool:
        """Whether so many pods with a node are enough for the group."""
        ...


TrySchedule = Callable[[], Status]
"""Whether the group would fit now, without anything being done about it."""


@runtime_checkable
class PodGroupPostFilter(Plugin, Protocol):
    def pod_group_post_filter(
        self, cycle: CycleState, group: GroupCycle, pod_group: AnyGroup, try_schedule: TrySchedule
    ) -> Status: ...
