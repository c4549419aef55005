"""Reads catalogues, told apart by their content: our own kind Catalogue, Karpenter's instance types for KWOK, lists of
types with prices, and manifests of nodes; and price lists as CSV.

Whatever is wrong is a `CatalogueError` of one line that names the file, the shape and the field. Where a list says what
a machine has, what a kubelet keeps for the system is taken off, by the published formulas of the clouds (`reserved`).
Amounts are milli-cpus and bytes. The eviction threshold of 100 MiB counts for each of them: kubelets evict pods before
that is used, so allocatable leaves it out.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace as changed
from typing import Any

import msgspec
import yaml

from kubesched.k8s.loaded_cluster import MOST_BYTES, InputError, read_file
from kubesched.k8s.model.core import Node, Taint
from kubesched.k8s.model.kubernetes_yaml import in_one_line, load_documents
from kubesched.k8s.model.manifests import KINDS, ManifestError, from_dicts
from kubesched.k8s.model.quantity import Notation, QuantityError, from_int, from_milli, parse
from kubesched.k8s.model.requests import CPU, MEMORY, PODS
from kubesched.k8s.model.resource import ResourceSliceSpec
from kubesched.k8s.model.selectors import Requirement, SelectorError, label_key_errors, label_value_errors, requirement
from kubesched.planning.catalogue import (
    CAPACITY_TYPE,
    CATALOGUE_VERSION,
    INSTANCE_TYPE,
    PRICE,
    ZONE,
    Catalogue,
    CatalogueError,
    MachineOffer,
    Pool,
    PriceError,
    Shape,
    read_price,
)
from kubesched.planning.new_nodes import HOSTNAME

DEFAULT_PODS = 110
_KWOK_RESERVED = (100, 10 << 20)
"""Milli-cpus and bytes that Karpenter's provider for KWOK keeps from each node."""
_NODES = "nodes"
_GZIP = b"\x1f\x8b"
_PASSING_TAINTS = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "karpenter.sh/unregistered")
_TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def read_catalogue(filename: str) -> Catalogue:
    """The catalogue in a file, compressed or not. Raises `InputError` and `CatalogueError`."""
    data = read_file(filename)
    return catalogue_in(_unpacked(data, filename) if data.startswith(_GZIP) else data, filename)


def _unpacked(data: bytes, source: str) -> bytes:
    try:
        found = gzip.GzipFile(fileobj=io.BytesIO(data)).read(MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error) as problem:
        raise InputError(f"{source}: not a gzip file: {problem}") from None
    if len(found) > MOST_BYTES:
        raise InputError(f"{source}: larger than {MOST_BYTES >> 20} MiB")
    return found


def catalogue_in(data: bytes, source: str) -> Catalogue:
    if not data.strip():
        raise InputError(f"{source}: the file is empty")
    try:
        documents: list[Any] = [msgspec.json.decode(data)]
    except msgspec.DecodeError:
        try:
            documents = [document for document in load_documents(data) if document is not None]
        except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as problem:
            raise InputError(f"{source}: neither JSON nor YAML: {in_one_line(problem)}") from None
    return catalogue_from(documents[0] if len(documents) == 1 else documents, source)


def catalogue_from(document: Any, source: str = "") -> Catalogue:
    """The catalogue that a document is, whichever of the forms it has."""
    items = document if isinstance(document, list) else [document]
    first = items[0] if items else None
    if isinstance(document, Mapping) and document.get("kind") == "Catalogue":
        found = _own(document, source)
    elif isinstance(document, Mapping) and isinstance(document.get("types"), list):
        found = _priced_types(document, source)
    elif isinstance(first, Mapping) and "offerings" in first:
        found = _kwok(items, source)
    elif isinstance(first, Mapping) and first.get("kind") in ("Node", "NodeList", "List"):
        found = from_nodes(_nodes_in(items, source), source)
    else:
        forms = "kind Catalogue, Karpenter's instance_types.json, a list of types, and Node manifests"
        raise CatalogueError(source, "", f"not a catalogue; what is read is {forms}")
    if not found.shapes:
        raise CatalogueError(source, "", "no shape in it")
    names: set[str] = set()
    for shape in found.shapes:
        if shape.name in names:
            raise CatalogueError(source, f"shape {shape.name}", "name: there are two of this name")
        names.add(shape.name)
    return found


# -- our own kind ------------------------------------------------------------------------------------------------------


