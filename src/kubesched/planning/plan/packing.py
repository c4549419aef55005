"""Sets of machines that hold all pods, found quickly: first-fit-decreasing and its relatives.

Pods of one class are put in together and equal nodes are filled at once, so the time depends on the classes, not the
pods. What is found satisfies every rule within a node; rules between nodes are left to the judge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kubesched.planning.plan.model import Bools, Floats, Ints, PackingModel


@dataclass(frozen=True, slots=True)
class FilledNodes:
    """So many nodes of one option that hold the same."""

    option: int
    pattern: tuple[int, ...]
    count: int


Packing = tuple[FilledNodes, ...]


def counts_of(model: PackingModel, packing: Packing) -> tuple[int, ...]:
    counts = [0] * len(model.options)
    for filled in packing:
        counts[filled.option] += filled.count
    return tuple(counts)


def placed_by(model: PackingModel, packing: Packing) -> Ints:
    """(n_classes,) pods"""
    placed = np.zeros(len(model.classes), dtype=np.int64)
    for filled in packing:
        placed += np.array(filled.pattern, dtype=np.int64) * filled.count
    return placed


def decreasing(model: PackingModel) -> list[int]:
    """Classes by the largest share of the largest machine that one pod takes, the largest first."""
    largest = np.maximum(model.capacity.max(axis=0, initial=1), 1)
    share = (model.requests / largest).max(axis=1, initial=0.0)
    return sorted(range(len(model.classes)), key=lambda c: (-float(share[c]), c))


def orders(model: PackingModel) -> list[list[int]]:
    """Ways to put the largest first: by the largest share, by the sum of shares, and by cpu and memory alone."""
    shares = model.requests / np.maximum(model.capacity.max(axis=0, initial=1), 1)
    sizes = [shares.sum(axis=1), *(shares[:, r] for r in range(min(2, shares.shape[1])))]
    found = [decreasing(model), *(np.argsort(-size, kind="stable").tolist() for size in sizes)]
    return [list(order) for order in dict.fromkeys(map(tuple, found))]


def fill(model: PackingModel, option: int, left: Ints, order: Sequence[int]) -> Ints:
    """(n_classes,) what a node holds if pods are put on it in this order as long as they fit."""
    return _filled(model, model.capacity[option], np.minimum(model.most[:, option], left), order)


def left_by_existing(model: PackingModel, order: Sequence[int]) -> Ints:
    """(n_classes,) pods for which the nodes that are there have no room, if these are filled in this order."""
    left = model.demand.copy()
    for room in model.existing:
        for free in room.by_node:
            if not left.any():
                break
            left -= _filled(model, free, np.minimum(room.most, left), order)
    return left


def _filled(model: PackingModel, capacity: Ints, most: Ints, order: Sequence[int]) -> Ints:
    room = capacity.copy()
    pattern = np.zeros(len(most), dtype=np.int64)
    barred = np.zeros(len(most), dtype=np.bool_)
    has_pairs = bool(model.apart.any())
    for c in order:
        if most[c] <= 0 or barred[c]:
            continue
        needs = model.requests[c]
        asked = needs > 0
        x = min(int(most[c]), int((room[asked] // needs[asked]).min()))
        if x > 0:
            pattern[c] = x
            room -= x * needs
            if has_pairs:
                barred |= model.apart[c]
    return pattern


def _repeated(pattern: Ints, left: Ints) -> int:
    """How many nodes can be filled alike before a class runs out."""
    used = pattern > 0
    return max(1, int((left[used] // pattern[used]).min()))


def single_type(
    model: PackingModel, option: int, most_nodes: int | None = None, order: Sequence[int] | None = None
) -> tuple[Packing, Ints]:
    """All pods that may go there, first-fit-decreasing on nodes of one option; and the pods that are left."""
    order = decreasing(model) if order is None else order
    left, packed, n_nodes = model.demand.copy(), [], 0
    while most_nodes is None or n_nodes < most_nodes:
        pattern = fill(model, option, left, order)
        if not pattern.any():
            break
        count = _repeated(pattern, left)
        if most_nodes is not None:
            count = min(count, most_nodes - n_nodes)
        packed.append(FilledNodes(option, tuple(pattern.tolist()), count))
        left -= pattern * count
        n_nodes += count
    return tuple(packed), left


def best_single_type(model: PackingModel) -> Packing | None:
    """The cheapest way with one kind of machine; None if no kind holds every class."""
    best: Packing | None = None
    best_cost = 0
    holds_all = np.flatnonzero(((model.most > 0) | (model.demand == 0)[:, np.newaxis]).all(axis=0))
    for option in holds_all.tolist():
        for order in orders(model):
            packing, left = single_type(model, option, order=order)
            counts = counts_of(model, packing)
            cost = model.cost(counts)
            if not left.any() and is_within_limits(model, counts) and (best is None or cost < best_cost):
                best, best_cost = packing, cost
    return best


def by_first_fit(model: PackingModel) -> Packing | None:
    """First-fit-decreasing where each node keeps all machines that still hold its pods, and the cheapest of them is
    taken in the end: as an autoscaler does it."""
    order, left, packed = decreasing(model), model.demand.copy(), []
    while left.any():
        pattern = np.zeros(len(left), dtype=np.int64)
        possible = np.ones(len(model.options), dtype=np.bool_)
        room = model.capacity.copy()
        barred = np.zeros(len(left), dtype=np.bool_)
        for c in order:
            if left[c] == 0 or barred[c]:
                continue
            needs = model.requests[c]
            asked = needs > 0
            x = np.where(possible & model.fits[c], (room[:, asked] // needs[asked]).min(axis=1), 0)
            n = min(int(left[c]), int(x.max(initial=0)))
            if n > 0:
                pattern[c] = n
                possible &= x >= n
                room -= n * needs
                barred |= model.apart[c]
        if not pattern.any():
            return None
        choices = np.flatnonzero(possible)
        option = int(choices[np.argmin(model.price[choices])])
        count = _repeated(pattern, left)
        packed.append(FilledNodes(option, tuple(pattern.tolist()), count))
        left -= pattern * count
    packing = tuple(packed)
    return packing if is_within_limits(model, counts_of(model, packing)) else None


def by_value(
    model: PackingModel, values: Floats, left: Ints | None = None, among: Bools | None = None
) -> Packing | None:
    """One node after another, each the machine that holds most value for its price; `values` are what a pod of each
    class is worth. With `among`, other machines are bought only for what fits on none of these. None if that does not
    end."""
    left = model.demand.copy() if left is None else left.copy()
    packed: list[FilledNodes] = []
    counts = np.zeros(len(model.options), dtype=np.int64)
    sizes = _sizes(model)
    known = orders(model)
    while left.any():
        best: tuple[float, int, Ints] | None = None
        allowed = _may_be_bought(model, counts)
        if among is not None and (model.most[left > 0][:, allowed & among] > 0).any():
            allowed &= among
        for option in np.flatnonzero(allowed).tolist():
            density = np.argsort(-(values / sizes[:, option]), kind="stable").tolist()
            for order in (*known, density):
                pattern = fill(model, option, left, order)
                worth = float(values @ pattern) / max(1.0, float(model.price[option]))
                if pattern.any() and (best is None or worth > best[0]):
                    best = worth, option, pattern
        if best is None:
            return None
        _, option, pattern = best
        count = _repeated(pattern, left)
        if any(row.coefficients[option] > 0 for row in model.limits):
            count = 1
        packed.append(FilledNodes(option, tuple(pattern.tolist()), count))
        counts[option] += count
        left -= pattern * count
    return tuple(packed)


def _sizes(model: PackingModel) -> Floats:
    """(n_classes, n_options) the share of a machine that a pod takes, over all resources."""
    room = np.maximum(model.capacity, 1)
    shares: Floats = (model.requests[:, np.newaxis, :] / room[np.newaxis, :, :]).sum(axis=2)
    return shares.clip(min=1e-12)


def _may_be_bought(model: PackingModel, counts: Ints) -> Bools:
    """(n_options,) of which one more is within all limits."""
    allowed = np.ones(len(counts), dtype=np.bool_)
    for row in model.limits:
        allowed &= (row.coefficients <= 0) | (row.coefficients @ counts + row.coefficients <= row.most)
    return allowed


def is_within_limits(model: PackingModel, counts: Sequence[int]) -> bool:
    chosen = np.array(counts, dtype=np.int64)
    return all(int(row.coefficients @ chosen) <= row.most for row in model.limits)
