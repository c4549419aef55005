"""A catalogue: the machines that can be had, where, and what an hour of each costs; what the nodes of a cluster cost.

A shape is a kind of machine, an offer a zone and a capacity type in which it is sold, a pool what the nodes made of it
have in common. Prices are whole numbers of 10⁻⁹ of the currency, so that sums are exact. Nodes cost what they say
themselves, or what a catalogue says of their instance type.

Next: `catalogue_files` reads catalogues, `new_nodes` makes nodes of offers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as changed
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

import msgspec

from kubesched.explanation.layout import counted, readable, table
from kubesched.k8s.errors import KubeschedError
from kubesched.k8s.model.autoscaling import NODE_POOL_LABEL
from kubesched.k8s.model.core import Node, Taint
from kubesched.k8s.model.quantity import Quantity, parse
from kubesched.k8s.model.requests import CPU, MEMORY, PODS, node_units
from kubesched.k8s.model.resource import ResourceSliceSpec
from kubesched.k8s.model.spelling import did_you_mean
from kubesched.planning.overlays import Overlay, overlaid
from kubesched.planning.pool_requirements import PoolRequirement, lacking

if TYPE_CHECKING:
    from kubesched.planning.node_pool_budgets import PoolDisruption

CATALOGUE_VERSION = "kubesched.dev/v1alpha1"
NANOS = 10**9
HOURS_A_MONTH = 730
ZONE = "topology.kubernetes.io/zone"
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
CAPACITY_TYPE = "karpenter.sh/capacity-type"
POOL = NODE_POOL_LABEL
PRICE = "kubesched.dev/price"
"""The label or annotation of a node that says what an hour of it costs."""
_MOST_PRICE = 10**6


class CatalogueError(KubeschedError, ValueError):
    """A catalogue cannot be read or used: names the source, the shape and the field."""

    def __init__(self, source: str, where: str, problem: str) -> None:
        super().__init__(": ".join(part for part in (source, where, problem) if part))


class PriceError(KubeschedError, ValueError):
    """A price is not an amount of money that somebody could ask for."""


@dataclass(frozen=True, slots=True)
class MachineOffer:
    zone: str = ""
    capacity_type: str = ""
    price: int | None = None
    """An hour, in 10⁻⁹ of the currency; None if nobody said."""
    available: int | None = None
    """How many can be had; None: as many as one likes."""


@dataclass(frozen=True, slots=True)
class Shape:
    name: str
    allocatable: Mapping[str, str]
    capacity: Mapping[str, str]
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    volume_limits: Mapping[str, int] = field(default_factory=dict)
    """By CSI driver, how many volumes can be attached."""
    offers: tuple[MachineOffer, ...] = ()
    devices: tuple[ResourceSliceSpec, ...] = ()
    """What its drivers publish of a node's devices; node and pool are filled in."""

    def node(self, zone: str = "", capacity_type: str = "", *, name: str = "") -> Node:
        """A ready node of this shape as it would be bought, to try things with: `trial.add_node(shape.node(zone="a"))`.
        The first offer counts that is in the zone and of the capacity type, where they are said. Raises
        CatalogueError."""
        from kubesched.planning.new_nodes import node_for_trial

        for offer in self.offers or (MachineOffer(),):
            sold = changed(offer, zone=offer.zone or zone, capacity_type=offer.capacity_type or capacity_type)
            if (zone or sold.zone, capacity_type or sold.capacity_type) == (sold.zone, sold.capacity_type):
                return node_for_trial(Option(self, sold, Pool()), name)
        where = " ".join(part for part in (zone and f"in zone {zone}", capacity_type and f"as {capacity_type}") if part)
        raise CatalogueError("", f"shape {self.name}", f"there is no offer {where}")


@dataclass(frozen=True, slots=True)
class Pool:
    name: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    requirements: tuple[PoolRequirement, ...] = ()
    most_nodes: int | None = None
    limits: Mapping[str, str] = field(default_factory=dict)
    """How much of a resource all its nodes may have together."""
    least_nodes: int = 0
    least_by_zone: Mapping[str, int] = field(default_factory=dict)
    weight: int = 0
    """Karpenter looks at pools of a higher weight first."""
    is_static: bool = False
    """It has as many nodes as it says, whatever pods there are: none comes for a pod."""
    variant: str = ""
    """Tells pools of one name apart, where a NodePool gives nodes one of several values of a label."""
    disruption: PoolDisruption | None = None
    """What Karpenter may do to its nodes, if the pool says."""

    @property
    def is_limited(self) -> bool:
        return self.most_nodes is not None or bool(self.limits)

    def takes(self, labels: Mapping[str, str]) -> bool:
        """Whether a machine with these labels may be in the pool: the pool's own labels are as required."""
        known = {**self.labels, **labels}
        return all(one.matches(known.get(one.key)) for one in self.requirements) and all(
            labels.get(key, value) == value for key, value in self.labels.items()
        )


