"""A catalogue as a table: the cheapest shapes first."""

from __future__ import annotations

from kubesched.explanation.layout import counted, readable, table
from kubesched.k8s.model.requests import CPU, MEMORY, PODS, node_units
from kubesched.planning.catalogue import Catalogue, Shape, price_text


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
