"""Reads catalogues, told apart by their content: our own kind Catalogue, Karpenter's instance types for KWOK, lists of
types with prices, and manifests of nodes; and price lists as CSV.

Next: `catalogue_kind` for our own kind, `catalogue_checks` for what is checked, `reserves` for what kubelets keep.
"""

from __future__ import annotations

import gzip
import io
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace as changed
from os import PathLike
from typing import Any

import msgspec
import yaml

from kubesched.k8s.csv_table import read_table
from kubesched.k8s.loaded_cluster import MOST_BYTES, InputError, read_file
from kubesched.k8s.model.autoscaling import NODE_POOL_KINDS
from kubesched.k8s.model.core import Node
from kubesched.k8s.model.kubernetes_yaml import load_documents, yaml_problem
from kubesched.k8s.model.manifests import KINDS, ManifestError, from_dicts
from kubesched.k8s.model.requests import CPU, MEMORY
from kubesched.planning.catalogue import (
    CAPACITY_TYPE,
    INSTANCE_TYPE,
    PRICE,
    ZONE,
    Catalogue,
    CatalogueError,
    MachineOffer,
    Shape,
)
from kubesched.planning.catalogue_checks import check_labels, checked_price, machine_amounts
from kubesched.planning.catalogue_kind import less_reserved, own_catalogue
from kubesched.planning.cloud_lists import cloud_list
from kubesched.planning.new_nodes import HOSTNAME
from kubesched.planning.node_pools import with_node_pools
from kubesched.simulator.loading import SourcedObject

_KWOK_RESERVED = (100, 10 << 20)
"""Milli-cpus and bytes that Karpenter's provider for KWOK keeps from each node."""
_GZIP = b"\x1f\x8b"
_PASSING_TAINTS = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "karpenter.sh/unregistered")


def read_catalogue(filename: str) -> Catalogue:
    """The catalogue in a file, compressed or not. Raises `InputError` and `CatalogueError`."""
    return catalogue_from(_document_in(filename), filename)


def _document_in(filename: str) -> Any:
    data = read_file(filename)
    return _decoded(_unpacked(data, filename) if data.startswith(_GZIP) else data, filename)


def _unpacked(data: bytes, source: str) -> bytes:
    try:
        found = gzip.GzipFile(fileobj=io.BytesIO(data)).read(MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error) as problem:
        raise InputError(f"{source}: not a gzip file: {problem}") from None
    if len(found) > MOST_BYTES:
        raise InputError(f"{source}: larger than {MOST_BYTES >> 20} MiB")
    return found


def catalogue_in(data: bytes, source: str) -> Catalogue:
    return catalogue_from(_decoded(data, source), source)


def _decoded(data: bytes, source: str) -> Any:
    """One document, or a list of several."""
    if not data.strip():
        raise InputError(f"{source}: the file is empty")
    try:
        documents: list[Any] = [msgspec.json.decode(data)]
    except msgspec.DecodeError:
        try:
            documents = [document for document in load_documents(data) if document is not None]
        except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as problem:
            raise InputError(f"{source}: {yaml_problem(problem, data, language='YAML or JSON')}") from None
    return documents[0] if len(documents) == 1 else documents


def catalogue_from(document: Any, source: str = "") -> Catalogue:
    """The catalogue that a document is, whichever of the forms it has, with the NodePools beside it."""
    found, makers = _parts_of(document, source)
    if found is None:
        kind = type(makers[0].item).__name__
        raise CatalogueError(source, "", f"no machine in it; a {kind} belongs beside a list of machines")
    return with_node_pools(found, makers)


GivenCatalogue = Catalogue | str | PathLike[str] | Mapping[str, Any]


def catalogue(*sources: GivenCatalogue, prices: str | PathLike[str] | None = None) -> Catalogue:
    """Machines and what they cost, of files in any known form, documents, or catalogues that were read before: several
    are one catalogue. `prices` is a CSV file, as for `--prices`. `catalogue("aws.json")["m7i.xlarge"]` is a shape, and
    its `node(zone="a")` a node as it would be bought."""
    files = [str(one) for one in sources if not isinstance(one, Catalogue | Mapping)]
    if len(files) == len(sources):
        if not files:
            raise CatalogueError("", "", "a file or a document is needed")
        return gathered(files, None if prices is None else str(prices))
    found = together([one if isinstance(one, Catalogue) else _read(one) for one in sources])
    return found if prices is None else with_prices(found, str(prices))


def _read(source: str | PathLike[str] | Mapping[str, Any]) -> Catalogue:
    return catalogue_from(source) if isinstance(source, Mapping) else read_catalogue(str(source))


