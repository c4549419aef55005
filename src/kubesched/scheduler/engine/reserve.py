"""Reserve: plugins keep what the pod will need until it is bound; unreserve gives it back, in reverse order."""

from __future__ import annotations

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import OK, Status
from kubesched.scheduler.engine.metrics.timing import timed_extension_point
from kubesched.scheduler.engine.observations import PluginBroke
from kubesched.scheduler.engine.plugin_call import PluginError, blamed, guarded, turn_began, turn_ended
from kubesched.scheduler.engine.profile import Profile


@timed_extension_point("Reserve")
def run_reserve(profile: Profile, cycle: CycleState, pod: PodInfo, node_name: str) -> Status:
    """In turn, until a plugin refuses; then whoever called has all of them give back what they kept."""
    for plugin in profile.reserve:
        turn_began(profile, "Reserve", plugin.name, pod, node_name)
        try:
            status = plugin.reserve(cycle, pod, node_name)
        except Exception as bug:
            raise blamed(bug, plugin.name, 'running Reserve plugin "{}"') from bug
        status = turn_ended(profile, "Reserve", plugin.name, pod, node_name, status)
        if status is not OK and not status.is_success:
            return status
    return OK


@timed_extension_point("Unreserve")
def run_unreserve(profile: Profile, cycle: CycleState, pod: PodInfo, node_name: str) -> None:
    """Every plugin gives back what it kept, also if another one breaks over it."""
    for plugin in reversed(profile.reserve):
        try:
            with guarded(plugin.name, 'running Unreserve plugin "{}"'):
                plugin.unreserve(cycle, pod, node_name)
        except PluginError as bug:
            tell = profile.observers.trouble
            if tell is not None:
                tell(PluginBroke(bug, pod))