class _Written(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """Fields that nobody knows are refused: a misspelt price would otherwise be no price."""


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


class _PoolEntry(_Written):
    name: str
    labels: dict[str, str] = {}
    taints: list[_TaintEntry] = []
    requirements: list[_RequirementEntry] = []
    limits: dict[str, int | float | str] = {}
    min: int | dict[str, int] = 0


class _CatalogueEntry(_Written, kw_only=True):
    api_version: str = CATALOGUE_VERSION
    kind: str = "Catalogue"
    metadata: dict[str, Any] = {}
    currency: str = "USD"
    reserve: str = "none"
    shapes: list[_ShapeEntry]
    pools: list[_PoolEntry] = []


def _own(document: Mapping[str, Any], source: str) -> Catalogue:
    try:
        entry = msgspec.convert(document, _CatalogueEntry)
    except msgspec.ValidationError as problem:
        raise CatalogueError(source, *_place_of(str(problem), document)) from None
    if entry.api_version != CATALOGUE_VERSION:
        raise CatalogueError(source, "", f"apiVersion: {CATALOGUE_VERSION} is expected, not {entry.api_version}")
    if entry.reserve not in RESERVES:
        raise CatalogueError(source, "", f"reserve: one of {', '.join(RESERVES)} is expected, not {entry.reserve}")
    shapes = tuple(_own_shape(one, entry.reserve, source) for one in entry.shapes)
    return Catalogue(shapes, tuple(_own_pool(one, source) for one in entry.pools), entry.currency, source)


def _place_of(problem: str, document: Mapping[str, Any]) -> tuple[str, str]:
    """`$.shapes[3].offers[0].price` of a validation error, as the name of the shape and the field in it."""
    text, _, path = problem.partition(" - at `$.")
    path = path.rstrip("`")
    for field in ("shapes", "pools"):
        number, bracket, rest = path.removeprefix(f"{field}[").partition("]")
        if path.startswith(field) and bracket and number.isdigit():
            named = document[field][int(number)]
            name = named.get("name", number) if isinstance(named, Mapping) else number
            return f"{field[:-1]} {name}", f"{rest.lstrip('.')}: {text}" if rest else text
    return "", f"{path}: {text}" if path else text


def _own_shape(entry: _ShapeEntry, reserve: str, source: str) -> Shape:
    where = f"shape {entry.name}"
    if not entry.name:
        raise CatalogueError(source, "shape", "name: must not be empty")
    if entry.capacity is None and entry.allocatable is None:
        raise CatalogueError(source, where, "capacity: missing, and so is allocatable")
    capacity = _amounts(entry.capacity or entry.allocatable or {}, source, where, "capacity")
    if entry.allocatable is not None:
        allocatable = _amounts(entry.allocatable, source, where, "allocatable")
    else:
        allocatable = _after_reserve(capacity, reserve, source, where)
    _check_labels(entry.labels, source, where)
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
        _taints(entry.taints, source, where),
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
    price = None if entry.price is None else _price(entry.price, source, where, f"{field}.price")
    _check_labels({ZONE: entry.zone, CAPACITY_TYPE: entry.capacity_type}, source, where)
    return MachineOffer(entry.zone, entry.capacity_type, price, entry.available)


def _own_pool(entry: _PoolEntry, source: str) -> Pool:
    where = f"pool {entry.name}"
    _check_labels(entry.labels, source, where)
    requirements: list[Requirement] = []
    for i, one in enumerate(entry.requirements):
        try:
            requirements.append(requirement(one.key, one.operator, one.values))
        except SelectorError as problem:
            raise CatalogueError(source, where, f"requirements[{i}]: {problem}") from None
    limits: dict[str, str] = {}
    for name, given in entry.limits.items():
        try:
            most = parse(given)
        except QuantityError as problem:
            raise CatalogueError(source, where, f"limits.{name}: {problem}") from None
        if most.nanos < 0:
            raise CatalogueError(source, where, f"limits.{name}: {given} is negative")
        limits[name] = str(given)
    most_nodes = parse(limits.pop(_NODES)).value if _NODES in limits else None
    by_zone = entry.min if isinstance(entry.min, dict) else {}
    least = entry.min if isinstance(entry.min, int) else 0
    for zone, number in (*by_zone.items(), ("", least)):
        if number < 0:
            raise CatalogueError(source, where, f"min{'.' if zone else ''}{zone}: {number} is negative")
    taints = _taints(entry.taints, source, where)
    return Pool(entry.name, entry.labels, taints, tuple(requirements), most_nodes, limits, least, by_zone)


def _taints(entries: Sequence[_TaintEntry], source: str, where: str) -> tuple[Taint, ...]:
    for i, one in enumerate(entries):
        if one.effect not in _TAINT_EFFECTS:
            raise CatalogueError(
                source, where, f"taints[{i}].effect: one of {', '.join(_TAINT_EFFECTS)} is expected, not {one.effect}"
            )
    return tuple(Taint(one.key, one.effect, one.value) for one in entries)


def _check_labels(labels: Mapping[str, str], source: str, where: str) -> None:
    for key, value in labels.items():
        for problem in (*label_key_errors(key), *label_value_errors(value)):
            raise CatalogueError(source, where, f"labels.{key}: {problem}")


def _amounts(given: Mapping[str, int | float | str], source: str, where: str, field: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, amount in given.items():
        try:
            read = parse(amount)
        except QuantityError as problem:
            raise CatalogueError(source, where, f"{field}.{name}: {problem}") from None
        if read.nanos < 0:
            raise CatalogueError(source, where, f"{field}.{name}: {amount} is negative")
        found[name] = str(amount)
    for name in (CPU, MEMORY):
        if name not in found:
            raise CatalogueError(source, where, f"{field}.{name}: missing")
    found.setdefault(PODS, str(DEFAULT_PODS))
    return found


def _price(given: object, source: str, where: str, field: str) -> int:
    try:
        return read_price(given)
    except PriceError as problem:
        raise CatalogueError(source, where, f"{field}: {problem}") from None


def _after_reserve(capacity: dict[str, str], reserve: str, source: str, where: str) -> dict[str, str]:
    cpu, memory = parse(capacity[CPU]).milli_value, parse(capacity[MEMORY]).value
    return _without(capacity, reserved(reserve, cpu, memory, parse(capacity[PODS]).value), source, where)


def _without(capacity: Mapping[str, str], kept: tuple[int, int], source: str, where: str) -> dict[str, str]:
    if kept == (0, 0):
        return dict(capacity)
    cpu = parse(capacity[CPU]).milli_value - kept[0]
    memory = parse(capacity[MEMORY]).value - kept[1]
    if cpu < 0 or memory < 0:
        raise CatalogueError(source, where, "capacity: less than what is reserved of it for the system")
    return {**capacity, CPU: str(from_milli(cpu)), MEMORY: str(from_int(memory, Notation.BINARY_SI))}


# -- other people's files ----------------------------------------------------------------------------------------------


def _kwok(items: Sequence[Any], source: str) -> Catalogue:
    """Karpenter's instance types for KWOK."""
    shapes = []
    for i, item in enumerate(items):
        name = str(item.get("name") or "") if isinstance(item, Mapping) else ""
        if not name:
            raise CatalogueError(source, f"shape {i}", "name: missing")
        where = f"shape {name}"
        capacity = _amounts(_mapping(item, "resources", source, where), source, where, "resources")
        systems = item.get("operatingSystems") or ["linux"]
        labels = {"kubernetes.io/os": "linux" if "linux" in systems else str(systems[0])}
        if item.get("architecture"):
            labels["kubernetes.io/arch"] = str(item["architecture"])
        offers = [_kwok_offer(one, source, where, f"offerings[{k}]") for k, one in enumerate(item["offerings"] or [])]
        allocatable = _without(capacity, _KWOK_RESERVED, source, where)
        shapes.append(Shape(name, allocatable, capacity, labels, offers=tuple(offers)))
    return Catalogue(tuple(shapes), source=source)


def _kwok_offer(offering: Any, source: str, where: str, field: str) -> MachineOffer:
    if not isinstance(offering, Mapping):
        raise CatalogueError(source, where, f"{field}: a mapping is expected")
    wanted: dict[str, str] = {}
    for one in offering.get("Requirements") or []:
        values = one.get("values") if isinstance(one, Mapping) else None
        if values and one.get("operator") == "In":
            wanted[str(one.get("key"))] = str(values[0])
    price = None if offering.get("Price") is None else _price(offering["Price"], source, where, f"{field}.Price")
    available = None if offering.get("Available", True) else 0
    return MachineOffer(wanted.get(ZONE, ""), wanted.get(CAPACITY_TYPE, ""), price, available)


def _priced_types(document: Mapping[str, Any], source: str) -> Catalogue:
    """A list `types` of instance types: name, price, allocatable, labels."""
    shapes = []
    for i, item in enumerate(document["types"]):
        name = str(item.get("name") or "") if isinstance(item, Mapping) else ""
        if not name:
            raise CatalogueError(source, f"shape {i}", "name: missing")
        where = f"shape {name}"
        amounts = _amounts(_mapping(item, "allocatable", source, where), source, where, "allocatable")
        labels = {str(key): str(value) for key, value in (item.get("labels") or {}).items()}
        _check_labels(labels, source, where)
        price = None if item.get("price") is None else _price(item["price"], source, where, "price")
        shapes.append(Shape(name, amounts, amounts, labels, offers=(MachineOffer(price=price),)))
    return Catalogue(
        tuple(shapes), currency=(str(document.get("currency") or "USD").split() or ["USD"])[0], source=source
    )


def _mapping(item: Mapping[str, Any], field: str, source: str, where: str) -> Mapping[str, Any]:
    found = item.get(field)
    if not isinstance(found, Mapping):
        raise CatalogueError(source, where, f"{field}: missing")
    return found


def _nodes_in(items: Sequence[Any], source: str) -> list[Node]:
    try:
        found = from_dicts(items, source, kinds=KINDS)
    except ManifestError as problem:
        raise InputError(str(problem)) from None
    return [item for item in found.objects if isinstance(item, Node)]


def from_nodes(nodes: Iterable[Node], source: str = "") -> Catalogue:
    """One shape for nodes that are alike but for name and zone; each zone that has such a node is an offer. The price
    is what a label or annotation says, if one does."""
    groups: dict[tuple[Any, ...], dict[str, MachineOffer]] = {}
    for node in nodes:
        where = f"Node {node.name}"
        labels = {k: v for k, v in node.labels.items() if k not in (HOSTNAME, ZONE, PRICE) and v != node.name}
        amounts = node.status.allocatable or node.status.capacity
        if not amounts:
            raise CatalogueError(source, where, "status.allocatable: missing")
        allocatable = _amounts(amounts, source, where, "status.allocatable")
        taints = tuple(one for one in node.spec.taints or () if not one.key.startswith(_PASSING_TAINTS))
        said = (node.metadata.annotations or {}).get(PRICE) or node.labels.get(PRICE)
        price = None if said is None else _price(said, source, where, PRICE)
        zone = node.labels.get(ZONE, "")
        name = node.labels.get(INSTANCE_TYPE) or node.name.rstrip("0123456789").rstrip("-") or node.name
        key = (name, tuple(sorted(labels.items())), taints, tuple(sorted(allocatable.items())))
        groups.setdefault(key, {}).setdefault(zone, MachineOffer(zone, labels.get(CAPACITY_TYPE, ""), price))
    shapes: list[Shape] = []
    taken: dict[str, int] = {}
    for (name, labels_of, taints, amounts_of), offers in groups.items():
        taken[name] = taken.get(name, 0) + 1
        own = name if taken[name] == 1 else f"{name}-{taken[name]}"
        allocatable = dict(amounts_of)
        shapes.append(Shape(own, allocatable, allocatable, dict(labels_of), taints, offers=tuple(offers.values())))
    return Catalogue(tuple(shapes), source=source)


# -- prices ------------------------------------------------------------------------------------------------------------

_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "shape": ("instanceType", "InstanceType"),
    "price": ("hourly", "MarketPriceHourly"),
    "zone": ("zone",),
    "capacity type": ("capacityType",),
}


def with_prices(catalogue: Catalogue, filename: str) -> Catalogue:
    """The catalogue with the prices of a CSV file: `instanceType,zone,capacityType,hourly`, where an empty zone or
    capacity type stands for all; or Kubecost's, with `InstanceType` and `MarketPriceHourly`."""
    text = read_file(filename).decode("utf-8-sig", "replace")
    reader = csv.DictReader(io.StringIO(text))
    columns = {role: next((n for n in names if n in (reader.fieldnames or ())), "") for role, names in _COLUMNS.items()}
    for role in ("shape", "price"):
        if not columns[role]:
            raise CatalogueError(filename, "line 1", f"no column {' or '.join(_COLUMNS[role])}")
    known = {shape.name for shape in catalogue.shapes}
    rows: list[tuple[str, str, str, int]] = []
    for row in reader:
        name = (row[columns["shape"]] or "").strip()
        if name in known:
            price = _price(row[columns["price"]] or "", filename, f"line {reader.line_num}", columns["price"])
            zone = (row.get(columns["zone"]) or "").strip()
            rows.append((name, zone, (row.get(columns["capacity type"]) or "").strip(), price))
    if not rows:
        raise CatalogueError(filename, "", "no price of any shape in the catalogue")
    return changed(catalogue, shapes=tuple(_priced(shape, rows) for shape in catalogue.shapes))


def _priced(shape: Shape, rows: Iterable[tuple[str, str, str, int]]) -> Shape:
    of_shape = [row for row in rows if row[0] == shape.name]
    offers = []
    for offer in shape.offers or (MachineOffer(),):
        for _, zone, capacity_type, price in of_shape:
            if zone in ("", offer.zone) and capacity_type in ("", offer.capacity_type):
                offer = changed(offer, price=price)
        offers.append(offer)
    return changed(shape, offers=tuple(offers))


def together(catalogues: Sequence[Catalogue]) -> Catalogue:
    """Several catalogues as one; they must agree in their currency, and no name may be in two of them."""
    first = catalogues[0]
    shapes: dict[str, Shape] = {}
    for one in catalogues:
        if one.currency != first.currency:
            raise CatalogueError(one.source, "", f"currency: {one.currency}, while {first.source} has {first.currency}")
        for shape in one.shapes:
            if shape.name in shapes:
                raise CatalogueError(one.source, f"shape {shape.name}", "name: another catalogue has this shape too")
            shapes[shape.name] = shape
    pools = tuple(pool for one in catalogues for pool in one.pools)
    return Catalogue(tuple(shapes.values()), pools, first.currency, ", ".join(one.source for one in catalogues))


_MI = 1 << 20
_GI = 1 << 30
_EVICTION_BYTES = 100 * _MI

_MEMORY_TIERS = ((4 * _GI, 25), (4 * _GI, 20), (8 * _GI, 10), (112 * _GI, 6))
_MEMORY_REST_PERCENT = 2
_CPU_TIERS = ((1000, 600), (1000, 100), (2000, 50))
"""So many milli-cpus, of which this many ten-thousandths are kept."""
_CPU_REST = 25
_AKS_CPU = ((1, 60), (2, 100), (4, 140), (8, 180), (16, 260), (32, 420), (64, 740))


def _tiered_cpu(cpu_milli: int) -> int:
    kept = 0
    for width, share in _CPU_TIERS:
        kept += min(cpu_milli, width) * share
        cpu_milli = max(0, cpu_milli - width)
    return (kept + cpu_milli * _CPU_REST) // 10_000


def _gke(cpu_milli: int, memory_bytes: int, _pods: int) -> tuple[int, int]:
    if memory_bytes < _GI:
        return _tiered_cpu(cpu_milli), 255 * _MI
    kept, rest = 0, memory_bytes
    for width, percent in _MEMORY_TIERS:
        kept += min(rest, width) * percent
        rest = max(0, rest - width)
    return _tiered_cpu(cpu_milli), (kept + rest * _MEMORY_REST_PERCENT) // 100


def _eks(cpu_milli: int, _memory_bytes: int, pods: int) -> tuple[int, int]:
    return _tiered_cpu(cpu_milli), (255 + 11 * pods) * _MI


def _aks(cpu_milli: int, memory_bytes: int, pods: int) -> tuple[int, int]:
    cores = cpu_milli / 1000
    cpu = next((kept for most, kept in _AKS_CPU if cores <= most), _AKS_CPU[-1][1])
    return cpu, min((20 * pods + 50) * 1_000_000, memory_bytes // 4)


_FORMULAS: Mapping[str, Callable[[int, int, int], tuple[int, int]]] = {"gke": _gke, "eks": _eks, "aks": _aks}
RESERVES = ("none", *_FORMULAS)
"""What a catalogue may name as its `reserve`."""


def reserved(formula: str, cpu_milli: int, memory_bytes: int, pods: int) -> tuple[int, int]:
    """Milli-cpus and bytes that are not allocatable on a machine of this size."""
    if formula == "none":
        return 0, 0
    cpu, memory = _FORMULAS[formula](cpu_milli, memory_bytes, pods)
    return cpu, memory + _EVICTION_BYTES
