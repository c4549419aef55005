"""Filter and score plugins brought into one form: whole tables. A plugin that answers node by node is adapted here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kubesched.framework.caching import Scope, filter_scope_for, score_scope_for
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.extension_points import Filter, FilterNode, NormalizeScore, Plugin, Score, ScoreNode
from kubesched.framework.nodes import NodeInfo, NodeTable
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.scores import Scores
from kubesched.framework.status import Status
from kubesched.framework.verdicts import Verdicts


@dataclass(frozen=True, slots=True)
class FilterStep:
    """`node_by_node` says that every node asked about costs a call: only live ones should be."""

    name: str
    filter: Callable[[CycleState, PodInfo, NodeTable], Verdicts]
    node_by_node: bool
    filter_node: Callable[[CycleState, PodInfo, NodeInfo], Status] | None
    scope_for: Callable[[PodInfo], Scope | None]
    """What the answer depends on, for this pod; None if the plugin does not say."""


@dataclass(frozen=True, slots=True)
class ScoreStep:
    name: str
    weight: int
    score: Callable[[CycleState, PodInfo, NodeTable], Scores]
    normalize: Callable[[CycleState, PodInfo, NodeTable, Scores], Scores] | None
    score_node: Callable[[CycleState, PodInfo, NodeInfo], int] | None
    scope_for: Callable[[PodInfo], Scope | None]


def filter_step(plugin: Plugin) -> FilterStep:
    scope_for = filter_scope_for(plugin)
    ask = plugin.filter_node if isinstance(plugin, FilterNode) else None
    if isinstance(plugin, Filter):
        return FilterStep(plugin.name, plugin.filter, False, ask, scope_for)
    assert ask is not None

    def filter_each(cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdicts:
        return Verdicts.from_statuses([ask(cycle, pod, node) for node in nodes.each()])

    return FilterStep(plugin.name, filter_each, True, ask, scope_for)


def score_step(plugin: Plugin, weight: int) -> ScoreStep:
    normalize = plugin.normalize_score if isinstance(plugin, NormalizeScore) else None
    scope_for = score_scope_for(plugin)
    ask = plugin.score_node if isinstance(plugin, ScoreNode) else None
    if isinstance(plugin, Score):
        return ScoreStep(plugin.name, weight, plugin.score, normalize, ask, scope_for)
    assert ask is not None

    def score_each(cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> Scores:
        return np.array([ask(cycle, pod, node) for node in nodes.each()], np.int64)

    return ScoreStep(plugin.name, weight, score_each, normalize, ask, scope_for)
