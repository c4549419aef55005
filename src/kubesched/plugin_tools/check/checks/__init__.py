"""The rules a plugin is held to, one module each.

A check takes a subject and a case, and gives a `RuleViolation`, or whether the case had anything to say about its rule.
A plugin that breaks while it is asked is the concern of `answers` alone: the other checks pass over such a case.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kubesched.plugin_tools.check.asking import BrokenPluginError
from kubesched.plugin_tools.check.cases import Case
from kubesched.plugin_tools.check.checks.answers import answers_hold
from kubesched.plugin_tools.check.checks.bounds import bounds_hold
from kubesched.plugin_tools.check.checks.determinism import answers_repeat
from kubesched.plugin_tools.check.checks.events import events_undo
from kubesched.plugin_tools.check.checks.forms import forms_agree
from kubesched.plugin_tools.check.checks.scope import scopes_hold
from kubesched.plugin_tools.check.checks.symmetry import pods_are_symmetric
from kubesched.plugin_tools.check.checks.writes import nothing_is_written
from kubesched.plugin_tools.check.report import RuleViolation
from kubesched.plugin_tools.check.subject import Subject


@dataclass(frozen=True)
class RuleCheck:
    name: str
    rule: str
    holds: Callable[[Subject, Case], RuleViolation | bool]
    forgives_broken: bool = True

    def __call__(self, subject: Subject, case: Case) -> RuleViolation | bool:
        try:
            return self.holds(subject, case)
        except BrokenPluginError:
            if not self.forgives_broken:
                raise
            return False


CHECKS: tuple[RuleCheck, ...] = (
    RuleCheck(
        "answers", "every extension point answers, whatever the pod is like", answers_hold, forgives_broken=False
    ),
    RuleCheck("forms", "the table form and the form for one node agree", forms_agree),
    RuleCheck("writes", "nothing that it is given is written to", nothing_is_written),
    RuleCheck("bounds", "scores are 0 to 100 after normalising", bounds_hold),
    RuleCheck("symmetry", "add_pod and remove_pod undo each other, and filter follows them", pods_are_symmetric),
    RuleCheck("events", "a change that undoes a rejection brings the pod back", events_undo),
    RuleCheck("determinism", "the same question gets the same answer", answers_repeat),
    RuleCheck("scope", "no answer depends on more than its scope says", scopes_hold),
)

__all__ = ["CHECKS", "RuleCheck"]
