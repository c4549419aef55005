"""The command line of the load measurement: prints figures as JSON."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import click

from harness.apiserver_load.run import LoadSize, measure


@click.command()
@click.option("--nodes", default=LoadSize().nodes, show_default=True)
@click.option("--pods", default=LoadSize().pods, show_default=True)
@click.option("--watchers", default=LoadSize().watchers, show_default=True, help="Watches of all pods.")
@click.option("--connections", default=LoadSize().connections, show_default=True, help="Requests in flight.")
@click.option("--folder", type=click.Path(file_okay=False, path_type=Path), help="Data directories are made below it.")
def main(nodes: int, pods: int, watchers: int, connections: int, folder: Path | None) -> None:
    """Measures the embedded API server with durable storage: creates, lists, binds, patches, memory, restart."""
    with tempfile.TemporaryDirectory(dir=folder, prefix="apiserver-load-") as place:
        click.echo(json.dumps(measure(Path(place), LoadSize(nodes, pods, watchers, connections)), indent=2))


if __name__ == "__main__":
    main()
