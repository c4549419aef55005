"""`kubesched bench`: how many pods a second the engine schedules, in workloads like kube-scheduler's own benchmark.

Several workloads run in a process each, so that the memory that one held is not counted for the next. The exit code is
1 if a pod was not placed that should have been.

Next: `kubesched.simulator.bench`, which does the work.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from kubesched.cli.output import ERROR_EXIT, say_error, say_warning
from kubesched.cli.scheduler_choice import class_cache_option, plugin_option

if TYPE_CHECKING:
    from kubesched.simulator.bench.run import BenchSettings
    from kubesched.simulator.bench.runner import BenchResult
    from kubesched.simulator.bench.workload_file import BenchWorkload

NOT_PLACED_EXIT = 1


@click.command("bench")
@click.argument("names", nargs=-1, metavar="[NAME...]")
@click.option(
    "-f",
    "--filename",
    "filenames",
    multiple=True,
    metavar="FILE",
    help="A workload file to use instead of the built-in ones.",
)
@click.option("--label", "labels", multiple=True, help="Only workloads with this label. Repeatable.")
@click.option("--nodes", "n_nodes", type=click.IntRange(min=0), help="Number of nodes.")
@click.option("--pods", "n_pods", type=click.IntRange(min=0), help="Number of pods to measure.")
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Seed for breaking ties between equally good nodes."
)
@class_cache_option
@plugin_option
@click.option("--list", "list_only", is_flag=True, help="List the workloads and exit.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="json prints one object per line, one for each workload.",
)
def bench(
    names: tuple[str, ...],
    filenames: tuple[str, ...],
    labels: tuple[str, ...],
    n_nodes: int | None,
    n_pods: int | None,
    seed: int,
    no_class_cache: bool,
    plugin_files: tuple[str, ...],
    list_only: bool,
    output: str,
) -> None:
    """Measure scheduling throughput: the engine and its loop, in virtual time, without a network.

    \b
    kubesched bench --list
    kubesched bench basic affinity
    kubesched bench basic --nodes 20000 -o json
    """
    from kubesched.scheduler.config import ConfigError
    from kubesched.simulator.bench.operations import WorkloadError
    from kubesched.simulator.bench.run import BenchSettings
    from kubesched.simulator.bench.workload_file import load_workloads, resized, select_workloads

    try:
        known = load_workloads(filenames)
        if list_only:
            _print_list(known)
            return
        chosen = [resized(workload, n_nodes, n_pods) for workload in select_workloads(known, names, labels)]
        _warn_of_gates(chosen)
        settings = BenchSettings(seed=seed, keeps_classes=not no_class_cache, plugin_files=plugin_files)
        all_placed = _run_all(chosen, settings, output)
    except (WorkloadError, ConfigError) as error:
        say_error(str(error))
        sys.exit(ERROR_EXIT)
    if not all_placed:
        sys.exit(NOT_PLACED_EXIT)


def _print_list(workloads: list[BenchWorkload]) -> None:
    from kubesched.simulator.bench.workload_file import DEFAULT_WORKLOAD

    width = max((len(workload.title) for workload in workloads), default=0)
    for workload in workloads:
        sizes = ", ".join(f"{name}={value}" for name, value in workload.params.items())
        labels = f"  [{', '.join(sorted(workload.labels))}]" if workload.labels else ""
        about = f"  {workload.description}" if workload.name == DEFAULT_WORKLOAD else ""
        click.echo(f"{workload.title:<{width}}  {sizes}{labels}{about}")


def _warn_of_gates(workloads: list[BenchWorkload]) -> None:
    gates = sorted({gate for workload in workloads for gate in workload.gates_off})
    if gates:
        say_warning(f"feature gates cannot be turned off, these stay at their defaults: {', '.join(gates)}")


def _run_all(workloads: list[BenchWorkload], settings: BenchSettings, output: str) -> bool:
    from kubesched.simulator.bench import runner

    if output == "text":
        click.echo(runner.table_head())
    all_placed = True
    for workload in workloads:
        result = _measure(workload, settings) if len(workloads) == 1 else measure_apart(workload, settings)
        click.echo(runner.to_json(result) if output == "json" else runner.table_row(result))
        if result.problem:
            say_error(f"{result.workload}: {result.problem}")
            all_placed = False
    return all_placed


def measure_apart(workload: BenchWorkload, settings: BenchSettings) -> BenchResult:
    """In a process of its own."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    with ProcessPoolExecutor(max_workers=1, mp_context=get_context("spawn")) as process:
        return process.submit(_measure, workload, settings).result()


def _measure(workload: BenchWorkload, settings: BenchSettings) -> BenchResult:
    """With a progress bar where somebody looks."""
    from kubesched.simulator.bench.runner import run_workload

    if not sys.stderr.isatty():
        return run_workload(workload, settings)
    total = workload.expected_pods()
    shown = 0
    with click.progressbar(length=total, label=f"{workload.title:<30}", file=sys.stderr) as bar:

        def progress(n_bound: int) -> None:
            nonlocal shown
            bar.update(min(n_bound, total) - shown)
            shown = min(n_bound, total)

        result = run_workload(workload, settings, progress)
    click.echo("\x1b[1A\x1b[2K", nl=False, err=True)  # the bar has done its work
    return result