@dataclass(frozen=True, slots=True)
class Option:
    """What can be bought: a shape in a zone and capacity type, in a pool."""

    shape: Shape
    offer: MachineOffer
    pool: Pool

    @property
    def name(self) -> str:
        return "/".join(
            p
            for p in (self.pool.name, self.pool.variant, self.shape.name, self.offer.zone, self.offer.capacity_type)
            if p
        )

    @property
    def labels(self) -> dict[str, str]:
        found = {**self.pool.labels, **self.machine_labels}
        if self.pool.name:
            found[POOL] = self.pool.name
        return found

    @property
    def machine_labels(self) -> dict[str, str]:
        """Whatever pool it is for."""
        found = {INSTANCE_TYPE: self.shape.name, **self.shape.labels}
        if self.offer.zone:
            found[ZONE] = self.offer.zone
        if self.offer.capacity_type:
            found[CAPACITY_TYPE] = self.offer.capacity_type
        return found

    @property
    def taints(self) -> tuple[Taint, ...]:
        return (*self.shape.taints, *self.pool.taints)


@dataclass(frozen=True, slots=True, repr=False)
class Catalogue:
    shapes: tuple[Shape, ...]
    pools: tuple[Pool, ...] = ()
    currency: str = "USD"
    source: str = ""
    overlays: tuple[Overlay, ...] = ()

    def __repr__(self) -> str:
        return f"<Catalogue: {len(self.shapes)} shapes, {sum(len(one.offers) for one in self.shapes)} offers>"

    def __getitem__(self, name: str) -> Shape:
        for shape in self.shapes:
            if shape.name == name:
                return shape
        hint = did_you_mean(name, (shape.name for shape in self.shapes))
        raise CatalogueError(self.source, "", f'no shape is called "{name}"{hint}')

    def only(self, names: Iterable[str]) -> Catalogue:
        """With these shapes alone; one that is not there is a `CatalogueError`."""
        return changed(self, shapes=tuple(self[name] for name in dict.fromkeys(names)))

    def beside(self, nodes: Iterable[Node]) -> Catalogue:
        """For a cluster that has these nodes: what they leave of their pools' limits, and how many are still missing
        there."""
        if not any(pool.is_limited or pool.least_nodes or pool.least_by_zone for pool in self.pools):
            return self
        there: dict[str, list[Node]] = {}
        for node in nodes:
            there.setdefault((node.metadata.labels or {}).get(POOL, ""), []).append(node)
        return changed(self, pools=tuple(_left(pool, there.get(pool.name, [])) for pool in self.pools))

    def options(self) -> Iterator[Option]:
        """Everything that can be bought, in the order of the catalogue. Raises CatalogueError for a pool that has
        machines of too few kinds."""
        yield from overlaid(self._options(), self.overlays)[0]

    @property
    def conflicting_overlays(self) -> list[str]:
        """Those that are not applied, since another of the same weight changes the same."""
        return overlaid(self._options(), self.overlays)[1]

    def _options(self) -> list[Option]:
        found: list[Option] = []
        for pool in self.pools or (Pool(),):
            offered = (
                Option(shape, offer, pool) for shape in self.shapes for offer in shape.offers or (MachineOffer(),)
            )
            taken = [one for one in offered if one.offer.available != 0 and pool.takes(one.machine_labels)]
            lack = lacking(pool.requirements, [one.labels for one in taken])
            if lack is not None:
                asked, n_values = lack
                text = f"minValues: {asked.min_values} values of {asked.key} are expected, its machines have {n_values}"
                raise CatalogueError(self.source, f"pool {pool.name}", text)
            found += taken
        return found

    def to_dict(self) -> dict[str, Any]:
        """As a manifest of kind Catalogue; reading it gives this catalogue again."""
        record: dict[str, Any] = {"apiVersion": CATALOGUE_VERSION, "kind": "Catalogue", "currency": self.currency}
        record["shapes"] = [_shape_record(shape) for shape in self.shapes]
        if self.pools:
            record["pools"] = [_pool_record(pool) for pool in self.pools]
        if self.overlays:
            record["overlays"] = [overlay.to_dict() for overlay in self.overlays]
        return record


