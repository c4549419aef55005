"""PreEnqueue: may the pod enter the queue at all?"""

from __future__ import annotations

from kubesched.engine.plugin_call import PluginError, guarded
from kubesched.engine.profile import Profile
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import OK, Status


def run_pre_enqueue(profile: Profile, pod: PodInfo) -> Status:
    """The first plugin that holds the pod back, or OK."""
    for plugin in profile.pre_enqueue:
        with guarded(plugin.name, 'running PreEnqueue plugin "{}"'):
            status = plugin.pre_enqueue(pod)
        if not status.is_success:
            return status.by(plugin.name)
    return OK


def checked_pre_enqueue(profile: Profile, pod: PodInfo) -> Status:
    """As `run_pre_enqueue`; a plugin that broke holds the pod back."""
    try:
        return run_pre_enqueue(profile, pod)
    except PluginError as bug:
        return Status.error(bug.message).by(bug.plugin)
