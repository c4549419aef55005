"""Nodes that join one by one while pods wait: which ones, in which order, and how many are better there before.

A node that joins alone takes every pod that waits and fits, in the order of the queue: the scores have no say, and
nothing stays free for pods that come late, since these wait already. That is first fit, and a rehearsal of it, one node
after another for all orders of arrival at once, agrees with the scheduler to the pod. What is lost then is what a node
has left of one resource when another is used up. Scores do better there: of nodes that are there together, those with
much memory draw the pods that ask for much. So a part of the nodes may come first, as a fleet of fixed proportions that
the scores fill evenly, and those that join one by one take what is left over.

The nodes that join are chosen one by one: the machine whose pods are worth most for its price, by the values of the
bound. The nodes that come first are tried in several proportions and sizes, then changed at random. For the best of
them, the scheduler itself says which pods they take in each order, so that ties are as they will be, and the others are
chosen again. In the end nodes are left out, or exchanged for cheaper ones, as long as the rehearsal places all pods. It
only proposes; the scheduler judges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from kubesched.k8s.model.meta import PodKey
from kubesched.k8s.model.requests import CPU, MEMORY
from kubesched.planning.plan.judge import Joining, Mix, MixJudge
from kubesched.planning.plan.model import Bools, Floats, Ints, PackingModel
from kubesched.planning.plan.request import TOGETHER
from kubesched.planning.plan.search import MixSearch

_FIRST_SHARES = (0.95, 0.9, 0.8, 0.7, 0.98, 0.6, 0.4)
"""Of the cost of the bound, for the nodes that come first."""
_CHANGES = (0.0, 0.05, 0.15)
_VALUE_CHANGE = 0.1
_MOST_KINDS = 24
_MOST_CANDIDATES = 64
"""Neighbours that are rehearsed at once."""
_EXACT_SHARE = 0.5
"""Of the time for rehearsals, for those that begin with what the scheduler places."""
_STALLED = 100
"""So many choices that are no cheaper end the search."""
_VARIED = 6
"""With how many changes of the values what joins is chosen."""
_TRIED = 4
"""How many plans go to the scheduler, the cheapest first, and how often each is repaired."""


class JoiningRehearsal:
    """Which pods find a node as nodes join; a state is how many pods of each class are placed: (rows, classes)."""

    def __init__(self, model: PackingModel, arrivals: Sequence[Sequence[PodKey]]) -> None:
        """`arrivals` are the orders in which the queue gives the pods."""
        self._classes = classes = {key: c for c, one in enumerate(model.classes) for key in one.pods}
        sequences = [np.array([classes[key] for key in order if key in classes]) for order in arrivals]
        self.demand = model.demand
        self.n_orders, self.n_classes = len(sequences), len(model.classes)
        self._requests = model.requests.astype(np.float64)
        self._capacity = model.capacity.astype(np.float64)
        self._fits = model.fits
        self._scored = np.array([model.resources.index(name) for name in (CPU, MEMORY)])
        self._end = max(len(one) for one in sequences)
        self._places = np.full((self.n_orders, self.n_classes, int(model.demand.max()) + 1), self._end, dtype=np.int64)
        for order, sequence in enumerate(sequences):
            for c in range(self.n_classes):
                places = np.flatnonzero(sequence == c)
                self._places[order, c, : len(places)] = places

    def start(self) -> Ints:
        return np.zeros((self.n_orders, self.n_classes), dtype=np.int64)

    def placed_but(self, pending: Sequence[PodKey]) -> Ints:
        """(n_classes,) how many are placed if these are not."""
        counts = np.bincount([self._classes[key] for key in pending if key in self._classes], minlength=self.n_classes)
        return self.demand - counts

    def join(self, placed: Ints, nodes: Ints) -> Ints:
        """The state after these nodes joined, those of a row at once: (rows, nodes), -1 for none. Rows go through the
        orders again and again. Ties are broken by chance."""
        placed = placed.copy()
        rows = np.arange(len(placed))
        ids, orders = rows.copy(), rows % self.n_orders
        ties = np.random.default_rng(0).random(nodes.shape) * 0.99
        capacity = np.where(nodes[..., np.newaxis] < 0, -1.0, self._capacity[nodes])
        inverse = 1 / np.maximum(capacity[..., self._scored], 1)
        used, uneven = np.zeros_like(capacity), np.zeros(nodes.shape)
        count = placed.copy()
        waiting = self._places[orders[:, np.newaxis], np.arange(self.n_classes), count]
        while len(ids):
            classes = waiting.argmin(axis=1)  # whoever is first in the queue of those that may still fit
            goes_on = waiting[rows, classes] < self._end
            if not goes_on.all():
                placed[ids[~goes_on]] = count[~goes_on]
                ids, orders, nodes, capacity = ids[goes_on], orders[goes_on], nodes[goes_on], capacity[goes_on]
                inverse, used, uneven, ties = inverse[goes_on], used[goes_on], uneven[goes_on], ties[goes_on]
                count, waiting, classes = count[goes_on], waiting[goes_on], classes[goes_on]
                rows = np.arange(len(ids))
            after = used + self._requests[classes][:, np.newaxis]
            has_room = (after <= capacity).all(axis=2) & self._fits[classes[:, np.newaxis], nodes]
            share = after[..., self._scored] * inverse
            unevenly = 50 * np.abs(share[..., 0] - share[..., 1])
            free = np.floor(100 * (1 - share) + 1e-9).sum(axis=2) // 2
            gained = np.floor(100 - unevenly) - np.floor(100 - uneven)
            scores = np.where(has_room, free + 50 + (50 + gained) // 2 + ties, -1)
            chosen = scores.argmax(axis=1)
            found = scores[rows, chosen] >= 0
            waiting[rows[~found], classes[~found]] = self._end  # nodes only fill up
            r, c, n = rows[found], classes[found], chosen[found]
            used[r, n], uneven[r, n] = after[r, n], unevenly[r, n]
            count[r, c] += 1
            waiting[r, c] = self._places[orders[r], c, count[r, c]]
        return placed


@dataclass(frozen=True, slots=True)
class _Line:
    """Nodes as they come, by the model's options."""

    cost: int
    first: tuple[int, ...]
    """(n_options,) how many are there before the pods."""
    later: tuple[int, ...]