def _left(pool: Pool, nodes: Sequence[Node]) -> Pool:
    taken = dict.fromkeys(pool.limits, 0)
    by_zone: dict[str, int] = {}
    for node in nodes:
        has = node.status.capacity or node.status.allocatable or {}
        for name in taken:
            taken[name] += parse(has.get(name, "0")).nanos
        zone = (node.metadata.labels or {}).get(ZONE, "")
        by_zone[zone] = by_zone.get(zone, 0) + 1
    return changed(
        pool,
        most_nodes=None if pool.most_nodes is None else max(0, pool.most_nodes - len(nodes)),
        limits={name: _amount_left(text, taken[name]) for name, text in pool.limits.items()},
        least_nodes=max(0, pool.least_nodes - len(nodes)),
        least_by_zone={
            zone: n - by_zone.get(zone, 0) for zone, n in pool.least_by_zone.items() if n > by_zone.get(zone, 0)
        },
    )


def _amount_left(text: str, taken: int) -> str:
    return str(Quantity(max(0, parse(text).nanos - taken), parse(text).notation)) if taken else text


def read_price(given: object) -> int:
    """A price as somebody wrote it, in 10⁻⁹ of the currency. Raises `PriceError`."""
    if isinstance(given, bool) or not isinstance(given, int | float | str):
        raise PriceError(f"a price is expected, not {given!r}")
    try:
        amount = Decimal(repr(given) if isinstance(given, float) else str(given).strip())
    except InvalidOperation:
        raise PriceError(f"{given!r} is not a number") from None
    if not amount.is_finite():
        raise PriceError(f"{given!r} is not a number")
    if amount < 0:
        raise PriceError(f"{given} is negative")
    if amount > _MOST_PRICE:
        raise PriceError(f"{given} is more than {_MOST_PRICE:,} an hour")
    return int((amount * NANOS).to_integral_value())


def price_text(nanos: int) -> str:
    """`0.2016`: as short as it can be written exactly."""
    text = f"{nanos // NANOS}.{nanos % NANOS:09d}".rstrip("0")
    return f"{text}0" if text.endswith(".") else text


def _shape_record(shape: Shape) -> dict[str, Any]:
    record: dict[str, Any] = {"name": shape.name, "allocatable": dict(shape.allocatable)}
    if dict(shape.capacity) != dict(shape.allocatable):
        record["capacity"] = dict(shape.capacity)
    if shape.labels:
        record["labels"] = dict(shape.labels)
    if shape.taints:
        record["taints"] = [_taint_record(taint) for taint in shape.taints]
    if shape.volume_limits:
        record["volumeLimits"] = dict(shape.volume_limits)
    if shape.devices:
        record["devices"] = [msgspec.to_builtins(spec) for spec in shape.devices]
    if shape.offers:
        record["offers"] = [_offer_record(offer) for offer in shape.offers]
    return record


def _offer_record(offer: MachineOffer) -> dict[str, Any]:
    record: dict[str, Any] = {}
    if offer.zone:
        record["zone"] = offer.zone
    if offer.capacity_type:
        record["capacityType"] = offer.capacity_type
    if offer.price is not None:
        record["price"] = price_text(offer.price)
    if offer.available is not None:
        record["available"] = offer.available
    return record


def _pool_record(pool: Pool) -> dict[str, Any]:
    record: dict[str, Any] = {"name": pool.name}
    if pool.labels:
        record["labels"] = dict(pool.labels)
    if pool.taints:
        record["taints"] = [_taint_record(taint) for taint in pool.taints]
    if pool.requirements:
        record["requirements"] = [one.to_dict() for one in pool.requirements]
    limits: dict[str, Any] = dict(pool.limits)
    if pool.most_nodes is not None:
        limits["nodes"] = pool.most_nodes
    if limits:
        record["limits"] = limits
    if pool.least_nodes or pool.least_by_zone:
        record["min"] = dict(pool.least_by_zone) or pool.least_nodes
    if pool.weight:
        record["weight"] = pool.weight
    if pool.is_static:
        record["static"] = True
    if pool.variant:
        record["variant"] = pool.variant
    if pool.disruption is not None:
        record["disruption"] = pool.disruption.to_dict()
    return record


