"""Binding cycles that wait for somebody else: a volume controller, a device driver.

What is waited for shows in the objects that informers bring, so nothing has to be asked outside: the wait is looked at
again when such an object changes, when a second has passed, and when its time is over.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kubesched.framework.effects import Done, Failed
from kubesched.scheduler.plugins.dynamic_resources.effects import AwaitClaims
from kubesched.scheduler.plugins.volume_binding.effects import DEADLINE_EXCEEDED, WaitForBinding, pod_is_gone

Advance = Callable[[str, object, float], None]
"""(uid of the pod, answer, now) -> None: the binding cycle goes on."""

_LOOK_EVERY_S = 1.0


@dataclass(slots=True)
class _Wait:
    pod_name: str
    action: WaitForBinding | AwaitClaims
    until_s: float
    look_at_s: float


class Waits:
    def __init__(self, advance: Advance) -> None:
        self._advance = advance
        self._waits: dict[str, _Wait] = {}
        self._started_s: dict[str, float] = {}

    def add(self, uid: str, pod_name: str, action: WaitForBinding | AwaitClaims, now_s: float) -> None:
        """A pod's binding cycle waits. Its time counts from the first wait of this kind on."""
        started_s = self._started_s.setdefault(uid, now_s) if isinstance(action, WaitForBinding) else now_s
        until_s = started_s + action.timeout_s
        self._waits[uid] = _Wait(pod_name, action, until_s, min(now_s + _LOOK_EVERY_S, until_s))
        if isinstance(action, AwaitClaims):
            self._look(uid, now_s)

    def look(self, now_s: float, *, at_all: bool = False) -> None:
        """Time has passed, or (`at_all`) an object changed that somebody may wait for."""
        due = [uid for uid, wait in self._waits.items() if at_all or wait.look_at_s <= now_s]
        for uid in due:
            self._look(uid, now_s)

    def pod_deleted(self, uid: str, now_s: float) -> None:
        wait = self._waits.get(uid)
        if wait is not None and isinstance(wait.action, WaitForBinding):
            self._end(uid, pod_is_gone(wait.pod_name), now_s)

    def forget(self, uid: str) -> None:
        """The binding cycle is over."""
        self._waits.pop(uid, None)
        self._started_s.pop(uid, None)

    def __contains__(self, uid: str) -> bool:
        return uid in self._waits

    def next_deadline_s(self) -> float | None:
        return min((wait.look_at_s for wait in self._waits.values()), default=None)

    def _look(self, uid: str, now_s: float) -> None:
        wait = self._waits.get(uid)
        if wait is None:
            return
        if isinstance(wait.action, AwaitClaims) and wait.action.is_settled():
            self._end(uid, Done(), now_s)
        elif wait.until_s <= now_s:
            self._end(uid, DEADLINE_EXCEEDED if isinstance(wait.action, WaitForBinding) else _TIME_IS_OVER, now_s)
        elif isinstance(wait.action, WaitForBinding):
            self._end(uid, Done(), now_s)
        else:
            wait.look_at_s = min(now_s + _LOOK_EVERY_S, wait.until_s)

    def _end(self, uid: str, answer: object, now_s: float) -> None:
        del self._waits[uid]
        self._advance(uid, answer, now_s)


_TIME_IS_OVER = Failed("context deadline exceeded")
