"""One pod's cycle in an older scheduler: look at its claims, filter, score, or preempt; and what brought a pod back.

Answers in today's `Decision`, so that loop, simulation and explanation need not know. Filters are asked node by node; a
node that breaks one does not hide the others, and one may be asked of all.

Whatever an attempt failed of, the pod waits for a change, and any that counted then brings it back, whoever rejected
it. Changes that counted: nodes that come or can take more, pods that leave their nodes, volumes, claims and classes
that come or change; a pod that gets its node only for those that want to be near it; and what is new in the pod itself.

What events said of failed attempts, and of victims, they say in the words of the version. The message of an
unschedulable pod had no word of preemption, and every node counted. Whatever ended a search for a node was called
unschedulable, broken or not. What failed later had words of its own in the event, and often others in the condition.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from msgspec.structs import replace as replaced

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.events import ActionType, ClusterEvent, EventResource, Hint, RegisteredEvent
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import Code, Status
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import ObjectMeta
from kubesched.k8s.model.storage import StorageClass, claim_not_found
from kubesched.older.config import EmulatedProfile, Generation
from kubesched.older.engine.preemption import PreemptionOfThen
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.cluster.view import NodeRow, TableView
from kubesched.scheduler.engine.cycle import Decision, ProfileScheduler
from kubesched.scheduler.engine.extender import EXTENDER
from kubesched.scheduler.engine.extender.cycle import ExtendedDiagnosis
from kubesched.scheduler.engine.failure import SCHEDULER_ERROR, UNSCHEDULABLE, FailureWords, Told
from kubesched.scheduler.engine.filter import FilterOutcome, change_state
from kubesched.scheduler.engine.handle import EngineHandle
from kubesched.scheduler.engine.loop import Scheduler
from kubesched.scheduler.engine.metrics.timing import timed_extension_point
from kubesched.scheduler.engine.observations import PluginBroke
from kubesched.scheduler.engine.plugin_call import PluginError, SearchError
from kubesched.scheduler.engine.postfilter import Diagnosis, run_post_filter
from kubesched.scheduler.engine.preemption.execution import VictimNote
from kubesched.scheduler.engine.prefilter import run_pre_filter
from kubesched.scheduler.engine.profile import Profile
from kubesched.scheduler.engine.row_check import nominated_pods_on
from kubesched.scheduler.engine.score import TieBreak, run_scores
from kubesched.scheduler.queue import QueuedPodInfo, QueueProfile, QueueSettings, SchedulingQueue
from kubesched.scheduler.queue.hints import MeasuredHint


@dataclass(slots=True)
class OlderDiagnosis(Diagnosis):
    def message(self) -> str:
        if not self.prefilter.status.is_success:
            return rejected_as_a_whole(self)
        return fit_error(len(self.cluster_nodes), {} if self.filtered is None else self.filtered.reason_counts())


def message_with_extenders(diagnosis: ExtendedDiagnosis) -> str:
    """The same of a search in which extenders took part: their reasons stood beside those of the others, and a node
    that they dropped without one was not counted."""
    if not diagnosis.prefilter.status.is_success:
        return rejected_as_a_whole(diagnosis)
    found = diagnosis.explicit().values()
    return fit_error(len(diagnosis.cluster_nodes), Counter(reason for status in found for reason in status.reasons))


def rejected_as_a_whole(diagnosis: Diagnosis) -> str:
    n = len(diagnosis.cluster_nodes)
    return fit_error(n, dict.fromkeys(diagnosis.prefilter.status.reasons, n))


def fit_error(n_nodes: int, counts: Mapping[str, int]) -> str:
    lines = sorted(f"{count} {reason}" for reason, count in counts.items())
    return f"0/{n_nodes} nodes are available: {', '.join(lines)}."


VOLUME_BINDING_FAILED = "VolumeBindingFailed"
BINDING_REJECTED = "BindingRejected"

_TODAY = re.compile(r'running (?P<point>Reserve|PreBind|Bind) plugin "[^"]*": (?P<message>.*)', re.DOTALL)
"""How today's extension points word the failure of a plugin."""


def speak_as_of_then(loop: Scheduler, generation: Generation) -> None:
    """Puts the words of a version in the place of today's."""
    loop.failures.words = WordsOfThen(generation)
    loop.preemptions.note = _victim_note(generation)


