"""What preemption found: nodes with their victims, the choice among them, and what is kept for the next preemptor.

Chosen is where the least harm is done: fewest broken budgets; then the lowest of the highest victims' priorities; then
the smallest sum of priorities; then the fewest victims; then the latest start of the most important victims. What is
still equal is left to the tie-break.

What a dry run found on each node is kept for the next preemptor with the same signature (`PreemptionPlans`). Whom to
evict from a node depends on the pods there, on those nominated there and on the preemptor's kind. Plans are made when
they are asked for, and forgotten when one of these changes; the choice among them is made on columns. The answer is
that of a dry run from nothing, node by node. Where evictions help nowhere, that is known until a row changes, and costs
the next preemptor nothing; the columns are made with the first candidate.

Some stay on a node whatever a preemptor does: pods it may not evict, and those nominated to the node before it
(`who_stays`). Where the preemptor does not fit beside these, evictions are in vain, and stay so while others come and
go. And most nodes are like others: where only amounts count, one dry run answers for all that are alike (`Likeness`).
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kubesched.framework.nodes import RowArray
from kubesched.framework.pod_info import PodInfo, PodSignature
from kubesched.framework.results import PostFilterResult
from kubesched.framework.status import Status
from kubesched.framework.verdicts import BoolArray
from kubesched.k8s.model.times import parse_instant
from kubesched.scheduler.cluster.node_order import NameOrder

NOT_STARTED_S = float("inf")
"""When a pod that has not started yet counts as started: after every other."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node on which evicting these pods, most important first, makes the pod fit."""

    node_name: str
    victims: tuple[PodInfo, ...]
    n_budget_violations: int


@dataclass(frozen=True, slots=True)
class Preemption:
    """Where pods can be evicted for this one, kept in the cycle."""

    node_name: str
    victims: tuple[PodInfo, ...]
    candidates: tuple[Candidate, ...]
    equally_good: tuple[Candidate, ...]
    """The candidates among which nothing but chance decides; the chosen one is among them."""


@dataclass(slots=True)
class CandidateReview:
    """Kept in the cycle where others have a say in who is evicted: what is shown to them, and what they leave of it."""

    candidates: tuple[Candidate, ...] = ()
    answer: tuple[Candidate, ...] | Status | None = None


def started_at_s(info: PodInfo) -> float:
    start = info.pod.status.start_time
    return NOT_STARTED_S if start is None else parse_instant(start)


def importance(info: PodInfo) -> tuple[int, float]:
    """Sorts the most important pod first: by priority, then by how long it runs."""
    start = info.pod.status.start_time
    return -info.signature.priority, NOT_STARTED_S if start is None else parse_instant(start)


PRIORITY_SHIFT = 2**31
"""Makes all priorities positive, so that fewer victims of negative priority are better than more."""


def _budget_violations(candidate: Candidate) -> float:
    return candidate.n_budget_violations


def _highest_priority(candidate: Candidate) -> float:
    return candidate.victims[0].priority


def _sum_of_priorities(candidate: Candidate) -> float:
    return sum(victim.priority + PRIORITY_SHIFT for victim in candidate.victims)


def _n_victims(candidate: Candidate) -> float:
    return len(candidate.victims)


def _recency(candidate: Candidate) -> float:
    """The earliest start among the victims of the highest priority, later being better."""
    highest = max(victim.priority for victim in candidate.victims)
    return -min(started_at_s(victim) for victim in candidate.victims if victim.priority == highest)


Rule = Callable[[Candidate], float]
"""The lower, the less harm."""

RULES: tuple[Rule, ...] = (
    _budget_violations,
    _highest_priority,
    _sum_of_priorities,
    _n_victims,
    _recency,
)
RULES_BUT_START = RULES[:-1]


def least_harmful(candidates: Sequence[Candidate], rules: Sequence[Rule] = RULES) -> tuple[Candidate, ...]:
    """The candidates that no rule tells apart, by node name. Most rules need a victim to look at."""
    left = list(candidates)
    for rule in rules:
        least = min(rule(candidate) for candidate in left)
        left = [candidate for candidate in left if rule(candidate) == least]
    return tuple(sorted(left, key=lambda candidate: candidate.node_name))


Staying = tuple[tuple[str, PodSignature, bool], ...]
"""By uid: the pod's signature, and whether it is on its way out. All of a pod that a filter of one node may look at."""


