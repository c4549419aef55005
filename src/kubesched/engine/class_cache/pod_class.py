"""One class of pods: for every node whether it fits and how good it is, kept up to date row by row.

Arrays are in *search order* (position p is the p-th node that a search looks at), so that the nodes a search finds are
mostly a plain slice. Three kinds of answers are kept apart, by what they depend on (`framework.stages.Scope`):

- on the node alone: asked once, as long as no node changes;
- on the node's row: asked again for the rows whose pods came or went;
- on the cluster: the plugin's prepared state follows the pods, and it is asked about the nodes found, every time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from kubesched.cluster import Cluster
from kubesched.cluster.view import TableView
from kubesched.engine.filter import ask
from kubesched.engine.steps import FilterStep, ScoreStep
from kubesched.framework.cycle import Cycle
from kubesched.framework.nodes import IntArray, RowArray
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.scores import Scores
from kubesched.framework.stages import FollowsPods, PodChange
from kubesched.framework.verdicts import ACCEPT_ALL, BoolArray

Positions = RowArray | slice
"""Where feasible nodes were found; a slice if they lie side by side."""

_FEW_ROWS = 24
"""Up to this many changed rows are asked about one by one; more are gathered into a table."""


@dataclass(frozen=True, slots=True)
class KeptScores:
    """Raw scores by position, of a plugin whose normalised scores depend on which nodes are feasible."""

    step: ScoreStep
    raw: IntArray


@dataclass(slots=True)
class PodClass:
    cluster: Cluster
    pod: PodInfo
    """The pod it was prepared for; all pods of the class are like it."""
    cycle: Cycle
    order: RowArray
    """(n,) the row at each position."""
    position_of: RowArray
    """(n,) the position of each row."""
    fits_by_node: BoolArray
    fits: BoolArray
    """(n,) by position: whether node and row let the pod in."""
    score_by_node: IntArray
    score: IntArray
    """(n,) by position: weighted scores that do not depend on other nodes."""
    row_filters: Sequence[FilterStep]
    row_scores: Sequence[ScoreStep]
    cluster_filters: Sequence[FilterStep]
    cluster_scores: Sequence[ScoreStep]
    kept_scores: Sequence[KeptScores]
    row_kept_scores: Sequence[KeptScores]
    followers: Sequence[FollowsPods]
    nodes_version: int
    objects_version: int
    position: int = 0
    nodes: TableView = field(init=False)

    def __post_init__(self) -> None:
        self.nodes = self.cluster.nodes

    # -- keeping up ----------------------------------------------------------------------------------------------------

    def catch_up(self) -> bool:
        """Takes in what changed; False if the class has to be prepared anew."""
        journal = self.cluster.table.journal
        if journal.nodes_version != self.nodes_version or journal.objects_version != self.objects_version:
            return False
        if journal.position == self.position:
            return True
        changes = journal.since(self.position)
        if changes is None or not self._follow(changes):
            return False
        self.position = journal.position
        rows = {row for row, _, _ in changes}
        if len(rows) <= _FEW_ROWS:
            for row in rows:
                self._refresh_row(row)
        else:
            self._refresh_rows(np.fromiter(rows, dtype=np.intp, count=len(rows)))
        return True

    def _follow(self, changes: Sequence[PodChange]) -> bool:
        return all(follower.pods_changed(self.cycle, self.pod, changes) for follower in self.followers)

    def _refresh_row(self, row: int) -> None:
        position = self.position_of[row]
        if not self.fits_by_node[position]:
            return
        node = self.nodes.at(row)
        cycle, pod = self.cycle, self.pod
        for step in self.row_filters:
            assert step.filter_node is not None
            if not step.filter_node(cycle, pod, node).is_success:
                self.fits[position] = False
                return
        self.fits[position] = True
        score = self.score_by_node[position]
        for scored in self.row_scores:
            assert scored.score_node is not None
            score += scored.score_node(cycle, pod, node) * scored.weight
        self.score[position] = score
        for kept in self.row_kept_scores:
            assert kept.step.score_node is not None
            kept.raw[position] = kept.step.score_node(cycle, pod, node)

    def _refresh_rows(self, rows: RowArray) -> None:
        positions = self.position_of[rows]
        part = self.nodes.take(rows)
        cycle, pod = self.cycle, self.pod
        fits = self.fits_by_node[positions]
        for step in self.row_filters:
            verdicts = ask(step, cycle, pod, part)
            if verdicts is not ACCEPT_ALL:
                fits &= ~verdicts.rejected
        self.fits[positions] = fits
        score = self.score_by_node[positions]
        for scored in self.row_scores:
            score += scored.score(cycle, pod, part) * scored.weight
        self.score[positions] = score
        for kept in self.row_kept_scores:
            kept.raw[positions] = kept.step.score(cycle, pod, part)

    # -- deciding ------------------------------------------------------------------------------------------------------

    def search(self, fits: BoolArray, start: int, enough: int) -> tuple[Positions, int]:
        """The first `enough` feasible positions from `start` on, going round; and how many were looked at."""
        candidates, looked_at = _first_positions(fits, start, enough)
        if not self.cluster_filters:
            return candidates, looked_at
        asked = self._as_array(candidates)
        accepted = asked[self._accepted(asked)]
        if len(accepted) == len(asked):
            return candidates, looked_at
        asked = np.concatenate((np.flatnonzero(fits[start:]) + start, np.flatnonzero(fits[:start])))
        accepted = asked[self._accepted(asked)][:enough]
        if len(accepted) < enough:
            return accepted, len(fits)
        return accepted, (int(accepted[-1]) - start) % len(fits) + 1

    def _as_array(self, positions: Positions) -> RowArray:
        return np.arange(positions.start, positions.stop) if isinstance(positions, slice) else positions

    def _accepted(self, positions: RowArray) -> BoolArray:
        """Which of these the plugins let in that look at the whole cluster."""
        part = self.nodes.take(self.order[positions])
        accepted = np.ones(len(positions), dtype=np.bool_)
        for step in self.cluster_filters:
            verdicts = ask(step, self.cycle, self.pod, part)
            if verdicts is not ACCEPT_ALL:
                accepted &= ~verdicts.rejected
        return accepted

    def totals(self, positions: Positions) -> Scores:
        """The total score at each of these positions, which are all the feasible ones."""
        total: Scores = self.score[positions]
        if not self.kept_scores and not self.cluster_scores:
            return total
        part = self.nodes.take(self.order[positions])
        total = total.copy()
        for kept in self.kept_scores:
            total += self._normalized(kept.step, part, kept.raw[positions]) * kept.step.weight
        for step in self.cluster_scores:
            total += self._normalized(step, part, step.score(self.cycle, self.pod, part)) * step.weight
        return total

    def _normalized(self, step: ScoreStep, part: TableView, raw: Scores) -> Scores:
        return raw if step.normalize is None else step.normalize(self.cycle, self.pod, part, raw)


def n_positions(positions: Positions) -> int:
    return positions.stop - positions.start if isinstance(positions, slice) else len(positions)


def _first_positions(fits: BoolArray, start: int, enough: int) -> tuple[Positions, int]:
    """The first `enough` positions that fit from `start` on (going round), and how many were passed to find them."""
    n = len(fits)
    if start + enough <= n and fits[start : start + enough].all():
        return slice(start, start + enough), enough
    first = np.flatnonzero(fits[start:]) + start
    if len(first) >= enough:
        first = first[:enough]
        return first, int(first[-1]) - start + 1
    rest = np.flatnonzero(fits[:start])[: enough - len(first)]
    found = np.concatenate((first, rest))
    return found, n - start + int(rest[-1]) + 1 if len(found) == enough else n
