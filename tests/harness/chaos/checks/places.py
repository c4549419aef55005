"""No pod is lost: a pod that waits for a node is in exactly one place, and nothing else is in any.

Judged by what the loop was told: a pod that the server has deleted or bound may still wait here until the loop hears
of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from harness.chaos.checks.violation import Violation
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import KubeObject
from kubesched.scheduler.engine.loop import Scheduler

INVARIANT = "no pod is lost"


def check_places(loop: Scheduler, told: Iterable[KubeObject]) -> None:
    pending = {pod.metadata.uid: pod for pod in told if isinstance(pod, Pod) and _waits(pod)}
    places = _places(loop)
    for uid, pod in pending.items():
        found = places.pop(uid, [])
        if pod.spec.scheduler_name not in loop.schedulers:
            if found:
                raise Violation(INVARIANT, f"{pod.name} is none of this scheduler's pods, but {' and '.join(found)}")
        elif pod.is_terminating:
            continue  # left out when its turn comes; its binding, if one is under way, will fail
        elif len(found) > 1:
            raise Violation(INVARIANT, f"{pod.name} is {' and '.join(found)} at once")
        elif not found:
            raise Violation(INVARIANT, f"{pod.name} waits for a node, but is nowhere")
    for uid, found in places.items():
        if any(place not in _UNDER_WAY for place in found):
            raise Violation(INVARIANT, f"{uid} does not wait for a node, but is {' and '.join(found)}")


_UNDER_WAY = ("asking an extender", "standing aside", "waiting", "binding", "assumed")
"""Where a pod may be for a while after it was deleted or bound: until what is under way comes to its end."""


def _waits(pod: Pod) -> bool:
    return not pod.spec.node_name and not pod.is_terminal


def _places(loop: Scheduler) -> dict[str, list[str]]:
    """By uid, where the pod is."""
    contents, bindings = loop.queue.contents, loop.bindings
    standing_aside = set() if loop.groups is None else loop.groups.uids()
    places: dict[str, list[str]] = defaultdict(list)
    for name, pods in (
        ("active", contents.active),
        ("in backoff", contents.backoff),
        ("unschedulable", contents.unschedulable),
        ("gated", contents.gated),
    ):
        for queued in pods:
            places[queued.uid].append(name)
    for queued in contents.in_flight:
        if loop.paused is not None and queued.uid in loop.paused:
            places[queued.uid].append("asking an extender")
        elif queued.uid in standing_aside:
            places[queued.uid].append("standing aside")
        elif queued.uid not in bindings or bindings[queued.uid].waiting is None:
            places[queued.uid].append("in flight")
    for uid, binding in bindings.items():
        places[uid].append("binding" if binding.waiting is None else "waiting")
    for key in loop.cluster.assumed_keys:
        uid = loop.cluster.placed[key].uid
        if uid not in bindings:
            places[uid].append("assumed")
    return places
