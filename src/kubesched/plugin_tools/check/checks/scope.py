"""No answer depends on more than its scope says: answers are kept for a signature, and one that depends on more would
be out of date.

For each change of another object the answer must stay as it was where the scope says that it does. State that follows
pods (`pods_changed`) must answer as if it had been prepared anew.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

from kubesched.framework import CycleState
from kubesched.framework.caching import FollowsPods, Scope, filter_scope_for, score_scope_for
from kubesched.plugin_tools.check import asking
from kubesched.plugin_tools.check.cases import Case, DrawnChange, Manifest
from kubesched.plugin_tools.check.checks.forms import shown
from kubesched.plugin_tools.check.history import AppliedChange, CaseHistory
from kubesched.plugin_tools.check.report import RuleViolation
from kubesched.plugin_tools.check.subject import Subject
from kubesched.plugin_tools.check.trial import PluginTrial, TrialAnswers


def scopes_hold(subject: Subject, case: Case) -> RuleViolation | bool:
    history = CaseHistory(subject, case)
    trial = history.trial
    scopes = (filter_scope_for(trial.plugin)(trial.pod), score_scope_for(trial.plugin)(trial.pod))
    follows = isinstance(trial.plugin, FollowsPods)
    if not follows and all(scope in (None, Scope.CLUSTER) for scope in scopes):
        return False
    cycle = CycleState()
    before = trial.answers(cycle)
    violation = _alike(trial, before, scopes)
    if violation is None and Scope.AMOUNTS in scopes:
        level = PluginTrial(subject, _levelled(case))
        violation = _alike(level, level.answers(), scopes)
    for change in case.changes:
        place = trial.cluster.table.journal.pods.end
        applied = None if change.is_about(case.pod) else history.apply(change)
        if applied is None:
            continue
        if follows and violation is None:
            violation, cycle = _followed(trial, cycle, applied, place)
        after = trial.answers()
        violation = violation or _outdated(before, after, applied, scopes)
        before = after
    return violation or True


Scopes = tuple[Scope | None, Scope | None]
"""Of filter, of score."""


def _outdated(
    before: TrialAnswers, after: TrialAnswers, applied: AppliedChange, scopes: Scopes
) -> RuleViolation | None:
    for node in before.statuses.keys() & after.statuses.keys():
        kept = (_outlives(scopes[0], node, applied), _outlives(scopes[1], node, applied))
        violation = _same_answers(node, applied.change, before, after, kept)
        if violation is not None:
            return violation
    return None


def _outlives(scope: Scope | None, node: str, applied: AppliedChange) -> bool:
    """Whether an answer about this node is kept over the change."""
    if scope in (None, Scope.CLUSTER):
        return False
    if applied.change.kind == "Pod":
        return scope in (Scope.NODE, Scope.NODES) or node not in applied.node_names
    return scope is not Scope.NODES and applied.change.name != node


def _same_answers(
    node: str, change: DrawnChange, before: TrialAnswers, after: TrialAnswers, kept: tuple[bool, bool]
) -> RuleViolation | None:
    one, other = before.statuses[node], after.statuses[node]
    if kept[0] and (one.code, one.reasons) != (other.code, other.reasons):
        return _too_narrow("filter", node, change, shown(one), shown(other))
    if kept[1] and node in before.raw and node in after.raw and before.raw[node] != after.raw[node]:
        return _too_narrow("score", node, change, str(before.raw[node]), str(after.raw[node]))
    return None


def _too_narrow(extension_point: str, node: str, change: DrawnChange, before: str, after: str) -> RuleViolation:
    problem = f"the {extension_point} scope is too narrow: an answer that was kept would be out of date"
    return RuleViolation(problem, node, {"before": before, "after": after}, change)


def _alike(trial: PluginTrial, before: TrialAnswers, scopes: Scopes) -> RuleViolation | None:
    """Scope `AMOUNTS`: nodes with the same amounts are answered alike."""
    for one, other in combinations(before.statuses, 2):
        if _amounts(trial, one) != _amounts(trial, other):
            continue
        for extension_point, scope, said in (("filter", scopes[0], _reasons(before)), ("score", scopes[1], before.raw)):
            if scope is Scope.AMOUNTS and one in said and other in said and said[one] != said[other]:
                problem = (
                    f"the {extension_point} scope is AMOUNTS, and a node with the same amounts is answered otherwise"
                )
                return RuleViolation(problem, one, {one: str(said[one]), other: str(said[other])})
    return None


def _levelled(case: Case) -> Case:
    """The same nodes, all of one size and empty."""
    size: Manifest = next(
        (node["status"]["allocatable"] for node in case.nodes if "allocatable" in node.get("status", {})), {}
    )
    nodes = (node | {"status": node.get("status", {}) | {"allocatable": size}} for node in case.nodes)
    return replace(case, objects=tuple(nodes))


def _reasons(answers: TrialAnswers) -> dict[str, object]:
    return {name: (status.code, status.reasons) for name, status in answers.statuses.items()}


def _amounts(trial: PluginTrial, name: str) -> tuple[object, ...]:
    row = trial.nodes.row_of(name)
    assert row is not None
    node, table = trial.nodes.at(row), trial.cluster.table
    resources = sorted({*table.allocatable, *table.requested})
    return (
        *((node.allocatable(resource), node.requested(resource)) for resource in resources),
        (node.nonzero_cpu_milli, node.nonzero_memory_bytes, node.allowed_pods, node.pod_count),
    )


def _followed(
    trial: PluginTrial, cycle: CycleState, applied: AppliedChange, place: int
) -> tuple[RuleViolation | None, CycleState]:
    """How state that was notified of the change differs from state prepared anew, if so; and the state to go on
    with."""
    plugin, fresh = trial.plugin, CycleState()
    is_prepared = asking.pre_filter(plugin, fresh, trial.pod, trial.nodes).status.is_success
    changes = trial.cluster.table.journal.pods.since(place)
    if applied.change.kind != "Pod" or changes is None or not isinstance(plugin, FollowsPods):
        return None, fresh
    if not plugin.pods_changed(cycle, trial.pod, changes) or not is_prepared:
        return None, fresh
    for name, one, other in zip(trial.nodes.names, trial.filtered(cycle), trial.filtered(fresh), strict=True):
        if (one.code, one.reasons) != (other.code, other.reasons):
            problem = "pods_changed says that the state followed, and filter answers otherwise than if prepared anew"
            answers = {"followed": shown(one), "prepared": shown(other)}
            return RuleViolation(problem, name, answers, applied.change), fresh
    return None, cycle
