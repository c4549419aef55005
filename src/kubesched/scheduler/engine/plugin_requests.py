"""What plugins ask of the loop through their handle: pods held by Permit to be let go, pods to be tried again.

Plugins ask in the middle of some pod's cycle. What they ask for is taken note of, and done at the next `tick`, which is
due at once.

Next: `permit` for the pods that wait, `kubesched.scheduler.queue` for those that are tried again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import inf

from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.model.meta import PodKey
from kubesched.scheduler.engine.permit import WaitingPod
from kubesched.scheduler.queue import SchedulingQueue

_PACE_S = 0.01
"""Plugins whose pods make each other try again and again do it no more often than this."""


class PluginRequests:
    def __init__(self, waiting: Callable[[], list[WaitingPod]], queue: SchedulingQueue | None) -> None:
        self._waiting = waiting
        self._queue = queue
        self._to_activate: dict[PodKey, None] = {}
        self._activated_at_s = -inf

    def waiting_pods(self) -> Sequence[WaitingPod]:
        return self._waiting()

    def allow(self, uid: str, plugin: str) -> bool:
        held = self._find(uid)
        if held is not None:
            held.allow(plugin)
        return held is not None

    def reject(self, uid: str, plugin: str, message: str) -> bool:
        held = self._find(uid)
        if held is not None:
            held.reject(plugin, message)
        return held is not None

    def activate(self, pods: Iterable[PodInfo]) -> None:
        if self._queue is not None:
            self._to_activate.update((pod.key, None) for pod in pods)

    def next_deadline_s(self) -> float | None:
        return self._activated_at_s + _PACE_S if self._to_activate else None

    def tick(self, now_s: float) -> None:
        if self._to_activate and self._queue is not None and now_s >= self._activated_at_s + _PACE_S:
            keys, self._to_activate, self._activated_at_s = list(self._to_activate), {}, now_s
            self._queue.activate(keys, now_s)

    def _find(self, uid: str) -> WaitingPod | None:
        return next((held for held in self._waiting() if held.info.uid == uid), None)


NOBODY_TO_ASK = PluginRequests(list, None)
"""For schedulers that decide without a loop: nothing waits, nothing is tried again."""
