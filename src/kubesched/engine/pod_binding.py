"""A pod on its way from assumed to bound, as the loop keeps it. Next: `bind`, for the steps it goes through."""

from __future__ import annotations

from dataclasses import dataclass

from kubesched.engine.bind import BindingSteps
from kubesched.engine.cycle import Decision, Scheduler
from kubesched.engine.permit import WaitingPod
from kubesched.framework.pod_info import PodInfo
from kubesched.queue import QueuedPodInfo


@dataclass(slots=True)
class PodBinding:
    """A pod on its way from assumed to bound."""

    queued: QueuedPodInfo
    scheduler: Scheduler
    decision: Decision
    assumed: PodInfo
    steps: BindingSteps
    waiting: WaitingPod | None
    waiting_since_s: float
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
