"""The table form and the form for one node agree, and the table form gives the same answer for every part.

The scheduler asks whichever form is cheaper, about all nodes, the live ones, or one: which it was must not show.
"""

from __future__ import annotations

import numpy as np

from kubesched.framework import CycleState, Status
from kubesched.plugin_tools.check import asking
from kubesched.plugin_tools.check.cases import Case
from kubesched.plugin_tools.check.report import RuleViolation
from kubesched.plugin_tools.check.subject import Subject
from kubesched.plugin_tools.check.trial import PluginTrial


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
