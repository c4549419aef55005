"""Observations of the engine, written as kube-scheduler's log lines.

    loop.listen(SchedulingLog(verbosity).observe)

A plugin that breaks is told with its stack, once a minute for each place; the others are counted. A decision that took
long is told as kube's trace lines: when it began, and its steps that took more than their share.

Next: `scheduling_lines`, the lines; `kubesched.scheduler.engine.observations`, what is told.
"""

from __future__ import annotations

import logging
import random
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from kubesched.framework.status import Code, Status
from kubesched.k8s.connections.log_lines import LogLine
from kubesched.k8s.model.core import Node
from kubesched.live.logs import scheduling_lines as lines
from kubesched.scheduler.cluster.node_order import zone_of
from kubesched.scheduler.engine import observations as seen
from kubesched.scheduler.engine.loop import Scheduler
from kubesched.scheduler.engine.metrics.timing import LONG_S, Trace
from kubesched.scheduler.engine.plugin_call import PluginError

_TELL_EVERY_S = 60.0
_MOST_PLACES = 256

_Place = tuple[str, str, str, int]


@dataclass(slots=True)
class _Told:
    at_s: float
    n_since: int = 0


class PluginFailures:
    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._told: dict[_Place, _Told] = {}

    def to_tell(self, error: PluginError) -> dict[str, object] | None:
        """The fields of a line; None if the same was told a moment ago."""
        now_s, place = self._clock(), _place(error)
        told = self._told.get(place)
        if told is not None and now_s - told.at_s < _TELL_EVERY_S:
            told.n_since += 1
            return None
        fields: dict[str, object] = {"err": error.message, "plugin": error.plugin}
        if told is not None and told.n_since:
            fields["repeated"] = told.n_since
        if error.__cause__ is not None:
            fields["stack"] = "".join(traceback.format_exception(error.__cause__))
        if len(self._told) >= _MOST_PLACES:
            self._told.clear()
        self._told[place] = _Told(now_s)
        return fields


def _place(error: PluginError) -> _Place:
    """What the plugin was asked for, and where it broke: the innermost frame of the cause."""
    cause = error.__cause__
    frames = traceback.extract_tb(cause.__traceback__) if cause is not None else []
    last = frames[-1] if frames else None
    doing = error.message.partition(": ")[0]
    return doing, type(cause).__name__, last.filename if last else "", last.lineno or 0 if last else 0


def trace_text(trace: Trace, number: int, began_at_s: float, *, all_steps: bool) -> str:
    """`began_at_s` is in seconds since 1970. `all_steps`: also those that took less than their share."""
    head = f"Trace[{number}]: "
    total_ms = int(trace.total_s * 1000)
    lines = [
        f'{head}"{trace.name}" namespace:{trace.namespace},name:{trace.pod_name} '
        f"({_at(began_at_s, '%d-%b-%Y %H:%M:%S')}) (total time: {total_ms}ms):"
    ]
    lines += [f"{head}{step}" for step in _steps(trace, began_at_s, all_steps)]
    lines.append(f"{head}[{trace.total_s * 1000:.6g}ms] [{trace.total_s * 1000:.6g}ms] END")
    return "\n".join(lines) + "\n"


def _steps(trace: Trace, began_at_s: float, all_steps: bool) -> Iterator[str]:
    share_s = LONG_S / (len(trace.steps) + 1)
    last_s = 0.0
    for step in trace.steps:
        took_s = step.after_s - last_s
        last_s = step.after_s
        if all_steps or took_s >= share_s:
            yield f'---"{step.name}" {int(took_s * 1000)}ms ({_at(began_at_s + step.after_s, "%H:%M:%S")})'


def _at(at_s: float, form: str) -> str:
    return f"{time.strftime(form, time.localtime(at_s))}.{int(at_s * 1000) % 1000:03d}"


STEPS_V = 2
"""From here on every step is listened to; below, only trouble."""
SCORES_V = 10
_TRACES_V = 2
_ALL_TRACE_STEPS_V = 4
_VOLUMES = "VolumeBinding"
_PREEMPTION = "PostFilter.DefaultPreemption"

