"""A gang is bound whole, or not at all: whenever the loop begins to bind pods of one, enough have a node, or wait."""

from __future__ import annotations

from harness.chaos.checks.violation import Violation
from kubesched.k8s.model.scheduling import AnyGroup, CompositePodGroup, group_key_of
from kubesched.scheduler.engine.loop import Scheduler

INVARIANT = "a gang is bound whole, or not at all"


class WholeGangs:
    def __init__(self) -> None:
        self._known: set[str] = set()

    def check(self, loop: Scheduler) -> None:
        begun = [binding for uid, binding in loop.bindings.items() if uid not in self._known]
        self._known = set(loop.bindings)
        states = loop.cluster.groups
        for binding in begun:
            key = group_key_of(binding.assumed.pod)
            pod_group = loop.cluster.objects.pod_groups.get(key)
            if states is None or pod_group is None or binding.waiting is not None:
                continue
            if not _is_whole(loop, loop.cluster.forest.root_of(key) if loop.cluster.forest is not None else ""):
                raise Violation(INVARIANT, f"{binding.assumed.name} is bound, and too few groups beside {key} are")
            state = states.get(key)
            n_placed = 0 if state is None else state.n_scheduled
            if n_placed < pod_group.min_count:
                message = f"{binding.assumed.name} is bound with {n_placed} of {pod_group.min_count} of {key}"
                raise Violation(INVARIANT, message)


def _is_whole(loop: Scheduler, key: str) -> bool:
    """Whether so many groups below have nodes as it asks for; of what is not above others, it is said elsewhere."""
    forest = loop.cluster.forest
    group = None if forest is None else forest.get(key)
    if forest is None or not isinstance(group, CompositePodGroup):
        return True
    return sum(_has_nodes(loop, child) for child in forest.children(key)) >= (group.min_count or 1)


def _has_nodes(loop: Scheduler, group: AnyGroup) -> bool:
    if isinstance(group, CompositePodGroup):
        return _is_whole(loop, group.group_key)
    members = loop.cluster.group_members(group.group_key)
    return members is not None and members.n_scheduled >= (group.min_count or 1)
