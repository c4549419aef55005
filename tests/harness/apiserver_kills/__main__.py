"""The command line of the kill rounds; `make durability` calls it. Exit code 1 if anything was lost."""

from __future__ import annotations

import asyncio
import json
import random
import tempfile
import time
from pathlib import Path

import click

from harness.apiserver_kills.ledger import LostWriteError
from harness.apiserver_kills.rounds import KillRounds


@click.command()
@click.option("--rounds", default=200, show_default=True)
@click.option("--seed", default=lambda: time.time_ns() % 1_000_000, show_default="from the clock")
@click.option("--folder", type=click.Path(file_okay=False, path_type=Path), help="Data directories are made below it.")
def main(rounds: int, seed: int, folder: Path | None) -> None:
    """Kills a writing API server again and again and looks whether anything acknowledged is lost."""
    click.echo(f"seed {seed}", err=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix="apiserver-kills-") as place:
        killing = KillRounds(Path(place) / "data", random.Random(seed))
        try:
            report = asyncio.run(killing.run(rounds))
        except LostWriteError as lost:
            raise click.ClickException(f"round {killing.report.rounds}: {lost}") from lost
    click.echo(json.dumps(report.as_dict(), indent=2))


if __name__ == "__main__":
    main()
