"""Scores are 0 to 100 once they are normalised: any other ends the pod's cycle with an error."""

from __future__ import annotations

from kubesched.framework import MAX_NODE_SCORE, MIN_NODE_SCORE
from kubesched.plugin_tools.check import asking
from kubesched.plugin_tools.check.asking import ScoreOutOfBoundsError
from kubesched.plugin_tools.check.cases import Case
from kubesched.plugin_tools.check.report import RuleViolation
from kubesched.plugin_tools.check.subject import Subject
from kubesched.plugin_tools.check.trial import PluginTrial


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