class WordsOfThen(FailureWords):
    def __init__(self, generation: Generation) -> None:
        self._generation = generation

    def of_decision(self, decision: Decision) -> Told:
        """The reason is the same for a pod that fits nowhere and for one that something broke over."""
        diagnosis = decision.diagnosis
        if isinstance(diagnosis, ExtendedDiagnosis) and not decision.error:
            message = message_with_extenders(diagnosis)
        else:
            message = decision.message
        return Told(UNSCHEDULABLE, message, message, self._generation.sets_probe_time)

    def of_status(self, pod: PodInfo, status: Status) -> Told:
        return self._late_failure(pod, status)._replace(is_probe=self._generation.sets_probe_time)

    def _late_failure(self, pod: PodInfo, status: Status) -> Told:
        """Of the plugins that ran then, only that of volumes reserves and prepares."""
        if status.plugin == EXTENDER:
            return self._binding_rejected(status.message)
        today = _TODAY.fullmatch(status.message)
        if today is None:
            return super().of_status(pod, status)
        extension_point, message = today["point"], today["message"]
        if extension_point == "Bind":
            return self._binding_rejected(self._bind_error(pod, status.plugin, message))
        if self._generation.volumes_are_a_plugin:
            plugin = f'Reserve in "{status.plugin}"' if extension_point == "Reserve" else f'"{status.plugin}"'
            message = f'error while running {plugin} {extension_point.lower()} plugin for pod "{pod.name}": {message}'
            return Told(SCHEDULER_ERROR, message, message)
        if extension_point == "Reserve":
            return Told(SCHEDULER_ERROR, message, f"AssumePodVolumes failed: {message}")
        by_reason = self._generation.tells_late_failures_by_reason
        return Told(VOLUME_BINDING_FAILED, "" if by_reason else message, message)

    def _bind_error(self, pod: PodInfo, plugin: str, message: str) -> str:
        if not self._generation.binds_by_plugin:
            return message
        return f'plugin "{plugin}" failed to bind pod "{pod.key}": {message}'

    def _binding_rejected(self, message: str) -> Told:
        note = f"Binding rejected: {message}"
        if self._generation.tells_late_failures_by_reason:
            return Told(BINDING_REJECTED, "", note)
        return Told(SCHEDULER_ERROR, note if self._generation.one_message_on_failure else message, note)


def _victim_note(generation: Generation) -> VictimNote:
    def note(preemptor: PodInfo, node_name: str) -> str:
        return generation.victim_note.format(preemptor=preemptor.key, node=node_name)

    return note


