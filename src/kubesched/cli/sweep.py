"""`kubesched sweep`: one cluster simulated with many seeds and many configurations.

Next: `kubesched.simulator.sweep`, which does the work.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from kubesched.cli.output import exit_code_option, told_in_a_line
from kubesched.cli.planning import NO_EXIT, print_report, report_options
from kubesched.cli.scenario import (
    AskedScenario,
    jobs_option,
    latency_options,
    scenario_options,
    seeds_option,
    tie_break_option,
    until_option,
)
from kubesched.cli.scheduler_choice import SchedulerChoice, plugin_option

if TYPE_CHECKING:
    from kubesched.simulator.sweep import NamedConfiguration


@click.command("sweep")
@scenario_options
@click.option(
    "--config",
    "config_files",
    multiple=True,
    metavar="FILE",
    help="A KubeSchedulerConfiguration to run with every seed; without it, the default one. Repeatable.",
)
@plugin_option
@seeds_option
@click.option("--first-seed", type=int, default=0, show_default=True, help="First seed.")
@jobs_option
@click.option(
    "--dask", default="", metavar="ADDRESS", help="Run on the Dask cluster with this scheduler: tcp://HOST:PORT."
)
@tie_break_option
@until_option
@latency_options
@report_options(["runs"])
@exit_code_option
def sweep(
    scenario: AskedScenario,
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
    """Simulate workloads with many seeds and configurations, to tell chance from effect.

    \b
    kubesched sweep -f cluster.yaml -f workload.yaml --seeds 20 --jobs 4
    kubesched sweep -f cluster.yaml -f workload.yaml --config spread.yaml --config pack.yaml
    """
    from kubesched.simulator.options import SimulationOptions
    from kubesched.simulator.sweep import SweptInput, run_sweep

    options = SimulationOptions(
        tie_break=tie_break, until_s=until, bind_latency_s=bind_latency, start_latency_s=start_latency
    )
    with told_in_a_line():
        configurations = _configurations(config_files)
        shared = SweptInput(scenario.read(), options, plugin_files)
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
