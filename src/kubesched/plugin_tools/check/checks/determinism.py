"""The same question gets the same answer: asked again, by a new plugin, after other questions, with the objects in
another order, at another time. `hash_seeds` asks in another Python, where sets and hashes come out differently.
"""

from __future__ import annotations

from kubesched.framework import CycleState
from kubesched.plugin_tools.check.cases import Case
from kubesched.plugin_tools.check.checks.forms import shown
from kubesched.plugin_tools.check.moved_clock import moved_clock
from kubesched.plugin_tools.check.report import RuleViolation
from kubesched.plugin_tools.check.subject import Subject
from kubesched.plugin_tools.check.trial import PluginTrial, TrialAnswers

_A_DAY_AND_A_BIT_S = 100_003.0


def answers_repeat(subject: Subject, case: Case) -> RuleViolation | bool:
    trial, cycle = PluginTrial(subject, case), CycleState()
    first = trial.answers(cycle)
    asked_pod = trial.pod
    violation = differing(first, trial.answers(), "when it is asked again")
    if violation is None:
        trial.pod = trial.info(case.visitor)
        trial.answers()
        trial.pod = asked_pod
        violation = differing(first, trial.answers(), "after it was asked about another pod")
    if violation is None:
        backwards = PluginTrial(subject, case, backwards=True)
        violation = differing(first, backwards.answers(), "when the objects come in another order")
    if violation is None:
        with moved_clock(subject.plugin_class, _A_DAY_AND_A_BIT_S):
            violation = differing(first, trial.answers(), "a day later")
    return violation or bool(first.statuses)


def differing(first: TrialAnswers, second: TrialAnswers, when: str) -> RuleViolation | None:
    if first.gate != second.gate:
        answers = {"first": shown(first.gate), when: shown(second.gate)}
        return RuleViolation(f"pre_enqueue answers otherwise {when}", "", answers)
    for node, status in first.statuses.items():
        other = second.statuses[node]
        if (status.code, status.reasons) != (other.code, other.reasons):
            answers = {"first": shown(status), when: shown(other)}
            return RuleViolation(f"filter answers otherwise {when}", node, answers)
    for node in first.admissions.keys() & second.admissions.keys():
        one_said, two_said = first.admissions[node], second.admissions[node]
        if (one_said.code, one_said.reasons) != (two_said.code, two_said.reasons):
            answers = {"first": shown(one_said), when: shown(two_said)}
            return RuleViolation(f"reserve or permit answers otherwise {when}", node, answers)
    for node in first.raw.keys() | second.raw.keys():
        one, two = (found.scores.get(node) for found in (first, second))
        if one != two:
            return RuleViolation(f"score answers otherwise {when}", node, {"first": str(one), when: str(two)})
    return None
