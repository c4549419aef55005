"""What is known of a class of pods about every node, kept up to date as pods, nodes and other objects come and go.

A class is its `layers`, and two columns in which they are added up: does the node let the pod in, and what is its
score? Rows whose pods came or went are marked, and brought up to date when a search comes to them. Rows get other
numbers when nodes come and go: what is kept by row moves along, change by change (`follow_rows`).

Next: `layers`; `cache` for how a class begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from kubesched.framework.caching import PodChange
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.nodes import IntArray, RowArray
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.results import Scores
from kubesched.framework.verdicts import BoolArray
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.cluster.journal import Journal, NodeChange, NodeChangeKind, Places
from kubesched.scheduler.cluster.view import TableView
from kubesched.scheduler.engine.class_cache.claims import ClaimPlugins
from kubesched.scheduler.engine.class_cache.layers import (
    Followers,
    Layers,
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


_FEW_ROWS = 24
"""Up to this many changed rows are asked about one by one; more are gathered into a table."""


@dataclass(slots=True)
class PodClass:
    cluster: Cluster
    profile: Profile
    pod: PodInfo
    """The pod it was prepared for; all pods of the class are like it."""
    cycle: CycleState
    layers: Layers
    claims: ClaimPlugins
    needs_reserve: bool
    """Whether plugins have something to reserve, or to do before the pod is bound."""
    followers: Followers
    places: Places
    fits: BoolArray
    """By row: whether node and row let the pod in."""
    score: IntArray
    """By row: the weighted scores that do not depend on which nodes are feasible."""
    has_fresh: bool = field(init=False)
    """Whether plugins take part that are asked about each pod by itself: `asked_anew` searches then."""
    nodes: TableView = field(init=False)
    order: RowArray = field(init=False)
    """(n,) the rows in the order in which a search goes through them."""
    _stale: BoolArray = field(init=False)
    """By row: where `fits`, `score` and the raw scores of rows are not up to date."""
    _n_stale: int = 0
    _first_found_do: bool = True
    """Whether the plugins that look at the whole cluster let in the nodes that the last search came to first."""

    def __post_init__(self) -> None:
        self.has_fresh = bool(self.layers.fresh.filters or self.layers.fresh.scores or self.claims.names)
        self.nodes = self.cluster.nodes
        self.order = self.cluster.rows_in_order
        self._stale = np.zeros_like(self.fits)

    # -- keeping up ----------------------------------------------------------------------------------------------------

    def catch_up(self) -> bool:
        """Takes in what changed; False if the class has to be prepared again."""
        if not self.claims.answering:
            return self._follow_journal()
        journal = self.cluster.table.journal
        changes, are_nodes_the_same = journal.pods.since(self.places.pods), self.places.nodes == journal.nodes.end
        names = None if changes is None else self._nodes_to_ask_again(changes)
        if changes is None or names is None or not self._follow_journal():
            return False
        if len(changes) == 1 and are_nodes_the_same:
            names.discard(changes[0][1].spec.node_name)  # asked about just now
        if names:
            by_name = self.cluster.table.rows
            rows = np.array([by_name[name] for name in names if name in by_name], dtype=np.intp)
            self._mark(rows)
            self._freshen(rows)
        return True

    def _nodes_to_ask_again(self, changes: Sequence[PodChange]) -> set[str] | None:
        """The nodes about which plugins that look at claims would say something else; None if all may be."""
        found: set[str] = set()
        for plugin in self.claims.answering:
            names = plugin.nodes_to_ask_again(self.cycle, self.pod, changes)
            if names is None:
                return None
            found.update(names)
        return found

    def _follow_journal(self) -> bool:
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
        changed = journal.objects.since(self.places.objects)
        return objects_do_not_matter(self.profile, self.cycle, self.pod, changed, self.claims.names)

    def _follow(self, changes: Sequence[PodChange]) -> bool:
        """The last things to be told: False if somebody cannot follow, else all that happened is taken in."""
        journal = self.cluster.table.journal
        for follower in self.followers.of_changes(journal.pods, self.places.pods):
            if not follower.pods_changed(self.cycle, self.pod, changes):
                return False
        self.places = journal.places
        return True

    def _follow_nodes(self, journal: Journal) -> bool:
        """Nodes came, changed or left: what depends on one node is asked of these alone."""
        layers, places = self.layers, self.places
        pods, nodes = journal.pods.since(places.pods), journal.nodes.since(places.nodes)
        followers = self.profile.node_followers
        if pods is None or nodes is None or followers is None or layers.cluster.filters or layers.cluster.scores:
            return False
        if not all(follower.nodes_changed(self.cycle, self.pod) for follower in followers):
            return False
        if not self._follow(pods):
            return False
        columns = [self.fits, self.score, *layers.columns()]
        asked = follow_rows(columns, self._stale, journal.pods.rows_since(places.pods), nodes, places.pods)
        if asked is None:
            return False
        self.nodes, self.order = self.cluster.nodes, self.cluster.rows_in_order
        added = layers.nodes.refresh(self.cycle, self.pod, self.nodes, len(self.score))
        if added is not None:
            self.score[: len(added)] += added
        rows = np.fromiter(asked, dtype=np.intp, count=len(asked))
        self._mark(rows)
        return layers.node.refresh(self.cycle, self.pod, self.nodes, rows)

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
        layers, codes = self.layers, self.cluster.table.amount_codes
        fits, fits_by_node, by_amounts, by_row = self.fits, layers.node.fits, layers.amounts.known, layers.row
        for row in rows:
            if not fits_by_node.item(row):
                fits[row] = False
                continue
            code = codes.code(row)
            known = by_amounts.get(code)
            if known is None:
                known = layers.amounts.answer(self.cycle, self.pod, self.nodes, row, code)
            does_fit, score = known
            if does_fit and by_row.filters:
                does_fit = by_row.lets_in(self.cycle, self.pod, self.nodes, row)
            fits[row] = does_fit
            if does_fit:
                score += layers.node.score.item(row)
                if layers.nodes.score is not None:
                    score += layers.nodes.score.item(row)
                if by_row.scores or by_row.kept:
                    score += by_row.score_row(self.cycle, self.pod, self.nodes, row)
                self.score[row] = score

    def _refresh_rows(self, rows: RowArray) -> None:
        part = self.nodes.gathered(rows)
        cycle, pod, layers = self.cycle, self.pod, self.layers
        filters = (*layers.amounts.filters, *layers.row.filters)
        self.fits[rows] = passing(filters, cycle, pod, part, layers.node.fits[rows])
        score = weighted_sum((*layers.amounts.scores, *layers.row.scores), cycle, pod, part) + layers.node.score[rows]
        self.score[rows] = score if layers.nodes.score is None else score + layers.nodes.score[rows]
        for kept in layers.row.kept:
            kept.raw[rows] = kept.step.score(cycle, pod, part)

    def _passing(self, filters: Sequence[FilterStep], part: TableView, among: BoolArray) -> BoolArray:
        return passing(filters, self.cycle, self.pod, part, among)

    # -- deciding ------------------------------------------------------------------------------------------------------

    @property
    def looks_at_cluster(self) -> bool:
        """Whether it takes more than a node's row to tell if the pod fits there."""
        layers = self.layers
        return bool(layers.cluster.filters or layers.fresh.filters or layers.own.filters)

    def lets_in(self, row: int) -> bool:
        """Whether node and row let the pod in."""
        if self._n_stale and self._stale.item(row):
            self._stale[row] = False
            self._n_stale -= 1
            self._refresh_few((row,))
        return bool(self.fits.item(row))

    def search(
        self, start: int, enough: int, closed: Sequence[int] = (), within: RowArray | None = None
    ) -> tuple[RowArray, int]:
        """The first `enough` feasible rows from a place in the order on, going round, but for those that are closed to
        the pod; and how many were looked at (see `cut_search`). `within`: these rows alone, in this order."""
        order = self.order if within is None else within
        n = len(order)
        if enough < n and not closed:
            rows = going_round(order, start, enough + 1)  # without one more, the search would see all nodes
            if self._n_stale:
                self._freshen(rows)
            if _all(self.fits.take(rows)) and (not self.layers.cluster.filters or self._cluster_lets_in(rows)):
                return rows[:-1], enough
        if enough + len(closed) >= n or not self._finds_near(order, start, enough + len(closed)):
            self._freshen(order)
        fits = self.fits[: len(self.order)]
        if closed:
            fits = fits.copy()
            fits[list(closed)] = False
        if not self.layers.cluster.filters:
            return cut_search(order, fits, start, enough)
        found, looked_at = cut_search(
            order, self._passing(self.layers.cluster.filters, self.nodes, fits), start, enough
        )
        self._first_found_do = looked_at == enough
        return found, looked_at

    def _finds_near(self, order: RowArray, start: int, enough: int) -> bool:
        """Whether a search finds more than enough without going far; what is known of rows near is up to date then."""
        if not self._n_stale or self.layers.cluster.filters:
            return False
        rows = going_round(order, start, NEAR * enough)
        self._freshen(rows)
        return int(np.count_nonzero(self.fits.take(rows))) > enough

    def _cluster_lets_in(self, rows: RowArray) -> bool:
        """Whether the plugins that look at the whole cluster let the pod in on all these; False also if that is not
        worth the question."""
        if not self._first_found_do:
            return False
        all_of_them = np.ones(len(rows), dtype=np.bool_)
        accepted = self._passing(self.layers.cluster.filters, self.nodes.gathered(rows), all_of_them)
        return _all(accepted)

    def totals(self, rows: RowArray) -> Scores:
        """The total score of each of these rows, which are all the feasible ones."""
        total, layers = self.score.take(rows), self.layers
        if not layers.node.kept and not layers.row.kept and not layers.cluster.scores:
            return total
        part = self.nodes.gathered(rows)
        for kept in (*layers.node.kept, *layers.row.kept):
            total += self._normalized(kept.step, part, kept.raw.take(rows)) * kept.step.weight
        for step in layers.cluster.scores:
            total += self._normalized(step, part, step.score(self.cycle, self.pod, part)) * step.weight
        return total

    def _normalized(self, step: ScoreStep, part: TableView, raw: Scores) -> Scores:
        return raw if step.normalize is None else step.normalize(self.cycle, self.pod, part, raw)


def _all(mask: BoolArray) -> bool:
    """As `mask.all()`, of at least one value; on few of them that spends most of its time on its way to them."""
    return bool(mask.item(mask.argmin()))
