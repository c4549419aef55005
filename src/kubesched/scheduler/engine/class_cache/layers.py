"""The layers of a class: the plugins whose answers depend on the same things (`Scope`), and what is kept of these.

- `NodesLayer`: on all nodes. Asked again when any of them changed.
- `NodeLayer`: on the node alone. Asked again for nodes that changed.
- `AmountsLayer`: on the node's amounts. Asked once for all nodes on which they are the same.
- `RowLayer`: on the node's row. Asked again for rows whose pods came or went.
- `Layer`: on the cluster, on a pod's own claims, or it is not declared. Nothing is kept.

Columns are by row, with room for rows to come. Next: `pod_class`, which adds them up.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from kubesched.framework.caching import FollowsPods, has_stake_in, minds_pods, minds_pods_without_terms
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.nodes import IntArray, RowArray
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.verdicts import ACCEPT_ALL, BoolArray
from kubesched.k8s.model.meta import KubeObject
from kubesched.scheduler.cluster.journal import PodLog
from kubesched.scheduler.cluster.view import TableView
from kubesched.scheduler.engine.filter import ask
from kubesched.scheduler.engine.profile import FilterStep, Profile, ScoreStep

_FEW_NODES = 4
"""Up to this many changed nodes are filtered one by one."""
_MOST_AMOUNTS = 4096


@dataclass(frozen=True, slots=True)
class KeptScores:
    """Raw scores by position, of a plugin whose normalised scores depend on which nodes are feasible."""

    step: ScoreStep
    raw: IntArray


@dataclass(frozen=True, slots=True)
class LevelScore:
    """A score that is the same on all nodes, and stays the same when normalised on any of them: part of the sum."""

    step: ScoreStep
    raw: int
    weighted: int


@dataclass(slots=True)
class Layer:
    """Plugins that have something to say about this pod."""

    filters: list[FilterStep] = field(default_factory=list)
    scores: list[ScoreStep] = field(default_factory=list)
    """Where scores are kept: those that need no normalising."""
    kept: list[KeptScores] = field(default_factory=list)
    """And those that do."""

    def columns(self) -> Iterator[BoolArray | IntArray]:
        for kept in self.kept:
            yield kept.raw


@dataclass(slots=True)
class NodesLayer(Layer):
    score: IntArray | None = None
    """By row; None as long as it is 0 everywhere."""

    def columns(self) -> Iterator[BoolArray | IntArray]:
        if self.score is not None:
            yield self.score

    def refresh(self, cycle: CycleState, pod: PodInfo, nodes: TableView, capacity: int) -> IntArray | None:
        """What is added to the score of each node; None if nothing is."""
        scored = weighted_sum(self.scores, cycle, pod, nodes)
        if self.score is None:
            if not np.count_nonzero(scored):
                return None
            self.score = np.zeros(capacity, dtype=np.int64)
        n = len(scored)
        added = scored - self.score[:n]
        self.score[:n] = scored
        return added


def _nothing() -> BoolArray:
    return np.empty(0, dtype=np.bool_)


def _no_scores() -> IntArray:
    return np.empty(0, dtype=np.int64)


@dataclass(slots=True)
class NodeLayer(Layer):
    fits: BoolArray = field(default_factory=_nothing)
    score: IntArray = field(default_factory=_no_scores)
    """By row, level scores included."""
    level: list[LevelScore] = field(default_factory=list)

    def columns(self) -> Iterator[BoolArray | IntArray]:
        yield self.fits
        yield self.score
        yield from Layer.columns(self)

    def refresh(self, cycle: CycleState, pod: PodInfo, nodes: TableView, rows: RowArray) -> bool:
        """Asks about these nodes; False if a score that was the same everywhere is so no more."""
        if len(rows) <= _FEW_NODES:
            return all(self._refresh_one(cycle, pod, nodes, row) for row in rows.tolist())
        part = nodes.gathered(rows)
        self.fits[rows] = passing(self.filters, cycle, pod, part, np.ones(len(rows), dtype=np.bool_))
        score = np.zeros(len(rows), dtype=np.int64)
        for level in self.level:
            if np.not_equal(level.step.score(cycle, pod, part), level.raw).any():
                return False
            score += level.weighted
        for step in self.scores:
            score += step.score(cycle, pod, part) * step.weight
        self.score[rows] = score
        for kept in self.kept:
            kept.raw[rows] = kept.step.score(cycle, pod, part)
        return True

    def _refresh_one(self, cycle: CycleState, pod: PodInfo, nodes: TableView, row: int) -> bool:
        """The same for one node, by way of the forms for one, which cost less."""
        self.fits[row] = all(_passes(step, cycle, pod, nodes, row) for step in self.filters)
        score = 0
        for level in self.level:
            if _scored(level.step, cycle, pod, nodes, row) != level.raw:
                return False
            score += level.weighted
        for step in self.scores:
            score += _scored(step, cycle, pod, nodes, row) * step.weight
        self.score[row] = score
        for kept in self.kept:
            kept.raw[row] = _scored(kept.step, cycle, pod, nodes, row)
        return True


@dataclass(slots=True)
class AmountsLayer(Layer):
    known: dict[int, tuple[bool, int]] = field(default_factory=dict)
    """By the code of a row's amounts: does the pod fit, and what is the score?"""

    def answer(self, cycle: CycleState, pod: PodInfo, nodes: TableView, row: int, code: int) -> tuple[bool, int]:
        """Asks about a node with amounts that were not seen before."""
        node = nodes.at(row)
        fits, score = True, 0
        for step in self.filters:
            assert step.filter_node is not None
            fits = fits and step.filter_node(cycle, pod, node).is_success
        if fits:
            for scored in self.scores:
                assert scored.score_node is not None
                score += scored.score_node(cycle, pod, node) * scored.weight
        if len(self.known) >= _MOST_AMOUNTS:
            self.known.clear()
        self.known[code] = answer = fits, score
        return answer


