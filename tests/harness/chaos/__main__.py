"""The command line of the fault simulation; `make chaos` calls it. Exit code 1 if any run failed."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import click

from harness.chaos.many import SeedResult, try_seed, try_seeds
from harness.chaos.run import run_trace
from harness.chaos.trace import TraceError, read_trace

_SHOWN = 5


@click.command()
@click.option("--seeds", default=1000, show_default=True, help="How many seeds to try.")
@click.option("--first", default=1, show_default=True, help="The first of them.")
@click.option("--jobs", default=os.cpu_count() or 1, show_default=True, help="Processes.")
@click.option("--seed", type=int, help="Only this one.")
@click.option("--replay", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="A trace, from a file.")
def main(seeds: int, first: int, jobs: int, seed: int | None, replay: Path | None) -> None:
    """Runs the scheduling loop against an API server and a network that fail in every way they can."""
    if replay is not None:
        sys.exit(_replay(replay))
    started_s = time.monotonic()
    if seed is not None:
        sys.exit(_report([try_seed(seed)], started_s))
    results: list[SeedResult] = []
    for result in try_seeds(range(first, first + seeds), jobs):
        results.append(result)
        if result.failure is not None:
            click.echo(f"seed {result.seed} fails: {result.failure.invariant}", err=True)
        if len(results) % 500 == 0:
            click.echo(f"{len(results)} of {seeds} seeds, {_rate(results, started_s):.1f} a second", err=True)
    sys.exit(_report(results, started_s))


def _replay(path: Path) -> int:
    try:
        failure = run_trace(read_trace(path)).failure
    except TraceError as mistake:
        raise click.ClickException(f"{path}: {mistake}") from mistake
    click.echo("passes" if failure is None else str(failure))
    return int(failure is not None)


def _report(results: list[SeedResult], started_s: float) -> int:
    failed = sorted((result for result in results if result.failure is not None), key=lambda result: result.seed)
    for result in failed[:_SHOWN]:
        click.echo(f"\n# seed {result.seed}: {result.failure}")
    if len(failed) > _SHOWN:
        click.echo(f"\nand {len(failed) - _SHOWN} more: {' '.join(str(result.seed) for result in failed[_SHOWN:])}")
    n_steps = sum(result.n_steps for result in results)
    rate = _rate(results, started_s)
    click.echo(f"{len(results)} seeds, {n_steps} steps, {len(failed)} failed; {rate:.1f} seeds a second")
    return int(bool(failed))


def _rate(results: list[SeedResult], started_s: float) -> float:
    return len(results) / max(time.monotonic() - started_s, 1e-9)


if __name__ == "__main__":
    main()