def who_stays(pods: Sequence[PodInfo], nominated_pods: Sequence[PodInfo], priority: int) -> Staying | None:
    """None if nobody would have to go."""
    for other in pods:
        if other.priority < priority:
            break
    else:
        return None
    staying = [(other.uid, other.signature, other.pod.is_terminating) for other in pods if other.priority >= priority]
    staying.extend(
        (nominated_pod.uid, nominated_pod.signature, nominated_pod.pod.is_terminating)
        for nominated_pod in nominated_pods
    )
    return tuple(staying)


Likeness = tuple[int, tuple[PodSignature, ...], tuple[PodSignature, ...]]
"""A node's amounts, by their code; the pods there that may be evicted, the most important first; the pods nominated to
it. Where no filter looks at more than amounts, a dry run comes to the same wherever these are the same."""

AmongAlike = tuple[int, ...] | Status
"""The places of the victims among those pods; or why evictions do not help."""

_UNKNOWN, _HARMLESS, _NO_HELP, _BREAKING = 0, 1, 2, 3
"""What is known of a row; the odd ones are candidates, harmless if they break no budget."""

_IS_CANDIDATE = 1

Rules = tuple[float, ...]

MakePlan = Callable[[int], Candidate | Status]
"""A dry run on one row."""


class _Ranking:
    """Candidates compared: the rules as columns over all rows."""

    __slots__ = ("_by_name", "_harm", "_harm_of", "_n_harms", "_n_rows", "_n_with_harm", "_rules")

    def __init__(self, by_name: NameOrder) -> None:
        n_rows = self._n_rows = len(by_name.rows)
        self._by_name = by_name
        self._rules = np.zeros((5, n_rows), dtype=np.float64)
        """(rule, row) the smaller the better, in the order in which the rules count."""
        self._harm = np.zeros(n_rows, dtype=np.intp)
        """(row,) rows with the same number are told apart by no rule; others may be."""
        self._harm_of: dict[Rules, int] = {}
        self._n_harms = 0
        self._n_with_harm: dict[int, int] = {}
        """How many rows have which number."""

    def put(self, row: int, found: Candidate) -> None:
        rules = _rules(found)
        self._rules[:, row] = rules
        self._harm[row] = number = self._number_of(rules)
        self._n_with_harm[number] = self._n_with_harm.get(number, 0) + 1

    def drop(self, row: int) -> None:
        number = self._harm.item(row)
        left = self._n_with_harm[number] - 1
        if left:
            self._n_with_harm[number] = left
        else:
            del self._n_with_harm[number]

    def least_harmful(self, rows: RowArray) -> RowArray:
        left = rows
        if len(self._n_with_harm) > 1:
            harm = self._harm.take(rows)
            if (harm != harm[0]).any():
                for rule in self._rules:
                    values = rule.take(left)
                    left = left[values == values.min()]
        ranks = self._by_name.ranks.take(left)
        ranks.sort()
        return self._by_name.rows.take(ranks)

    def _number_of(self, rules: Rules) -> int:
        """Numbers are never given twice, but forgotten when there are many."""
        known = self._harm_of.get(rules)
        if known is None:
            if len(self._harm_of) > 2 * self._n_rows:
                self._harm_of.clear()
            self._n_harms += 1
            known = self._harm_of[rules] = self._n_harms
        return known


class _KnownCandidates:
    """The candidates among rows, and those of the rows that nothing is known of. As long as these are few, a search
    need not go through all rows."""

    __slots__ = ("_is_among", "candidates", "forgotten", "rows")

    def __init__(self, rows: RowArray, known: npt.NDArray[np.int8]) -> None:
        """`known` is by row."""
        self.rows = rows
        is_among = np.zeros(len(known), dtype=np.bool_)
        is_among[rows] = True
        self._is_among: memoryview[int] = is_among.data
        known = known.take(rows)
        self.candidates = array("q", rows[_are_candidates(known)].astype(np.int64).tobytes())
        """In the order of the rows."""
        self.forgotten: set[int] = set(rows[known == _UNKNOWN].tolist())

    def forget(self, row: int, *, was_candidate: bool) -> None:
        if self._is_among[row]:
            self.forgotten.add(row)
            if was_candidate:
                del self.candidates[bisect_left(self.candidates, row)]

    def keep(self, row: int, *, is_candidate: bool) -> None:
        self.forgotten.discard(row)
        if is_candidate:
            insort(self.candidates, row)

    def first(self, start: int, enough: int) -> RowArray:
        """So many candidates, or all, from the row `start` on, going round."""
        found = np.frombuffer(self.candidates, dtype=np.int64)
        begin = bisect_left(self.candidates, start)
        end = begin + enough
        if end <= len(found):
            return found[begin:end].copy()  # of what may not grow while somebody looks at it
        return np.concatenate((found[begin:], found[: min(end - len(found), begin)]))

    def forgotten_before(self, start: int, window: RowArray, enough: int) -> list[int]:
        """The forgotten rows that a search has to look at before it has found these."""
        if len(window) < enough:
            return list(self.forgotten)
        last = window.item(-1)
        if last >= start:
            return [row for row in self.forgotten if start <= row < last]
        return [row for row in self.forgotten if row >= start or row < last]