@dataclass(slots=True)
class JoiningSearch:
    """Proposes nodes that join in an order that the search chooses."""

    search: MixSearch
    judge: MixJudge
    rehearsal: JoiningRehearsal
    directions: Sequence[Floats]
    """Proportions for the nodes that come first."""
    some_first: bool
    """Whether some may be there before the pods."""
    share_left: Callable[[], float]
    """Of the time for rehearsals."""
    told: Callable[[str], None] = lambda _text: None
    _random: np.random.Generator = field(init=False)
    _kinds: Ints = field(init=False)
    _prices: Ints = field(init=False)
    _found: list[_Line] = field(init=False, default_factory=list)
    """Each cheaper than the one before."""
    _after_first: dict[tuple[int, ...], Ints] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._random = np.random.default_rng(0)
        self._prices = self.search.model.price
        self._kinds = self._promising()

    def run(self) -> None:
        stalled = 0
        for first, values in self._choices():
            if self._found and (self.share_left() < _EXACT_SHARE or stalled > _STALLED):
                break
            stalled += 1
            line = self._continued(first, values, self._found[-1] if self._found else None)
            if line is not None:
                self._found.append(line)
                stalled = 0
        tried = list(dict.fromkeys(line.first for line in reversed(self._found)))[:_TRIED]
        for number, first in enumerate(tried):
            left = self.share_left()
            line = self._found_after(first, left - left / (len(tried) - number))
            if line is not None and self._propose(line):
                self.told("nodes that join one by one")

    def _found_after(self, first: tuple[int, ...], until: float) -> _Line | None:
        """With what joins best after these, from where the scheduler leaves them."""
        if any(first):
            self._after_first[first] = self._scheduled(first)
        values, best = np.maximum(self.search.values.astype(np.float64), 1.0), None
        enough = (until + self.share_left()) / 2
        for number in range(_VARIED):
            changed = self._random.normal(0, _VALUE_CHANGE if number else 0, len(values))
            best = self._continued(first, values * np.exp(changed), best) or best
            if self.share_left() <= enough:
                break
        return None if best is None else self._polished(best, until)

    def _scheduled(self, first: tuple[int, ...]) -> Ints:
        mix = self.search.spread(first)
        assert mix is not None
        verdicts = [self.judge.try_once(mix, TOGETHER, seed, order) for seed, order in self.judge.circumstances]
        return np.array([self.rehearsal.placed_but(list(verdict.pending)) for verdict in verdicts])

    # -- rehearsed -----------------------------------------------------------------------------------------------------

    def _promising(self) -> Ints:
        """The kinds of machines that may join: those of the proportions, and those that hold much for their price."""
        model = self.search.model
        worth = np.array(self.search.bound.most, dtype=np.float64) / np.maximum(model.price, 1)
        spent = sum((one * model.price for one in self.directions), np.zeros(len(model.options)))
        order = np.lexsort((-worth, -spent))
        chosen = order[:_MOST_KINDS]
        missing = ~(model.most[:, chosen] > 0).any(axis=1) & (model.demand > 0)
        more = {int(order[np.argmax(model.most[c, order] > 0)]) for c in np.flatnonzero(missing).tolist()}
        return np.array([*chosen.tolist(), *sorted(more)], dtype=np.int64)

    def _choices(self) -> Iterator[tuple[tuple[int, ...], Floats]]:
        """What comes first, and values of pods by which the others are chosen."""
        values = np.maximum(self.search.values.astype(np.float64), 1.0)
        none = (0,) * len(self._prices)
        yield none, values
        if self.some_first:
            for fleet in self.directions:
                for share in _FIRST_SHARES:
                    yield self._sized(fleet, share), values
        while True:
            changed = values * np.exp(self._random.normal(0, _VALUE_CHANGE, len(values)))
            if not self.some_first or not self.directions or not self._found:
                yield none, changed
            elif self._random.random() < 0.5 and any(self._found[-1].first):
                yield self._changed(self._found[-1].first), values
            else:
                fleet = self.directions[int(self._random.integers(len(self.directions)))]
                noise = float(self._random.choice(_CHANGES))
                fleet = fleet * np.exp(noise * self._random.standard_normal(len(fleet)))
                yield self._sized(fleet, float(self._random.uniform(0.3, 1.0))), changed

    def _sized(self, fleet: Floats, share: float) -> tuple[int, ...]:
        wanted = fleet * share * self.search.bound.cost / max(1.0, float(fleet @ self._prices))
        counts = np.floor(wanted).astype(np.int64)
        more = np.argsort(counts - wanted, kind="stable")[: round(float(wanted.sum())) - int(counts.sum())]
        counts[more] += 1
        return tuple(counts.tolist())

    def _changed(self, first: tuple[int, ...]) -> tuple[int, ...]:
        """With some machines fewer, and others for about what these cost."""
        counts = np.array(first, dtype=np.int64)
        for _ in range(int(self._random.integers(1, 4))):
            present = np.flatnonzero(counts)
            if not len(present):
                break
            one = int(self._random.choice(present))
            n = min(int(counts[one]), int(self._random.integers(1, max(2, int(counts[one]) // 4 + 1))))
            counts[one] -= n
            if self._random.random() < 0.7:
                other = int(self._random.choice(self._kinds))
                money = n * int(self._prices[one]) * self._random.uniform(0.5, 1.2)
                counts[other] += round(float(money) / int(self._prices[other]))
        return tuple(counts.tolist())

    def _first_placed(self, first: tuple[int, ...]) -> Ints:
        if first not in self._after_first and not any(first):
            is_empty = not self.search.model.existing
            self._after_first[first] = self.rehearsal.start() if is_empty else self._scheduled(first)
        if first not in self._after_first:
            nodes = np.tile(np.repeat(np.arange(len(first)), first), (self.rehearsal.n_orders, 1))
            self._after_first[first] = self.rehearsal.join(self.rehearsal.start(), nodes)
        return self._after_first[first]

    def _continued(self, first: tuple[int, ...], values: Floats, known: _Line | None) -> _Line | None:
        """With the nodes that join; None if that gets dearer than what is known, or the time is over."""
        search, most = self.search, float("inf") if known is None else float(known.cost)
        if search.best is not None:
            most = min(most, float(search.cost(search.best.mix)))
        rehearsal, kinds, n_orders = self.rehearsal, self._kinds, self.rehearsal.n_orders
        cost, later = int(np.array(first) @ self._prices), list[int]()
        placed = self._first_placed(first)
        nodes = np.repeat(kinds, n_orders)[:, np.newaxis]
        while (left := rehearsal.demand - placed).any():
            if cost + float((left @ search.values).max()) >= most:
                return None
            if most < float("inf") and not self.share_left():
                return None
            after = rehearsal.join(np.tile(placed, (len(kinds), 1)), nodes)
            gained = ((after - np.tile(placed, (len(kinds), 1))) @ values).reshape(len(kinds), n_orders).mean(axis=1)
            best = int(np.argmax(gained / self._prices[kinds]))
            if not gained[best]:
                return None
            later.append(int(kinds[best]))
            cost += int(self._prices[kinds[best]])
            placed = after.reshape(len(kinds), n_orders, -1)[best]
        return _Line(cost, first, tuple(later))

    def _polished(self, line: _Line, until: float) -> _Line:
        """Nodes that join are left out or exchanged for cheaper ones, as long as all pods find a node."""
        while True:
            near = sorted(set(self._neighbours(line)), key=lambda one: (one.cost, one.later))
            for start in range(0, len(near), _MOST_CANDIDATES):
                if self.share_left() <= until:
                    return line
                lines = near[start : start + _MOST_CANDIDATES]
                holding = self._hold(lines)
                if holding.any():
                    line = lines[int(np.argmax(holding))]
                    break
            else:
                return line

    def _neighbours(self, line: _Line) -> Iterator[_Line]:
        prices, first, later = self._prices.tolist(), line.first, line.later
        for k, option in enumerate(later):
            if k and option == later[k - 1]:
                continue
            yield _Line(line.cost - prices[option], first, (*later[:k], *later[k + 1 :]))
            for other in self._kinds.tolist():
                if prices[other] < prices[option]:
                    exchanged = (*later[:k], other, *later[k + 1 :])
                    yield _Line(line.cost - prices[option] + prices[other], first, exchanged)

    def _hold(self, lines: Sequence[_Line]) -> Bools:
        """(n_lines,) whether all pods find a node in every order."""
        n_orders = self.rehearsal.n_orders
        placed = np.concatenate([self._first_placed(line.first) for line in lines])
        longest = max(len(line.later) for line in lines)
        nodes = np.full((len(lines), longest), -1, dtype=np.int64)
        for k, line in enumerate(lines):
            nodes[k, : len(line.later)] = line.later
        nodes = np.repeat(nodes, n_orders, axis=0)
        for k in range(longest):
            placed = self.rehearsal.join(placed, nodes[:, k : k + 1])
        all_placed: Bools = (placed == self.rehearsal.demand).all(axis=1).reshape(len(lines), n_orders).all(axis=1)
        return all_placed

    # -- judged --------------------------------------------------------------------------------------------------------

    def _propose(self, line: _Line) -> bool:
        """Lets the scheduler judge it; whom it leaves pending, nodes at the end take."""
        search = self.search
        first = search.spread(line.first)
        later = np.bincount(line.later, minlength=len(line.first)).tolist()
        mix = None if first is None else search.spread(later, first)
        if first is None or mix is None:
            return False
        joining = self._joining(line, first, mix)
        for _ in range(_TRIED):
            if search.best is not None and search.rank(mix) >= search.rank(search.best.mix):
                return False
            self.judge.let_join(mix, joining)
            if search.judged(mix):
                return True
            more = search.repaired(mix, self.judge.verdict(mix), 1)
            if more is None:
                return False
            added = [o for o, (old, new) in enumerate(zip(mix, more, strict=True)) for _ in range(new - old)]
            mix, joining = more, Joining((*joining.options, *added), joining.n_first)
        return False

    def _joining(self, line: _Line, first: Mix, mix: Mix) -> Joining:
        """The catalogue's options in the order of the line; those that differ in the zone alone take turns."""
        options = [option for option, n in enumerate(first) for _ in range(n)]
        left = [n - m for n, m in zip(mix, first, strict=True)]
        for number in line.later:
            chosen = max(self.search.model.options[number].members, key=lambda member: (left[member], -member))
            left[chosen] -= 1
            options.append(chosen)
        return Joining(tuple(options), sum(line.first))
