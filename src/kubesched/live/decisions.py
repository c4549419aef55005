"""The last decisions, kept for whoever asks afterwards: which nodes were compared, with which scores, or why none fits.

Bounded: the oldest go first. Of the nodes that were compared, the best few are kept. Decisions that a class made have
totals alone; on clusters of up to `detailed_nodes` nodes no class decides, so that every plugin's score is known.

Next: `serving.debug_pages`, which serves them as `/debug/decisions`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from kubesched.scheduler.engine.cycle import Decision
from kubesched.scheduler.engine.loop import Scheduler
from kubesched.scheduler.engine.observations import Observation, PodDecided
from kubesched.scheduler.engine.postfilter import for_event

MOST_KEPT = 1000
BEST_KEPT = 5
"""Nodes of each decision, the chosen one among them."""
_MOST_MESSAGE = 1000

Record = dict[str, Any]
Parts = dict[str, int]
"""Every plugin's part of a total."""
Compared = tuple[list[int], list[str], list[int], list[Parts] | None]
"""Some of the nodes that were compared, in no order: the place of each among all, its name, its total, and the parts of
that if they are known."""


class DecisionLog:
    """Listens to a loop. `now_s` is the time of day. Keeps as little work as it can on the way: a decision becomes a
    record when somebody asks."""

    def __init__(self, now_s: Callable[[], float], most_kept: int = MOST_KEPT) -> None:
        self._now_s = now_s
        self._kept: deque[_Kept] = deque(maxlen=most_kept)
        self._n = 0
        self._detailed_nodes = 0
        self._loop: Scheduler | None = None

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
        found = [one.record() for one in reversed(self._kept) if one.number > after and pod in ("", one.pod.key)]
        return {"decisions": found, "made": self._n, "kept": len(self._kept)}

    def _observe(self, seen: Observation) -> None:
        if type(seen) is not PodDecided:
            return
        assert self._loop is not None
        self._n += 1
        decision, table = seen.decision, self._loop.cluster.table
        compared = _best(decision, table.rows.get(decision.node_name)) if decision.node_name else None
        self._kept.append(_Kept(self._n, self._now_s(), decision, compared))
        if self._detailed_nodes:
            self._loop.observers.wants_scores = table.n <= self._detailed_nodes


class _Kept:
    """What is worth keeping of a decision; all that it was decided on goes with it."""

    __slots__ = ("at_s", "compared", "decision", "is_error", "message", "number", "numbers", "pod", "preemption")

    def __init__(self, number: int, at_s: float, decision: Decision, compared: Compared | None) -> None:
        self.number = number
        self.at_s = at_s
        self.pod = decision.pod
        self.decision = (decision.node_name, decision.nominated)
        self.numbers = (decision.n_evaluated, decision.n_feasible)
        self.compared = compared
        self.is_error = bool(decision.error)
        self.message = "" if decision.node_name else decision.message
        found = None if decision.node_name else decision.preemption
        self.preemption = None if found is None else (found.node_name, [victim.key for victim in found.victims])

    def record(self) -> Record:
        evaluated, feasible = self.numbers
        row: Record = {
            "number": self.number,
            "at": round(self.at_s, 3),
            "pod": self.pod.key,
            "uid": self.pod.uid,
            "scheduler": self.pod.spec.scheduler_name,
            "evaluated": evaluated,
            "feasible": feasible,
        }
        node_name, was_nominated = self.decision
        if node_name:
            row |= {"node": node_name, "scores": _score_records(self.compared, node_name)}
            return row | ({"wasNominated": True} if was_nominated else {})
        row["message"] = for_event(self.message)[:_MOST_MESSAGE]
        if self.is_error:
            row["isError"] = True
        if self.preemption is not None:
            row["preemption"] = {"node": self.preemption[0], "victims": self.preemption[1]}
        return row


def _score_records(compared: Compared | None, chosen: str) -> list[Record]:
    """The chosen node first, then the best of the others."""
    if compared is None:
        return []
    places, names, totals, parts = compared
    order = sorted(range(len(names)), key=lambda one: (names[one] != chosen, -totals[one], places[one]))
    return [
        {"node": names[one], "total": totals[one]} | ({} if parts is None else {"plugins": parts[one]})
        for one in order[:BEST_KEPT]
    ]


def _best(decision: Decision, chosen_row: int | None) -> Compared | None:
    """The best nodes and the chosen one, which may be one of many that are as good. None if nothing was compared.

    This is paid for every pod: they are put in order when somebody asks. Their names cannot wait for that, since a row
    may be another node's by then."""
    if decision.ranked is not None:
        rows, total = decision.ranked
    elif decision.scored is not None:
        rows, total = decision.scored.nodes.rows, decision.scored.total
    else:
        return None
    n = len(total)
    if n > BEST_KEPT:
        best = total.argpartition(n - BEST_KEPT)[n - BEST_KEPT :]
        places, picked, totals = best.tolist(), rows.take(best).tolist(), total.take(best).tolist()
    else:
        places, picked, totals = list(range(n)), rows.tolist(), total.tolist()
    if chosen_row is not None and chosen_row not in picked:
        place = int((rows == chosen_row).argmax())
        places.append(place)
        picked.append(chosen_row)
        totals.append(total.item(place))
    names = decision.node_names
    parts = None
    if decision.ranked is None and decision.scored is not None:
        by_plugin = decision.scored.by_plugin
        parts = [{scores.plugin: scores.weighted.item(place) for scores in by_plugin} for place in places]
    return places, [names[row] for row in picked], totals, parts
