"""Reserve: plugins keep what the pod will need until it is bound; unreserve gives it back, in reverse order."""

from __future__ import annotations

from kubesched.engine.metrics.stage_watch import timed_stage
from kubesched.engine.plugin_call import PluginError, blamed, guarded
from kubesched.engine.profile import Profile
from kubesched.framework.cycle import Cycle
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import OK, Status


@timed_stage("Reserve")
def run_reserve(profile: Profile, cycle: Cycle, pod: PodInfo, node_name: str) -> Status:
    """All or nothing: if a plugin refuses, every plugin gives back what it kept."""
    for plugin in profile.reserve:
        try:
            status = plugin.reserve(cycle, pod, node_name)
        except Exception as bug:
            raise blamed(bug, plugin.name, 'running Reserve plugin "{}"') from bug
        if status is not OK and not status.is_success:
            run_unreserve(profile, cycle, pod, node_name)
            return status.by(plugin.name)
    return OK


@timed_stage("Unreserve")
def run_unreserve(profile: Profile, cycle: Cycle, pod: PodInfo, node_name: str) -> list[PluginError]:
    """Every plugin gives back what it kept, also if another one breaks over it. Gives what broke."""
    broken = []
    for plugin in reversed(profile.reserve):
        try:
            with guarded(plugin.name, 'running Unreserve plugin "{}"'):
                plugin.unreserve(cycle, pod, node_name)
        except PluginError as bug:
            broken.append(bug)
    return broken
