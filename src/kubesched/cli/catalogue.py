"""`kubesched catalogue`: show, check and convert lists of machines and prices, or derive one from a cluster's nodes.

Next: `kubesched.planning.catalogue_files`, which reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kubesched.cli.output import print_record, say_warning, told_in_a_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kubesched.planning.catalogue import Catalogue
    from kubesched.simulator.loading import SourcedObject

_files = click.argument("files", nargs=-1, required=True, metavar="FILE...")
_prices = click.option("--prices", metavar="FILE", help="Prices: CSV with instanceType,zone,capacityType,hourly.")
_record = click.option(
    "-o", "--output", type=click.Choice(["yaml", "json"]), default="yaml", show_default=True, help="Output format."
)


def read_catalogues(files: tuple[str, ...], prices: str | None, makers: Sequence[SourcedObject] = ()) -> Catalogue:
    """`makers` are NodePools and NodeOverlays that were given elsewhere."""
    from kubesched.planning.catalogue_files import gathered

    return gathered(files, prices, makers)


@click.group("catalogue")
def catalogue() -> None:
    """Show, validate, convert and derive catalogues: machines, where they can be had, and what they cost."""


@catalogue.command("show", short_help="Print the machines, what is allocatable on each, and prices.")
@_files
@_prices
@click.option(
    "-o", "--output", type=click.Choice(["text", "json", "yaml"]), default="text", show_default=True, help="Format."
)
def show(files: tuple[str, ...], prices: str | None, output: str) -> None:
    """Print every shape with what is allocatable on it and what it costs."""
    with told_in_a_line():
        found = read_catalogues(files, prices)
        if output != "text":
            print_record(found.to_dict(), output)
            return
        from kubesched.planning.catalogue import render_catalogue

        click.echo(render_catalogue(found))


@catalogue.command("validate")
@_files
@_prices
def validate(files: tuple[str, ...], prices: str | None) -> None:
    """Check catalogues; offers without a price are named as warnings."""
    with told_in_a_line():
        found = read_catalogues(files, prices)
        for option in found.options():
            if option.offer.price is None:
                say_warning(f"{found.source}: {option.name} has no price")
        for name in found.conflicting_overlays:
            say_warning(f"{found.source}: overlay {name} is not applied: another of its weight changes the same")
        click.echo(f"{found.source}: valid: {_size(found)}")


def _size(found: Catalogue) -> str:
    from kubesched.explanation.layout import counted

    return f"{counted(len(found.shapes), 'shape')}, {counted(sum(1 for _ in found.options()), 'offer')}"


@catalogue.command("convert", short_help="Convert other formats to kind Catalogue.")
@_files
@_prices
@_record
def convert(files: tuple[str, ...], prices: str | None, output: str) -> None:
    """Print as kind Catalogue what was read in any of the known forms."""
    with told_in_a_line():
        print_record(read_catalogues(files, prices).to_dict(), output)


@catalogue.command("derive", short_help="Make a catalogue from the nodes of a cluster.")
@click.option(
    "-f",
    "--filename",
    "filenames",
    required=True,
    multiple=True,
    metavar="FILE",
    help="Manifests with nodes, or a dump.",
)
@_prices
@_record
def derive(filenames: tuple[str, ...], prices: str | None, output: str) -> None:
    """Print a catalogue of the nodes that a cluster has: nodes that are alike become one shape. NodeClaims
    say what nodes leave out."""
    from kubesched.cli.files import read_manifests
    from kubesched.k8s.model.autoscaling import NODE_POOL_KINDS, NodeClaim
    from kubesched.k8s.model.core import Node
    from kubesched.k8s.model.manifests import KINDS

    with told_in_a_line():
        from kubesched.planning.catalogue import CatalogueError
        from kubesched.planning.catalogue_files import from_nodes, with_prices
        from kubesched.simulator.claimed_nodes import nodes_with_claims

        found, _ = read_manifests(filenames, {**KINDS, **NODE_POOL_KINDS})
        claims = [item for item in found.objects if isinstance(item, NodeClaim)]
        nodes = nodes_with_claims((item for item in found.objects if isinstance(item, Node)), claims)
        if not nodes:
            raise CatalogueError(", ".join(filenames), "", "no nodes in it")
        derived = from_nodes(nodes, ", ".join(filenames))
        derived = derived if prices is None else with_prices(derived, prices)
        if any(option.offer.price is None for option in derived.options()):
            say_warning("prices are not known; give them with --prices")
        print_record(derived.to_dict(), output)
