"""Fleets: machines in fixed proportions, as many as the scheduler needs.

A scheduler that spreads pods leaves room on every machine, about as much as a large pod takes that comes late. On a
large machine that is a smaller share, so what is cheapest for a packing is not what is cheapest for a scheduler. Each
machine is therefore taken to be smaller by a share of the largest pod that may go there, and a linear program says in
which proportions to buy then; for several shares. How large the fleet has to be is asked of the scheduler, by halves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from math import ceil

import numpy as np

from kubesched.planning.plan import packing
from kubesched.planning.plan.judge import Mix
from kubesched.planning.plan.model import Floats, PackingModel
from kubesched.planning.plan.patterns import fluid_counts, has_solver
from kubesched.planning.plan.search import TURN_ENDS, MixSearch

_SPARE_PERCENT = (45, 20, 100, 70, 30, 8, 0)
"""Of the largest pod: how much room is left on each machine. What is most often best comes first."""
_SPARE_PERCENT_IN_TURN = (0, 8, 20, 45)
"""Where nodes are filled in turn, only the last ones have room left."""
_FINEST = 0.001
"""Of the cost: smaller differences between fleets are not looked for."""
_GROWTH = 1.06
_MOST_STEPS_UP = 40
_SINGLE_TYPES = 3
"""Kinds of machines of which alone a fleet is made."""


class FleetSearch:
    def __init__(self, search: MixSearch, left: PackingModel, told: Callable[[str], None]) -> None:
        """`left` has the pods that find no room on the nodes that are there."""
        self._search = search
        self._left = left
        self._told = told
        self._cheapest = int(left.price.min()) if len(left.price) else 0
        self.directions: list[Floats] = []
        """Numbers of machines, not whole, in the proportions that were tried."""
        self._untried = self._fleets() if left.demand.any() and len(left.options) else iter(())

    def first(self) -> None:
        """Until there is a plan."""
        for fleet in self._untried:
            if self._smallest(fleet):
                self._told("a fleet")
                return

    def all_directions(self) -> list[Floats]:
        """Also those that were not tried yet."""
        waiting = list(self._untried)
        self._untried = iter(waiting)
        return self.directions

    def rest(self) -> None:
        """All other proportions."""
        for fleet in self._untried:
            if self._smallest(fleet):
                self._told("a fleet")

    def _fleets(self) -> Iterator[Floats]:
        """(n_options,) numbers of machines, not whole, that would do if the scheduler left as much room as assumed."""
        known = self.directions
        alone = self._of_single_types()
        yield from islice(alone, 1)  # what others are compared with
        for percent in _SPARE_PERCENT if self._search.turns == 1 else _SPARE_PERCENT_IN_TURN:
            fleet = self._fleet(self._left.with_room_to_spare(percent))
            if fleet is not None and self._search.zone_matters:
                fleet = self._over_zones(fleet)
            if fleet is not None and not any(np.allclose(_direction(fleet), _direction(one)) for one in known):
                known.append(fleet)
                yield fleet
        yield from alone

    def _fleet(self, model: PackingModel) -> Floats | None:
        if has_solver():
            return fluid_counts(model)
        values = np.maximum(self._search.values.astype(np.float64), 1.0)
        packed = packing.by_value(model, values)
        return None if packed is None else np.array(packing.counts_of(model, packed), dtype=np.float64)

    def _over_zones(self, fleet: Floats) -> Floats:
        """As much in each zone, where the same machine is offered in several of them."""
        alike: dict[tuple[int, bytes], list[int]] = {}
        for option, price in enumerate(self._left.price.tolist()):
            alike.setdefault((price, self._left.capacity[option].tobytes()), []).append(option)
        even = fleet.copy()
        for members in alike.values():
            even[members] = fleet[members].mean()
        return even

    def _of_single_types(self) -> Iterator[Floats]:
        model = self._left.with_room_to_spare(_SPARE_PERCENT[0])
        total = model.demand @ model.requests
        holds_all = np.flatnonzero(((model.most > 0) | (model.demand == 0)[:, np.newaxis]).all(axis=0))
        sizes = {o: float((total / np.maximum(model.capacity[o], 1)).max()) for o in holds_all.tolist()}
        for option in sorted(sizes, key=lambda o: ceil(sizes[o]) * int(model.price[o]))[:_SINGLE_TYPES]:
            fleet = np.zeros(len(model.options))
            fleet[option] = sizes[option]
            yield self._over_zones(fleet) if self._search.zone_matters else fleet

    # -- how large -----------------------------------------------------------------------------------------------------

    def _smallest(self, fleet: Floats) -> bool:
        """Looks for the smallest fleet of these proportions that the scheduler accepts and that is cheaper than what is
        known. Whether there is one."""
        search, before = self._search, self._search.best
        prices = self._left.price.astype(np.float64)
        unit = float(fleet @ prices)
        guess = unit
        if search.best is None:
            guess = self._large_enough(fleet, unit)
        if search.best is None:
            return False
        low, high = float(search.bound.cost), float(search.cost(search.best.mix))
        step = max(_FINEST * high, 0.9 * self._cheapest)
        probe = min(guess, high - step)
        refused: Mix | None = None
        while low < probe < high:
            mix = self.sized(fleet, probe)
            if mix is not None and search.judged(mix):
                high = min(probe, float(search.cost(mix)))
            else:
                if probe >= float(search.cost(search.best.mix)) - 1.5 * step:
                    break  # not even a little cheaper than what is known
                low, refused = probe, mix or refused
            probe = (low + high) / 2 if high - low > 2 * step else high - step
            if high - low <= step:
                break
        if refused is not None:
            search.propose(refused)
        return search.best is not before

    def _large_enough(self, fleet: Floats, unit: float) -> float:
        """Grows the fleet until the scheduler accepts it; gives its cost."""
        scale = 1.0
        for _ in range(_MOST_STEPS_UP):
            mix = self.sized(fleet, unit * scale)
            if mix is None or self._search.judged(mix):
                break
            scale *= _GROWTH
        return unit * scale / _GROWTH

    def sized(self, fleet: Floats, cost: float, turn_ends: Sequence[float] = TURN_ENDS) -> Mix | None:
        """In whole machines, for so much: what is cut off is made up for by those of which most is cut off."""
        prices = self._left.price.astype(np.float64)
        wanted = fleet * (cost / float(fleet @ prices))
        counts = np.floor(wanted + 1e-9)
        missing = float((wanted - counts) @ prices)
        for option in np.argsort(-(wanted - counts), kind="stable").tolist():
            if counts[option] < wanted[option] - 1e-9 and prices[option] <= missing + self._cheapest / 2:
                counts[option] += 1
                missing -= prices[option]
        mix = self._search.spread([int(n) for n in counts])
        return None if mix is None else self._search.completed(self._search.in_turn(mix, turn_ends))


def _direction(fleet: Floats) -> Floats:
    found: Floats = fleet / max(1e-12, float(np.linalg.norm(fleet)))
    return found