@dataclass(slots=True)
class RejectionsByNode:
    """Kept in the cycle: everything that was said against each node, by position."""

    found: dict[int, tuple[Status, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NodeByNode:
    """Asks the filters of a profile as a version did."""

    cluster: Cluster
    profile: Profile
    generation: Generation
    checks_all: bool

    def run(self, cycle: CycleState, pod: PodInfo, nodes: TableView) -> FilterOutcome:
        return _ask_everywhere(self.profile, self, cycle, pod, nodes)

    def on_row(self, cycle: CycleState, pod: PodInfo, row: int) -> tuple[Status, ...]:
        """The reasons against the node: first beside the pods that are nominated to it, then as it is."""
        nominated_pods = nominated_pods_on(self.cluster, pod, self.cluster.table.names[row])
        if nominated_pods:
            beside = cycle.fork()
            with self.cluster.with_pods(nominated_pods, row):
                for nominated_pod in nominated_pods:
                    change_state(self.profile, beside, pod, nominated_pod, self.cluster, row, adding=True)
                found = self._ask(beside, pod, row)
            if found:
                return found
        return self._ask(cycle, pod, row)

    def _ask(self, cycle: CycleState, pod: PodInfo, row: int) -> tuple[Status, ...]:
        node = NodeRow(self.cluster.table, row)
        found: list[Status] = []
        for step in self.profile.filter:
            assert step.filter_node is not None
            status = step.filter_node(cycle, pod, node)
            if status.is_success:
                continue
            if status.code is Code.ERROR:
                text = self.generation.filter_error.format(plugin=step.name, pod=pod.name, message=status.message)
                return (Status.error(text).by(step.name),)
            found.append(status.by(step.name))
            if not self.checks_all:
                break
        return tuple(found)


@timed_extension_point("Filter")
def _ask_everywhere(
    _profile: Profile, asking: NodeByNode, cycle: CycleState, pod: PodInfo, nodes: TableView
) -> FilterOutcome:
    n = len(nodes)
    outcome = FilterOutcome(nodes, np.ones(n, dtype=np.bool_), np.zeros(n, dtype=np.bool_))
    rejections = RejectionsByNode()
    cycle.put(rejections)
    for position, row in enumerate(nodes.rows.tolist()):
        found = asking.on_row(cycle, pod, row)
        if found:
            rejections.found[position] = found
            status = merged(found)
            outcome.fits[position] = False
            outcome.unresolvable[position] = status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
            outcome.overrides[position] = status
    return outcome


def merged(statuses: tuple[Status, ...]) -> Status:
    """One status for a node: the first plugin, the worst code, all reasons."""
    if len(statuses) == 1:
        return statuses[0]
    codes = {status.code for status in statuses}
    final = Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    code = final if final in codes else Code.UNSCHEDULABLE
    return Status(code, tuple(reason for status in statuses for reason in status.reasons), statuses[0].plugin)


class OlderScheduler(ProfileScheduler):
    """Decides as the scheduler of a version did. Keeps no classes."""

    def __init__(
        self,
        cluster: Cluster,
        profile: Profile,
        tie_break: TieBreak,
        percentage: int,
        handle: EngineHandle,
        *,
        generation: Generation,
        emulated: EmulatedProfile,
    ) -> None:
        super().__init__(cluster, profile, tie_break, percentage, handle)
        self.generation = generation
        self._emulated = emulated

    def decide(self, pod: PodInfo, *, complete: bool = False) -> Decision:
        decision = Decision(pod, CycleState(), self.cluster.table.names)
        try:
            self._decide_node_by_node(decision, complete)
        except PluginError as bug:
            decision.error = bug.message
            if self.profile.observers.trouble is not None:
                self.profile.observers.trouble(PluginBroke(bug, pod))
        return decision

    def _decide_node_by_node(self, decision: Decision, complete: bool) -> None:
        nodes = self.cluster.nodes
        decision.error = self._broken_claim(decision.pod)
        if decision.error or len(nodes) == 0:
            return
        decision.prefilter = run_pre_filter(self.profile, decision.cycle, decision.pod, nodes)
        if not decision.prefilter.status.is_success:
            self._preempt(decision, OlderDiagnosis(nodes, decision.prefilter))
            return
        filtered = decision.filtered = self._ask(decision.cycle, decision.pod, nodes)
        decision.error = self._errors(filtered)
        if decision.error:
            return
        feasible, decision.n_evaluated = self.feasible_rows(filtered, whole_search=True, complete=complete)
        decision.n_feasible = len(feasible)
        if len(feasible) == 0:
            self._preempt(decision, OlderDiagnosis(nodes, decision.prefilter, filtered))
        elif len(feasible) == 1 and not complete:
            self.choose_among(decision, feasible)
        else:
            view = TableView(self.cluster.table, feasible)
            scored = decision.scored = run_scores(self.profile, decision.cycle, decision.pod, view)
            self.choose_among(decision, feasible[scored.total == scored.total.max()])

    def filter_nodes(self, cycle: CycleState, pod: PodInfo, nodes: TableView) -> FilterOutcome:
        """For a cycle in which extenders take part: what would end any other search ends this one."""
        error = self._broken_claim(pod)
        if not error:
            filtered = self._ask(cycle, pod, nodes)
            error = self._errors(filtered)
        if error:
            raise SearchError(error)
        return filtered

    def _ask(self, cycle: CycleState, pod: PodInfo, nodes: TableView) -> FilterOutcome:
        return NodeByNode(self.cluster, self.profile, self.generation, self._emulated.checks_all).run(cycle, pod, nodes)

    def _broken_claim(self, pod: PodInfo) -> str:
        """A claim that is missing, or on its way out, ends the cycle before any node is looked at."""
        claims = self.cluster.objects.persistent_volume_claims
        for volume in pod.spec.volumes or ():
            if volume.persistent_volume_claim is None:
                continue
            name = volume.persistent_volume_claim.claim_name
            claim = claims.get(f"{pod.namespace}/{name}")
            if claim is None:
                return claim_not_found(name)
            if claim.metadata.deletion_timestamp is not None:
                return f'persistentvolumeclaim "{name}" is being deleted'
        return ""

    def _errors(self, filtered: FilterOutcome) -> str:
        """Empty if no filter broke."""
        broken = Counter(
            status.message
            for position in np.flatnonzero(~filtered.fits).tolist()
            if (status := filtered.status(position)).code is Code.ERROR
        )
        if not broken:
            return ""
        if not self.generation.repeats_errors:
            return next(iter(broken))
        texts = [text if n == 1 else f"{text} (repeated {n} times)" for text, n in sorted(broken.items())]
        return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"

    def _preempt(self, decision: Decision, diagnosis: OlderDiagnosis) -> None:
        """Unlike today, the message says nothing about it."""
        decision.diagnosis = diagnosis
        if self.profile.post_filter:
            decision.post_filter = run_post_filter(self.profile, decision.cycle, decision.pod, diagnosis)


ERROR = "(error)"
"""Stands for whoever rejected a pod where nobody did."""

LONGEST_WAIT_S = 60.0
"""A pod that waited for a change as long as this was tried again without one."""

_NO_NAMESPACE_LABELS: dict[str, str] = {}


class QueueOfThen(SchedulingQueue):
    def __init__(
        self,
        settings: QueueSettings,
        profiles: Mapping[str, QueueProfile],
        measured_hint: MeasuredHint | None = None,
    ) -> None:
        wait_s = min(settings.max_unschedulable_s, LONGEST_WAIT_S)
        settings = replace(settings, max_unschedulable_s=wait_s, pop_from_backoff=False)
        super().__init__(settings, {name: _as_of_then(profile) for name, profile in profiles.items()}, measured_hint)

    def add_unschedulable(self, queued: QueuedPodInfo, *, is_error: bool, now_s: float) -> None:
        """An error makes no difference."""
        if is_error or not queued.unschedulable_plugins:
            queued.unschedulable_plugins = frozenset({ERROR})
        super().add_unschedulable(queued, is_error=False, now_s=now_s)


def _as_of_then(profile: QueueProfile) -> QueueProfile:
    """Who preempts is held back until the victims leave, as today."""
    counted = {plugin: CHANGES for plugin in (*profile.events, ERROR) if plugin != PreemptionOfThen.name}
    return replace(profile, events={**profile.events, **counted})


def _after_pod_change(pod: PodInfo, old: object | None, new: object | None) -> Hint:
    if not isinstance(new, Pod):
        is_other = isinstance(old, Pod) and (old.metadata.uid or old.pod_key) != pod.uid
        return _queue_if(is_other)
    if (new.metadata.uid or new.pod_key) == pod.uid:
        return _queue_if(not isinstance(old, Pod) or new.spec != old.spec or _lasting(new) != _lasting(old))
    if not new.spec.node_name:
        return Hint.SKIP
    near = pod.affinity.required
    return _queue_if(any(term.matches(new.namespace, new.labels, _NO_NAMESPACE_LABELS) for term in near))


def _lasting(pod: Pod) -> ObjectMeta:
    """The metadata without what changes with every write."""
    return replaced(pod.metadata, resource_version="", generation=0)


def _after_new_class(_pod: PodInfo, _old: object | None, new: object | None) -> Hint:
    return _queue_if(isinstance(new, StorageClass) and new.volume_binding_mode == "WaitForFirstConsumer")


def _queue_if(worth_it: bool) -> Hint:
    return Hint.QUEUE if worth_it else Hint.SKIP


_NODE_CAN_TAKE_MORE = (
    ActionType.ADD
    | ActionType.UPDATE_NODE_ALLOCATABLE
    | ActionType.UPDATE_NODE_LABEL
    | ActionType.UPDATE_NODE_TAINT
    | ActionType.UPDATE_NODE_CONDITION
)
_COMES_OR_CHANGES = ActionType.ADD | ActionType.UPDATE

CHANGES: tuple[RegisteredEvent, ...] = (
    RegisteredEvent(ClusterEvent(EventResource.POD, ActionType.ALL), _after_pod_change),
    RegisteredEvent(ClusterEvent(EventResource.NODE, _NODE_CAN_TAKE_MORE)),
    RegisteredEvent(ClusterEvent(EventResource.PERSISTENT_VOLUME, _COMES_OR_CHANGES)),
    RegisteredEvent(ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, _COMES_OR_CHANGES)),
    RegisteredEvent(ClusterEvent(EventResource.STORAGE_CLASS, ActionType.ADD), _after_new_class),
    RegisteredEvent(ClusterEvent(EventResource.CSI_NODE, _COMES_OR_CHANGES)),
)
