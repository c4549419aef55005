"""What the engine does, told beside facts and effects to whoever listens: logs, recorders, tests.

An observation is a small record of one thing that happened. There are three streams: *steps*, every step of every
attempt, *decisions*, what each came to, and *trouble*, what a person should look at. Without a
listener no record is made: the engine only asks whether there is one.

    loop.listen(print)                               # everything
    loop.listen(log, steps=False, decisions=True)    # decisions, and trouble
    loop.listen(alarm, steps=False)                  # trouble only

A listener must not call back into the loop. What it raises is its own bug, and goes through to whoever drives the loop.

Next: `kubesched.live.logs.scheduling`, which writes them as kube-scheduler's log lines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import Status
from kubesched.k8s.model.core import Node, Pod, PodCondition
from kubesched.scheduler.queue import SchedulingQueue
from kubesched.scheduler.queue.sub_queues import Held, Moved

if TYPE_CHECKING:
    from kubesched.scheduler.engine.cycle import Decision
    from kubesched.scheduler.engine.group_trial import GroupOutcome
    from kubesched.scheduler.engine.metrics.timing import Trace
    from kubesched.scheduler.engine.plugin_call import PluginError
    from kubesched.scheduler.engine.self_check import Stray

ADDED, UPDATED, DELETED = "Add", "Update", "Delete"

# -- facts -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NodeEvent:
    """`action` is ADDED, UPDATED or DELETED."""

    action: str
    node: Node


@dataclass(frozen=True, slots=True)
class PodEvent:
    """Of a pod that has a node, or of one that is to get one from us."""

    action: str
    pod: Pod
    is_scheduled: bool


# -- pod groups --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GroupAttemptBegan:
    """These pods of a group are tried together."""

    group: str
    """`namespace/name` of the PodGroup."""
    pods: Sequence[PodInfo]


@dataclass(frozen=True, slots=True)
class PlacementTried:
    """What became of a group in one set of nodes."""

    group: str
    placement: str
    outcome: GroupOutcome


@dataclass(frozen=True, slots=True)
class GroupDecided:
    """What an attempt came to: so many pods are bound, and so many go back."""

    group: str
    outcome: GroupOutcome
    n_bound: int
    n_left: int


@dataclass(frozen=True, slots=True)
class GroupMissing:
    """There is no such PodGroup whose condition could be written."""

    group: str


# -- the queue ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PodMoved:
    """A pod came into a sub-queue: `active`, `backoff` or `unschedulable`."""

    pod: PodInfo
    queue: str
    event: str
    is_gated: bool


@dataclass(frozen=True, slots=True)
class PodGated:
    """A PreEnqueue plugin holds the pod back."""

    pod: PodInfo
    status: Status


# -- an attempt --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AttemptBegan:
    pod: PodInfo


@dataclass(frozen=True, slots=True)
class PodSkipped:
    """It is being deleted, or on its way to a node already."""

    pod: PodInfo


@dataclass(frozen=True, slots=True)
class PodDecided:
    """A node was chosen, or none fits, or a plugin broke; and what preemption came to."""

    decision: Decision
    can_preempt: bool
    """Whether there are PostFilter plugins at all."""


@dataclass(frozen=True, slots=True)
class AttemptFailed:
    """The pod is not scheduled for now, and will be told why."""

    pod: PodInfo
    message: str
    is_error: bool
    has_nodes: bool


@dataclass(frozen=True, slots=True)
class PodNotRequeued:
    """The attempt failed, and there is no pod to put back: it is gone (no `latest`), or another by now."""

    pod: PodInfo
    latest: Pod | None


@dataclass(frozen=True, slots=True)
class PodRequeued:
    """After a failed attempt."""

    pod: PodInfo
    queue: str
    n_attempts: int
    plugins: frozenset[str]


@dataclass(frozen=True, slots=True)
class PodStatusTold:
    """The condition that says why the pod is not scheduled, and the node it is nominated to (empty: none any more), if
    that is decided. What of it is new is written."""

    pod: PodInfo
    condition: PodCondition
    nominated_node_name: str | None


# -- from a node to a binding ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PluginTurnBegan:
    """A plugin's turn in Reserve, Permit, PreBind or Bind."""

    extension_point: str
    plugin: str
    pod: PodInfo
    node_name: str


@dataclass(frozen=True, slots=True)
class PluginTurnEnded:
    """The same, over. A rejection is a step; any other failure is trouble."""

    extension_point: str
    plugin: str
    pod: PodInfo
    node_name: str
    status: Status


@dataclass(frozen=True, slots=True)
class PermitWaits:
    """Plugins asked the pod to wait."""

    pod: PodInfo
    node_name: str
    plugins: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PermitOver:
    """The waiting is over: by being allowed, or not."""

    pod: PodInfo
    status: Status


@dataclass(frozen=True, slots=True)
class PodBound:
    pod: PodInfo
    node_name: str
    n_evaluated: int
    n_feasible: int
    was_flushed: bool
    """No event had brought it back: it was tried since it had waited for too long."""


