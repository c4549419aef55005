"""Our own kind of catalogue, `kubesched.dev/v1alpha1 Catalogue`: shapes, their offers, pools, overlays.

Fields that nobody knows are refused: a misspelt price would otherwise be no price.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from kubesched.k8s.model.autoscaling import NodePoolDisruption
from kubesched.k8s.model.core import Taint
from kubesched.k8s.model.quantity import Notation, from_int, from_milli, parse
from kubesched.k8s.model.requests import CPU, MEMORY, PODS
from kubesched.k8s.model.resource import ResourceSliceSpec
from kubesched.planning.catalogue import (
    CAPACITY_TYPE,
    CATALOGUE_VERSION,
    ZONE,
    Catalogue,
    CatalogueError,
    MachineOffer,
    Pool,
    Shape,
)
from kubesched.planning.catalogue_checks import (
    AskedRequirement,
    check_labels,
    checked_change,
    checked_extra_capacity,
    checked_limits,
    checked_price,
    checked_requirements,
    checked_taints,
    machine_amounts,
)
from kubesched.planning.node_pool_budgets import PoolDisruption, checked_disruption
from kubesched.planning.overlays import Overlay
from kubesched.planning.reserves import ReserveError, SystemReserve, read_reserve


class _Written(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    pass


class _OfferEntry(_Written):
    zone: str = ""
    capacity_type: str = ""
    price: int | float | str | None = None
    available: int | None = None


class _TaintEntry(_Written):
    key: str
    effect: str
    value: str = ""


class _ShapeEntry(_Written):
    name: str
    capacity: dict[str, int | float | str] | None = None
    allocatable: dict[str, int | float | str] | None = None
    labels: dict[str, str] = {}
    taints: list[_TaintEntry] = []
    volume_limits: dict[str, int] = {}
    devices: list[ResourceSliceSpec] = []
    offers: list[_OfferEntry] = []
    price: int | float | str | None = None


class _RequirementEntry(_Written):
    key: str
    operator: str
    values: list[str] | None = None
    min_values: int | None = None


class _OverlayEntry(_Written):
    name: str
    requirements: list[_RequirementEntry] = []
    price: int | float | str | None = None
    price_adjustment: str | None = None
    capacity: dict[str, int | float | str] = {}
    weight: int = 0


class _BudgetEntry(_Written):
    nodes: str | int = "10%"
    reasons: list[str] | None = None
    schedule: str | None = None
    duration: str | None = None


class _DisruptionEntry(_Written):
    consolidation_policy: str = ""
    consolidate_after: str | None = None
    budgets: list[_BudgetEntry] | None = None


class _PoolEntry(_Written):
    name: str
    labels: dict[str, str] = {}
    taints: list[_TaintEntry] = []
    requirements: list[_RequirementEntry] = []
    limits: dict[str, int | float | str] = {}
    min: int | dict[str, int] = 0
    weight: int = 0
    static: bool = False
    variant: str = ""
    disruption: _DisruptionEntry | None = None


class _CatalogueEntry(_Written, kw_only=True):
    api_version: str = CATALOGUE_VERSION
    kind: str = "Catalogue"
    metadata: dict[str, Any] = {}
    currency: str = "USD"
    reserve: Any = "none"
    shapes: list[_ShapeEntry]
    pools: list[_PoolEntry] = []
    overlays: list[_OverlayEntry] = []


def own_catalogue(document: Mapping[str, Any], source: str) -> Catalogue:
    try:
        entry = msgspec.convert(document, _CatalogueEntry)
    except msgspec.ValidationError as problem:
        raise CatalogueError(source, *_place_of(str(problem), document)) from None
    if entry.api_version != CATALOGUE_VERSION:
        raise CatalogueError(source, "", f"apiVersion: {CATALOGUE_VERSION} is expected, not {entry.api_version}")
    try:
        reserve = read_reserve(entry.reserve)
    except ReserveError as problem:
        text = str(problem)
        field = "reserve: " if isinstance(entry.reserve, str) or " " in text.partition(":")[0] else "reserve."
        raise CatalogueError(source, "", f"{field}{text}") from None
    return Catalogue(
        tuple(_own_shape(one, reserve, source) for one in entry.shapes),
        tuple(_own_pool(one, source) for one in entry.pools),
        entry.currency,
        source,
        tuple(_own_overlay(one, source) for one in entry.overlays),
    )


def _place_of(problem: str, document: Mapping[str, Any]) -> tuple[str, str]:
    """`$.shapes[3].offers[0].price` of a validation error, as the name of the shape and the field in it."""
    text, _, path = problem.partition(" - at `$.")
    path = path.rstrip("`")
    for field in ("shapes", "pools", "overlays"):
        number, bracket, rest = path.removeprefix(f"{field}[").partition("]")
        if path.startswith(field) and bracket and number.isdigit():
            named = document[field][int(number)]
            name = named.get("name", number) if isinstance(named, Mapping) else number
            return f"{field[:-1]} {name}", f"{rest.lstrip('.')}: {text}" if rest else text
    return "", f"{path}: {text}" if path else text


def _own_shape(entry: _ShapeEntry, reserve: SystemReserve, source: str) -> Shape:
    where = f"shape {entry.name}"
    if not entry.name:
        raise CatalogueError(source, "shape", "name: must not be empty")
    if entry.capacity is None and entry.allocatable is None:
        raise CatalogueError(source, where, "capacity: missing, and so is allocatable")
    capacity = machine_amounts(
        entry.capacity or entry.allocatable or {}, source, where, "capacity" if entry.capacity else "allocatable"
    )
    if entry.allocatable is not None:
        allocatable = machine_amounts(entry.allocatable, source, where, "allocatable")
    else:
        allocatable = _after_reserve(capacity, reserve, source, where)
    check_labels(entry.labels, source, where)
    for driver, most in entry.volume_limits.items():
        if most < 0:
            raise CatalogueError(source, where, f"volumeLimits.{driver}: {most} is negative")
    entries = entry.offers
    if entry.price is not None:
        if entries:
            raise CatalogueError(source, where, "price: either the shape has a price, or its offers have")
        entries = [_OfferEntry(price=entry.price)]
    return Shape(
        entry.name,
        allocatable,
        capacity,
        entry.labels,
        checked_taints(map(_taint, entry.taints), source, where),
        entry.volume_limits,
        tuple(_own_offer(one, source, where, f"offers[{i}]") for i, one in enumerate(entries)),
        devices=tuple(_own_slice(one, source, where, f"devices[{i}]") for i, one in enumerate(entry.devices)),
    )


def _own_slice(spec: ResourceSliceSpec, source: str, where: str, field: str) -> ResourceSliceSpec:
    if not spec.driver:
        raise CatalogueError(source, where, f"{field}.driver: must not be empty")
    if spec.node_name or spec.node_selector or spec.all_nodes or spec.per_device_node_selection:
        raise CatalogueError(source, where, f"{field}: devices of a machine are for its own node; name no node")
    names = [device.name for device in spec.devices or ()]
    if not names:
        raise CatalogueError(source, where, f"{field}.devices: none is there")
    if len(set(names)) < len(names):
        raise CatalogueError(source, where, f"{field}.devices: two have the same name")
    return spec


def _own_offer(entry: _OfferEntry, source: str, where: str, field: str) -> MachineOffer:
    if entry.available is not None and entry.available < 0:
        raise CatalogueError(source, where, f"{field}.available: {entry.available} is negative")
    price = None if entry.price is None else checked_price(entry.price, source, where, f"{field}.price")
    check_labels({ZONE: entry.zone, CAPACITY_TYPE: entry.capacity_type}, source, where)
    return MachineOffer(entry.zone, entry.capacity_type, price, entry.available)


def _own_pool(entry: _PoolEntry, source: str) -> Pool:
    where = f"pool {entry.name}"
    check_labels(entry.labels, source, where)
    most_nodes, limits = checked_limits(entry.limits, source, where, "limits")
    by_zone = entry.min if isinstance(entry.min, dict) else {}
    least = entry.min if isinstance(entry.min, int) else 0
    for zone, number in (*by_zone.items(), ("", least)):
        if number < 0:
            raise CatalogueError(source, where, f"min{'.' if zone else ''}{zone}: {number} is negative")
    return Pool(
        entry.name,
        entry.labels,
        checked_taints(map(_taint, entry.taints), source, where),
        checked_requirements(_asked(entry.requirements), source, where),
        most_nodes,
        limits,
        least,
        by_zone,
        _weight(entry.weight, 100, source, where),
        entry.static,
        entry.variant,
        None if entry.disruption is None else _own_disruption(entry.disruption, entry.static, source, where),
    )


def _own_disruption(entry: _DisruptionEntry, is_static: bool, source: str, where: str) -> PoolDisruption:
    given = msgspec.convert(msgspec.to_builtins(entry), NodePoolDisruption)
    return checked_disruption(given, is_static, source, where, "disruption")


def _own_overlay(entry: _OverlayEntry, source: str) -> Overlay:
    where = f"overlay {entry.name}"
    return Overlay(
        entry.name,
        checked_requirements(_asked(entry.requirements), source, where),
        checked_change(entry.price, entry.price_adjustment, source, where),
        checked_extra_capacity(entry.capacity, source, where),
        _weight(entry.weight, 10_000, source, where),
    )


def _asked(entries: Iterable[_RequirementEntry]) -> list[AskedRequirement]:
    return [(one.key, one.operator, one.values, one.min_values) for one in entries]


def _taint(entry: _TaintEntry) -> Taint:
    return Taint(entry.key, entry.effect, entry.value)


def _weight(given: int, most: int, source: str, where: str) -> int:
    if not 0 <= given <= most:
        raise CatalogueError(source, where, f"weight: {given} is not between 0 and {most}")
    return given


def _after_reserve(capacity: dict[str, str], reserve: SystemReserve, source: str, where: str) -> dict[str, str]:
    cpu, memory = parse(capacity[CPU]).milli_value, parse(capacity[MEMORY]).value
    return less_reserved(capacity, reserve.of(cpu, memory, parse(capacity[PODS]).value), source, where)


def less_reserved(capacity: Mapping[str, str], kept: tuple[int, int], source: str, where: str) -> dict[str, str]:
    """What is allocatable of the capacity."""
    if kept == (0, 0):
        return dict(capacity)
    cpu = parse(capacity[CPU]).milli_value - kept[0]
    memory = parse(capacity[MEMORY]).value - kept[1]
    if cpu < 0 or memory < 0:
        raise CatalogueError(source, where, "capacity: less than what is reserved of it for the system")
    return {**capacity, CPU: str(from_milli(cpu)), MEMORY: str(from_int(memory, Notation.BINARY_SI))}
