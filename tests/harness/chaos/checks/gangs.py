"""A gang is bound whole, or not at all: whenever the loop begins to bind pods of one, enough have a node, or wait."""

from __future__ import annotations

from harness.chaos.checks.violation import Violation
from kubesched.k8s.model.scheduling import group_key_of
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
            state = states.get(key)
            n_placed = 0 if state is None else state.n_scheduled
            if n_placed < pod_group.min_count:
                message = f"{binding.assumed.name} is bound with {n_placed} of {pod_group.min_count} of {key}"
                raise Violation(INVARIANT, message)