@dataclass(frozen=True, slots=True)
class BindingUndone:
    """What was reserved and assumed for the pod is given back."""

    pod: PodInfo
    node_name: str
    status: Status


# -- preemption --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PreemptionConsidered:
    """No node fits, and nodes where evictions may help were tried."""

    pod: PodInfo
    ineligible: str = ""
    """Why the pod may not preempt; then nothing else is known."""
    n_potential: int = 0
    """Nodes where evictions may help at all."""
    n_budgets: int = 0
    offset: int = 0
    n_wanted: int = 0
    """Candidates that are enough to choose from."""
    node_name: str = ""
    """Where pods are evicted; empty if nowhere."""


@dataclass(frozen=True, slots=True)
class PreemptionStarted:
    preemptor: PodInfo
    node_name: str
    n_victims: int
    n_to_delete: int


@dataclass(frozen=True, slots=True)
class VictimEvicted:
    preemptor: PodInfo
    victim: PodInfo
    node_name: str
    was_gone: bool


@dataclass(frozen=True, slots=True)
class VictimRejected:
    """The victim had not come to its node: it waited for a permit, or for what PreBind plugins prepare."""

    preemptor: PodInfo
    victim: PodInfo
    node_name: str
    extension_point: str
    """Permit, or PreBind."""


@dataclass(frozen=True, slots=True)
class EvictionFailed:
    preemptor: PodInfo
    victim: PodInfo
    message: str


@dataclass(frozen=True, slots=True)
class PreemptionEnded:
    preemptor: PodInfo
    node_name: str
    is_error: bool


# -- trouble -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PluginBroke:
    """A plugin raised what it should not. `error` has the cause with its traceback."""

    error: PluginError
    pod: PodInfo | None


@dataclass(frozen=True, slots=True)
class HintBroke:
    """A plugin could not say whether a change helps a pod; the pod is tried again."""

    plugin: str
    event: str
    pod: PodInfo
    error: Exception


@dataclass(frozen=True, slots=True)
class SlowDecision:
    trace: Trace


@dataclass(frozen=True, slots=True)
class AnswerMissing:
    """The loop waited for an answer that would never have come, and asks what became of it."""

    stray: Stray


@dataclass(frozen=True, slots=True)
class ClassMisses:
    """Nearly none of the last pods could be decided by their class: each is searched for from scratch."""

    profile: str
    n_missed: int
    n_decided: int


Observation = (
    NodeEvent
    | PodEvent
    | PodMoved
    | PodGated
    | AttemptBegan
    | PodSkipped
    | PodDecided
    | AttemptFailed
    | PodNotRequeued
    | PodRequeued
    | PodStatusTold
    | PluginTurnBegan
    | PluginTurnEnded
    | PermitWaits
    | PermitOver
    | PodBound
    | BindingUndone
    | PreemptionConsidered
    | PreemptionStarted
    | VictimEvicted
    | VictimRejected
    | EvictionFailed
    | PreemptionEnded
    | PluginBroke
    | HintBroke
    | SlowDecision
    | AnswerMissing
    | ClassMisses
    | GroupAttemptBegan
    | PlacementTried
    | GroupDecided
    | GroupMissing
)

Observe = Callable[[Observation], None]


class Observers:
    """Who listens to a loop. Its parts share one, and ask it before they make a record."""

    __slots__ = ("decisions", "steps", "trouble", "wants_scores")

    def __init__(self) -> None:
        self.steps: Observe | None = None
        """Called with every step; None if there is no such listener."""
        self.decisions: Observe | None = None
        """Called with `PodDecided`. Listeners to steps get this, too."""
        self.trouble: Observe | None = None
        """Called with what a person should look at. Every listener gets this, too."""
        self.wants_scores = False
        """Every plugin's score of every node is wanted with a decision, whatever that costs."""

    def add(self, observe: Observe, *, steps: bool = True, decisions: bool = False, scores: bool = False) -> None:
        self.trouble = _both(self.trouble, observe)
        if steps or decisions:
            self.decisions = _both(self.decisions, observe)
        if steps:
            self.steps = _both(self.steps, observe)
        self.wants_scores |= scores


def _both(first: Observe | None, second: Observe) -> Observe:
    if first is None:
        return second
    told: Sequence[Observe] = (first, second)

    def tell(seen: Observation) -> None:
        for observe in told:
            observe(seen)

    return tell


def tell_of_queue(queue: SchedulingQueue, observers: Observers) -> None:
    """Has the queue tell those that listen now."""
    tell, alarm = observers.steps, observers.trouble
    moved: Moved | None = None
    held: Held | None = None
    if tell is not None:
        moved = lambda queued, place, event: tell(PodMoved(queued.info, place, event, queued.is_gated))  # noqa: E731
        held = lambda queued, status: tell(PodGated(queued.info, status))  # noqa: E731
    queue.listen(moved, held, None if alarm is None else lambda failure: alarm(HintBroke(*failure)))
