"""All checks on one plugin. Same plugin, same seed: same report, but for the costs.

Next: `checks` for the rules, `report` for what comes out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from kubesched.framework.extension_points import extension_points_of
from kubesched.k8s.model.collector import collector_paused
from kubesched.plugin_tools.check.cases import Case
from kubesched.plugin_tools.check.changes import drawn_cases, drawn_changes
from kubesched.plugin_tools.check.checks import CHECKS, RuleCheck
from kubesched.plugin_tools.check.cost import costs_of
from kubesched.plugin_tools.check.drawing import CaseDraws
from kubesched.plugin_tools.check.hash_seeds import differs_elsewhere
from kubesched.plugin_tools.check.report import BatteryReport, CheckOutcome, CheckResult, RuleViolation
from kubesched.plugin_tools.check.shrinking import shrunk
from kubesched.plugin_tools.check.subject import Subject
from kubesched.plugin_tools.check.tracing import with_traced_words

DEFAULT_CASES = 100
_REJECTING = frozenset({"preEnqueue", "preFilter", "filter"})
_CHANGES_PER_GIVEN_CASE = 24


def check_plugin(
    subject: Subject,
    *,
    seed: int = 0,
    n_cases: int = DEFAULT_CASES,
    given: Sequence[Case] = (),
    only: Collection[str] = (),
    elsewhere: bool = True,
    costs: bool = True,
) -> BatteryReport:
    """Tries the plugin on cases drawn from the seed, after those that are given. `elsewhere` also asks it in another
    Python, whose sets have another order. What it costs is left out if `only` some checks are asked for."""
    subject = with_traced_words(subject, seed, given)
    cases = [*_with_changes(subject, seed, given), *drawn_cases(subject.words, seed, n_cases)]
    with collector_paused():
        results = [_result(check, subject, cases) for check in CHECKS if not only or check.name in only]
    if elsewhere:
        results = [_asked_elsewhere(result, subject, seed, n_cases) for result in results]
    return BatteryReport(
        plugin=subject.name,
        file=subject.origin,
        extension_points=tuple(sorted(extension_points_of(subject.plugin_class))),
        seed=seed,
        n_cases=len(cases),
        results=tuple(results),
        costs=costs_of(subject, seed) if costs and not only else (),
    )


def _with_changes(subject: Subject, seed: int, given: Iterable[Case]) -> Iterator[Case]:
    draws = CaseDraws(seed, subject.words)
    for case in given:
        yield replace(case, changes=case.changes or drawn_changes(draws, case, _CHANGES_PER_GIVEN_CASE))


def _result(check: RuleCheck, subject: Subject, cases: Sequence[Case]) -> CheckResult:
    n_asked = 0
    for case in cases:
        found = check(subject, case)
        if isinstance(found, RuleViolation):
            smaller, violation = shrunk(case, found, lambda other: check(subject, other))
            return CheckResult(check.name, check.rule, CheckOutcome.FAILED, n_asked + 1, violation, smaller)
        n_asked += found
    if n_asked:
        return CheckResult(check.name, check.rule, CheckOutcome.PASSED, n_asked)
    return CheckResult(check.name, check.rule, CheckOutcome.NOT_APPLICABLE, note=_why_never(check, subject))


def _why_never(check: RuleCheck, subject: Subject) -> str:
    """A filter that nothing was seen to undo deserves a second look."""
    if check.name == "events" and extension_points_of(subject.plugin_class) & _REJECTING:
        return "no rejection was undone in any case; try it on a cluster that it rejects, with -f"
    return ""


def _asked_elsewhere(result: CheckResult, subject: Subject, seed: int, n_cases: int) -> CheckResult:
    if result.check != "determinism" or result.outcome is not CheckOutcome.PASSED or not subject.can_reload:
        return result
    found = differs_elsewhere(subject, seed, n_cases)
    if found is None:
        return result
    violation, case = found
    return replace(result, outcome=CheckOutcome.FAILED, violation=violation, case=case)
