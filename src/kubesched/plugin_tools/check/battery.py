"""All checks on one plugin, and what it costs. Same plugin, same seed: same report, but for the costs.

A check takes a subject and a case, and gives a `RuleViolation`, or whether the case had anything to say about its rule.
A plugin that breaks while it is asked is the concern of the check `answers` alone: the others pass over such a case.

Costs are CPU time of the extension points on a thousand ordinary nodes, the best of several rounds on this machine: a
number to compare plugins and forms by, no guarantee.

A case that breaks a rule is made smaller: parts of it are left out one by one, as long as it stays broken. Greedy, and
bounded by how often the rule is asked: what remains is small, not the smallest of all.

Next: `answer_checks`, `change_checks` and `determinism_check` for the rules, `report` for what comes out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

from kubesched.framework import CycleState
from kubesched.framework.caching import Scope, filter_scope_for, score_scope_for
from kubesched.framework.extension_points import extension_points_of
from kubesched.k8s.model.manifests import collector_paused
from kubesched.plugin_tools.check import asking
from kubesched.plugin_tools.check.answer_checks import (
    answers_hold,
    bounds_hold,
    forms_agree,
    nothing_is_written,
    pods_are_symmetric,
)
from kubesched.plugin_tools.check.asking import BrokenPluginError, PluginTrial
from kubesched.plugin_tools.check.change_checks import events_undo, scopes_hold
from kubesched.plugin_tools.check.determinism_check import answers_repeat
from kubesched.plugin_tools.check.drawing import CaseDraws, drawn_cases, drawn_changes
from kubesched.plugin_tools.check.hash_seeds import differs_elsewhere
from kubesched.plugin_tools.check.report import BatteryReport, CheckOutcome, CheckResult, CostLine, RuleViolation
from kubesched.plugin_tools.check.subject import Case, Manifest, Subject
from kubesched.plugin_tools.check.tracing import with_traced_words
from kubesched.scheduler.engine.profile import filter_step, score_step


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


N_NODES = 1_000
_PODS_PER_NODE = 2
_ROUNDS = 5

_KEPT = {
    None: "not kept: asked again for every pod",
    Scope.NODE: "kept until the node's object changes",
    Scope.NODES: "kept until any node's object changes",
    Scope.AMOUNTS: "kept per set of amounts: asked once for nodes with equal amounts",
    Scope.ROW: "kept until the node or its pods change",
    Scope.CLUSTER: "not kept, unless pods_changed follows",
}


def costs_of(subject: Subject, seed: int) -> tuple[CostLine, ...]:
    """Empty if it breaks on such a cluster: then it has other worries."""
    trial = PluginTrial(subject, _large_case(seed, subject))
    try:
        return tuple(_measured(trial))
    except BrokenPluginError:
        return ()


def _measured(trial: PluginTrial) -> list[CostLine]:
    plugin, found = trial.plugin, []
    trial.answers()  # whatever breaks, breaks here
    if asking.has_filter(plugin):
        seconds = _best(lambda: _filter(trial))
        found.append(_line("filter", asking.filters_tables(plugin), seconds, trial))
    if asking.has_score(plugin):
        seconds = _best(lambda: _score(trial))
        found.append(_line("score", asking.scores_tables(plugin), seconds, trial))
    return found


def _filter(trial: PluginTrial) -> None:
    """As the engine asks, from preFilter on."""
    cycle = CycleState()
    if asking.pre_filter(trial.plugin, cycle, trial.pod, trial.nodes).status.is_success:
        filter_step(trial.plugin).filter(cycle, trial.pod, trial.nodes)


def _score(trial: PluginTrial) -> None:
    cycle, step = CycleState(), score_step(trial.plugin, 1)
    if asking.pre_score(trial.plugin, cycle, trial.pod, trial.nodes).is_success:
        scores = step.score(cycle, trial.pod, trial.nodes)
        if step.normalize is not None:
            step.normalize(cycle, trial.pod, trial.nodes, scores)


def _line(extension_point: str, is_table: bool, seconds: float, trial: PluginTrial) -> CostLine:
    form = "table" if is_table else "node by node"
    scope = (filter_scope_for if extension_point == "filter" else score_scope_for)(trial.plugin)(trial.pod)
    ms = seconds * 1_000 * 1_000 / max(len(trial.nodes), 1)
    return CostLine(extension_point, form, ms, "none" if scope is None else scope.name, _KEPT[scope])


def _best(work: Callable[[], object]) -> float:
    taken = []
    for _ in range(_ROUNDS):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return min(taken)


def _large_case(seed: int, subject: Subject) -> Case:
    draws = CaseDraws(seed, subject.words)
    few = [draws.node(f"kind-{number}") for number in range(20)]
    nodes = [_copied(few[number % len(few)], f"n{number}") for number in range(N_NODES)]
    pods = [draws.pod(f"p{number}", f"n{number % N_NODES}") for number in range(N_NODES * _PODS_PER_NODE)]
    return Case(draws.pod("asking"), (*nodes, *pods), draws.pod("visitor"))


def _copied(node: Manifest, name: str) -> Manifest:
    metadata = {**node["metadata"], "name": name}
    return {**node, "metadata": metadata}


_MOST_TRIES = 300
_NEEDED = frozenset({"apiVersion", "kind", "name", "namespace", "containers", "metadata", "spec", "nodeName", "phase"})
"""Fields without which an object is none, or another."""

Asked = Callable[[Case], RuleViolation | bool]
Path = tuple[str | int, ...]


def shrunk(case: Case, violation: RuleViolation, ask: Asked) -> tuple[Case, RuleViolation]:
    """A smaller case, and how it breaks the rule."""
    search = _Search(case, violation, ask)
    if violation.change is None or not search.try_case(replace(case, changes=(violation.change,))):
        search.drop_changes()
    search.drop_objects()
    search.drop_fields()
    return search.case, search.violation


class _Search:
    def __init__(self, case: Case, violation: RuleViolation, ask: Asked) -> None:
        self.case = case
        self.violation = violation
        self._ask = ask
        self._n_tries = 0

    def try_case(self, smaller: Case) -> bool:
        """Takes the smaller case if it breaks the rule, too."""
        if self._n_tries >= _MOST_TRIES:
            return False
        self._n_tries += 1
        try:
            found = self._ask(smaller)
        except Exception:  # noqa: BLE001  a case from which too much was taken is no case any more
            return False
        if not isinstance(found, RuleViolation):
            return False
        self.case, self.violation = smaller, found
        return True

    def drop_objects(self) -> None:
        position = 0
        while position < len(self.case.objects):
            objects = self.case.objects
            if not self.try_case(replace(self.case, objects=objects[:position] + objects[position + 1 :])):
                position += 1

    def drop_changes(self) -> None:
        """The last first: what came after the rule was broken goes at once."""
        for position in reversed(range(len(self.case.changes))):
            changes = self.case.changes
            self.try_case(replace(self.case, changes=changes[:position] + changes[position + 1 :]))

    def drop_fields(self) -> None:
        """Until nothing more can go: the pod's first, then those of other objects and of the change."""
        n_dropped = 1
        while n_dropped:
            n_dropped = sum(self._drop_one(path) for path in _paths(_tree(self.case)))

    def _drop_one(self, path: Path) -> bool:
        """Leaves a part out; also of the same object as it is after later changes, or a change would bring it back."""
        tree = deepcopy(_tree(self.case))
        place, rest = (path[:1], path[1:]) if path[0] in ("pod", "visitor") else (path[:2], path[2:])
        try:
            item = _found(tree, place)
            _leave_out(item, rest)
        except (KeyError, IndexError):
            return False  # went with something larger
        first = place[1] + 1 if place[0] == "changes" and isinstance(place[1], int) else 0
        for later, change in list(zip(tree["changes"], self.case.changes, strict=True))[first:]:
            if place[0] != "visitor" and item and change.is_about(item):
                with suppress(KeyError, IndexError):
                    _leave_out(later, rest)
        return self.try_case(_case(tree, self.case))


