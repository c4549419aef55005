"""Permit: go, no, or wait; and the pods that wait.

A waiting pod goes on when every plugin that asked it to wait has allowed it, and is rejected when one rejects it or
the shortest of their timeouts has passed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import OK, Status
from kubesched.scheduler.engine.metrics.timing import timed_extension_point
from kubesched.scheduler.engine.observations import PermitWaits
from kubesched.scheduler.engine.plugin_call import blamed, turn_began, turn_ended
from kubesched.scheduler.engine.profile import Profile

LONGEST_WAIT_S = 15 * 60.0
AT_ONCE_S = 0.0
"""A deadline that has passed, whatever the time is."""
_WAITS = Status.wait()


@dataclass(slots=True)
class WaitingPod:
    """A pod that some plugins asked to wait: their names with their deadlines."""

    info: PodInfo
    node_name: str
    deadlines_s: dict[str, float]
    reasons: tuple[str, ...] = ()
    """What the plugins say that it waits for."""
    rejection: Status | None = None

    @property
    def status(self) -> Status:
        """What the extension point came to."""
        return _WAITS

    def allow(self, plugin: str) -> None:
        self.deadlines_s.pop(plugin, None)

    def reject(self, plugin: str, message: str) -> None:
        self.rejection = Status.unschedulable(message).by(plugin)

    def preempt(self, plugin: str, message: str) -> None:
        """Another pod takes its place. That says nothing against the pod: it is tried again after a backoff."""
        self.rejection = Status.error(f"waiting on permit for pod: {message}").by(plugin)

    @property
    def deadline_s(self) -> float:
        """When there is something to do about it: at once, if it was allowed or rejected."""
        return AT_ONCE_S if self.rejection is not None or not self.deadlines_s else min(self.deadlines_s.values())

    def outcome(self, now_s: float, waited_s: float) -> Status | None:
        """None while the pod still has to wait."""
        if self.rejection is not None:
            return self.rejection
        if not self.deadlines_s:
            return OK
        late = min(self.deadlines_s, key=lambda plugin: self.deadlines_s[plugin])
        if self.deadlines_s[late] > now_s:
            return None
        return Status.unschedulable(f"rejected due to timeout after waiting {waited_s:g}s at plugin {late}").by(late)


@timed_extension_point("Permit")
def run_permit(profile: Profile, cycle: CycleState, pod: PodInfo, node_name: str, now_s: float) -> Status | WaitingPod:
    """OK, a rejection, or the pod as one that waits."""
    deadlines: dict[str, float] = {}
    reasons: tuple[str, ...] = ()
    for plugin in profile.permit:
        turn_began(profile, "Permit", plugin.name, pod, node_name)
        try:
            result = plugin.permit(cycle, pod, node_name)
        except Exception as bug:
            raise blamed(bug, plugin.name, 'running Permit plugin "{}"') from bug
        status = turn_ended(profile, "Permit", plugin.name, pod, node_name, result.status)
        if status is OK:
            continue
        if status.is_wait:
            reasons += status.reasons
            deadlines[plugin.name] = now_s + min(result.timeout_s, LONGEST_WAIT_S)
        elif not status.is_success:
            return status
    if not deadlines:
        return OK
    tell = profile.observers.steps
    if tell is not None:
        tell(PermitWaits(pod, node_name, tuple(deadlines)))
    return WaitingPod(pod, node_name, deadlines, reasons)


def next_deadline_s(waiting: Iterable[WaitingPod]) -> float | None:
    return min((pod.deadline_s for pod in waiting), default=None)
