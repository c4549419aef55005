"""Prioritize: extenders score nodes from 0 to 10, all asked at once. One that fails gives no score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kubesched.framework.pod_info import PodInfo
from kubesched.framework.scores import MAX_NODE_SCORE, Scores
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.engine.extender import wire
from kubesched.scheduler.engine.extender.filtering import nodes_called
from kubesched.scheduler.engine.extender.http_extender import Consultation, ExtenderError, HTTPExtender, body_of
from kubesched.scheduler.engine.score import PluginScores, ScoreOutcome

MAX_EXTENDER_PRIORITY = 10
_SCALE = MAX_NODE_SCORE // MAX_EXTENDER_PRIORITY
_HIGHEST = 2**62


@dataclass(frozen=True, slots=True)
class ExtenderScores:
    """What one extender gave, by node."""

    extender: str
    weight: int
    by_node: dict[str, int]


def ask_to_prioritize(
    extenders: Sequence[HTTPExtender], cluster: Cluster, pod: PodInfo, names: Sequence[str]
) -> Consultation[list[ExtenderScores]]:
    asked = [extender for extender in extenders if extender.config.prioritize_verb]
    if not asked:
        return []
    nodes = nodes_called(cluster, names)
    answers = yield [
        extender.call(
            extender.config.prioritize_verb,
            wire.node_args(pod.pod, nodes, names_only=extender.config.node_cache_capable),
        )
        for extender in asked
    ]
    found = []
    for extender, answer in zip(asked, answers, strict=True):
        try:
            given = wire.host_priorities(body_of(answer))
        except ExtenderError:
            continue
        by_node: dict[str, int] = {}
        for name, score in given:
            by_node[name] = by_node.get(name, 0) + score
        found.append(ExtenderScores(extender.name, extender.config.weight, by_node))
    return found


def add_scores(scored: ScoreOutcome, given: Sequence[ExtenderScores]) -> ScoreOutcome:
    """The plugins' scores with the extenders' on top, brought to the plugins' scale."""
    by_plugin = [*scored.by_plugin, *(_as_scores(scores, scored.nodes.names) for scores in given)]
    total = scored.total + sum((scores.weighted for scores in by_plugin[len(scored.by_plugin) :]), start=np.int64(0))
    return ScoreOutcome(scored.nodes, by_plugin, total)


def _as_scores(given: ExtenderScores, names: Sequence[str]) -> PluginScores:
    raw: Scores = np.array([_within(given.by_node.get(name, 0)) for name in names], dtype=np.int64)
    factor = given.weight * _SCALE
    weighted: Scores = np.array([_within(given.by_node.get(name, 0) * factor) for name in names], dtype=np.int64)
    return PluginScores(given.extender, raw, weighted, factor)


def _within(score: int) -> int:
    return max(-_HIGHEST, min(score, _HIGHEST))
