"""PreScore, Score, NormalizeScore: how good is each feasible node? And the choice of one among the best.

Every plugin gives 0 to 100, weighted and added up. Who wins a tie is decided by something handed in (`TieBreak`), never
by chance of our own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol

import numpy as np

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.nodes import NodeTable, RowArray
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.results import MAX_NODE_SCORE, MIN_NODE_SCORE, Scores
from kubesched.scheduler.engine.metrics.timing import timed_extension_point
from kubesched.scheduler.engine.plugin_call import PluginError, guarded, invalid_score
from kubesched.scheduler.engine.profile import Profile, ScoreStep


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


class TieBreak(Protocol):
    def choose(self, names: Sequence[str]) -> str:
        """One of several nodes that are equally good."""
        ...

    def choose_row(self, rows: RowArray, names: Sequence[str]) -> int:
        """One of several rows, in search order, that are equally good."""
        ...

    def offset(self, n: int) -> int:
        """Where to begin among n nodes when not all can be looked at."""
        ...


class ByName:
    """The lowest name wins: for comparison and for reproducible reports."""

    def choose(self, names: Sequence[str]) -> str:
        return min(names)

    def choose_row(self, rows: RowArray, names: Sequence[str]) -> int:
        return int(min(rows.tolist(), key=names.__getitem__))

    def offset(self, n: int) -> int:
        return 0


class Seeded:
    """One of the best at random, as kube-scheduler picks; the same seed picks the same."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def state(self) -> tuple[Any, ...]:
        """What the next choices depend on, for `restore`."""
        return self._random.getstate()

    def restore(self, state: tuple[Any, ...]) -> None:
        self._random.setstate(state)

    def choose(self, names: Sequence[str]) -> str:
        return names[self._below(len(names))]

    def choose_row(self, rows: RowArray, names: Sequence[str]) -> int:
        return rows.item(self._below(len(rows)))

    def offset(self, n: int) -> int:
        return self._below(n) if n else 0

    def _below(self, n: int) -> int:
        """What `Random.randrange(n)` gives, from the same bits, in a third of the time: it is drawn for every pod."""
        n_bits = n.bit_length()
        found = self._random.getrandbits(n_bits)
        while found >= n:
            found = self._random.getrandbits(n_bits)
        return found
