"""Rules for single answers: each is of the right kind, scores are in bounds, and both forms agree.

An exception would end the pod's cycle with an error, and so would a score that is not 0 to 100 once it is normalised.
The scheduler asks whichever form is cheaper, the table form or the one for one node, about all nodes, the live ones, or
one: which it was must not show.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from kubesched.framework import MAX_NODE_SCORE, MIN_NODE_SCORE, CycleState, Status
from kubesched.framework.events import RegisteredEvent
from kubesched.framework.extension_points import EnqueueExtensions, Reserve
from kubesched.plugin_tools.check import asking
from kubesched.plugin_tools.check.asking import BrokenPluginError, PluginTrial, ScoreOutOfBoundsError
from kubesched.plugin_tools.check.cases import Case
from kubesched.plugin_tools.check.report import RuleViolation
from kubesched.plugin_tools.check.subject import Subject


def forms_agree(subject: Subject, case: Case) -> RuleViolation | bool:
    trial = PluginTrial(subject, case)
    cycle = CycleState()
    result = asking.pre_filter(trial.plugin, cycle, trial.pod, trial.nodes)
    found: RuleViolation | bool = False
    if result.status.is_success and asking.filters_tables(trial.plugin):
        found = _filter_agrees(trial, cycle)
    if (
        not isinstance(found, RuleViolation)
        and asking.scores_tables(trial.plugin)
        and asking.scores_nodes(trial.plugin)
    ):
        scored = _score_agrees(trial, cycle, filters=result.status.is_success)
        found = scored or found
    return found


def _filter_agrees(trial: PluginTrial, cycle: CycleState) -> RuleViolation | bool:
    plugin, pod, nodes = trial.plugin, trial.pod, trial.nodes
    assert asking.filters_tables(plugin)
    has_both = asking.filters_nodes(trial.plugin)
    whole = asking.filter_table(plugin, cycle, pod, nodes)
    for position, said in enumerate(whole):
        node = nodes.at(position)
        if has_both:
            alone = asking.filter_one(plugin, cycle, pod, node)
            if not _same(alone, said):
                return _differing("filter and filter_node differ", node.name, "filter", said, "filter_node", alone)
        (single,) = asking.filter_table(plugin, cycle, pod, nodes.take(np.array([position])))
        if not _same(single, said):
            problem = "filter answers otherwise when it is asked about this node alone"
            return _differing(problem, node.name, "among all", said, "alone", single)
    turned = np.arange(len(nodes))[::-1]
    for position, said in zip(turned, asking.filter_table(plugin, cycle, pod, nodes.take(turned)), strict=True):
        if not _same(whole[position], said):
            problem = "filter answers otherwise when the nodes come in another order"
            return _differing(problem, nodes.names[position], "in order", whole[position], "backwards", said)
    return True


def _score_agrees(trial: PluginTrial, cycle: CycleState, *, filters: bool) -> RuleViolation | bool:
    plugin, pod, nodes = trial.plugin, trial.pod, trial.nodes
    accepted = [at for at, status in enumerate(trial.filtered(cycle)) if status.is_success] if filters else []
    feasible = nodes.take(np.array(accepted if filters else range(len(nodes)), dtype=np.intp))
    if not len(feasible) or not asking.pre_score(plugin, cycle, pod, feasible).is_success:
        return False
    for part in (feasible, feasible.take(np.arange(len(feasible))[::-2])):
        for position, said in enumerate(asking.raw_scores(plugin, cycle, pod, part).tolist()):
            alone = asking.score_one(plugin, cycle, pod, part.at(position))
            if alone != said:
                node = part.names[position]
                return _differing("score and score_node differ", node, "score", said, "score_node", alone)
    return True


def _same(one: Status, other: Status) -> bool:
    return one.code is other.code and one.reasons == other.reasons


def _differing(problem: str, node: str, who: str, said: object, other: str, otherwise: object) -> RuleViolation:
    return RuleViolation(problem, node, {who: shown(said), other: shown(otherwise)})


def shown(answer: object) -> str:
    if not isinstance(answer, Status):
        return str(answer)
    return f"{answer.code.value}: {answer.message}" if answer.reasons else answer.code.value


def bounds_hold(subject: Subject, case: Case) -> RuleViolation | bool:
    trial = PluginTrial(subject, case)
    if not asking.has_score(trial.plugin):
        return False
    try:
        answers = trial.answers()
    except ScoreOutOfBoundsError as refused:
        return RuleViolation(_problem(refused.score), refused.node, {refused.extension_point: str(refused.score)})
    for node, score in answers.scores.items():
        if not MIN_NODE_SCORE <= score <= MAX_NODE_SCORE:
            told = {"score": str(score)}
            if asking.normalizes(trial.plugin):
                told = {"raw score": str(answers.raw[node]), "normalised": str(score)}
            return RuleViolation(_problem(score), node, told)
    return bool(answers.scores)


def _problem(score: int) -> str:
    return f"a score of {score}: it must be {MIN_NODE_SCORE} to {MAX_NODE_SCORE}"


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
