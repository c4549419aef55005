"""What a plugin costs: CPU time of its extension points on a thousand nodes, and how often the scheduler will ask.

Measured on this machine, on a cluster of ordinary nodes and pods; the best of several rounds. A number to compare
plugins and forms by, no guarantee.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from kubesched.framework import CycleState
from kubesched.framework.caching import Scope, filter_scope_for, score_scope_for
from kubesched.plugin_tools.check import asking
from kubesched.plugin_tools.check.asking import BrokenPluginError
from kubesched.plugin_tools.check.cases import Case, Manifest
from kubesched.plugin_tools.check.drawing import CaseDraws
from kubesched.plugin_tools.check.report import CostLine
from kubesched.plugin_tools.check.subject import Subject
from kubesched.plugin_tools.check.trial import PluginTrial
from kubesched.scheduler.engine.profile import filter_step, score_step

N_NODES = 1_000
_PODS_PER_NODE = 2
_ROUNDS = 5

_KEPT = {
    None: "not kept: asked anew for every pod",
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
