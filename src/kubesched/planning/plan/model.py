"""The packing problem behind a plan, in whole numbers: classes of pods, options to buy, and what one node can hold.

A pattern is what one node holds: so many pods of each class. Everything that limits a pattern is a resource, with an
amount for each class and option: cpu and memory, the number of pods, volumes of a driver, and also host ports and pods
that must not share a node (of which a node has one).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from kubesched.k8s.errors import KubeschedError
from kubesched.k8s.model.meta import PodKey
from kubesched.k8s.model.requests import CPU, MEMORY

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]


class PlanError(KubeschedError, ValueError):
    """What is asked for cannot be planned: says which argument or input is wrong."""


UNLIMITED = 10**6
"""More pods, ports or volumes than any node holds."""


@dataclass(frozen=True, slots=True)
class PackedClass:
    """Pods that are alike for every rule within a node."""

    pods: tuple[PodKey, ...]
    zone_rule: str = ""
    """`spread` over zones, `apart` (one in a zone), `together` (all in one zone), or none of these."""
    max_skew: int = 1

    @property
    def name(self) -> str:
        return self.pods[0]


@dataclass(frozen=True, slots=True)
class BuyingOption:
    """Machines that are alike but for their zone: same room after daemons, same price, same pods that may go there."""

    name: str
    members: tuple[int, ...]
    """Numbers of the catalogue's options, in its order: one for each zone."""
    zones: tuple[str, ...]
    """Of the members."""
    price: int
    """Of an hour, in 10⁻⁹ of the currency; if nodes are counted, not money, each costs a whole one."""
    available: tuple[int | None, ...] = ()
    """Of each member, how many can be had."""


@dataclass(frozen=True, slots=True, eq=False)
class FreeRoom:
    """Nodes that are there, and what is free on all of them together."""

    n_nodes: int
    capacity: Ints
    """(n_resources,)"""
    most: Ints
    """(n_classes,) so many pods of each class would fit if it were the only one; 0 where it may not go."""
    by_node: Ints = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int64))
    """(n_nodes, n_resources), where each node is known."""


@dataclass(frozen=True, slots=True, eq=False)
class LimitRow:
    """At most so much of something over all nodes that are bought: `coefficients · counts <= most`."""

    name: str
    coefficients: Ints
    """(n_options,)"""
    most: int


@dataclass(frozen=True, slots=True, eq=False)
class PackingModel:
    classes: tuple[PackedClass, ...]
    options: tuple[BuyingOption, ...]
    resources: tuple[str, ...]
    demand: Ints
    """(n_classes,) pods"""
    requests: Ints
    """(n_classes, n_resources)"""
    capacity: Ints
    """(n_options, n_resources), after daemons"""
    fits: Bools
    """(n_classes, n_options) whether a pod may go to a node of its own of this kind."""
    apart: Bools
    """(n_classes, n_classes) which classes must not share a node."""
    existing: tuple[FreeRoom, ...] = ()
    limits: tuple[LimitRow, ...] = ()
    price: Ints = field(init=False)
    most: Ints = field(init=False)
    """(n_classes, n_options) how many pods of one class fit on a node that holds nothing else."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "price", np.array([one.price for one in self.options], dtype=np.int64))
        object.__setattr__(self, "most", most_alone(self.requests, self.capacity, self.fits))

    @property
    def n_pods(self) -> int:
        return int(self.demand.sum())

    def cost(self, counts: Sequence[int] | Ints) -> int:
        return sum(int(n) * int(p) for n, p in zip(counts, self.price, strict=True))

    def with_demand(self, demand: Ints) -> PackingModel:
        """The same for other numbers of pods; what is there is not free any more."""
        return replace(self, demand=demand, existing=())

    def with_room_to_spare(self, percent: int) -> PackingModel:
        """As if each machine had less room, by this share of the largest pod that may go there. Whoever places pods one
        by one leaves about so much unused: where nodes are filled evenly, the last large pod needs room on one."""
        spare = np.zeros_like(self.capacity)
        for option in range(len(self.options)):
            here = (self.most[:, option] > 0) & (self.demand > 0)
            if here.any():
                spare[option] = self.requests[here].max(axis=0) * percent // 100
        spare[:, [r for r, name in enumerate(self.resources) if name not in (CPU, MEMORY)]] = 0
        room = self.capacity - spare
        alone = most_alone(self.requests, room, self.fits)
        for c in np.flatnonzero((alone == 0).all(axis=1) & (self.most > 0).any(axis=1)).tolist():
            largest = int(np.argmax(self.most[c]))
            room[largest] = self.capacity[largest]
        return replace(self, capacity=room.clip(min=0))

    def in_turns(self, turns: int, n_offers: int) -> PackingModel:
        """With each member of an option once for every turn."""
        options = tuple(
            replace(
                one,
                members=tuple(member + turn * n_offers for turn in range(turns) for member in one.members),
                zones=one.zones * turns,
                available=one.available * turns,
            )
            for one in self.options
        )
        return replace(self, options=options)

    def with_limits(self, limits: tuple[LimitRow, ...]) -> PackingModel:
        return replace(self, limits=limits)


def most_alone(requests: Ints, capacity: Ints, fits: Bools) -> Ints:
    """(n_classes, n_options) copies of a class that fit on an option alone."""
    found = np.full(fits.shape, UNLIMITED, dtype=np.int64)
    for r in range(requests.shape[1]):
        asked = requests[:, r]
        needs = asked > 0
        if needs.any():
            found[needs] = np.minimum(found[needs], capacity[np.newaxis, :, r] // asked[needs, np.newaxis])
    found[~fits] = 0
    return np.maximum(found, 0)