def _taint_record(taint: Taint) -> dict[str, str]:
    return {"key": taint.key, **({"value": taint.value} if taint.value else {}), "effect": taint.effect}


def render_catalogue(catalogue: Catalogue) -> str:
    n_offers = sum(1 for _ in catalogue.options())
    priced = [option.offer.price for option in catalogue.options() if option.offer.price is not None]
    span = f", {price_text(min(priced))} to {price_text(max(priced))} {catalogue.currency} an hour" if priced else ""
    unpriced = n_offers - len(priced)
    missing = f"; {counted(unpriced, 'offer')} without a price" if unpriced else ""
    header = ["SHAPE", "CPU", "MEMORY", "PODS", "OTHER", "ZONES", "PRICE"]
    shapes = sorted(catalogue.shapes, key=lambda shape: (_cheapest(shape) is None, _cheapest(shape) or 0, shape.name))
    lines = table(header, [_row(shape) for shape in shapes], indent=0)
    return "\n".join([f"{counted(len(shapes), 'shape')}, {counted(n_offers, 'offer')}{span}{missing}", "", *lines])


def _cheapest(shape: Shape) -> int | None:
    return min((offer.price for offer in shape.offers if offer.price is not None), default=None)


def _row(shape: Shape) -> list[str]:
    units = node_units(dict(shape.allocatable), "allocatable")
    other = [f"{name}={n}" for name, n in units.items() if "/" in name and n]
    zones = sorted({offer.zone for offer in shape.offers if offer.zone})
    price = _cheapest(shape)
    amounts = [readable(CPU, units.get(CPU, 0)), readable(MEMORY, units.get(MEMORY, 0)), str(units.get(PODS, 0))]
    cost = "unknown" if price is None else price_text(price)
    return [shape.name, *amounts, ",".join(other) or "-", ",".join(zones) or "-", cost]


class NodePrices:
    """An hour of each node, in 10⁻⁹ of the currency. Where nothing says what any node costs, each costs 1: then costs
    are numbers of nodes."""

    def __init__(self, nodes: list[Node], catalogue: Catalogue | None) -> None:
        """Raises CatalogueError if a catalogue has no prices, or a node says nonsense."""
        self._offers = {} if catalogue is None else _offers(catalogue)
        if catalogue is not None and not self._offers:
            raise CatalogueError(catalogue.source, "", "no offer has a price")
        known = {node.name: self._of(node) for node in nodes}
        self.are_counted = all(price is None for price in known.values())
        """Costs are numbers of nodes."""
        self.currency = "" if self.are_counted else "USD" if catalogue is None else catalogue.currency
        self.unknown = [] if self.are_counted else sorted(name for name, price in known.items() if price is None)

    def of(self, node: Node) -> int:
        """0 for a node about which nothing is said while others have a price."""
        return NANOS if self.are_counted else self._of(node) or 0

    def _of(self, node: Node) -> int | None:
        labels = node.metadata.labels or {}
        said = (node.metadata.annotations or {}).get(PRICE) or labels.get(PRICE)
        if said is not None:
            try:
                return read_price(said)
            except PriceError as error:
                raise CatalogueError("", f"node {node.name}: {PRICE}", str(error)) from None
        kind, zone, capacity_type = (labels.get(key, "") for key in (INSTANCE_TYPE, ZONE, CAPACITY_TYPE))
        asked = ((kind, zone, capacity_type), (kind, "", capacity_type), (kind, zone, ""), (kind, "", ""))
        return next((self._offers[key] for key in asked if key in self._offers), None)


def _offers(catalogue: Catalogue) -> dict[tuple[str, str, str], int]:
    """By instance type, zone and capacity type; also by type alone, the dearest, for nodes that do not say more."""
    found: dict[tuple[str, str, str], int] = {}
    for shape in catalogue.shapes:
        for offer in shape.offers:
            if offer.price is not None:
                found[shape.name, offer.zone, offer.capacity_type] = offer.price
    for (name, zone, capacity_type), price in list(found.items()):
        for key in ((name, "", capacity_type), (name, zone, ""), (name, "", "")):
            if key != (name, zone, capacity_type):
                found[key] = max(found.get(key, 0), price)
    return found


def money(amount: int, currency: str) -> str:
    """An amount of 10⁻⁹ as people read it; without a currency, a number of nodes."""
    if not currency:
        count = amount // NANOS
        return f"{count} node{'' if abs(count) == 1 else 's'}"
    return f"{amount / NANOS:,.2f} {currency}/h"
