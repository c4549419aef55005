"""The class cache changes speed, never an answer: each decision is made a second time from nothing."""

from __future__ import annotations

from harness.chaos.checks.violation import Violation
from kubesched.scheduler.engine.cycle import Decision, ProfileScheduler
from kubesched.scheduler.engine.loop import Scheduler
from kubesched.scheduler.engine.score import ByName
from kubesched.scheduler.queue import QueuedPodInfo

INVARIANT = "the class cache never changes an answer"


class SameAnswer:
    """Decides before the loop does, and compares afterwards."""

    def __init__(self) -> None:
        self._expected: Decision | None = None
        self._known: set[str] = set()

    def before_cycle(self, loop: Scheduler) -> None:
        self._expected = None
        self._known = set(loop.bindings)
        queued = _next_pod(loop)
        if queued is None or queued.info.pod.is_terminating or loop.cluster.is_assumed(queued.key):
            return
        if loop.groups is not None and queued.info.spec.scheduling_group is not None:
            return  # decided together with others of its group, after those before it
        own = loop.schedulers[queued.info.spec.scheduler_name]
        plain = ProfileScheduler(loop.cluster, own.profile, ByName(), 100, own.handle)
        self._expected = plain.decide(queued.info)

    def after_cycle(self, loop: Scheduler) -> None:
        expected, self._expected = self._expected, None
        if expected is None:
            return
        binding = loop.bindings.get(expected.pod.uid) if expected.pod.uid not in self._known else None
        if binding is not None and binding.decision.best != expected.best:
            raise Violation(
                INVARIANT, f"{expected.pod.name}: {binding.decision.best}, without the cache {expected.best}"
            )


def _next_pod(loop: Scheduler) -> QueuedPodInfo | None:
    contents = loop.queue.contents
    waiting = contents.active or [queued for queued in contents.backoff if queued.is_rejected]
    return waiting[0] if waiting else None
