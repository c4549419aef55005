"""A change that undoes a rejection brings the pod back: found by trying changes out.

For every change that turns a rejected node into one that is not, or brings one, the plugin's registered events must
match what happened, and one of the hints must not skip it. A hint that breaks counts as one that does not skip, but is
told here.
"""

from __future__ import annotations

from kubesched.framework import OK, PodInfo
from kubesched.plugin_tools.check.cases import Case
from kubesched.plugin_tools.check.checks.forms import shown
from kubesched.plugin_tools.check.history import AppliedChange, CaseHistory
from kubesched.plugin_tools.check.report import RuleViolation
from kubesched.plugin_tools.check.subject import Subject
from kubesched.plugin_tools.check.trial import PluginTrial, TrialAnswers
from kubesched.scheduler.queue.changes import events_of
from kubesched.scheduler.queue.hints import ClusterChange, HintTable, Requeue
from kubesched.scheduler.queue.profile import QueueProfile, registered_events
from kubesched.scheduler.queue.queued_pod import QueuedPodInfo


def events_undo(subject: Subject, case: Case) -> RuleViolation | bool:
    history = CaseHistory(subject, case)
    before = history.trial.answers()
    touched = False
    for change in case.changes:
        applied = history.apply(change)
        if applied is None:
            continue
        after = history.trial.answers()
        freed = sorted(name for name in after.statuses if name not in after.rejected and _was_closed(name, before))
        if freed and before.rejected and events_of(applied.old, applied.new):
            violation = _missed(history.trial, applied, freed[0], before)
            if violation is not None:
                return violation
            touched = True
        before = after
    return touched


def _was_closed(name: str, before: TrialAnswers) -> bool:
    return name not in before.statuses or name in before.rejected


def _missed(trial: PluginTrial, applied: AppliedChange, node: str, before: TrialAnswers) -> RuleViolation | None:
    """The violation if the pod, which could go to the node now, is not brought back."""
    plugin, pod, change = trial.plugin, trial.pod, applied.change
    table = HintTable({pod.pod.spec.scheduler_name: registered_events([plugin])})
    events, queued = events_of(applied.old, applied.new), _queued(pod, plugin.name)
    verdicts = [table.judge(queued, ClusterChange(table.match(event), applied.old, applied.new)) for event in events]
    labels = ", ".join(event.label for event in events)
    rejection = before.rejection_of(node)
    answers = {"before": "no such node" if rejection is None else shown(rejection), "after": "accepted"}
    if table.failures:
        failure = table.failures[0]
        problem = f"the hint for {failure.event} raised {type(failure.error).__name__}: {failure.error}"
        return RuleViolation(problem, node, answers, change)
    if any(verdict is not Requeue.SKIP for verdict in verdicts):
        return None
    if any(table.match(event).is_of_interest for event in events):
        return RuleViolation(f"the hint for {labels} skips a change that made the pod feasible", node, answers, change)
    problem = f"{labels} made the pod feasible, and no registered event matches it"
    return RuleViolation(problem, node, answers, change)


def _queued(pod: PodInfo, plugin: str) -> QueuedPodInfo:
    profile = QueueProfile(lambda _queued: (0.0,), lambda _pod: OK, {})
    queued = QueuedPodInfo(pod, profile, 0.0)
    queued.unschedulable_plugins = frozenset({plugin})
    return queued
