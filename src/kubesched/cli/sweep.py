"""`kubesched sweep`: one cluster simulated with many seeds and many configurations.

Next: `kubesched.simulator.sweep`, which does the work.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from kubesched.cli.live import ServerChoice, live_option, server_options
from kubesched.cli.output import exit_code_option
from kubesched.cli.planning import NO_EXIT, print_report, report_options, told_in_a_line
from kubesched.cli.scheduler_choice import SchedulerChoice, plugin_option
from kubesched.cli.simulate import SPAN, given_cluster

if TYPE_CHECKING:
    from kubesched.simulator.sweep import NamedConfiguration


@click.command("sweep")
@click.option(
    "-f",
    "--filename",
    "filenames",
    required=True,
    multiple=True,
    metavar="FILE",
    help="Manifests of the cluster, workloads and scenarios, as for simulate. Repeatable.",
)
@server_options
@live_option
@click.option(
    "--config",
    "config_files",
    multiple=True,
    metavar="FILE",
    help="A KubeSchedulerConfiguration to run with every seed. Repeatable; default is the default configuration.",
)
@plugin_option
@click.option("--seeds", type=click.IntRange(min=1), default=10, show_default=True, help="How many seeds.")
@click.option("--first-seed", type=int, default=0, show_default=True, help="The first of them.")
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="How many processes.")
@click.option(
    "--dask", default="", metavar="ADDRESS", help="Run on a Dask cluster instead: its scheduler, tcp://HOST:PORT."
)
@click.option(
    "--tie-break",
    type=click.Choice(["random", "name"]),
    default="random",
    show_default=True,
    help="How to choose among equally good nodes: at random (by the seed), or the first by name.",
)
@click.option("--until", type=SPAN, help="Stop after this much virtual time; workloads that never end stop after 24h.")
@click.option("--bind-latency", type=SPAN, default="0s", show_default=True, help="Time that a binding takes.")
@click.option("--start-latency", type=SPAN, default="0s", show_default=True, help="Time from bound to running.")
@report_options(["runs"])
@exit_code_option
def sweep(
    filenames: tuple[str, ...],
    kubeconfig: str | None,
    context: str | None,
    live: bool,
    config_files: tuple[str, ...],
    plugin_files: tuple[str, ...],
    seeds: int,
    first_seed: int,
    jobs: int,
    dask: str,
    tie_break: str,
    until: float | None,
    bind_latency: float,
    start_latency: float,
    output: str,
    table: str,
    is_exit_code: bool,
) -> None:
    """Simulate workloads with many seeds and many configurations, and see what that changes.

    \b
    kubesched sweep -f cluster.yaml -f workload.yaml --seeds 20 --jobs 4
    kubesched sweep -f cluster.yaml -f workload.yaml --config spread.yaml --config pack.yaml
    """
    from kubesched.simulator.loading import load
    from kubesched.simulator.options import SimulationOptions
    from kubesched.simulator.sweep import SweptInput, run_sweep

    options = SimulationOptions(
        tie_break=tie_break, until_s=until, bind_latency_s=bind_latency, start_latency_s=start_latency
    )
    with told_in_a_line():
        configurations = _configurations(config_files)
        given = load(given_cluster(filenames, ServerChoice(kubeconfig, context, live)))
        shared = SweptInput(given, options, plugin_files)
        chosen = range(first_seed, first_seed + seeds)
        report = run_sweep(shared, configurations, chosen, jobs=jobs, dask=dask)
    print_report(report, output, table)
    if is_exit_code and not report.places_all:
        sys.exit(NO_EXIT)


def _configurations(files: tuple[str, ...]) -> list[NamedConfiguration]:
    from kubesched.cli.output import say_warning
    from kubesched.simulator.sweep import DEFAULT_CONFIGURATION, NamedConfiguration

    found = []
    for name in files or (None,):
        given = SchedulerChoice(name).given()
        converted = given.as_of_today()
        for note in converted.notes:
            say_warning(note)
        found.append(NamedConfiguration(name or DEFAULT_CONFIGURATION, converted.config, given.config_source))
    return found
