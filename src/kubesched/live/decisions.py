"""The last decisions, kept for whoever asks afterwards: which nodes were compared, with which scores, or why none fits.

Bounded: the oldest go first. Of the nodes that were compared, the best few are told. Decisions that a class made have
totals alone; on clusters of up to `detailed_nodes` nodes no class decides, so that every plugin's score is known.

Most decisions are never asked about. What a class compared is therefore kept as it is, rows and totals; the best are
picked and named when somebody asks, or when nodes have come, changed or gone: a row may be another node's by then.

Next: `serving.debug_pages`, which serves them as `/debug/decisions`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from kubesched.framework.nodes import RowArray
from kubesched.framework.results import Scores
from kubesched.k8s.model.meta import PodKey
from kubesched.scheduler.engine.cycle import Decision
from kubesched.scheduler.engine.loop import Scheduler
from kubesched.scheduler.engine.observations import Observation, PodDecided
from kubesched.scheduler.engine.postfilter import for_event
from kubesched.scheduler.engine.score import PluginScores

MOST_KEPT = 1000
BEST_KEPT = 5
"""Nodes of each decision, the chosen one among them."""
MOST_UNPICKED = 1000
"""Where more nodes than that were compared, the best are picked at once, so that all that is kept stays small."""
_MOST_MESSAGE = 1000

Record = dict[str, Any]


class DecisionLog:
    """Listens to a loop. `now_s` is the time of day."""

    def __init__(self, now_s: Callable[[], float], most_kept: int = MOST_KEPT) -> None:
        self._now_s = now_s
        self.kept: deque[KeptDecision] = deque(maxlen=most_kept)
        self._n = 0
        self._detailed_nodes = 0
        self._loop: Scheduler | None = None
        self._names: list[str] = []
        """Of the nodes, by row, when the last decision was made; so it was for all that are not picked from yet."""
        self._n_changes = -1
        """How many changes of nodes there had been then."""

    def listen_to(self, loop: Scheduler) -> None:
        self._loop = loop
        loop.listen(self._observe, steps=False, decisions=True)

    def want_details(self, detailed_nodes: int) -> None:
        """From here on every plugin's scores are kept, as long as there are no more nodes than that."""
        assert self._loop is not None
        self._detailed_nodes = detailed_nodes
        self._loop.observers.wants_scores = self._loop.cluster.table.n <= detailed_nodes

    def report(self, pod: str = "", after: int = 0) -> Record:
        """The newest first: of one pod (`namespace/name`), or all that were made after a number."""
        asked = (one for one in reversed(self.kept) if one.number > after and pod in ("", one.pod.key))
        return {"decisions": [one.record(self._names) for one in asked], "made": self._n, "kept": len(self.kept)}

    def _observe(self, seen: Observation) -> None:
        if type(seen) is not PodDecided:
            return
        assert self._loop is not None
        table = self._loop.cluster.table
        if self._n_changes != table.journal.nodes.end:
            self._follow_nodes()
        self._n += 1
        decision = seen.decision
        self.kept.append(KeptDecision(self._n, self._now_s(), decision, table.rows.get(decision.node_name)))
        if self._detailed_nodes:
            self._loop.observers.wants_scores = table.n <= self._detailed_nodes

    def _follow_nodes(self) -> None:
        assert self._loop is not None
        for one in self.kept:
            one.pick(self._names)
        table = self._loop.cluster.table
        self._names, self._n_changes = table.names.copy(), table.journal.nodes.end


class KeptDecision:
    """What is worth keeping of a decision; all else that it was decided on goes with it."""

    __slots__ = ("_chosen", "_numbers", "_refusal", "_scores", "_unpicked", "at_s", "number", "pod")

    def __init__(self, number: int, at_s: float, decision: Decision, chosen_row: int | None) -> None:
        self.number = number
        self.at_s = at_s
        self.pod = decision.pod
        self._numbers = (decision.n_evaluated, decision.n_feasible)
        self._chosen = (chosen_row, decision.node_name, decision.nominated)
        self._refusal = None if decision.node_name else _refusal(decision)
        self._scores: list[Record] = []
        self._unpicked = decision.ranked
        """Rows and totals of all nodes that were compared; None once the scores of the best are known."""
        scored = decision.scored
        if decision.ranked is not None:
            if decision.n_feasible > MOST_UNPICKED:
                self.pick(decision.node_names)
        elif scored is not None and decision.node_name:
            self._scores = _best(scored.nodes.rows, scored.total, chosen_row, decision.node_names, scored.by_plugin)

    def pick(self, names: Sequence[str]) -> None:
        """Keeps the best nodes alone, under the names that rows had at the time of the decision."""
        if self._unpicked is not None:
            (rows, total), self._unpicked = self._unpicked, None
            self._scores = _best(rows, total, self._chosen[0], names)

    @property
    def is_unpicked(self) -> bool:
        return self._unpicked is not None

    def record(self, names: Sequence[str]) -> Record:
        self.pick(names)
        evaluated, feasible = self._numbers
        row: Record = {
            "number": self.number,
            "at": round(self.at_s, 3),
            "pod": self.pod.key,
            "uid": self.pod.uid,
            "scheduler": self.pod.spec.scheduler_name,
            "evaluated": evaluated,
            "feasible": feasible,
        }
        if self._refusal is not None:
            message, is_error, preemption = self._refusal
            row["message"] = for_event(message)[:_MOST_MESSAGE]
            if is_error:
                row["isError"] = True
            if preemption is not None:
                row["preemption"] = {"node": preemption[0], "victims": preemption[1]}
            return row
        _, node_name, was_nominated = self._chosen
        row |= {"node": node_name, "scores": self._scores}
        return row | ({"wasNominated": True} if was_nominated else {})


def _refusal(decision: Decision) -> tuple[str, bool, tuple[str, list[PodKey]] | None]:
    """Why no node fits, whether a plugin broke, and whom preemption evicts where."""
    found = decision.preemption
    preemption = None if found is None else (found.node_name, [victim.key for victim in found.victims])
    return decision.message, bool(decision.error), preemption


def _best(
    rows: RowArray,
    total: Scores,
    chosen_row: int | None,
    names: Sequence[str],
    by_plugin: Sequence[PluginScores] | None = None,
) -> list[Record]:
    """The chosen node, which may be one of many that are as good, then the best of the others."""
    n = len(total)
    places = list(range(n)) if n <= BEST_KEPT else total.argpartition(n - BEST_KEPT)[n - BEST_KEPT :].tolist()
    if chosen_row is not None and all(rows.item(place) != chosen_row for place in places):
        places.append(int((rows == chosen_row).argmax()))
    places.sort(key=lambda place: (rows.item(place) != chosen_row, -total.item(place), place))
    return [
        {"node": names[rows.item(place)], "total": total.item(place)}
        | ({} if by_plugin is None else {"plugins": {one.plugin: one.weighted.item(place) for one in by_plugin}})
        for place in places[:BEST_KEPT]
    ]
