"""What the nodes of a cluster cost: as they say themselves, or as a catalogue says of their instance type."""

from __future__ import annotations

from kubesched.k8s.model.core import Node
from kubesched.planning.catalogue import (
    CAPACITY_TYPE,
    INSTANCE_TYPE,
    NANOS,
    ZONE,
    Catalogue,
    CatalogueError,
    PriceError,
    read_price,
)
from kubesched.planning.catalogue_files import PRICE


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
