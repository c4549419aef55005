"""What is known of a class of pods about every node, kept up to date as pods, nodes and other objects come and go.

Arrays are by row, with room for rows to come. Rows get other numbers when nodes come and go: what is kept by row moves
along, change by change (`follow_rows`). Answers are kept apart by what they depend on (`Scope`):

- on the node alone: asked again for nodes that changed; - on all nodes: asked again when any of them changed; - on the
node's amounts: asked once for all nodes on which they are the same; - on the node's row: asked again for the rows whose
pods came or went, once a search comes to them (`_stale`); - on the cluster: the plugin's prepared state follows the
pods, and it is asked about the nodes found, every time.

Next: `prepare` for how a class begins.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np

from kubesched.framework.caching import FollowsPods, PodChange
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.nodes import IntArray, RowArray
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.results import Scores
from kubesched.framework.verdicts import BoolArray
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.cluster.journal import Journal, NodeChange, NodeChangeKind, Places
from kubesched.scheduler.cluster.view import TableView
from kubesched.scheduler.engine.class_cache.class_steps import (
    ClassSteps,
    KeptScores,
    LevelScore,
    objects_do_not_matter,
    passing,
    weighted_sum,
)
from kubesched.scheduler.engine.filter import NEAR, cut_search, going_round
from kubesched.scheduler.engine.profile import FilterStep, Profile, ScoreStep


def follow_rows(
    columns: Sequence[BoolArray | IntArray],
    stale: BoolArray,
    pod_rows: RowArray,
    changes: Sequence[NodeChange],
    pods_begin: int,
) -> set[int] | None:
    """Brings columns into the rows of now, and notes in `stale` where pods came or went.

    `pod_rows` are the rows of the pods that changed, numbered as they were then; the first of these changes stands at
    `pods_begin` in the log of pods. Gives the rows whose node is new or another; None if the columns are too short.
    """
    with_other_node: set[int] = set()
    read = 0
    for change in changes:
        upto = max(change.pods_end - pods_begin, read)
        stale[pod_rows[read:upto]] = True
        read = upto
        row = change.row
        if row >= len(stale):
            return None
        if change.kind is NodeChangeKind.REMOVED:
            with_other_node.discard(row)
            last = change.n_rows
            for column in (stale, *columns):
                column[row] = column[last]
            stale[last] = False
            if last in with_other_node:
                with_other_node.discard(last)
                with_other_node.add(row)
        else:
            with_other_node.add(row)
    stale[pod_rows[read:]] = True
    return with_other_node


_FEW_NODES = 4
"""Up to this many changed nodes are asked about one by one."""
_FEW_ROWS = 24
"""Up to this many changed rows are asked about one by one; more are gathered into a table."""
_MOST_AMOUNTS = 4096


@dataclass(slots=True)
class PodClass:
    cluster: Cluster
    profile: Profile
    pod: PodInfo
    """The pod it was prepared for; all pods of the class are like it."""
    cycle: CycleState
    steps: ClassSteps
    """Of the scores, those that need no normalising, but for the ones that look at the whole cluster."""
    level_scores: Sequence[LevelScore]
    needs_reserve: bool
    """Whether plugins have something to reserve, or to do before the pod is bound."""
    followers: Sequence[FollowsPods]
    """The plugins that mind pods that come and go."""
    places: Places
    fits_by_node: BoolArray
    fits: BoolArray
    """By row: whether node and row let the pod in."""
    score_by_nodes: IntArray | None
    """By row: the part of the score that depends on all nodes; None as long as that is 0 everywhere."""
    score_by_node: IntArray
    """By row: that, and what depends on the node alone."""
    score: IntArray
    """By row: weighted scores that do not depend on other nodes."""
    kept_scores: Sequence[KeptScores]
    row_kept_scores: Sequence[KeptScores]
    has_fresh: bool = field(init=False)
    """Whether plugins take part that do not say what they look at: `asked_anew` searches then."""
    nodes: TableView = field(init=False)
    order: RowArray = field(init=False)
    """(n,) the rows in the order in which a search goes through them."""
    _stale: BoolArray = field(init=False)
    """By row: where `fits`, `score` and the raw scores of rows are not up to date."""
    _n_stale: int = 0
    _first_found_do: bool = True
    """Whether the plugins that look at the whole cluster let in the nodes that the last search came to first."""
    _by_amounts: dict[int, tuple[bool, int]] = field(default_factory=dict)
    """By the code of a row's amounts: what is answered from these alone."""

    def __post_init__(self) -> None:
        self.has_fresh = bool(self.steps.fresh_filters or self.steps.fresh_scores)
        self.nodes = self.cluster.nodes
        self.order = self.cluster.rows_in_order
        self._stale = np.zeros_like(self.fits)

    # -- keeping up ----------------------------------------------------------------------------------------------------

    def catch_up(self) -> bool:
        """Takes in what changed; False if the class has to be prepared anew."""
        journal = self.cluster.table.journal
        places = self.places
        if places.objects != journal.objects.end and not self._objects_do_not_matter(journal):
            return False
        if places.nodes != journal.nodes.end:
            return self._follow_nodes(journal)
        if places.pods == journal.pods.end:
            return True
        changes = journal.pods.since(places.pods)
        if changes is None or not self._follow(changes):
            return False
        if len(changes) == 1:
            self._refresh_few((changes[0][0],))
        else:
            self._mark(journal.pods.rows_since(places.pods))
        return True

    def _objects_do_not_matter(self, journal: Journal) -> bool:
        return objects_do_not_matter(self.profile, self.cycle, self.pod, journal.objects.since(self.places.objects))

    def _follow(self, changes: Sequence[PodChange]) -> bool:
        """The last things to be told: False if somebody cannot follow, else all that happened is taken in."""
        for follower in self.followers:
            if not follower.pods_changed(self.cycle, self.pod, changes):
                return False
        self.places = self.cluster.table.journal.places
        return True

    def _follow_nodes(self, journal: Journal) -> bool:
        """Nodes came, changed or left: what depends on one node is asked of these alone."""
        steps, places = self.steps, self.places
        pods, nodes = journal.pods.since(places.pods), journal.nodes.since(places.nodes)
        followers = self.profile.node_followers
        if pods is None or nodes is None or followers is None or steps.cluster_filters or steps.cluster_scores:
            return False
        if not all(follower.nodes_changed(self.cycle, self.pod) for follower in followers):
            return False
        if not self._follow(pods):
            return False
        asked = follow_rows(self._columns(), self._stale, journal.pods.rows_since(places.pods), nodes, places.pods)
        if asked is None:
            return False
        self.nodes, self.order = self.cluster.nodes, self.cluster.rows_in_order
        self._score_all_nodes()
        return self._ask_nodes(asked)

    def _columns(self) -> list[BoolArray | IntArray]:
        columns: list[BoolArray | IntArray] = [self.fits_by_node, self.fits, self.score_by_node, self.score]
        if self.score_by_nodes is not None:
            columns.append(self.score_by_nodes)
        columns += [kept.raw for kept in self.kept_scores]
        return columns

    def _ask_nodes(self, rows: Collection[int]) -> bool:
        """What depends on the nodes themselves; False if a score that was the same everywhere is so no more."""
        asked = np.fromiter(rows, dtype=np.intp, count=len(rows))
        self._mark(asked)
        if not rows:
            return True
        if len(rows) <= _FEW_NODES:
            return all(self._ask_node(row) for row in rows)
        part = self.nodes.gathered(asked)
        self.fits_by_node[asked] = self._passing(self.steps.node_filters, part, np.ones(len(asked), dtype=np.bool_))
        score = np.zeros(len(asked), dtype=np.int64) if self.score_by_nodes is None else self.score_by_nodes[asked]
        for level in self.level_scores:
            if np.not_equal(level.step.score(self.cycle, self.pod, part), level.raw).any():
                return False
            score += level.weighted
        for step in self.steps.node_scores:
            score += step.score(self.cycle, self.pod, part) * step.weight
        self.score_by_node[asked] = score
        for kept in self.kept_scores:
            kept.raw[asked] = kept.step.score(self.cycle, self.pod, part)
        return True

    def _ask_node(self, row: int) -> bool:
        """The same for one node, by way of the forms for one, which cost less."""
        self.fits_by_node[row] = all(self._passes(step, row) for step in self.steps.node_filters)
        score = 0 if self.score_by_nodes is None else self.score_by_nodes.item(row)
        for level in self.level_scores:
            if self._scored(level.step, row) != level.raw:
                return False
            score += level.weighted
        for step in self.steps.node_scores:
            score += self._scored(step, row) * step.weight
        self.score_by_node[row] = score
        for kept in self.kept_scores:
            kept.raw[row] = self._scored(kept.step, row)
        return True

    def _passes(self, step: FilterStep, row: int) -> bool:
        if step.filter_node is not None:
            return step.filter_node(self.cycle, self.pod, self.nodes.at(row)).is_success
        return _all(self._passing((step,), self.nodes.gathered(np.array([row])), np.ones(1, dtype=np.bool_)))

    def _scored(self, step: ScoreStep, row: int) -> int:
        if step.score_node is not None:
            return step.score_node(self.cycle, self.pod, self.nodes.at(row))
        return step.score(self.cycle, self.pod, self.nodes.gathered(np.array([row]))).item(0)

    def _score_all_nodes(self) -> None:
        """The scores that depend on all nodes: what they add changes everywhere."""
        scored = weighted_sum(self.steps.nodes_scores, self.cycle, self.pod, self.nodes)
        if self.score_by_nodes is None:
            if not np.count_nonzero(scored):
                return
            self.score_by_nodes = np.zeros_like(self.score)
        n = len(scored)
        added = scored - self.score_by_nodes[:n]
        self.score_by_nodes[:n] = scored
        self.score_by_node[:n] += added
        self.score[:n] += added

    # -- rows ----------------------------------------------------------------------------------------------------------

    def _mark(self, rows: RowArray) -> None:
        """What is known of these rows is not up to date."""
        self._stale[rows] = True
        self._n_stale = int(np.count_nonzero(self._stale))

    def _freshen(self, rows: RowArray) -> None:
        """Brings what is known of these rows up to date."""
        if not self._n_stale:
            return
        stale = rows[self._stale.take(rows)]
        n = len(stale)
        if n == 0:
            return
        self._n_stale -= n
        self._stale[stale] = False
        if n <= _FEW_ROWS:
            self._refresh_few(stale.tolist())
        else:
            self._refresh_rows(stale)

    def _refresh_few(self, rows: Sequence[int]) -> None:
        fits, by_amounts, steps, codes = self.fits, self._by_amounts, self.steps, self.cluster.table.amount_codes
        for row in rows:
            if not self.fits_by_node.item(row):
                fits[row] = False
                continue
            code = codes.code(row)
            known = by_amounts.get(code)
            if known is None:
                known = by_amounts[code] = self._judge_amounts(row)
            does_fit, score = known
            if does_fit and steps.row_filters:
                does_fit = self._row_passes(row)
            fits[row] = does_fit
            if does_fit:
                score += self.score_by_node.item(row)
                if steps.row_scores or self.row_kept_scores:
                    score += self._score_row(row)
                self.score[row] = score

    def _judge_amounts(self, row: int) -> tuple[bool, int]:
        """Whether a node with the amounts of this row lets the pod in, and what it scores for them."""
        cycle, pod, node = self.cycle, self.pod, self.nodes.at(row)
        fits, score = True, 0
        for step in self.steps.amount_filters:
            assert step.filter_node is not None
            fits = fits and step.filter_node(cycle, pod, node).is_success
        if fits:
            for scored in self.steps.amount_scores:
                assert scored.score_node is not None
                score += scored.score_node(cycle, pod, node) * scored.weight
        if len(self._by_amounts) >= _MOST_AMOUNTS:
            self._by_amounts.clear()
        return fits, score

    def _row_passes(self, row: int) -> bool:
        node = self.nodes.at(row)
        for step in self.steps.row_filters:
            assert step.filter_node is not None
            if not step.filter_node(self.cycle, self.pod, node).is_success:
                return False
        return True

    def _score_row(self, row: int) -> int:
        score, node = 0, self.nodes.at(row)
        for scored in self.steps.row_scores:
            assert scored.score_node is not None
            score += scored.score_node(self.cycle, self.pod, node) * scored.weight
        for kept in self.row_kept_scores:
            assert kept.step.score_node is not None
            kept.raw[row] = kept.step.score_node(self.cycle, self.pod, node)
        return score

    def _refresh_rows(self, rows: RowArray) -> None:
        part = self.nodes.gathered(rows)
        cycle, pod, steps = self.cycle, self.pod, self.steps
        self.fits[rows] = self._passing((*steps.amount_filters, *steps.row_filters), part, self.fits_by_node[rows])
        score = weighted_sum((*steps.amount_scores, *steps.row_scores), cycle, pod, part)
        self.score[rows] = score + self.score_by_node[rows]
        for kept in self.row_kept_scores:
            kept.raw[rows] = kept.step.score(cycle, pod, part)

    def _passing(self, filters: Sequence[FilterStep], part: TableView, among: BoolArray) -> BoolArray:
        return passing(filters, self.cycle, self.pod, part, among)

    # -- deciding ------------------------------------------------------------------------------------------------------

    @property
    def looks_at_cluster(self) -> bool:
        """Whether it takes more than a node's row to tell if the pod fits there."""
        return bool(self.steps.cluster_filters or self.steps.fresh_filters)

    def lets_in(self, row: int) -> bool:
        """Whether node and row let the pod in."""
        if self._n_stale and self._stale.item(row):
            self._stale[row] = False
            self._n_stale -= 1
            self._refresh_few((row,))
        return bool(self.fits.item(row))

    def search(self, start: int, enough: int, closed: Sequence[int] = ()) -> tuple[RowArray, int]:
        """The first `enough` feasible rows from a place in the order on, going round, but for those that are closed to
        the pod; and how many were looked at (see `cut_search`)."""
        order, n = self.order, len(self.order)
        if enough < n and not closed:
            rows = going_round(order, start, enough + 1)  # without one more, the search would see all nodes
            self._freshen(rows)
            if _all(self.fits.take(rows)) and self._cluster_lets_in(rows):
                return rows[:-1], enough
        if not self._finds_near(start, enough + len(closed)):
            self._freshen(order)
        fits = self.fits[:n]
        if closed:
            fits = fits.copy()
            fits[list(closed)] = False
        if not self.steps.cluster_filters:
            return cut_search(order, fits, start, enough)
        found, looked_at = cut_search(order, self._passing(self.steps.cluster_filters, self.nodes, fits), start, enough)
        self._first_found_do = looked_at == enough
        return found, looked_at

    def _finds_near(self, start: int, enough: int) -> bool:
        """Whether a search finds more than enough without going far; what is known of rows near is up to date then."""
        if not self._n_stale or self.steps.cluster_filters:
            return False
        rows = going_round(self.order, start, NEAR * enough)
        self._freshen(rows)
        return int(np.count_nonzero(self.fits.take(rows))) > enough

    def _cluster_lets_in(self, rows: RowArray) -> bool:
        """Whether the plugins that look at the whole cluster let the pod in on all these; False also if that is not
        worth the question."""
        filters = self.steps.cluster_filters
        if not filters:
            return True
        if not self._first_found_do:
            return False
        accepted = self._passing(filters, self.nodes.gathered(rows), np.ones(len(rows), dtype=np.bool_))
        return _all(accepted)

    def totals(self, rows: RowArray) -> Scores:
        """The total score of each of these rows, which are all the feasible ones."""
        total = self.score.take(rows)
        if not self.kept_scores and not self.steps.cluster_scores:
            return total
        part = self.nodes.gathered(rows)
        for kept in self.kept_scores:
            total += self._normalized(kept.step, part, kept.raw.take(rows)) * kept.step.weight
        for step in self.steps.cluster_scores:
            total += self._normalized(step, part, step.score(self.cycle, self.pod, part)) * step.weight
        return total

    def _normalized(self, step: ScoreStep, part: TableView, raw: Scores) -> Scores:
        return raw if step.normalize is None else step.normalize(self.cycle, self.pod, part, raw)


def _all(mask: BoolArray) -> bool:
    """As `mask.all()`, of at least one value; on few of them that spends most of its time on its way to them."""
    return bool(mask.item(mask.argmin()))
