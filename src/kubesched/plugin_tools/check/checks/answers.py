"""Every extension point answers, and with an answer of the right kind: an exception would end the pod's cycle with an
error."""

from __future__ import annotations

from functools import partial

from kubesched.framework import CycleState
from kubesched.framework.events import RegisteredEvent
from kubesched.framework.extension_points import EnqueueExtensions, Reserve
from kubesched.plugin_tools.check import asking
from kubesched.plugin_tools.check.asking import BrokenPluginError, ScoreOutOfBoundsError
from kubesched.plugin_tools.check.cases import Case
from kubesched.plugin_tools.check.report import RuleViolation
from kubesched.plugin_tools.check.subject import Subject
from kubesched.plugin_tools.check.trial import PluginTrial


def answers_hold(subject: Subject, case: Case) -> RuleViolation | bool:
    trial = PluginTrial(subject, case)
    try:
        ask_everything(trial)
    except ScoreOutOfBoundsError:
        return True  # an answer, if a wrong one: `bounds` tells
    except BrokenPluginError as broken:
        return RuleViolation(f"{broken.extension_point} {broken.problem}", broken.node)
    return True


def ask_everything(trial: PluginTrial) -> None:
    """All that a plugin can be asked about a pod before it is bound, in both forms."""
    trial.answers()
    _ask_other_forms(trial)
    _ask_unreserve(trial)
    _ask_events(trial)


def _ask_other_forms(trial: PluginTrial) -> None:
    plugin, pod, nodes, cycle = trial.plugin, trial.pod, trial.nodes, CycleState()
    each = [nodes.at(position) for position in range(len(nodes))]
    prepared = asking.pre_filter(plugin, cycle, pod, nodes).status.is_success
    if prepared and asking.filters_tables(plugin) and asking.filters_nodes(plugin):
        for node in each:
            asking.filter_one(plugin, cycle, pod, node)
    if asking.scores_tables(plugin) and asking.scores_nodes(plugin):
        accepted = [n for n, s in zip(each, trial.filtered(cycle), strict=True) if s.is_success] if prepared else []
        if accepted and asking.pre_score(plugin, cycle, pod, nodes).is_success:
            for node in accepted:
                asking.score_one(plugin, cycle, pod, node)


def _ask_unreserve(trial: PluginTrial) -> None:
    """Also where `reserve` never ran."""
    plugin = trial.plugin
    if isinstance(plugin, Reserve):
        for name in trial.nodes.names[:1]:
            asking.done("unreserve", partial(plugin.unreserve, CycleState(), trial.pod, name), name)


def _ask_events(trial: PluginTrial) -> None:
    plugin = trial.plugin
    if not isinstance(plugin, EnqueueExtensions):
        return
    try:
        registered = list(plugin.events_to_register())
    except Exception as bug:
        raise BrokenPluginError("events_to_register", f"raised {type(bug).__name__}: {bug}") from bug
    for entry in registered:
        if not isinstance(entry, RegisteredEvent):
            raise BrokenPluginError("events_to_register", f"answered {entry!r}, not a RegisteredEvent")