def _found(tree: Any, path: Path) -> Any:
    for step in path:
        tree = tree[step]
    return tree


def _leave_out(item: Any, path: Path) -> None:
    del _found(item, path[:-1])[path[-1]]


def _tree(case: Case) -> dict[str, Any]:
    return {
        "pod": case.pod,
        "objects": list(case.objects),
        "visitor": case.visitor,
        "changes": [change.new or {} for change in case.changes],
    }


def _case(tree: dict[str, Any], like: Case) -> Case:
    changes = tuple(
        change if change.new is None else replace(change, new=new)
        for change, new in zip(like.changes, tree["changes"], strict=True)
    )
    return Case(tree["pod"], tuple(tree["objects"]), tree["visitor"], changes)


def _paths(tree: dict[str, Any]) -> Iterator[Path]:
    """All parts that can be left out, large ones first."""
    found: list[Path] = []
    for part in ("pod", "visitor"):
        found.extend(_within(tree[part], (part,)))
    for part in ("objects", "changes"):
        for number, item in enumerate(tree[part]):
            found.extend(_within(item, (part, number)))
    return iter(sorted(found, key=len))


def _within(item: Any, path: Path) -> Iterator[Path]:
    entries = item.items() if isinstance(item, dict) else enumerate(item) if isinstance(item, list) else ()
    for key, value in entries:
        if key not in _NEEDED or path[-1] in ("labels", "annotations"):
            yield (*path, key)
        yield from _within(value, (*path, key))