_FEW_FORGOTTEN = 64
"""With more forgotten rows, going through all of them is cheaper."""


class PreemptionPlans:
    """Plans by row, for preemptors of one kind."""

    def __init__(self, n_rows: int, name_order: Callable[[], NameOrder]) -> None:
        self._name_order = name_order
        self._known = np.zeros(n_rows, dtype=np.int8)
        self._cells: memoryview[int] = self._known.data
        self._found: dict[int, Candidate | Status] = {}
        self._ranking: _Ranking | None = None
        self._n_candidates = 0
        self._n_breaking = 0
        """How many of these break a budget."""
        self._among: _KnownCandidates | None = None
        self._reasons: Counter[str] = Counter()
        """Why evictions do not help, with the number of rows."""
        self._in_vain: dict[int, tuple[Staying, Status]] = {}
        self.of_alike: dict[Likeness, AmongAlike] = {}
        """What came of dry runs, for nodes that are alike."""
        self.nodes_suit: dict[int, bool] = {}
        """By row, whether all filters let the preemptor in that look at the node alone; nodes stay as they are."""
        self.nowhere: PostFilterResult | None = None
        """The answer to a search that found no candidate, until a row is forgotten."""
        self.draw: Callable[[], int] | None = None
        """What every search draws from the tie-break, also one that is spared: later decisions meet the same chance."""

    def forget(self, row: int) -> None:
        self.nowhere = None
        known = self._cells[row]
        if known == _UNKNOWN:
            return
        self._cells[row] = _UNKNOWN
        found = self._found.pop(row)
        is_candidate = known & _IS_CANDIDATE != 0
        if is_candidate:
            self._n_candidates -= 1
            self._n_breaking -= known == _BREAKING
            assert self._ranking is not None
            self._ranking.drop(row)
        elif isinstance(found, Status):
            for reason in found.reasons:
                self._reasons[reason] -= 1
        if self._among is not None:
            self._among.forget(row, was_candidate=is_candidate)

    # -- evictions in vain ---------------------------------------------------------------------------------------------

    def keep_in_vain(self, row: int, staying: Staying, status: Status) -> None:
        """Beside those who stay the preemptor does not fit, whoever else goes. This outlasts `forget`."""
        self._in_vain[row] = staying, status

    def in_vain(self, row: int, staying: Staying) -> Status | None:
        """Why evictions do not help on the row, if the same pods stay as when that was found out."""
        kept = self._in_vain.get(row)
        return kept[1] if kept is not None and kept[0] == staying else None

    # -- the search ----------------------------------------------------------------------------------------------------

    def search(self, rows: RowArray, start: int, enough: int, make: MakePlan) -> RowArray:
        """Of these rows, which ascend, the candidates from the place `start` on, going round, until there are enough,
        one of which breaks no budget."""
        n = len(rows)
        if n == 0:
            return rows
        among = self._among
        if among is not None:
            if among.rows is rows and self._n_breaking == 0 and len(among.forgotten) <= _FEW_FORGOTTEN:
                found = self._search_among(among, rows.item(start), max(enough, 1), make)
                if found is not None:
                    return found
            self._among = None
        if self._n_candidates == 0 and self._makes_no_candidate(rows, start, make):
            return rows[:0]
        return self._search_all(rows, start, enough, make)

    def _search_among(self, among: _KnownCandidates, start: int, enough: int, make: MakePlan) -> RowArray | None:
        """The same, from the row `start` on, where all rows but a few are known; None if one breaks a budget."""
        while True:
            window = among.first(start, enough)
            missing = among.forgotten_before(start, window, enough)
            if not missing:
                return window
            for row in missing:
                self._keep(row, make(row))
            if self._n_breaking:
                return None

    def _search_all(self, rows: RowArray, start: int, enough: int, make: MakePlan) -> RowArray:
        n = len(rows)
        known = self._known if n == len(self._known) else self._known[rows]
        known = np.concatenate((known[start:], known[:start]))
        while True:
            stop = _stop(known, enough)
            unknown = (known[:stop] == _UNKNOWN).nonzero()[0]
            if len(unknown):
                missing = max(enough - int(np.count_nonzero(_are_candidates(known[: unknown[0]]))), 1)
                has_more = len(unknown) > missing
                for place in unknown[:missing].tolist():
                    row = int(rows[(place + start) % n])
                    known[place] = found = self._keep(row, make(row))
                    has_more = has_more or found & _IS_CANDIDATE != 0  # then the search stops earlier, perhaps
                if has_more:
                    continue
            candidates: RowArray = rows[(_are_candidates(known[:stop]).nonzero()[0] + start) % n]
            if n - np.count_nonzero(known) <= _FEW_FORGOTTEN // 2:
                self._among = _KnownCandidates(rows, self._known)
            return candidates

    def _makes_no_candidate(self, rows: RowArray, start: int, make: MakePlan) -> bool:
        """Makes the plans that are missing, from `start` on, until one is a candidate; mostly none or one is missing,
        and none is."""
        known = self._known if len(rows) == len(self._known) else self._known[rows]
        unknown = (known == _UNKNOWN).nonzero()[0]
        first = int(np.searchsorted(unknown, start))
        for place in (*unknown[first:].tolist(), *unknown[:first].tolist()):
            row = int(rows[place])
            if self._keep(row, make(row)) & _IS_CANDIDATE:
                return False
        return True

    def failure_counts(self) -> tuple[dict[str, int], int]:
        """On how many rows evictions do not help for which reason, and on how many in all: those of the last search, if
        rows that it left out were forgotten."""
        reasons = {reason: count for reason, count in self._reasons.items() if count}
        return reasons, len(self._found) - self._n_candidates

    def least_harmful(self, rows: RowArray) -> RowArray:
        """The candidates that no rule tells apart, by node name."""
        assert self._ranking is not None
        return self._ranking.least_harmful(rows)

    def candidate(self, row: int) -> Candidate:
        found = self._found[row]
        assert isinstance(found, Candidate)
        return found

    def _keep(self, row: int, found: Candidate | Status) -> int:
        self._found[row] = found
        if isinstance(found, Status):
            known = _NO_HELP
            for reason in found.reasons:
                self._reasons[reason] += 1
        else:
            known = _BREAKING if found.n_budget_violations else _HARMLESS
            self._n_candidates += 1
            self._n_breaking += known == _BREAKING
            if self._ranking is None:
                self._ranking = _Ranking(self._name_order())
            self._ranking.put(row, found)
        self._cells[row] = known
        if self._among is not None:
            self._among.keep(row, is_candidate=known & _IS_CANDIDATE != 0)
        return known


