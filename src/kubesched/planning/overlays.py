"""What NodeOverlays change: prices and further resources of the machines that they pick, as Karpenter applies them.

Of several that pick the same machine, the one with the highest weight counts, and of those the last by name. Two of the
same weight must not change the same: the later one is then not applied at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as changed
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from kubesched.planning.pool_requirements import PoolRequirement

if TYPE_CHECKING:
    from kubesched.planning.catalogue import Option, Shape


@dataclass(frozen=True, slots=True)
class PriceChange:
    """Another price, or so much more or less than the price there is."""

    text: str
    """As it was written."""
    price: int | None = None
    """In 10⁻⁹ of the currency."""
    more: int = 0
    percent: Fraction = Fraction(0)

    def of(self, price: int | None) -> int | None:
        """Never less than nothing."""
        if self.price is not None:
            return self.price
        return None if price is None else max(0, round(price * (1 + self.percent / 100)) + self.more)


@dataclass(frozen=True, slots=True)
class Overlay:
    name: str
    requirements: tuple[PoolRequirement, ...] = ()
    price: PriceChange | None = None
    capacity: Mapping[str, str] = field(default_factory=dict)
    weight: int = 0

    def picks(self, labels: Mapping[str, str]) -> bool:
        return all(one.matches(labels.get(one.key)) for one in self.requirements)

    def to_dict(self) -> dict[str, Any]:
        record: dict[str, Any] = {"name": self.name}
        if self.requirements:
            record["requirements"] = [one.to_dict() for one in self.requirements]
        if self.price is not None:
            record["price" if self.price.price is not None else "priceAdjustment"] = self.price.text
        if self.capacity:
            record["capacity"] = dict(self.capacity)
        if self.weight:
            record["weight"] = self.weight
        return record


@dataclass(slots=True)
class _Change:
    price: PriceChange
    lowest_weight: int


@dataclass(slots=True)
class _Extra:
    capacity: dict[str, str]
    newest: frozenset[str]
    """What the overlay of the lowest weight so far adds."""
    lowest_weight: int


def overlaid(options: Sequence[Option], overlays: Iterable[Overlay]) -> tuple[list[Option], list[str]]:
    """The options as the overlays change them; and the names of those overlays that conflict with another."""
    labels = [option.labels for option in options]
    changes: dict[int, _Change] = {}
    extras: dict[tuple[str, str, str], _Extra] = {}
    conflicts: list[str] = []
    for overlay in _in_order(overlays):
        picked = [number for number, known in enumerate(labels) if overlay.picks(known)]
        machines = dict.fromkeys(_machine(options[number]) for number in picked)
        if overlay.price is not None and any(
            number in changes and changes[number].lowest_weight == overlay.weight for number in picked
        ):
            conflicts.append(overlay.name)
            continue
        if any(
            machine in extras
            and extras[machine].lowest_weight == overlay.weight
            and extras[machine].newest & overlay.capacity.keys()
            for machine in machines
        ):
            conflicts.append(overlay.name)
            continue
        for number in picked if overlay.price is not None else ():
            assert overlay.price is not None
            known = changes.setdefault(number, _Change(overlay.price, overlay.weight))
            known.lowest_weight = overlay.weight
        for machine in machines if overlay.capacity else ():
            extra = extras.get(machine)
            newest = frozenset(overlay.capacity)
            if extra is not None and extra.lowest_weight == overlay.weight:
                newest |= extra.newest
            before = {} if extra is None else extra.capacity
            extras[machine] = _Extra({**overlay.capacity, **before}, newest, overlay.weight)
    shapes: dict[tuple[str, str, str], Shape] = {}
    found = []
    for number, option in enumerate(options):
        if number in changes:
            option = changed(option, offer=changed(option.offer, price=changes[number].price.of(option.offer.price)))
        machine = _machine(option)
        if machine in extras:
            if machine not in shapes:
                shapes[machine] = _with(option.shape, extras[machine].capacity)
            option = changed(option, shape=shapes[machine])
        found.append(option)
    return found, conflicts


def _in_order(overlays: Iterable[Overlay]) -> list[Overlay]:
    return sorted(sorted(overlays, key=lambda one: one.name, reverse=True), key=lambda one: -one.weight)


def _machine(option: Option) -> tuple[str, str, str]:
    return option.pool.name, option.pool.variant, option.shape.name


def _with(shape: Shape, more: Mapping[str, str]) -> Shape:
    return changed(shape, allocatable={**shape.allocatable, **more}, capacity={**shape.capacity, **more})
