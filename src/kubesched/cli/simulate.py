"""`kubesched simulate`: what becomes of workloads on a cluster, in virtual time, without a cluster.

The cluster comes from files, or from a live server with the files' workloads on top; the server is only read.

Next: `kubesched.simulator.run`, which does the work; `live` for the server.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from kubesched.cli.live import ServerChoice, live_option, read_cluster_files, read_live, server_options
from kubesched.cli.output import (
    ERROR_EXIT,
    PENDING_EXIT,
    colour_option,
    exit_code_option,
    print_answer,
    print_csv,
    print_record,
    say_error,
    say_warning,
)
from kubesched.cli.report_file import report_file_option, write_report
from kubesched.cli.scheduler_choice import SchedulerChoice, class_cache_option, scheduler_options
from kubesched.cli.watching import manifest_files, watch

if TYPE_CHECKING:
    from kubesched.k8s.model.manifests import Manifests
    from kubesched.simulator.options import SimulationOptions
    from kubesched.simulator.report import SimulationReport

TABLES = ("pods", "nodes", "utilisation", "events", "preemptions", "not_created", "usage", "timeline")


class SpanOfTime(click.ParamType[float]):
    """`90s`, `24h`, `1h30m`: a span of time, in seconds."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        from kubesched.k8s.model.times import Duration, DurationError

        if isinstance(value, float):
            return value
        try:
            seconds = Duration.parse(str(value)).seconds
        except DurationError:
            self.fail(f"{value!r} is not a duration such as 90s, 24h or 1h30m", param, ctx)
        if seconds < 0:
            self.fail(f"{value!r} is negative", param, ctx)
        return seconds


SPAN = SpanOfTime()


@click.command("simulate")
@click.option(
    "-f",
    "--filename",
    "filenames",
    required=True,
    multiple=True,
    metavar="FILE",
    help="Manifests of the cluster, workloads and scenarios: YAML or JSON, a dump, a directory; - for standard input. "
    "Repeatable.",
)
@server_options
@live_option
@scheduler_options
@click.option("--seed", type=int, default=0, show_default=True, help="Seed; the same seed gives the same result.")
@click.option(
    "--tie-break",
    type=click.Choice(["random", "name"]),
    default="random",
    show_default=True,
    help="How to choose among equally good nodes: at random (by the seed), or the first by name.",
)
@click.option("--until", type=SPAN, help="Stop after this much virtual time; workloads that never end stop after 24h.")
@click.option("--start", metavar="TIME", help="Virtual start time (RFC 3339); matters for CronJobs.")
@click.option("--bind-latency", type=SPAN, default="0s", show_default=True, help="Time that a binding takes.")
@click.option("--start-latency", type=SPAN, default="0s", show_default=True, help="Time from bound to running.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "wide", "json", "yaml", "csv"]),
    default="text",
    show_default=True,
    help="wide shows every pod; csv prints one table (--table).",
)
@click.option("--table", type=click.Choice(TABLES), default="pods", show_default=True, help="Table to print as csv.")
@report_file_option
@class_cache_option
@colour_option
@exit_code_option
@click.option("--watch", "is_watching", is_flag=True, help="Run again whenever one of the files changes.")
def simulate(
    filenames: tuple[str, ...],
    kubeconfig: str | None,
    context: str | None,
    live: bool,
    scheduler: SchedulerChoice,
    seed: int,
    tie_break: str,
    until: float | None,
    start: str | None,
    bind_latency: float,
    start_latency: float,
    output: str,
    table: str,
    no_class_cache: bool,
    is_exit_code: bool,
    is_watching: bool,
) -> None:
    """Simulate workloads on a cluster in virtual time: where each pod goes, or why it stays pending.

    \b
    kubesched simulate -f cluster.yaml -f workload.yaml
    kubesched simulate --live -f workload.yaml
    kubesched simulate -f cluster.yaml --plugin my_plugin.py --watch
    """
    from kubesched.k8s.model.times import InstantError, parse_instant
    from kubesched.k8s.workloads.pod_states import POD_PENDING
    from kubesched.simulator.options import DEFAULT_START, SimulationOptions

    try:
        options = SimulationOptions(
            seed=seed,
            tie_break=tie_break,
            until_s=until,
            start_s=parse_instant(start or DEFAULT_START),
            bind_latency_s=bind_latency,
            start_latency_s=start_latency,
            keeps_classes=not no_class_cache,
        )
    except InstantError as error:
        say_error(f"--start: {error}")
        sys.exit(ERROR_EXIT)

    def run() -> SimulationReport | None:
        return _simulate_and_print(
            filenames, ServerChoice(kubeconfig, context, live), scheduler, options, output, table
        )

    if not is_watching:
        report = run()
        if report is None:
            sys.exit(ERROR_EXIT)
        if is_exit_code and POD_PENDING in report.summary["states"]:
            sys.exit(PENDING_EXIT)
        return
    if "-" in filenames or scheduler.reads_stdin:
        raise click.UsageError("--watch needs files: standard input can be read only once")
    watch(run, lambda: [*manifest_files(filenames), *scheduler.files()])