def gathered(filenames: Sequence[str], prices: str | None = None, makers: Sequence[SourcedObject] = ()) -> Catalogue:
    """Several files as one catalogue, with prices, and with the NodePools and NodeOverlays in any of them and among
    `makers`."""
    parts = [_parts_of(_document_in(filename), filename) for filename in filenames]
    catalogues = [found for found, _ in parts if found is not None]
    if not catalogues:
        raise CatalogueError(", ".join(filenames), "", "no machine in it; NodePools belong beside a list of machines")
    found = together(catalogues)
    if prices is not None:
        found = with_prices(found, prices)
    return with_node_pools(found, [*makers, *(one for _, given in parts for one in given)])


def _parts_of(document: Any, source: str) -> tuple[Catalogue | None, list[SourcedObject]]:
    """The machines, if there are any, and Karpenter's objects."""
    items = _listed(document)
    of_karpenter = [item for item in items if _is_of_karpenter(item)]
    if not of_karpenter:
        return _machines(document, source), []
    try:
        given = from_dicts(of_karpenter, source, kinds=NODE_POOL_KINDS)
    except ManifestError as problem:
        raise InputError(str(problem)) from None
    makers = [SourcedObject(item, source) for item in given.objects]
    rest = [item for item in items if not _is_of_karpenter(item)]
    if not rest:
        return None, makers
    return _machines(rest[0] if len(rest) == 1 else rest, source), makers


def _listed(document: Any) -> list[Any]:
    """The objects of a List, or of several documents."""
    found: list[Any] = []
    for item in document if isinstance(document, list) else [document]:
        inside = item.get("items") if isinstance(item, Mapping) else None
        kind = item.get("kind") if isinstance(item, Mapping) else None
        if isinstance(inside, list) and isinstance(kind, str) and kind.endswith("List"):
            about = {"apiVersion": item.get("apiVersion"), "kind": kind.removesuffix("List")} if kind != "List" else {}
            found += [{**about, **one} if isinstance(one, Mapping) else one for one in inside]
        else:
            found.append(item)
    return found


def _is_of_karpenter(item: Any) -> bool:
    if not isinstance(item, Mapping):
        return False
    group = str(item.get("apiVersion")).partition("/")[0]
    return (group, str(item.get("kind"))) in NODE_POOL_KINDS


def _machines(document: Any, source: str) -> Catalogue:
    items = document if isinstance(document, list) else [document]
    first = items[0] if items else None
    if isinstance(document, Mapping) and document.get("kind") == "Catalogue":
        found = own_catalogue(document, source)
    elif isinstance(document, Mapping) and isinstance(document.get("types"), list):
        found = _priced_types(document, source)
    elif (listed := cloud_list(document, source)) is not None:
        found = listed
    elif isinstance(first, Mapping) and "offerings" in first:
        found = _kwok(items, source)
    elif isinstance(first, Mapping) and first.get("kind") in ("Node", "NodeList", "List"):
        found = from_nodes(_nodes_in(items, source), source)
    else:
        forms = "kind Catalogue, Karpenter's instance_types.json, what aws, gcloud and az list, and Node manifests"
        raise CatalogueError(source, "", f"not a catalogue; what is read is {forms}")
    if not found.shapes:
        raise CatalogueError(source, "", "no shape in it")
    names: set[str] = set()
    for shape in found.shapes:
        if shape.name in names:
            raise CatalogueError(source, f"shape {shape.name}", "name: there are two of this name")
        names.add(shape.name)
    return found


# -- other people's files ----------------------------------------------------------------------------------------------


def _kwok(items: Sequence[Any], source: str) -> Catalogue:
    """Karpenter's instance types for KWOK."""
    shapes = []
    for i, item in enumerate(items):
        name = str(item.get("name") or "") if isinstance(item, Mapping) else ""
        if not name:
            raise CatalogueError(source, f"shape {i}", "name: missing")
        where = f"shape {name}"
        capacity = machine_amounts(_mapping(item, "resources", source, where), source, where, "resources")
        systems = item.get("operatingSystems") or ["linux"]
        labels = {"kubernetes.io/os": "linux" if "linux" in systems else str(systems[0])}
        if item.get("architecture"):
            labels["kubernetes.io/arch"] = str(item["architecture"])
        labels |= _kwok_labels(name, capacity)
        offers = [_kwok_offer(one, source, where, f"offerings[{k}]") for k, one in enumerate(item["offerings"] or [])]
        allocatable = less_reserved(capacity, _KWOK_RESERVED, source, where)
        shapes.append(Shape(name, allocatable, capacity, labels, offers=tuple(offers)))
    return Catalogue(tuple(shapes), source=source)


_KWOK_LABELS = "karpenter.kwok.sh/instance-"
_KWOK_SIZE = re.compile(r"\w+\.(nano|micro|small|medium|large|\d*xlarge|metal)")


