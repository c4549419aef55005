"""Machines of a catalogue that could take the place of nodes, cheapest first: proposals, which the scheduler judges.

Amounts alone are looked at here: what the pods ask for, what is free on an empty machine once its daemons are on it.
Proposals are a single machine that holds all of them, or as many of one or two kinds as first-fit-decreasing needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.requests import PODS, node_units, pod_resources
from kubesched.planning.catalogue import Catalogue, Option
from kubesched.planning.new_nodes import daemons_of, node_for_trial, node_from_offer
from kubesched.scheduler.plugins.node_affinity import required_node_affinity

Amounts = dict[str, int]
SPOT = "spot"
_MOST_MIXES = 6
_MOST_KINDS = 8


@dataclass(frozen=True, slots=True, eq=False)
class _Machine:
    option: Option
    price: int
    room: Amounts


class Replacements:
    def __init__(self, catalogue: Catalogue | None, objects: Iterable[KubeObject]) -> None:
        """`objects` say which daemons a new node gets."""
        options = () if catalogue is None else catalogue.options()
        priced = [one for one in options if one.offer.price is not None and not one.pool.is_static]
        self._machines = sorted(
            (
                _Machine(option, option.offer.price or 0, _room(option, daemons))
                for option, daemons in zip(priced, daemons_of(objects, priced), strict=True)
            ),
            key=lambda machine: (machine.price, machine.option.name),
        )
        self._rates: dict[str, float] = {}

    def __bool__(self) -> bool:
        return bool(self._machines)

    def could_save(self, pods: Sequence[PodInfo], price: int) -> bool:
        """Whether what the pods ask for could be had for less at all."""
        asked = _asked(pods)
        return bool(self._machines) and all(self.best_rate(name) * n < price for name, n in asked.items() if n)

    def proposals(
        self, pods: Sequence[PodInfo], below: int, zones: Sequence[str], *, most_nodes: int = 8
    ) -> list[tuple[Option, ...]]:
        """What could hold the pods and costs less than `below`, the cheapest first. New machines come to these zones,
        if they are offered there: to each in turn, or all to the first."""
        sizes, total = [_amounts(info) for info in pods], _asked(pods)
        kinds: dict[tuple[str, ...], list[_Machine]] = {}
        for machine in self._machines:
            if machine.price < below:
                option = machine.option
                kinds.setdefault((option.pool.name, option.shape.name, option.offer.capacity_type), []).append(machine)
        cheapest = [offers[0] for offers in kinds.values()]
        mixes: set[tuple[_Machine, ...]] = {(one,) for one in cheapest if _fits(total, one.room)}
        if most_nodes > 1:
            mixes.update(self._mixes(cheapest, sizes, most_nodes))
        priced = sorted(
            (sum(one.price for one in mix), len(mix), [one.option.name for one in mix], mix) for mix in mixes
        )
        found: dict[tuple[str, ...], tuple[Option, ...]] = {}
        for price, _, _, mix in priced[:_MOST_MIXES]:
            if price < below:
                for placed in self._in_zones(mix, kinds, zones):
                    if sum(option.offer.price or 0 for option in placed) < below:
                        found[tuple(option.name for option in placed)] = placed
        return list(found.values())

    def in_place_of(
        self, pods: Sequence[PodInfo], below: int, zones: Sequence[str], *, only_spot: bool = False
    ) -> list[Option]:
        """Single machines as Karpenter considers them, the cheapest first: one of each type that costs less than
        `below` wherever it may come up, as spot where it is sold so. In these zones, if they are offered there."""
        asked = [required_node_affinity(info.spec) for info in {id(one.signature): one for one in pods}.values()]
        total = _asked(pods)
        kinds: dict[tuple[str, str, str], list[_Machine]] = {}
        for machine in self._machines:
            option = machine.option
            if _fits(total, machine.room) and all(one.on_node(node_for_trial(option)) for one in asked):
                kinds.setdefault((option.pool.name, option.pool.variant, option.shape.name), []).append(machine)
        found = []
        for machines in kinds.values():
            spot = [one for one in machines if one.option.offer.capacity_type == SPOT]
            offered = spot if spot or only_spot else machines
            if offered and max(one.price for one in offered) < below:
                found.append(min(offered, key=lambda one: (one.price, not _is_in(one, zones), one.option.name)))
        return [one.option for one in sorted(found, key=lambda one: (one.price, one.option.name))]

    def _mixes(self, machines: Sequence[_Machine], sizes: list[Amounts], most: int) -> Iterator[tuple[_Machine, ...]]:
        """As many of one kind as first-fit-decreasing needs; and some of them, with the rest on another kind."""
        worthy = sorted(machines, key=lambda one: min(one.price / max(n, 1) for n in one.room.values()))
        tried = sorted({*worthy[:_MOST_KINDS], *machines[:_MOST_KINDS]}, key=lambda one: (one.price, one.option.name))
        for machine in tried:
            packed = _first_fit_decreasing(sizes, machine.room, most)
            if packed is None:
                continue
            yield (machine,) * len(packed)
            for n_kept in range(len(packed)):
                rest = [size for held in packed[n_kept:] for size in held]
                for other in tried:
                    more = None if other is machine else _first_fit_decreasing(rest, other.room, most - n_kept)
                    if more is not None:
                        yield (*(machine,) * n_kept, *(other,) * len(more))

    def _in_zones(
        self, mix: Sequence[_Machine], kinds: Mapping[tuple[str, ...], Sequence[_Machine]], zones: Sequence[str]
    ) -> Iterator[tuple[Option, ...]]:
        for n_zones in (len(zones), 1):
            placed = []
            for number, machine in enumerate(mix):
                option = machine.option
                offers = kinds[option.pool.name, option.shape.name, option.offer.capacity_type]
                zone = zones[number % n_zones] if zones else ""
                placed.append(next((one.option for one in offers if one.option.offer.zone == zone), option))
            yield tuple(placed)

    def best_rate(self, name: str) -> float:
        """The least that a unit of a resource costs on any machine; infinite if none has it."""
        known = self._rates.get(name)
        if known is None:
            machines = (machine for machine in self._machines if machine.room.get(name, 0) > 0)
            known = self._rates[name] = min((one.price / one.room[name] for one in machines), default=float("inf"))
        return known


def _is_in(machine: _Machine, zones: Sequence[str]) -> bool:
    return machine.option.offer.zone in zones


def _room(option: Option, daemons: Sequence[Pod]) -> Amounts:
    node = next(item for item in node_from_offer(option, 0) if isinstance(item, Node))
    room = node_units(node.status.allocatable, "allocatable")
    for daemon in daemons:
        for name, amount in {**pod_resources(daemon).requests, PODS: 1}.items():
            room[name] = room.get(name, 0) - amount
    return room


def _amounts(info: PodInfo) -> Amounts:
    asked = pod_resources(info.pod).requests
    return {**{name: amount for name, amount in asked.items() if amount}, PODS: 1}


def _asked(pods: Sequence[PodInfo]) -> Amounts:
    total: Amounts = {}
    for info in pods:
        for name, amount in _amounts(info).items():
            total[name] = total.get(name, 0) + amount
    return total


def _fits(asked: Amounts, room: Amounts) -> bool:
    return all(room.get(name, 0) >= amount for name, amount in asked.items())


def _first_fit_decreasing(sizes: list[Amounts], room: Amounts, most: int) -> list[list[Amounts]] | None:
    """What each machine holds; None if one pod fits on none of them, or more would be needed than `most`."""
    bins: list[list[Amounts]] = []
    left: list[Amounts] = []
    for size in sorted(sizes, key=lambda one: -max(amount / max(room.get(name, 0), 1) for name, amount in one.items())):
        if not _fits(size, room):
            return None
        number = next((number for number, free in enumerate(left) if _fits(size, free)), len(bins))
        if number == len(bins):
            if len(bins) == most:
                return None
            bins.append([])
            left.append(dict(room))
        bins[number].append(size)
        for name, amount in size.items():
            left[number][name] -= amount
    return bins