def _are_candidates(known: npt.NDArray[np.int8]) -> BoolArray:
    return (known & _IS_CANDIDATE).view(np.bool_)


def _stop(known: npt.NDArray[np.int8], enough: int) -> int:
    """The number of rows to look at, as far as is known. Mostly, not far from the beginning."""
    beginning = known[: 4 * enough]
    stop = _stop_within(beginning, enough) if 0 < len(beginning) < len(known) else None
    if stop is None:
        stop = _stop_within(known, enough)
    return len(known) if stop is None else stop


def _stop_within(known: npt.NDArray[np.int8], enough: int) -> int | None:
    harmless = known == _HARMLESS
    first_harmless = int(harmless.argmax())
    if not harmless[first_harmless]:
        return None
    candidates = _are_candidates(known).nonzero()[0]
    if len(candidates) < enough:
        return None
    return max(first_harmless, int(candidates[max(enough, 1) - 1])) + 1


def _rules(found: Candidate) -> Rules:
    victims = found.victims
    priorities = [victim.signature.priority for victim in victims]
    highest = max(priorities)
    return (
        found.n_budget_violations,
        priorities[0],
        sum(priorities) + PRIORITY_SHIFT * len(victims),
        len(victims),
        -min(started_at_s(victim) for victim in victims if victim.priority == highest),
    )
