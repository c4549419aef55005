"""A pod group whose turn has come steps aside once, so that pods that come in that moment need not wait for its trial.

Nothing of the group is on the table yet: whatever is heard meanwhile counts when it is tried. Those that go first may
take no room that it needs. Where its pods can be counted it is known how many nodes can be spared, and a pod takes room
on one node; if none can be spared, or if nobody came lately who would wait, the group is tried at once.

Next: `group_cycle`, which asks, and goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kubesched.framework.groups import GroupCycle
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.engine.cycle import ProfileScheduler
from kubesched.scheduler.engine.placements import FitBook, FitCounts, generate
from kubesched.scheduler.queue import QueuedPodInfo, SchedulingQueue


@dataclass(slots=True)
class StandingGroup:
    """Popped and collected, and not tried yet."""

    key: str
    queued: list[QueuedPodInfo]
    n_spare: int
    """So many pods may still go first."""
    since_s: float
    """When its last pod came: others that came later may."""
    is_new: bool = True
    """What has come by now was not heard yet."""

    def first_of_others(self, queue: SchedulingQueue) -> QueuedPodInfo | None:
        """The pod that is to be tried before the group, if there is one: popped by the caller."""
        self.is_new = False
        first = queue.peek() if self.n_spare > 0 else None
        if first is None or first.queued_at_s <= self.since_s or first.info.pod.spec.scheduling_group is not None:
            return None
        if first.info.signature.affinity_class >= 0:  # it may keep the group's pods away from more than one node
            return None
        self.n_spare -= 1
        return first


def nodes_to_spare(
    cluster: Cluster, scheduler: ProfileScheduler, group: GroupCycle, book: FitBook, *, has_topology: bool
) -> int:
    """How many nodes, whichever they are, could be filled by others, and all pods of the group would fit all the same;
    0 if that is not known."""
    counts = book.counts(scheduler, group.pods)
    if counts is None:
        return 0
    return _sets_to_spare(cluster, scheduler, group, book, counts) if has_topology else counts.nodes_to_spare()


def _sets_to_spare(
    cluster: Cluster, scheduler: ProfileScheduler, group: GroupCycle, book: FitBook, counts: FitCounts
) -> int:
    """A node is part of one placement: of those that take all pods, all but one."""
    found = generate(cluster, scheduler.profile, group)
    if not found.status.is_success or len(found.placements) < 2:
        return 0
    n_pods = counts.within_each(book.parts_of(found.placements))
    return int(np.count_nonzero(n_pods == len(group.pods))) - 1


def is_of_one_profile(queued: Sequence[QueuedPodInfo]) -> bool:
    name = queued[0].info.spec.scheduler_name
    return all(member.info.spec.scheduler_name == name for member in queued)
