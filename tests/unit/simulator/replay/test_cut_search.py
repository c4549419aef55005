"""Searches by several threads that stop when enough nodes are found: whatever they choose may have been chosen."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from kubesched.simulator.replay.cut_search import CutSearch

_HELD_UP = 3


def _search(dice: Random, n: int) -> CutSearch:
    order = np.array(dice.sample(range(n), n), dtype=np.intp)
    totals = np.array([-1 if dice.random() < 0.1 else dice.randrange(1_000) for _ in range(n)], dtype=np.int64)
    return CutSearch(order, totals, enough=int(n * 0.48), n_together=min(int(n**0.5), n // 16 + 1))


def _chosen(search: CutSearch, dice: Random, start: int, n_held_up: int) -> int:
    """The row that such a search takes, if some threads get no further than some way into what they hold."""
    order, totals = np.roll(search.order, -start).tolist(), np.roll(search.totals, -start).tolist()
    takes = [range(at, min(at + search.n_together, len(order))) for at in range(0, len(order), search.n_together)]
    held_up = dice.sample(range(len(takes) // 2), n_held_up)
    kept: list[int] = []
    for number, places in enumerate(takes):
        end = dice.randrange(len(places) + 1) if number in held_up else len(places)
        kept += [place for place in places[:end] if totals[place] >= 0]
    best = max(kept[: search.enough], key=lambda place: totals[place])
    return int(order[best])


def _is_best(search: CutSearch, rows: np.ndarray, row: int) -> bool:
    totals = dict(zip(search.order.tolist(), search.totals.tolist(), strict=True))
    return bool(max(totals[one] for one in rows.tolist()) == totals[row])


@pytest.mark.parametrize("seed", range(40))
def test_what_threads_choose_that_are_held_up_may_be_chosen(seed: int) -> None:
    dice = Random(seed)
    search = _search(dice, dice.choice([130, 300, 700]))
    start = dice.randrange(len(search.order))
    row = _chosen(search, dice, start, dice.randrange(_HELD_UP + 1))
    assert any(_is_best(search, rows, row) for rows in search.parts(row, start))


def test_a_part_is_as_large_as_a_search_makes_it_and_has_the_node_in_it() -> None:
    search = _search(Random(1), 300)
    row = int(search.order[np.argmax(search.totals)])
    for rows in search.parts(row, 17):
        assert len(set(rows.tolist())) == search.enough
        assert row in rows


def test_a_node_that_many_are_better_than_is_not_chosen() -> None:
    search = _search(Random(1), 300)
    ranked = np.argsort(search.totals)
    row = int(search.order[ranked[len(ranked) // 2]])
    assert list(search.parts(row, 0)) == []


def test_a_node_that_does_not_fit_is_not_chosen() -> None:
    search = _search(Random(1), 300)
    row = int(search.order[np.flatnonzero(search.totals < 0)[0]])
    assert list(search.parts(row, 0)) == [] and list(search.starts(row)) == []