def _simulate_and_print(
    filenames: tuple[str, ...],
    server: ServerChoice,
    scheduler: SchedulerChoice,
    options: SimulationOptions,
    output: str,
    table: str,
) -> SimulationReport | None:
    """None if there was a validation error, which has been printed."""
    from kubesched.cli.files import InputError
    from kubesched.k8s.model.manifests import ManifestError
    from kubesched.scheduler.config import ConfigError

    try:
        report = _simulate(filenames, server, scheduler, options)
    except (InputError, ManifestError, ConfigError) as error:
        say_error(str(error))
        return None
    _print(report, output, table)
    return report


def _simulate(
    filenames: tuple[str, ...], server: ServerChoice, scheduler: SchedulerChoice, options: SimulationOptions
) -> SimulationReport:
    from kubesched.cli.files import InputError
    from kubesched.cli.output import shown_progress
    from kubesched.k8s.model.scheduling import PodGroup
    from kubesched.scheduler.config.feature_gates import GANG_SCHEDULING, GENERIC_WORKLOAD
    from kubesched.simulator.loading import load
    from kubesched.simulator.report import SimulationReport
    from kubesched.simulator.run import run_simulation

    if scheduler.reads_stdin and "-" in filenames:
        raise InputError("<stdin>: cannot be both the configuration and the manifests")
    chosen = scheduler.read()
    for note in chosen.notes:
        say_warning(note)
    if chosen.config.extenders:
        say_warning("extenders are not called in a simulation")
    given = load(given_cluster(filenames, server))
    if any(isinstance(item, PodGroup) for item in given.objects) and not chosen.config.gates.get(GENERIC_WORKLOAD):
        gates = f"{GENERIC_WORKLOAD}=true,{GANG_SCHEDULING}=true"
        say_warning(f"PodGroups have no effect without their feature gates: --feature-gates={gates}")
    with shown_progress() as progress:
        cluster = run_simulation(
            given,
            chosen.config,
            options,
            source=chosen.source,
            progress=progress,
            emulation=chosen.emulation,
            registry=chosen.registry,
        )
    return SimulationReport(cluster, options)


def given_cluster(filenames: tuple[str, ...], server: ServerChoice) -> Manifests:
    """The cluster of the files, or of the server with the files' workloads on top; warnings are printed."""
    from kubesched.simulator.loading import SIMULATED_KINDS
    from kubesched.simulator.virtual.controllers import MAKES_PODS

    if server.is_made:
        given = read_live(server.target(), filenames, kinds=SIMULATED_KINDS, changed=MAKES_PODS)
    else:
        given = read_cluster_files(filenames, SIMULATED_KINDS)
    for warning in (*given.server_warnings, *given.file_warnings):
        say_warning(warning)
    return given.found


def _print(report: SimulationReport, output: str, table: str) -> None:
    from kubesched.planning.report_pages import simulation_page
    from kubesched.simulator.report_text import render_report

    if output in ("json", "yaml"):
        print_record(report.to_dict(), output)
    elif output == "csv":
        print_csv(getattr(report, table))
    else:
        print_answer(lambda style: render_report(report, style), output)
    write_report(lambda command: simulation_page(command, report))
