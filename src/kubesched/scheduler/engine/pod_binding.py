"""A pod on its way from assumed to bound, as the loop keeps it. Next: `bind`, for the steps it goes through."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kubesched.framework.extension_points import PreBind
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import OK, Status
from kubesched.scheduler.engine.bind import BindingSteps, plugins_that_prepare, steps_to_bind
from kubesched.scheduler.engine.cycle import Decision, ProfileScheduler
from kubesched.scheduler.engine.extender import HTTPExtender
from kubesched.scheduler.engine.permit import WaitingPod, run_permit
from kubesched.scheduler.engine.plugin_call import PluginError
from kubesched.scheduler.engine.plugin_turn import broken_turn
from kubesched.scheduler.engine.reserve import run_reserve
from kubesched.scheduler.queue import QueuedPodInfo


@dataclass(slots=True)
class PodBinding:
    """A pod on its way from assumed to bound."""

    queued: QueuedPodInfo
    scheduler: ProfileScheduler
    decision: Decision
    assumed: PodInfo
    steps: BindingSteps
    waiting: WaitingPod | None
    waiting_since_s: float
    has_preparations: bool
    """It waits for a permit, or PreBind plugins have something to do."""
    started_s: float
    """When the attempt began, by the clock of the metrics."""
    is_preparing: bool = False
    """Prebind plugins are at work: until they are done, the binding can be called off."""
    is_preempted: bool = False
    """It is called off: another pod takes the place."""
    is_withheld: bool = False
    """The last thing it asked for was not done, since we may not act: nothing is wrong with the pod."""
    effect: int = 0
    """The number of the effect whose answer it waits for, or waited for last."""


def begin_binding(
    queued: QueuedPodInfo,
    scheduler: ProfileScheduler,
    decision: Decision,
    assumed: PodInfo,
    extenders: Sequence[HTTPExtender],
    started_s: float,
    now_s: float,
) -> tuple[PodBinding, Status]:
    """Reserve and permit. Unless the status is OK, the binding is to be undone."""
    profile, cycle, node_name = scheduler.profile, decision.cycle, decision.node_name
    waiting: WaitingPod | None = None
    preparing: Sequence[PreBind] = ()
    try:
        status = run_reserve(profile, cycle, assumed, node_name) if decision.needs_reserve else OK
        if status is OK and profile.permit:
            permit = run_permit(profile, cycle, assumed, node_name, now_s)
            if isinstance(permit, WaitingPod):
                waiting = permit
            else:
                status = permit
        if status is OK and decision.needs_reserve:
            preparing = plugins_that_prepare(profile, cycle, assumed, node_name)
    except PluginError as bug:
        status = broken_turn(profile, bug, assumed)
    steps = steps_to_bind(profile, cycle, assumed, node_name, waiting, preparing, extenders)
    has_preparations = waiting is not None or bool(preparing)
    return PodBinding(queued, scheduler, decision, assumed, steps, waiting, now_s, has_preparations, started_s), status
