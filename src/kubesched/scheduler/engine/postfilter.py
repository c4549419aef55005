"""PostFilter: no node fits; can anything be done about it?"""

from __future__ import annotations

from dataclasses import replace

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.results import NominatingMode, PostFilterResult
from kubesched.framework.status import Code, Status
from kubesched.scheduler.engine.diagnosis import Diagnosis
from kubesched.scheduler.engine.metrics.extension_point_watch import timed_extension_point
from kubesched.scheduler.engine.observations import PluginBroke
from kubesched.scheduler.engine.plugin_call import PluginError, guarded
from kubesched.scheduler.engine.profile import Profile


@timed_extension_point("PostFilter")
def run_post_filter(profile: Profile, cycle: CycleState, pod: PodInfo, diagnosis: Diagnosis) -> PostFilterResult:
    """Plugins in turn until one succeeds or knows that nothing helps; else the reasons of all of them."""
    reasons: list[str] = []
    last: PostFilterResult | None = None
    for plugin in profile.post_filter:
        try:
            with guarded(plugin.name, 'running PostFilter plugin "{}"'):
                result = plugin.post_filter(cycle, pod, diagnosis)
        except PluginError as bug:
            tell = profile.observers.trouble
            if tell is not None:
                tell(PluginBroke(bug, pod))
            return PostFilterResult(Status.error(bug.message).by(plugin.name))
        status = result.status.by(plugin.name)
        if status.is_success or status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return replace(result, status=status)
        if not status.is_rejected:
            return PostFilterResult(status)
        if result.mode is not NominatingMode.NOOP:
            last = result
        reasons.extend(status.reasons)
    status = Status.unschedulable(*reasons)
    return PostFilterResult(status) if last is None else replace(last, status=status)
