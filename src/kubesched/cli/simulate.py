"""`kubesched simulate`: what becomes of workloads on a cluster, in virtual time, without a cluster.

The cluster comes from files, or from a live server with the files' workloads on top; the server is only read.

Next: `kubesched.simulator.run`, which does the work; `live` for the server.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from kubesched.cli.output import (
    ERROR_EXIT,
    PENDING_EXIT,
    colour_option,
    exit_code_option,
    format_option,
    print_answer,
    print_csv,
    print_record,
    say_error,
    say_warning,
    told_in_a_line,
)
from kubesched.cli.planning import catalogue_options, spot_option
from kubesched.cli.report_file import report_file_option, write_report
from kubesched.cli.scenario import (
    SPAN,
    AskedScenario,
    latency_options,
    scenario_options,
    seed_option,
    tie_break_option,
    until_option,
)
from kubesched.cli.scheduler_choice import SchedulerChoice, class_cache_option, scheduler_options
from kubesched.cli.watching import manifest_files, watch

if TYPE_CHECKING:
    from kubesched.planning.autoscaling.autoscaler import SimulatedAutoscaler
    from kubesched.simulator.loading import SourcedObject
    from kubesched.simulator.options import SimulationOptions
    from kubesched.simulator.report import SimulationReport

TABLES = ("pods", "nodes", "utilisation", "events", "preemptions", "not_created", "usage", "timeline", "autoscaler")


@click.command("simulate")
@scenario_options
@scheduler_options
@seed_option
@tie_break_option
@until_option
@click.option("--start", metavar="TIME", help="Virtual start time (RFC 3339), for CronJobs.")
@latency_options
@format_option("wide shows every pod; csv prints one table (--table).", "csv")
@click.option("--table", type=click.Choice(TABLES), default="pods", show_default=True, help="Table to print as csv.")
@report_file_option
@class_cache_option
@colour_option
@exit_code_option
@click.option(
    "--autoscaler",
    type=click.Choice(["karpenter", "cluster-autoscaler"]),
    help="Nodes of the catalogue are launched for pods that wait, and removed when they are not needed, as it does.",
)
@catalogue_options
@click.option("--boot", type=SPAN, default="60s", show_default=True, help="With --autoscaler: launch to ready node.")
@spot_option
@click.option("--watch", "is_watching", is_flag=True, help="Run again whenever one of the files changes.")
def simulate(
    scenario: AskedScenario,
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
    autoscaler: str | None,
    catalogues: tuple[str, ...],
    prices: str | None,
    boot: float,
    spot_to_spot: bool,
    is_watching: bool,
) -> None:
    """Simulate workloads on a cluster in virtual time: where each pod goes, or why it stays pending.

    \b
    kubesched simulate -f cluster.yaml -f workload.yaml
    kubesched simulate --live -f workload.yaml
    kubesched simulate -f cluster.yaml --plugin my_plugin.py --watch
    kubesched simulate -f workload.yaml --autoscaler karpenter --catalogue aws.json
    """
    from kubesched.k8s.errors import KubeschedError
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

    if (autoscaler is None) != (not catalogues):
        raise click.UsageError("--autoscaler and --catalogue need each other")
    nodes = None if autoscaler is None else AskedAutoscaler(autoscaler, catalogues, prices, boot, spot_to_spot)

    if not is_watching:
        with told_in_a_line():
            report = _simulate(scenario, scheduler, nodes, options)
        _print(report, output, table)
        if is_exit_code and POD_PENDING in report.summary["states"]:
            sys.exit(PENDING_EXIT)
        return
    if "-" in scenario.filenames or scheduler.reads_stdin:
        raise click.UsageError("--watch needs files: standard input can be read only once")

    def run() -> None:
        try:
            report = _simulate(scenario, scheduler, nodes, options)
        except KubeschedError as error:  # the next version of a file may do
            say_error(str(error))
        else:
            _print(report, output, table)

    watch(run, lambda: [*manifest_files(scenario.filenames), *scheduler.files()])


@dataclass(frozen=True, slots=True)
class AskedAutoscaler:
    """The autoscaler and the machines that a command line names."""

    policy: str
    catalogues: tuple[str, ...]
    prices: str | None
    boot_s: float
    spot_to_spot: bool = False

    def read(self, makers: Sequence[SourcedObject]) -> SimulatedAutoscaler:
        from kubesched.cli.catalogue import read_catalogues
        from kubesched.planning.autoscaling.autoscaler import SimulatedAutoscaler

        machines = read_catalogues(self.catalogues, self.prices, makers)
        return SimulatedAutoscaler(self.policy, machines, self.boot_s, self.spot_to_spot)


def _simulate(
    scenario: AskedScenario, scheduler: SchedulerChoice, nodes: AskedAutoscaler | None, options: SimulationOptions
) -> SimulationReport:
    from kubesched.cli.files import InputError
    from kubesched.cli.output import shown_progress
    from kubesched.k8s.model.scheduling import PodGroup
    from kubesched.scheduler.config.feature_gates import GANG_SCHEDULING, GENERIC_WORKLOAD
    from kubesched.simulator.report import SimulationReport
    from kubesched.simulator.run import run_simulation

    if scheduler.reads_stdin and "-" in scenario.filenames:
        raise InputError("<stdin>: cannot be both the configuration and the manifests")
    chosen = scheduler.read()
    for note in chosen.notes:
        say_warning(note)
    if chosen.config.extenders:
        say_warning("extenders are not called in a simulation")
    given = scenario.read(plans=nodes is not None)
    if any(isinstance(item, PodGroup) for item in given.objects) and not chosen.config.gates.get(GENERIC_WORKLOAD):
        gates = f"{GENERIC_WORKLOAD}=true,{GANG_SCHEDULING}=true"
        say_warning(f"PodGroups have no effect without their feature gates: --feature-gates={gates}")
    if nodes is not None and chosen.emulation is not None:
        raise InputError("--autoscaler asks today's scheduler, and cannot be played with --emulate")
    scaled = None if nodes is None else nodes.read(given.node_makers).run(chosen.config, options, chosen.registry)
    with shown_progress() as progress:
        cluster = run_simulation(
            given,
            chosen.config,
            options,
            source=chosen.source,
            progress=progress,
            emulation=chosen.emulation,
            registry=chosen.registry,
            before=None if scaled is None else scaled.start,
        )
    return SimulationReport(cluster, options, autoscaling=None if scaled is None else scaled.record())


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