@dataclass(slots=True)
class RowLayer(Layer):
    def lets_in(self, cycle: CycleState, pod: PodInfo, nodes: TableView, row: int) -> bool:
        node = nodes.at(row)
        for step in self.filters:
            assert step.filter_node is not None
            if not step.filter_node(cycle, pod, node).is_success:
                return False
        return True

    def score_row(self, cycle: CycleState, pod: PodInfo, nodes: TableView, row: int) -> int:
        """The sum; and keeps what is normalised later."""
        score, node = 0, nodes.at(row)
        for scored in self.scores:
            assert scored.score_node is not None
            score += scored.score_node(cycle, pod, node) * scored.weight
        for kept in self.kept:
            assert kept.step.score_node is not None
            kept.raw[row] = kept.step.score_node(cycle, pod, node)
        return score


@dataclass(slots=True)
class Layers:
    """All layers of a class, those first that change least often."""

    nodes: NodesLayer = field(default_factory=NodesLayer)
    node: NodeLayer = field(default_factory=NodeLayer)
    amounts: AmountsLayer = field(default_factory=AmountsLayer)
    row: RowLayer = field(default_factory=RowLayer)
    cluster: Layer = field(default_factory=Layer)
    fresh: Layer = field(default_factory=Layer)
    """Of plugins that do not say what they look at."""
    own: Layer = field(default_factory=Layer)
    """Of plugins that look at each pod's own claims."""

    def columns(self) -> Iterator[BoolArray | IntArray]:
        for layer in (self.nodes, self.node, self.row):
            yield from layer.columns()


def objects_do_not_matter(
    profile: Profile,
    cycle: CycleState,
    pod: PodInfo,
    changed: Sequence[KubeObject] | None,
    not_asked: Collection[str] = (),
) -> bool:
    """Whether what was prepared is as it was before these objects changed; not known without them. Plugins that are
    not asked see to it themselves."""
    followers = profile.object_followers
    if changed is None or followers is None:
        return False
    return all(follower.name in not_asked or follower.objects_changed(cycle, pod, changed) for follower in followers)


@dataclass(frozen=True, slots=True)
class Followers:
    """The plugins that mind pods that come and go, for what was prepared in one cycle."""

    of_all: Sequence[FollowsPods]
    of_pods_without_terms: Sequence[FollowsPods]
    """Those of them that also mind pods without terms of pod affinity."""

    def of_changes(self, log: PodLog, place: int) -> Sequence[FollowsPods]:
        """Those that are notified of the changes in the log from the place on."""
        return self.of_all if log.terms_end > place else self.of_pods_without_terms


def following(plugins: Iterable[FollowsPods], cycle: CycleState, pod: PodInfo) -> Followers:
    """Which of these mind which pods, after what they prepared in this cycle."""
    of_all = [plugin for plugin in plugins if minds_pods(plugin, cycle, pod)]
    return Followers(of_all, [plugin for plugin in of_all if minds_pods_without_terms(plugin, cycle, pod)])


def needs_reserve(profile: Profile, pod: PodInfo) -> bool:
    """Whether plugins have something to reserve for pods with this signature, or to do before they are bound."""
    return any(has_stake_in(plugin, pod) for plugin in (*profile.reserve, *profile.pre_bind))


def passing(
    filters: Sequence[FilterStep], cycle: CycleState, pod: PodInfo, nodes: TableView, among: BoolArray
) -> BoolArray:
    """(n_nodes,) which of these pass the filters."""
    for step in filters:
        verdicts = ask(step, cycle, pod, nodes)
        if verdicts is not ACCEPT_ALL:
            among = among & ~verdicts.rejected
    return among


def weighted_sum(scores: Sequence[ScoreStep], cycle: CycleState, pod: PodInfo, nodes: TableView) -> IntArray:
    """(n_nodes,) of scores that need no normalising."""
    total: IntArray | None = None
    for step in scores:
        weighted = step.score(cycle, pod, nodes)
        if step.weight != 1:
            weighted = weighted * step.weight
        total = weighted if total is None else total + weighted
    return np.zeros(len(nodes), dtype=np.int64) if total is None else total


def _passes(step: FilterStep, cycle: CycleState, pod: PodInfo, nodes: TableView, row: int) -> bool:
    if step.filter_node is not None:
        return step.filter_node(cycle, pod, nodes.at(row)).is_success
    return bool(passing((step,), cycle, pod, nodes.gathered(np.array([row])), np.ones(1, dtype=np.bool_)).item(0))


def _scored(step: ScoreStep, cycle: CycleState, pod: PodInfo, nodes: TableView, row: int) -> int:
    if step.score_node is not None:
        return step.score_node(cycle, pod, nodes.at(row))
    return step.score(cycle, pod, nodes.gathered(np.array([row]))).item(0)