def _kwok_labels(name: str, capacity: Mapping[str, str]) -> dict[str, str]:
    """As Karpenter's provider sets them: the family is what comes before the first `.` or `-`, or the first letter."""
    size = _KWOK_SIZE.fullmatch(name)
    parts = re.split(r"[.-]", name, maxsplit=1)
    values = {
        "family": parts[0] if len(parts) > 1 else name[0],
        "size": size[1] if size is not None else capacity[CPU],
        "cpu": capacity[CPU],
        "memory": capacity[MEMORY],
    }
    return {_KWOK_LABELS + key: value for key, value in values.items() if value}


def _kwok_offer(offering: Any, source: str, where: str, field: str) -> MachineOffer:
    if not isinstance(offering, Mapping):
        raise CatalogueError(source, where, f"{field}: a mapping is expected")
    wanted: dict[str, str] = {}
    for one in offering.get("Requirements") or []:
        values = one.get("values") if isinstance(one, Mapping) else None
        if values and one.get("operator") == "In":
            wanted[str(one.get("key"))] = str(values[0])
    price = None if offering.get("Price") is None else checked_price(offering["Price"], source, where, f"{field}.Price")
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
        amounts = machine_amounts(_mapping(item, "allocatable", source, where), source, where, "allocatable")
        labels = {str(key): str(value) for key, value in (item.get("labels") or {}).items()}
        check_labels(labels, source, where)
        price = None if item.get("price") is None else checked_price(item["price"], source, where, "price")
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
        allocatable = machine_amounts(amounts, source, where, "status.allocatable")
        taints = tuple(one for one in node.spec.taints or () if not one.key.startswith(_PASSING_TAINTS))
        said = (node.metadata.annotations or {}).get(PRICE) or node.labels.get(PRICE)
        price = None if said is None else checked_price(said, source, where, PRICE)
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

_PriceRow = tuple[str, str, str, int]
"""Shape, zone, capacity type, price."""
_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "shape": ("instanceType", "InstanceType"),
    "price": ("hourly", "MarketPriceHourly"),
    "zone": ("zone",),
    "capacity type": ("capacityType",),
}


def with_prices(catalogue: Catalogue, filename: str) -> Catalogue:
    """The catalogue with the prices of a CSV file: `instanceType,zone,capacityType,hourly`, where an empty zone or
    capacity type stands for all; or Kubecost's, with `InstanceType` and `MarketPriceHourly`."""
    table = read_table(read_file(filename), filename)
    columns = {role: next((n for n in names if n in table.names), "") for role, names in _COLUMNS.items()}
    for role in ("shape", "price"):
        if not columns[role]:
            raise CatalogueError(filename, "line 1", f"no column {' or '.join(_COLUMNS[role])}")
    known = {shape.name for shape in catalogue.shapes}
    rows: list[_PriceRow] = []
    for number, row in table.rows:
        name = (row[columns["shape"]] or "").strip()
        if name in known:
            price = checked_price(row[columns["price"]] or "", filename, f"line {number}", columns["price"])
            zone = (row.get(columns["zone"]) or "").strip()
            rows.append((name, zone, (row.get(columns["capacity type"]) or "").strip(), price))
    if not rows:
        raise CatalogueError(filename, "", "no price of any shape in the catalogue")
    return changed(catalogue, shapes=tuple(_priced(shape, rows) for shape in catalogue.shapes))


def _priced(shape: Shape, rows: Iterable[_PriceRow]) -> Shape:
    """An offer that names no zone, or no capacity type, becomes one for each that the list names."""
    of_shape = [row for row in rows if row[0] == shape.name]
    zones = list(dict.fromkeys(zone for _, zone, _, _ in of_shape if zone))
    kinds = list(dict.fromkeys(kind for _, _, kind, _ in of_shape if kind))
    offers: dict[tuple[str, str], MachineOffer] = {}
    for offer in shape.offers or (MachineOffer(),):
        for zone in [offer.zone] if offer.zone else zones or [""]:
            for kind in [offer.capacity_type] if offer.capacity_type else kinds or [""]:
                found = changed(offer, zone=zone, capacity_type=kind)
                for _, its_zone, its_kind, price in of_shape:
                    if its_zone in ("", zone) and its_kind in ("", kind):
                        found = changed(found, price=price)
                if found.price is not None or (zone, kind) == (offer.zone, offer.capacity_type):
                    offers.setdefault((zone, kind), found)
    return changed(shape, offers=tuple(offers.values()) or shape.offers)


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
    return Catalogue(
        tuple(shapes.values()),
        tuple(pool for one in catalogues for pool in one.pools),
        first.currency,
        ", ".join(one.source for one in catalogues),
        tuple(overlay for one in catalogues for overlay in one.overlays),
    )
