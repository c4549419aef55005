"""`kubesched consolidate`: which nodes can go, in which order; or what would happen if a certain node went.

Next: `kubesched.planning.consolidate`, which searches.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from kubesched.cli.output import say_warning, shown_steps, told_in_a_line
from kubesched.cli.planning import (
    AskedCluster,
    asked_catalogue,
    catalogue_options,
    cluster_options,
    end,
    interruptible,
    keep_option,
    print_report,
    report_options,
    runs_options,
    selection_options,
    spot_option,
)
from kubesched.cli.scenario import SPAN, jobs_option

if TYPE_CHECKING:
    from kubesched.cli.scheduler_choice import ChosenScheduler
    from kubesched.planning.consolidate.report import ConsolidationReport
    from kubesched.planning.consolidate.timeline import StepTimeline
    from kubesched.simulator.loading import SimulationInput


class Percentage(click.ParamType[float]):
    """`0.5%`, as a share."""

    name = "percentage"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        try:
            share = float(str(value).removesuffix("%")) / 100
        except ValueError:
            share = -1.0
        if not 0 <= share <= 1:
            self.fail(f"{value!r} is not a percentage such as 0.5%", param, ctx)
        return share


@click.command("consolidate")
@cluster_options
@catalogue_options
@click.option(
    "--node",
    "asked_nodes",
    multiple=True,
    metavar="NAME",
    help="Only show what would happen without this node. Repeatable.",
)
@click.option("--pool", metavar="NAME", help="Remove only nodes of this pool.")
@click.option(
    "--policy",
    default="best",
    show_default=True,
    metavar="best|karpenter|cluster-autoscaler",
    help="How to search; with several, separated by commas, the others are compared with the first.",
)
@click.option(
    "--rules",
    type=click.Choice(["drain", "karpenter", "cluster-autoscaler"]),
    default="drain",
    show_default=True,
    help="Whose rules decide which pods keep their node.",
)
@click.option("--force", is_flag=True, help="As in kubectl drain: delete pods without a controller.")
@click.option("--delete-emptydir-data", is_flag=True, help="As in kubectl drain: evict pods with an emptyDir, too.")
@click.option(
    "--no-replace", is_flag=True, help="Only remove nodes; do not replace them by cheaper machines of the catalogue."
)
@click.option("--max-evictions", type=click.IntRange(min=0), metavar="N", help="Evict at most this many pods.")
@click.option("--max-steps", type=click.IntRange(min=1), metavar="N", help="Take at most this many steps.")
@click.option(
    "--min-saving", type=Percentage(), default="0%", metavar="PERCENT", help="Skip steps that save less than this."
)
@click.option(
    "--parallel", type=click.IntRange(1, 100), default=1, show_default=True, help="Number of nodes to drain at a time."
)
@click.option("--budget", default="", metavar="N|PERCENT", help="How many nodes of a pool may be disrupted at a time.")
@click.option("--allow-wait", is_flag=True, help="Let pods stay pending until the drained node is gone.")
@click.option("--time-limit", type=SPAN, metavar="DURATION", help="Stop searching after this time.")
@spot_option
@click.option(
    "--at", metavar="TIME", help="What time it is (RFC 3339), for schedules of NodePools and how old pods are."
)
@click.option("--timeline", is_flag=True, help="Play the steps in virtual time: how long they take, and who waits.")
@click.option("--boot", type=SPAN, default="60s", show_default=True, help="With --timeline: launch to ready node.")
@click.option("--write-scenario", metavar="FILE", help="Write the played steps as a scenario, for kubesched simulate.")
@selection_options("Remove only nodes with these labels: pool=spot.", "Do not remove nodes with these labels.")
@keep_option
@runs_options()
@jobs_option
@report_options(("steps", "moves", "kept", "nodes", "timeline", "pods", "blockers"))
@click.option(
    "--exit-code", "is_exit_code", is_flag=True, help="Exit with 1 if no node can go, or not the one named by --node."
)
def consolidate(
    asked: AskedCluster,
    catalogues: tuple[str, ...],
    prices: str | None,
    asked_nodes: tuple[str, ...],
    pool: str | None,
    policy: str,
    rules: str,
    force: bool,
    delete_emptydir_data: bool,
    no_replace: bool,
    max_evictions: int | None,
    max_steps: int | None,
    min_saving: float,
    parallel: int,
    budget: str,
    allow_wait: bool,
    time_limit: float | None,
    spot_to_spot: bool,
    at: str | None,
    nodes: str,
    exclude_nodes: str,
    timeline: bool,
    boot: float,
    write_scenario: str | None,
    keep: tuple[str, ...],
    seeds: int,
    orders: int,
    jobs: int,
    output: str,
    table: str,
    is_exit_code: bool,
) -> None:
    """Find nodes to remove: which, in what order, what replaces them, and what it saves.

    \b
    kubesched consolidate -f dump.json
    kubesched consolidate -f dump.json --catalogue aws.json --policy best,karpenter
    kubesched consolidate -f dump.json --node worker-7
    kubesched consolidate -f dump.json --parallel 3 --timeline
    """
    from kubesched.cli.files import check_place
    from kubesched.planning.consolidate.consolidation import Consolidation, ConsolidationRequest
    from kubesched.planning.consolidate.dry_run import dry_run
    from kubesched.planning.consolidate.rules import DrainFlags
    from kubesched.planning.node_groups import NodeSelection
    from kubesched.planning.several_runs import Runs

    with told_in_a_line():
        request = ConsolidationRequest(
            tuple(part.strip() for part in policy.split(",")),
            rules,
            DrainFlags(force, delete_emptydir_data),
            pool,
            not no_replace,
            max_evictions,
            max_steps,
            min_saving,
            parallel,
            budget,
            allow_wait,
            time_limit,
            keep,
            spot_to_spot,
            _time(at, asked),
            NodeSelection(nodes, exclude_nodes),
            Runs(asked.seed, seeds, orders),
        )
        if write_scenario is not None:
            check_place(write_scenario)
        given, chosen = asked.read()
        world = asked.world_of(given, chosen, "consolidate", keeps_classes=None)
        catalogue = asked_catalogue(catalogues, prices, world.node_makers)
        if asked_nodes:
            asked_about = dry_run(Consolidation(world, catalogue, request), world, asked_nodes, rules)
            print_report(asked_about, output, table)
            can_go, is_unknown = asked_about.can_go, asked_about.verdicts.are_split
        else:
            with interruptible() as is_interrupted, shown_steps("consolidating") as told:
                report = Consolidation(
                    world, catalogue, request, is_interrupted=is_interrupted, told=told, jobs=jobs
                ).report()
            if timeline or write_scenario is not None:
                report = replace(report, timeline=_played(report, given, chosen, asked, boot, keep))
            print_report(report, output, table)
            if write_scenario is not None:
                _write_scenario(report, write_scenario)
            can_go = bool(report.steps)
            is_unknown = report.verdicts.are_split or (not can_go and report.stopped in ("time", "interrupted"))
    end(is_asked=is_exit_code, is_yes=can_go, is_undecided=is_unknown)


def _played(
    report: ConsolidationReport,
    given: SimulationInput,
    chosen: ChosenScheduler,
    asked: AskedCluster,
    boot_s: float,
    keep: tuple[str, ...],
) -> StepTimeline:
    from kubesched.planning.consolidate.timeline import played
    from kubesched.simulator.options import SimulationOptions

    options = SimulationOptions(seed=asked.seed, tie_break=asked.tie_break)
    steps, rounds = report.steps, report.rounds
    return played(given, steps, rounds, chosen.config, options, registry=chosen.registry, boot_s=boot_s, keep=keep)


def _write_scenario(report: ConsolidationReport, filename: str) -> None:
    from kubesched.cli.files import write_files
    from kubesched.k8s.model.kubernetes_yaml import plain_yaml

    if report.timeline is None or not report.steps:
        say_warning(f"{filename} is not written: there are no steps")
        return
    write_files({filename: plain_yaml(report.timeline.scenario()).encode()})


def _time(at: str | None, asked: AskedCluster) -> float | None:
    """A live cluster is seen now; of a dump, nobody knows unless it is said."""
    from kubesched.cli.files import InputError
    from kubesched.k8s.model.times import InstantError, parse_instant

    if at is None:
        return time.time() if asked.server.is_made else None
    try:
        return parse_instant(at)
    except InstantError as error:
        raise InputError(f"--at: {error}") from None
