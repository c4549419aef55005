"""Binding cycles that wait for somebody else: a volume controller, a device driver.

What is waited for shows in the objects that informers bring, so nothing has to be asked outside: the wait is looked at
again when such an object changes, when a second has passed, and when its time is over.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kubesched.framework.effects import Done, Failed, WaitUntil
from kubesched.k8s.model.meta import KubeObject

Advance = Callable[[str, object, float], None]
"""(uid of the pod, answer, now) -> None: the binding cycle goes on."""

_LOOK_EVERY_S = 1.0
_DEADLINE_EXCEEDED = Failed("context deadline exceeded")


@dataclass(frozen=True, slots=True)
class WaitBroke:
    """In place of an answer: `is_settled` raised this."""

    bug: Exception


@dataclass(slots=True)
class _Wait:
    pod_name: str
    action: WaitUntil
    until_s: float
    look_at_s: float


class Waits:
    def __init__(self, advance: Advance) -> None:
        self._advance = advance
        self._waits: dict[str, _Wait] = {}

    def add(self, uid: str, pod_name: str, action: WaitUntil, now_s: float) -> None:
        """A pod's binding cycle waits."""
        until_s = now_s + action.timeout_s
        self._waits[uid] = _Wait(pod_name, action, until_s, min(now_s + _LOOK_EVERY_S, until_s))
        if action.looks_at_once:
            self._look(uid, now_s)

    def look(self, now_s: float) -> None:
        """Time has passed."""
        for uid in [uid for uid, wait in self._waits.items() if wait.look_at_s <= now_s]:
            self._look(uid, now_s)

    def object_changed(self, item: KubeObject, now_s: float) -> None:
        """The object was added, changed or deleted: whoever watches its kind looks again."""
        if self._waits:
            for uid in [uid for uid, wait in self._waits.items() if isinstance(item, wait.action.watched)]:
                self._look(uid, now_s)

    def pod_deleted(self, uid: str, now_s: float) -> None:
        wait = self._waits.get(uid)
        if wait is not None:
            gone = Failed(f'pod does not exist any more: pod "{wait.pod_name}" not found', is_gone=True)
            self._end(uid, gone, now_s)

    def forget(self, uid: str) -> None:
        """The binding cycle is over."""
        self._waits.pop(uid, None)

    def __contains__(self, uid: str) -> bool:
        return uid in self._waits

    def next_deadline_s(self) -> float | None:
        return min((wait.look_at_s for wait in self._waits.values()), default=None)

    def _look(self, uid: str, now_s: float) -> None:
        wait = self._waits.get(uid)
        if wait is None:  # another one's end ended this one too
            return
        try:
            is_settled = wait.action.is_settled()
        except Exception as bug:  # noqa: BLE001  whatever it is, the plugin that asked is blamed for it
            self._end(uid, WaitBroke(bug), now_s)
            return
        if is_settled:
            self._end(uid, Done(), now_s)
        elif wait.until_s <= now_s:
            self._end(uid, _DEADLINE_EXCEEDED, now_s)
        else:
            wait.look_at_s = min(now_s + _LOOK_EVERY_S, wait.until_s)

    def _end(self, uid: str, answer: object, now_s: float) -> None:
        del self._waits[uid]
        self._advance(uid, answer, now_s)
