"""Nothing that a plugin is given is written to: not the pod, not the nodes or the table, not the arguments, not what
others keep in the cycle, not the raw scores that it is asked to normalise.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass

import msgspec
import numpy as np

from kubesched.framework import CycleState, PodInfo
from kubesched.plugin_tools.check import asking
from kubesched.plugin_tools.check.cases import Case
from kubesched.plugin_tools.check.checks.answers import ask_everything
from kubesched.plugin_tools.check.checks.symmetry import move
from kubesched.plugin_tools.check.report import RuleViolation
from kubesched.plugin_tools.check.subject import Subject
from kubesched.plugin_tools.check.trial import PluginTrial
from kubesched.scheduler.cluster.recount import recount_rows


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
