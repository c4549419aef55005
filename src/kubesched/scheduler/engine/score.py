"""PreScore, Score, NormalizeScore: how good is each feasible node, 0 to 100 a plugin, weighted and added up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.nodes import NodeTable
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.scores import MAX_NODE_SCORE, MIN_NODE_SCORE, Scores
from kubesched.scheduler.engine.metrics.extension_point_watch import timed_extension_point
from kubesched.scheduler.engine.plugin_call import PluginError, guarded, invalid_score
from kubesched.scheduler.engine.profile import Profile
from kubesched.scheduler.engine.steps import ScoreStep


@dataclass(frozen=True, slots=True)
class PluginScores:
    """One plugin's scores: as it gave them, and normalised times weight."""

    plugin: str
    raw: Scores
    weighted: Scores
    weight: int


@dataclass(frozen=True, slots=True)
class ScoreOutcome:
    """Scores by position in `nodes`. Without any score plugin every node has the total 1."""

    nodes: NodeTable
    by_plugin: list[PluginScores]
    total: Scores


def run_scores(profile: Profile, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> ScoreOutcome:
    if not profile.score:
        return ScoreOutcome(nodes, [], np.ones(len(nodes), dtype=np.int64))
    run_pre_score(profile, cycle, pod, nodes)
    return _run_score_plugins(profile, cycle, pod, nodes)


@timed_extension_point("PreScore")
def run_pre_score(profile: Profile, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> None:
    skipped = set()
    for plugin in profile.pre_score:
        with guarded(plugin.name, 'running PreScore plugin "{}"'):
            status = plugin.pre_score(cycle, pod, nodes)
        if status.is_skip:
            skipped.add(plugin.name)
        elif not status.is_success:
            raise PluginError(plugin.name, f'running PreScore plugin "{plugin.name}": {status.message}')
    cycle.skip_score = frozenset(skipped)


@timed_extension_point("Score")
def _run_score_plugins(profile: Profile, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> ScoreOutcome:
    total = np.zeros(len(nodes), dtype=np.int64)
    found = []
    for plugin in profile.score:
        if plugin.name in cycle.skip_score:
            continue
        scores = score_nodes(plugin, cycle, pod, nodes)
        total += scores.weighted
        found.append(scores)
    return ScoreOutcome(nodes, found, total)


def score_nodes(plugin: ScoreStep, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> PluginScores:
    """One plugin's scores of these nodes."""
    with guarded(plugin.name, 'running Score plugins: plugin "{}" failed with'):
        scores = raw = plugin.score(cycle, pod, nodes)
    if plugin.normalize is not None:
        with guarded(plugin.name, 'running Normalize on Score plugins: plugin "{}" failed with'):
            scores = plugin.normalize(cycle, pod, nodes, raw)
    outside = (scores < MIN_NODE_SCORE) | (scores > MAX_NODE_SCORE)
    if outside.any():
        raise invalid_score(plugin.name, int(scores[outside][0]))
    return PluginScores(plugin.name, raw, scores * plugin.weight, plugin.weight)