_NODE_LINES = {
    seen.ADDED: (lines.NODE_ADDED, lines.NODE_IN_TREE),
    seen.UPDATED: (lines.NODE_UPDATED, None),
    seen.DELETED: (lines.NODE_DELETED, lines.NODE_OUT_OF_TREE),
}
_POD_LINES = {
    (seen.ADDED, True): lines.SCHEDULED_POD_ADDED,
    (seen.UPDATED, True): lines.SCHEDULED_POD_UPDATED,
    (seen.DELETED, True): lines.SCHEDULED_POD_DELETED,
    (seen.ADDED, False): lines.UNSCHEDULED_POD_ADDED,
    (seen.UPDATED, False): lines.UNSCHEDULED_POD_UPDATED,
    (seen.DELETED, False): lines.UNSCHEDULED_POD_DELETED,
}
_REJECTED_LINES = {"PreBind": lines.PRE_BIND_REJECTED, "Bind": lines.BIND_REJECTED}
_HINTS = {"unschedulable": 0, "backoff": 1, "active": 2}
_FAILURE = "ScheduleAttemptFailure"


class SchedulingLog:
    """`clock` is only for how often a plugin's failure is told."""

    def __init__(self, verbosity: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._v = verbosity
        self._failures = PluginFailures(clock)
        self._cycle = 0
        """How many pods were taken from the queue."""

    def listen_to(self, loop: Scheduler) -> None:
        """Only to what will be written."""
        loop.listen(self.observe, steps=self._v >= STEPS_V, scores=self._v >= SCORES_V)

    def observe(self, observation: seen.Observation) -> None:
        _WRITERS[type(observation)](self, observation)

    def _write(self, line: LogLine, /, **fields: object) -> None:
        if line.v <= self._v:
            line.write_with(fields, apart=str(fields.get("pod", "")), stacklevel=1)

    # -- facts and the queue -------------------------------------------------------------------------------------------

    def _node_event(self, event: seen.NodeEvent) -> None:
        line, in_tree = _NODE_LINES[event.action]
        self._write(line, node=event.node.name)
        if in_tree is not None:
            self._write(in_tree, node=event.node.name, zone=_zone(event.node))

    def _pod_event(self, event: seen.PodEvent) -> None:
        self._write(_POD_LINES[event.action, event.is_scheduled], pod=event.pod.pod_key)

    def _moved(self, move: seen.PodMoved) -> None:
        if move.event == _FAILURE and move.queue == "unschedulable" and not move.is_gated:
            return  # that is told with more, as requeued
        is_gated = move.is_gated and move.queue == "unschedulable"
        line = lines.MOVED_GATED if is_gated else lines.MOVED
        self._write(line, pod=move.pod.key, event=move.event, queue=move.queue.capitalize())

    def _gated(self, gated: seen.PodGated) -> None:
        status = gated.status
        if status.code is Code.ERROR:
            self._write(lines.GATE_FAILED, err=status.message, pod=gated.pod.key, plugin=status.plugin)
        else:
            self._write(lines.GATED, pod=gated.pod.key, plugin=status.plugin, status=status.message)

    def _hint_broke(self, broke: seen.HintBroke) -> None:
        self._write(lines.HINT_FAILED, err=str(broke.error), event=broke.event, plugin=broke.plugin, pod=broke.pod.key)

    # -- pod groups ----------------------------------------------------------------------------------------------------

    def _group_began(self, began: seen.GroupAttemptBegan) -> None:
        self._write(lines.GROUP_ATTEMPTING, podGroup=began.group)
        self._write(lines.GROUP_TRYING, podGroup=began.group, unscheduledPodsCount=len(began.pods))
        for pod in began.pods:
            self._cycle += 1
            self._write(lines.GROUP_POD_ATTEMPTING, podGroup=began.group, pod=pod.key)

    def _placement_tried(self, tried: seen.PlacementTried) -> None:
        self._write(lines.PLACEMENT_TRIED, podGroup=tried.group, placement=tried.placement)

    def _group_decided(self, decided: seen.GroupDecided) -> None:
        group, outcome, n_left = decided.group, decided.outcome, decided.n_left
        if outcome.status.is_success:
            self._write(lines.GROUP_SCHEDULED, podGroup=group, scheduledPods=decided.n_bound, unschedulablePods=n_left)
        elif outcome.waits_for_preemption:
            self._write(lines.GROUP_WAITS, podGroup=group, unschedulablePods=n_left)
        elif outcome.status.is_rejected:
            self._write(lines.GROUP_UNSCHEDULABLE, podGroup=group, unschedulablePods=n_left)
        else:
            self._write(lines.GROUP_ERROR, err=outcome.status.message, podGroup=group, errorPods=n_left)

    def _group_missing(self, missing: seen.GroupMissing) -> None:
        self._write(lines.GROUP_MISSING, podGroup=missing.group)

    # -- an attempt ----------------------------------------------------------------------------------------------------

    def _began(self, began: seen.AttemptBegan) -> None:
        self._cycle += 1
        self._write(lines.ABOUT_TO_TRY, pod=began.pod.key)
        self._write(lines.ATTEMPTING, pod=began.pod.key)

    def _skipped(self, skipped: seen.PodSkipped) -> None:
        self._cycle += 1
        self._write(lines.ABOUT_TO_TRY, pod=skipped.pod.key)
        if skipped.pod.pod.is_terminating:
            self._write(lines.SKIPPED, pod=skipped.pod.key)

    def _decided(self, decided: seen.PodDecided) -> None:
        decision = decided.decision
        pod = decision.pod.key
        prefilter, post_filter = decision.prefilter, decision.post_filter
        if decision.error:
            self._write(lines.SELECTING_FAILED, err=decision.error, pod=pod)
        elif decision.node_name:
            self._scores(decided)
        elif prefilter is not None and not prefilter.status.is_success:
            self._write(lines.PRE_FILTER_STATUS, pod=pod, status=prefilter.status.message)
        if decision.diagnosis is None:
            return
        if not decided.can_preempt:
            self._write(lines.NO_PREEMPTION)
        elif post_filter is not None:
            failed = post_filter.status.code is Code.ERROR
            line = lines.POST_FILTER_FAILED if failed else lines.POST_FILTER_STATUS
            self._write(line, pod=pod, status=post_filter.status.message)

    def _scores(self, decided: seen.PodDecided) -> None:
        decision = decided.decision
        scored, pod = decision.scored, decision.pod.key
        if scored is None or self._v < SCORES_V:
            return
        names = list(scored.nodes.names)
        for position, node in enumerate(names):
            for by in scored.by_plugin:
                self._write(lines.PLUGIN_SCORE, pod=pod, plugin=by.plugin, node=node, score=int(by.weighted[position]))
        for position, node in enumerate(names):
            self._write(lines.FINAL_SCORE, pod=pod, node=node, score=int(scored.total[position]))

    def _failed(self, failed: seen.AttemptFailed) -> None:
        pod = failed.pod.key
        if failed.is_error:
            self._write(lines.RETRYING, err=failed.message, pod=pod)
        elif failed.has_nodes:
            self._write(lines.NO_FIT, pod=pod, err=failed.message)
        else:
            self._write(lines.NO_NODES, pod=pod)

    def _not_requeued(self, gone: seen.PodNotRequeued) -> None:
        pod, latest = gone.pod, gone.latest
        if latest is None:
            self._write(lines.POD_GONE, pod=pod.key, err=f'pod "{pod.name}" not found')
        elif latest.metadata.uid != pod.pod.metadata.uid:
            uids = {"oldUID": pod.pod.metadata.uid, "newUID": latest.metadata.uid}
            self._write(lines.POD_RECREATED, pod=pod.key, **uids)
        else:
            self._write(lines.POD_ASSIGNED, pod=pod.key, node=latest.spec.node_name)

    def _requeued(self, requeued: seen.PodRequeued) -> None:
        fields = {
            "pod": requeued.pod.key,
            "event": _FAILURE,
            "queue": requeued.queue.capitalize(),
            "schedulingCycle": self._cycle,
            "hint": _HINTS[requeued.queue],
            "unschedulable plugins": {plugin: {} for plugin in sorted(requeued.plugins)},
        }
        self._write(lines.REQUEUED, **fields)

    def _status_changed(self, changed: seen.PodStatusTold) -> None:
        condition = changed.condition
        fields: dict[str, object] = {
            "pod": changed.pod.key,
            "conditionType": condition.type,
            "conditionStatus": condition.status,
            "conditionReason": condition.reason,
        }
        if changed.nominated_node_name is not None:
            fields["nominatedNodeName"] = changed.nominated_node_name
            fields["nominatingMode"] = 1
        self._write(lines.STATUS_CHANGED, **fields)

    # -- preemption ----------------------------------------------------------------------------------------------------

    def _considered(self, considered: seen.PreemptionConsidered) -> None:
        who: dict[str, object] = {"logger": _PREEMPTION, "pod": considered.pod.key}
        if considered.ineligible:
            self._write(lines.NOT_ELIGIBLE, **who, reason=considered.ineligible)
            return
        if considered.n_potential:
            numbers = {
                "potentialNodesNumber": considered.n_potential,
                "pdbsNumber": considered.n_budgets,
                "offset": considered.offset,
                "candidatesNumber": considered.n_wanted,
            }
            self._write(lines.DRY_RUN, **who, **numbers)
        else:
            self._write(lines.NO_POTENTIAL_NODE, **who)
        if considered.node_name:
            self._write(lines.TARGET, **who, node=considered.node_name)
        else:
            self._write(lines.NO_CANDIDATE, **who)

    def _preemption_started(self, started: seen.PreemptionStarted) -> None:
        numbers = {"numVictims": started.n_victims, "numVictimsToDelete": started.n_to_delete}
        self._write(lines.PREEMPTION_STARTED, preemptor=started.preemptor.key, node=started.node_name, **numbers)

    def _evicted(self, evicted: seen.VictimEvicted) -> None:
        line = lines.VICTIM_GONE if evicted.was_gone else lines.VICTIM_EVICTED
        self._write(line, preemptor=evicted.preemptor.key, victim=evicted.victim.key, node=evicted.node_name)

    def _victim_rejected(self, rejected: seen.VictimRejected) -> None:
        waited = rejected.extension_point == "Permit"
        victim = {"waitingPod" if waited else "podInPreBind": rejected.victim.key}
        line = lines.WAITING_VICTIM if waited else lines.PRE_BIND_VICTIM
        self._write(line, preemptor=rejected.preemptor.key, **victim, node=rejected.node_name)

    def _eviction_failed(self, failed: seen.EvictionFailed) -> None:
        self._write(lines.EVICTION_FAILED, err=failed.message, pod=failed.victim.key, preemptor=failed.preemptor.key)

    def _preemption_ended(self, ended: seen.PreemptionEnded) -> None:
        result = "error" if ended.is_error else "success"
        self._write(lines.PREEMPTION_ENDED, preemptor=ended.preemptor.key, node=ended.node_name, result=result)

    # -- from a node to a binding --------------------------------------------------------------------------------------

    def _turn_began(self, began: seen.PluginTurnBegan) -> None:
        pod, node = began.pod.key, began.node_name
        if began.plugin == _VOLUMES and began.extension_point == "Reserve":
            if any(volume.persistent_volume_claim or volume.ephemeral for volume in began.pod.spec.volumes or ()):
                self._write(lines.ASSUME_VOLUMES, logger=f"Reserve.{_VOLUMES}", pod=pod, node=node)
        elif began.plugin == _VOLUMES and began.extension_point == "PreBind":
            self._write(lines.TRYING_VOLUMES, logger=f"PreBind.{_VOLUMES}", pod=pod)
        elif began.extension_point == "Bind":
            self._write(lines.ATTEMPTING_TO_BIND, logger=f"Bind.{began.plugin}", pod=pod, node=node)

    def _turn_ended(self, ended: seen.PluginTurnEnded) -> None:
        pod, node, status = ended.pod.key, ended.node_name, ended.status
        if ended.plugin == _VOLUMES and ended.extension_point == "PreBind":
            self._volumes_bound(pod, status)
        if status.is_success or status.is_skip or status.is_wait:
            return
        if not status.is_rejected:
            self._write(lines.PLUGIN_FAILED, err=status.message, plugin=ended.plugin, pod=pod, node=node)
        elif ended.extension_point in _REJECTED_LINES:
            line = _REJECTED_LINES[ended.extension_point]
            self._write(line, pod=pod, node=node, plugin=ended.plugin, status=status.message)
        else:
            self._write(lines.REJECTED, pod=pod, plugin=ended.plugin, status=status.message)
        if ended.extension_point == "Bind":
            self._write(lines.BIND_FAILED, pod=pod)

    def _volumes_bound(self, pod: str, status: Status) -> None:
        if status.is_success:
            self._write(lines.VOLUMES_BOUND, logger=f"PreBind.{_VOLUMES}", pod=pod)
        else:
            self._write(lines.VOLUMES_FAILED, logger=f"PreBind.{_VOLUMES}", pod=pod, err=status.message)

    def _permit_waits(self, waits: seen.PermitWaits) -> None:
        self._write(lines.ASKED_TO_WAIT, pod=waits.pod.key)
        self._write(lines.WAITING, pod=waits.pod.key)

    def _permit_over(self, over: seen.PermitOver) -> None:
        if over.status.is_rejected:
            self._write(lines.WAIT_REJECTED, pod=over.pod.key, status=over.status.message)
        elif not over.status.is_success:
            self._write(lines.WAIT_FAILED, err=over.status.message, pod=over.pod.key)

    def _bound(self, bound: seen.PodBound) -> None:
        numbers = {"evaluatedNodes": bound.n_evaluated, "feasibleNodes": bound.n_feasible}
        self._write(lines.BOUND, pod=bound.pod.key, node=bound.node_name, **numbers)
        if bound.was_flushed:
            self._write(lines.AFTER_FLUSH, pod=bound.pod.key)

    def _undone(self, undone: seen.BindingUndone) -> None:
        self._write(lines.UNDONE, pod=undone.pod.key, node=undone.node_name, status=undone.status.message)

    # -- trouble -------------------------------------------------------------------------------------------------------

    def _plugin_broke(self, broke: seen.PluginBroke) -> None:
        fields = self._failures.to_tell(broke.error)
        if fields is not None:
            self._write(lines.PLUGIN_FAILED, **fields, pod="" if broke.pod is None else broke.pod.key)

    def _slow(self, slow: seen.SlowDecision) -> None:
        if self._v < _TRACES_V:
            return
        began_at_s = time.time() - slow.trace.total_s
        all_steps = self._v >= _ALL_TRACE_STEPS_V
        text = trace_text(slow.trace, random.getrandbits(31), began_at_s, all_steps=all_steps)
        logging.getLogger(lines.BOUND.log).info(text, extra={"v": _TRACES_V, "is_plain": True})

    def _answer_missing(self, missing: seen.AnswerMissing) -> None:
        stray = missing.stray
        fields = {"what": stray.what, "about": stray.about, "waited": f"{stray.waited_s:.0f}s", "tries": stray.tries}
        self._write(lines.NOBODY_ANSWERED, **fields)

    def _class_misses(self, misses: seen.ClassMisses) -> None:
        self._write(lines.CLASS_MISSES, profile=misses.profile, missed=misses.n_missed, decided=misses.n_decided)


def _zone(node: Node) -> str:
    """As kube-scheduler writes region and zone together."""
    region, zone = zone_of(node)
    return f"{region}:\x00:{zone}" if region or zone else ""


_WRITERS: dict[type, Callable[[SchedulingLog, Any], None]] = {
    seen.NodeEvent: SchedulingLog._node_event,
    seen.PodEvent: SchedulingLog._pod_event,
    seen.PodMoved: SchedulingLog._moved,
    seen.PodGated: SchedulingLog._gated,
    seen.HintBroke: SchedulingLog._hint_broke,
    seen.AttemptBegan: SchedulingLog._began,
    seen.PodSkipped: SchedulingLog._skipped,
    seen.PodDecided: SchedulingLog._decided,
    seen.AttemptFailed: SchedulingLog._failed,
    seen.PodNotRequeued: SchedulingLog._not_requeued,
    seen.PodRequeued: SchedulingLog._requeued,
    seen.PodStatusTold: SchedulingLog._status_changed,
    seen.PreemptionConsidered: SchedulingLog._considered,
    seen.PreemptionStarted: SchedulingLog._preemption_started,
    seen.VictimEvicted: SchedulingLog._evicted,
    seen.VictimRejected: SchedulingLog._victim_rejected,
    seen.EvictionFailed: SchedulingLog._eviction_failed,
    seen.PreemptionEnded: SchedulingLog._preemption_ended,
    seen.PluginTurnBegan: SchedulingLog._turn_began,
    seen.PluginTurnEnded: SchedulingLog._turn_ended,
    seen.PermitWaits: SchedulingLog._permit_waits,
    seen.PermitOver: SchedulingLog._permit_over,
    seen.PodBound: SchedulingLog._bound,
    seen.BindingUndone: SchedulingLog._undone,
    seen.PluginBroke: SchedulingLog._plugin_broke,
    seen.SlowDecision: SchedulingLog._slow,
    seen.AnswerMissing: SchedulingLog._answer_missing,
    seen.ClassMisses: SchedulingLog._class_misses,
    seen.GroupAttemptBegan: SchedulingLog._group_began,
    seen.PlacementTried: SchedulingLog._placement_tried,
    seen.GroupDecided: SchedulingLog._group_decided,
    seen.GroupMissing: SchedulingLog._group_missing,
}
