"""The binding cycle of one pod, as steps that need the world outside; and the pods on their way.

    wait for permit → prebind (volumes, devices) → bind (an extender, or else a plugin) → done

Binding cycles of many pods overlap; each is a generator that yields an action, is sent what became of it, and ends in a
status. `WaitForPermit` is the one action that never leaves the engine.

Next: `binding_cycles`, which runs them.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.effects import Failed, PatchPodStatus
from kubesched.framework.extension_points import PreBind
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import OK, SKIP, Status
from kubesched.scheduler.engine.cycle import Decision, ProfileScheduler
from kubesched.scheduler.engine.extender.http_extender import HTTPExtender
from kubesched.scheduler.engine.extender.verbs import bind_by_extender
from kubesched.scheduler.engine.metrics.timing import timed_extension_point, timed_steps
from kubesched.scheduler.engine.observations import PluginBroke
from kubesched.scheduler.engine.permit import WaitingPod, run_permit
from kubesched.scheduler.engine.plugin_call import PluginError, blamed, broken_turn, guarded, turn_began, turn_ended
from kubesched.scheduler.engine.profile import Profile
from kubesched.scheduler.engine.reserve import run_reserve
from kubesched.scheduler.queue import QueuedPodInfo

BindingSteps = Generator[object, object, Status]


@dataclass(frozen=True, slots=True)
class WaitForPermit:
    """Answered with the status the waiting came to."""

    waiting: WaitingPod


@dataclass(frozen=True, slots=True)
class PermitPassed:
    """The pod can no longer be called unschedulable: whatever fails from here on is an error. Not answered."""

    prepares: bool
    """Whether prebind plugins have something to do. Until they are done, the binding can be called off."""


@dataclass(frozen=True, slots=True)
class PreBindOver:
    """The binding can no longer be called off. Not answered."""


CALLED_OFF = Failed("context canceled")
"""What a prebind plugin is answered when its pod is preempted by another."""


def steps_to_bind(
    profile: Profile,
    cycle: CycleState,
    pod: PodInfo,
    node_name: str,
    waiting: WaitingPod | None,
    preparing: Sequence[PreBind],
    extenders: Sequence[HTTPExtender] = (),
) -> BindingSteps:
    """All steps from permit to bound. Most pods have nobody to wait for: theirs begin with the last one."""
    if not preparing and waiting is None:
        if not extenders:
            return timed_steps(profile, "Bind", _bind(profile, cycle, pod, node_name))
        return _bind_pod(profile, cycle, pod, node_name, extenders)
    return _prepare_and_bind(profile, cycle, pod, node_name, waiting, preparing, extenders)


def _prepare_and_bind(
    profile: Profile,
    cycle: CycleState,
    pod: PodInfo,
    node_name: str,
    waiting: WaitingPod | None,
    preparing: Sequence[PreBind],
    extenders: Sequence[HTTPExtender],
) -> BindingSteps:
    yield PatchPodStatus(pod.key, pod.uid, nominated_node_name=node_name)
    if waiting is not None:
        answer = yield WaitForPermit(waiting)
        assert isinstance(answer, Status)
        if not answer.is_success:
            return answer
    yield PermitPassed(prepares=bool(preparing))
    if preparing:
        status = yield from timed_steps(profile, "PreBind", _pre_bind(profile, preparing, cycle, pod, node_name))
        if not status.is_success:
            return status
        yield PreBindOver()
    return (yield from _bind_pod(profile, cycle, pod, node_name, extenders))


def _bind_pod(
    profile: Profile, cycle: CycleState, pod: PodInfo, node_name: str, extenders: Sequence[HTTPExtender]
) -> BindingSteps:
    if extenders:
        status = yield from bind_by_extender(extenders, pod, node_name)
        if not status.is_skip:
            return status
    return (yield from timed_steps(profile, "Bind", _bind(profile, cycle, pod, node_name)))


@timed_extension_point("PostBind")
def run_post_bind(profile: Profile, cycle: CycleState, pod: PodInfo, node_name: str) -> None:
    """Tells every plugin that the pod is bound, also if another one breaks over it."""
    for plugin in profile.post_bind:
        try:
            with guarded(plugin.name, 'running PostBind plugin "{}"'):
                plugin.post_bind(cycle, pod, node_name)
        except PluginError as bug:
            tell = profile.observers.trouble
            if tell is not None:
                tell(PluginBroke(bug, pod))


@timed_extension_point("PreBindPreFlight")
def plugins_that_prepare(profile: Profile, cycle: CycleState, pod: PodInfo, node_name: str) -> list[PreBind]:
    """The PreBind plugins that have something to do for this pod."""
    found = []
    for plugin in profile.pre_bind:
        try:
            status = plugin.pre_bind_pre_flight(cycle, pod, node_name)
        except Exception as bug:
            raise blamed(bug, plugin.name, 'running PreBindPreFlight "{}"') from bug
        if status is not SKIP and not status.is_skip:
            found.append(plugin)
    return found


def _pre_bind(
    profile: Profile, preparing: Sequence[PreBind], cycle: CycleState, pod: PodInfo, node_name: str
) -> BindingSteps:
    for plugin in preparing:
        turn_began(profile, "PreBind", plugin.name, pod, node_name)
        with guarded(plugin.name, 'running PreBind plugin "{}"'):
            status = yield from plugin.pre_bind(cycle, pod, node_name)
        status = turn_ended(profile, "PreBind", plugin.name, pod, node_name, status)
        if not status.is_success:
            return status
    return OK


def _bind(profile: Profile, cycle: CycleState, pod: PodInfo, node_name: str) -> BindingSteps:
    for plugin in profile.bind:
        turn_began(profile, "Bind", plugin.name, pod, node_name)
        try:
            status = yield from plugin.bind(cycle, pod, node_name)
        except Exception as bug:
            raise blamed(bug, plugin.name, 'running Bind plugin "{}"') from bug
        status = turn_ended(profile, "Bind", plugin.name, pod, node_name, status)
        if status is OK or not status.is_skip:
            return status
    return Status.error("no Bind plugin took the pod")


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
    *,
    is_reserved: bool = False,
    is_permitted: bool = False,
) -> tuple[PodBinding, Status]:
    """Reserve and permit, as far as that is not done yet. Unless the status is OK, the binding is to be undone."""
    profile, cycle, node_name = scheduler.profile, decision.cycle, decision.node_name
    waiting: WaitingPod | None = None
    preparing: Sequence[PreBind] = ()
    try:
        is_done = is_reserved or not decision.needs_reserve
        status = OK if is_done else run_reserve(profile, cycle, assumed, node_name)
        if status is OK and profile.permit and not is_permitted:
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


class Bindings(dict[str, PodBinding]):
    """Pods on their way from assumed to bound, by uid. Those that wait for a permit are known without a look at all
    others: it is asked at every turn, and thousands may stand in line to be bound."""

    def __init__(self) -> None:
        super().__init__()
        self._held: dict[str, PodBinding] = {}
        """Those that began to wait for a permit; whether they still do is found out when it is asked."""

    def begin(self, binding: PodBinding) -> None:
        uid = binding.assumed.uid
        self[uid] = binding
        if binding.waiting is not None:
            self._held.pop(uid, None)  # so that they stay in the order of those under way
            self._held[uid] = binding

    def waiting(self) -> list[PodBinding]:
        """Those that wait for a permit."""
        if not self._held:
            return []
        held = self._held.items()
        self._held = {uid: one for uid, one in held if one.waiting is not None and self.get(uid) is one}
        return list(self._held.values())

    def waiting_pods(self) -> list[WaitingPod]:
        return [binding.waiting for binding in self.waiting() if binding.waiting is not None]

    def preempt(self, victim: PodInfo, plugin: str) -> str:
        """Marks the victim, to be called off where it waits: gives the extension point, Permit or PreBind; empty if it
        is past both."""
        binding = self.get(victim.uid)
        if binding is None or (binding.waiting is None and not binding.is_preparing):
            return ""
        binding.is_preempted = True
        if binding.waiting is None:
            return "PreBind"
        binding.waiting.preempt(plugin, "preempted")
        return "Permit"
