"""Rules for state: what `pre_filter` prepared follows pods, and nothing else that a plugin is given is written to.

`add_pod` and `remove_pod` undo each other, and after either of them filter answers as if the state had been prepared on
the cluster as it is then. Preemption relies on it. A plugin that counts pods in `pre_filter` and has no such methods
breaks the same rule: its counts are out of date.

Not to be written to: the pod, the nodes and the table, the arguments, what others keep in the cycle, the raw scores
that it is asked to normalise.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass

import msgspec
import numpy as np

from kubesched.framework import CycleState, PodInfo, Status
from kubesched.framework.caching import WITHIN_NODE, filter_scope_for
from kubesched.plugin_tools.check import asking
from kubesched.plugin_tools.check.answer_checks import ask_everything, shown
from kubesched.plugin_tools.check.asking import PluginTrial
from kubesched.plugin_tools.check.cases import Case
from kubesched.plugin_tools.check.report import RuleViolation
from kubesched.plugin_tools.check.subject import Subject
from kubesched.scheduler.cluster.self_check import recount_rows
from kubesched.scheduler.engine.row_check import ImaginedNode

_MOST_PODS = 4


def pods_are_symmetric(subject: Subject, case: Case) -> RuleViolation | bool:
    trial = PluginTrial(subject, case)
    if not asking.has_filter(trial.plugin):
        return False
    cycle = CycleState()
    if not asking.pre_filter(trial.plugin, cycle, trial.pod, trial.nodes).status.is_success:
        return False
    found = False
    for row, info, is_there in _pods_to_move(trial, case):
        violation = _moved_there_and_back(trial, cycle, row, info, adding=not is_there)
        if violation is not None:
            return violation
        found = True
    return found


def move(trial: PluginTrial, cycle: CycleState, info: PodInfo, row: int, *, adding: bool) -> None:
    """The pod comes to the row or leaves it, and the plugin is notified, as in a dry run of preemption."""
    plugin, table = trial.plugin, trial.cluster.table
    with table.journal.paused():
        table.add_pod(info, row) if adding else table.remove_pod(info)
    if asking.follows_trials(plugin):
        node = trial.nodes.at(row)
        if adding:
            asking.one_status("add_pod", lambda: plugin.add_pod(cycle, trial.pod, info, node))
        else:
            asking.one_status("remove_pod", lambda: plugin.remove_pod(cycle, trial.pod, info, node))


def _pods_to_move(trial: PluginTrial, case: Case) -> Iterator[tuple[int, PodInfo, bool]]:
    """(row, pod, whether it is there)"""
    there = [(row, info) for row in range(len(trial.nodes)) for info in trial.cluster.table.pods.on(row)]
    yield from ((row, info, True) for row, info in there[:_MOST_PODS])
    visitor = trial.info(case.visitor)
    yield from ((row, visitor, False) for row in range(min(2, len(trial.nodes))))


def _moved_there_and_back(
    trial: PluginTrial, cycle: CycleState, row: int, info: PodInfo, *, adding: bool
) -> RuleViolation | None:
    verb = "added" if adding else "removed"
    before = trial.filtered(cycle)
    imagined = _on_imagined_node(trial, cycle, row, info, adding=adding)
    move(trial, cycle, info, row, adding=adding)
    between = trial.filtered(cycle)
    real = None if imagined is None else asking.filter_one(trial.plugin, cycle, trial.pod, trial.nodes.at(row))
    fresh = _prepared_anew(trial)
    move(trial, cycle, info, row, adding=not adding)
    after = trial.filtered(cycle)
    pod = f"pod {info.key} {verb}"
    return (
        _compared(trial, f"with {pod}, filter does not answer as if prepared so", between, fresh, ("told", "prepared"))
        or _compared(trial, f"with {pod} and that undone, filter answers otherwise", before, after, ("before", "after"))
        or _imagination_differs(trial.nodes.names[row], real, imagined)
    )


def _prepared_anew(trial: PluginTrial) -> list[Status] | None:
    """None where `pre_filter` rejects the pod as a whole now: then there is nothing to compare with."""
    cycle = CycleState()
    result = asking.pre_filter(trial.plugin, cycle, trial.pod, trial.nodes)
    if result.status.is_skip:
        return [Status(result.status.code)] * len(trial.nodes)
    return trial.filtered(cycle) if result.status.is_success else None


def _compared(
    trial: PluginTrial, problem: str, ones: list[Status], others: list[Status] | None, who: tuple[str, str]
) -> RuleViolation | None:
    for position, (one, other) in enumerate(zip(ones, others or ones, strict=True)):
        if _rejects(one) != _rejects(other):
            return RuleViolation(problem, trial.nodes.names[position], {who[0]: shown(one), who[1]: shown(other)})
    return None


def _on_imagined_node(trial: PluginTrial, cycle: CycleState, row: int, info: PodInfo, *, adding: bool) -> Status | None:
    """What the form for one node says about a node that is worked out, not in the table."""
    plugin = trial.plugin
    if not asking.filters_nodes(plugin) or filter_scope_for(plugin)(trial.pod) not in WITHIN_NODE:
        return None
    node = ImaginedNode(trial.nodes.at(row))
    node.bring(info) if adding else node.take_away(info)
    return asking.filter_one(plugin, cycle, trial.pod, node)


def _imagination_differs(node: str, real: Status | None, imagined: Status | None) -> RuleViolation | None:
    if real is None or imagined is None or _rejects(imagined) == _rejects(real):
        return None
    problem = "filter_node does not answer by the node it is given (its pods and amounts), but by the table"
    return RuleViolation(problem, node, {"in the table": shown(real), "imagined": shown(imagined)})


def _rejects(status: Status) -> tuple[str, ...] | None:
    """The reasons of a rejection; None if it is none."""
    return None if status.is_success or status.is_skip else status.reasons


@dataclass(frozen=True)
class OthersState:
    """Stands for what another plugin keeps in the cycle."""

    kept: str


_KEPT = OthersState("by another plugin")
_SKIPPED = frozenset({"AnotherPlugin"})


def nothing_is_written(subject: Subject, case: Case) -> RuleViolation | bool:
    trial = PluginTrial(subject, case)
    before, args = _objects(trial), deepcopy(trial.args)
    ask_everything(trial)
    cycle = _asked_in_others_cycle(trial)
    if repr(trial.args) != repr(args):
        return RuleViolation("its arguments were written to", "", {"given": repr(args), "now": repr(trial.args)})
    if cycle.find(OthersState) is not _KEPT or cycle.skip_filter != _SKIPPED or cycle.skip_score != _SKIPPED:
        return RuleViolation("what others keep in the cycle was written to")
    after = _objects(trial)
    for name, was in before.items():
        if after[name] != was:
            return RuleViolation(f"{name} was written to", "", {"given": was.decode(), "now": after[name].decode()})
    for what, difference in recount_rows(trial.cluster):
        return RuleViolation(f"the table was written to: {what}: {difference}")
    return _writes_scores(trial) or True


def _objects(trial: PluginTrial) -> dict[str, bytes]:
    """All objects, and what is derived from pods, written out."""
    found = {"the pod": _written(trial.pod)}
    for row, node in enumerate(trial.cluster.table.nodes):
        found[f"node {node.name}"] = msgspec.json.encode(node)
        found |= {f"pod {info.key}": _written(info) for info in trial.cluster.table.pods.on(row)}
    return found


def _written(info: PodInfo) -> bytes:
    return msgspec.json.encode([info.pod, info.key, info.uid, info.pin, info.resources.requests])


def _asked_in_others_cycle(trial: PluginTrial) -> CycleState:
    cycle = CycleState()
    cycle.put(_KEPT)
    cycle.skip_filter = cycle.skip_score = _SKIPPED
    trial.answers(cycle)
    if asking.pre_filter(trial.plugin, cycle, trial.pod, trial.nodes).status.is_success:
        for row in range(len(trial.nodes)):
            for info in list(trial.nodes.at(row).pods)[:1]:
                move(trial, cycle, info, row, adding=False)
                move(trial, cycle, info, row, adding=True)
    return cycle


def _writes_scores(trial: PluginTrial) -> RuleViolation | None:
    plugin, cycle = getattr(trial.plugin, "plugin", trial.plugin), CycleState()  # the checks in front give it a copy
    if not asking.normalizes(plugin):
        return None
    statuses = trial.statuses(cycle)
    accepted = [at for at, name in enumerate(trial.nodes.names) if statuses[name].is_success]
    feasible = trial.nodes.take(np.array(accepted, dtype=np.intp))
    if not accepted or not asking.pre_score(plugin, cycle, trial.pod, feasible).is_success:
        return None
    raw = asking.raw_scores(plugin, cycle, trial.pod, feasible)
    given = raw.copy()
    asking.normalized(plugin, cycle, trial.pod, feasible, given)
    if given.tolist() == raw.tolist():
        return None
    answers = {"given": str(raw.tolist()), "now": str(given.tolist())}
    return RuleViolation("normalize_score wrote to the raw scores: give a new array", "", answers)
