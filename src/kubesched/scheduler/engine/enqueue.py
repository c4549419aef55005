"""PreEnqueue: may the pod enter the queue at all?"""

from __future__ import annotations

from kubesched.framework.extension_points import PreEnqueue
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import OK, Status
from kubesched.scheduler.engine.metrics.timing import timed_extension_point
from kubesched.scheduler.engine.plugin_call import PluginError, blamed
from kubesched.scheduler.engine.profile import Profile

_RUNNING = 'running PreEnqueue plugin "{}"'


@timed_extension_point("PreEnqueue")
def run_pre_enqueue(profile: Profile, pod: PodInfo) -> Status:
    """The first plugin that holds the pod back, or OK."""
    for plugin in profile.pre_enqueue:
        try:
            status = plugin.pre_enqueue(pod)
        except Exception as bug:
            raise blamed(bug, plugin.name, _RUNNING) from bug
        if status is not OK and not status.is_success:
            return status.by(plugin.name)
    return OK


def run_gate(plugin: PreEnqueue, pod: PodInfo) -> Status:
    try:
        status = plugin.pre_enqueue(pod)
    except Exception as bug:
        raise blamed(bug, plugin.name, _RUNNING) from bug
    return status if status is OK or status.is_success else status.by(plugin.name)


def checked_pre_enqueue(profile: Profile, pod: PodInfo) -> Status:
    """As `run_pre_enqueue`; a plugin that broke holds the pod back."""
    try:
        return run_pre_enqueue(profile, pod)
    except PluginError as bug:
        return Status.error(bug.message).by(bug.plugin)


def checked_gate(plugin: PreEnqueue, pod: PodInfo) -> Status:
    """One plugin alone; if it broke, it holds the pod back."""
    try:
        return run_gate(plugin, pod)
    except PluginError as bug:
        return Status.error(bug.message).by(bug.plugin)
