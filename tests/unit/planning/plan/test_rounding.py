"""Whole machines from the fractional answer: they hold all pods, and cost little more than the bound."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from kubesched.k8s.model.meta import PodKey
from kubesched.planning.catalogue import NANOS
from kubesched.planning.plan.bounds import aggregate_bound
from kubesched.planning.plan.model import BuyingOption, Ints, LimitRow, PackedClass, PackingModel
from kubesched.planning.plan.packing import counts_of, placed_by
from kubesched.planning.plan.patterns import PatternAnswer, pattern_bound
from kubesched.planning.plan.rounding import by_branching, by_diving, rounded

pytest.importorskip("scipy")

_CLASSES = 12


def _model(seed: int, *, n_alone: int = 0, limits: tuple[LimitRow, ...] = ()) -> PackingModel:
    """Machines of three ratios, priced by size; of so many classes, a node holds one pod."""
    chance = Random(seed)
    requests = []
    for k in range(_CLASSES):
        cpu = chance.choice([50, 100, 250, 500, 1000, 2000, 3000])
        requests.append([cpu, int(cpu * chance.choice([0.5, 1, 2, 4, 8])), *(int(k == n) for n in range(n_alone))])
    sizes = [(size, ratio) for size in (1, 4, 16, 64) for ratio in (2, 4, 8)]
    capacity = [[size * 1000 - 100, size * ratio * 1000 - 10, *([1] * n_alone)] for size, ratio in sizes]
    prices = [round(size * (0.025 + 0.001 * ratio) * NANOS) for size, ratio in sizes]
    options = tuple(BuyingOption(f"o{k}", (k,), ("a",), price, (None,)) for k, price in enumerate(prices))
    return PackingModel(
        tuple(PackedClass((PodKey(f"default/c{k}"),)) for k in range(_CLASSES)),
        options,
        ("cpu", "memory", *(f"one of {k}" for k in range(n_alone))),
        _ints([chance.randint(5, 60) for _ in range(_CLASSES)]),
        _ints(requests),
        _ints(capacity),
        np.ones((_CLASSES, len(sizes)), dtype=np.bool_),
        np.zeros((_CLASSES, _CLASSES), dtype=np.bool_),
        limits=limits,
    )


def _ints(values: Any) -> Ints:
    return np.array(values, dtype=np.int64)


def _answer(model: PackingModel) -> PatternAnswer:
    answer = pattern_bound(model, [], aggregate_bound(model))
    assert answer is not None
    return answer


@pytest.mark.parametrize(("seed", "n_alone"), [(0, 0), (1, 0), (2, 6), (3, 6)])
def test_a_dive_ends_near_the_fractional_answer(seed: int, n_alone: int) -> None:
    model = _model(seed, n_alone=n_alone)
    answer = _answer(model)
    packing = by_diving(model, answer.columns, answer.master)
    assert packing is not None
    assert (placed_by(model, packing) >= model.demand).all()
    for one in packing:
        assert (np.array(one.pattern) @ model.requests <= model.capacity[one.option]).all()
    assert answer.bound.cost <= model.cost(counts_of(model, packing)) <= 1.03 * answer.master.cost


def test_what_is_beyond_the_limits_is_no_packing() -> None:
    model = _model(4)
    answer = _answer(model)
    packing = by_diving(model, answer.columns, answer.master)
    assert packing is not None
    n_nodes = sum(counts_of(model, packing))
    few = model.with_limits((LimitRow("nodes", np.ones(len(model.options), dtype=np.int64), n_nodes // 2),))
    assert by_diving(few, answer.columns, answer.master) is None


def test_the_best_of_all_ways_is_among_them() -> None:
    model = _model(5, n_alone=3)
    answer = _answer(model)
    found = [model.cost(counts_of(model, one)) for one in rounded(model, answer, 1.0)]
    branched = by_branching(model, answer.columns, 1.0)
    dived = by_diving(model, answer.columns, answer.master)
    others = [model.cost(counts_of(model, one)) for one in (branched, dived) if one is not None]
    assert min(found) <= min(others)
