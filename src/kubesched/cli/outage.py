"""`kubesched outage`: whether a cluster survives the failure of a zone, a pool or a node.

Next: `kubesched.planning.outage`, which plays the failures.
"""

from __future__ import annotations

import click

from kubesched.cli.output import counted_progress, told_in_a_line
from kubesched.cli.planning import (
    AskedCluster,
    cluster_options,
    end,
    keep_option,
    print_report,
    report_options,
    runs_options,
    selection_options,
    stoppable,
)
from kubesched.cli.scenario import SPAN, jobs_option


@click.command("outage")
@cluster_options
@click.option(
    "--every",
    metavar="zone|pool|node|LABEL",
    help="Fail each zone, pool, node, or value of a label, one at a time.  [default: zone]",
)
@click.option(
    "--fail",
    multiple=True,
    metavar="WHAT",
    help="Fail zone=NAME, pool=NAME, node/NAME or LABEL=VALUE. If repeated, all fail together.",
)
@click.option("--pairs", is_flag=True, help="With --every: fail them in pairs.")
@click.option(
    "--random", type=click.IntRange(min=1), metavar="N", help="Fail N random nodes; repeat this --trials times."
)
@click.option(
    "--trials", type=click.IntRange(1, 100_000), metavar="M", help="Number of trials with --random.  [default: 200]"
)
@click.option("--full", is_flag=True, help="Simulate the loss of single nodes in virtual time, too; slower.")
@click.option("--gone", is_flag=True, help="Also delete the failed Node objects, as a cloud provider does.")
@click.option(
    "--force-delete-after",
    type=SPAN,
    metavar="DURATION",
    help="Force-delete pods that have been Terminating on a failed node for this long.",
)
@click.option("--priority-at-least", type=int, metavar="N", help="Count only pods with at least this priority.")
@selection_options("Fail only nodes with these labels: pool=spot.", "Do not fail nodes with these labels.")
@keep_option
@runs_options()
@jobs_option
@click.option("--time-limit", type=SPAN, metavar="DURATION", help="Stop after this time, and report the cases so far.")
@report_options(("cases", "workloads"))
@click.option("--exit-code", "is_exit_code", is_flag=True, help="Exit with 1 if any case leaves pods without a node.")
def outage(
    asked: AskedCluster,
    every: str | None,
    fail: tuple[str, ...],
    pairs: bool,
    random: int | None,
    trials: int | None,
    full: bool,
    gone: bool,
    force_delete_after: float | None,
    priority_at_least: int | None,
    nodes: str,
    exclude_nodes: str,
    keep: tuple[str, ...],
    seeds: int,
    orders: int,
    jobs: int,
    time_limit: float | None,
    output: str,
    table: str,
    is_exit_code: bool,
) -> None:
    """Find out whether the cluster survives the failure of any zone, pool or node.

    \b
    kubesched outage -f dump.json
    kubesched outage -f dump.json --every node
    kubesched outage -f dump.json --fail zone=a --fail node/b-7
    kubesched outage -f dump.json --random 3
    """
    from kubesched.planning.node_groups import NodeSelection
    from kubesched.planning.outage import DEFAULT_TRIALS, OutagePlayer
    from kubesched.planning.outage_report import OutageRules
    from kubesched.planning.several_runs import Runs
    from kubesched.simulator.options import SimulationOptions

    if pairs and every is None:
        raise click.UsageError("--pairs needs --every")
    if trials is not None and random is None:
        raise click.UsageError("--trials needs --random")
    if random is not None and (every is not None or fail):
        raise click.UsageError("--random cannot be combined with --every or --fail")
    wanted = "zone" if every is None and not fail and random is None else every
    with told_in_a_line():
        given, chosen = asked.read()
        options = SimulationOptions(seed=asked.seed, tie_break=asked.tie_break)
        player = OutagePlayer(
            given,
            chosen.config,
            options,
            chosen.registry,
            chosen.emulation,
            keep,
            jobs,
            NodeSelection(nodes, exclude_nodes),
            Runs(asked.seed, seeds, orders),
        )
        with stoppable(time_limit) as stopped, counted_progress("cases") as progress:
            report = player.report(
                every=wanted,
                fail=fail,
                pairs=pairs,
                random=random or 0,
                trials=trials or DEFAULT_TRIALS,
                full=full,
                rules=OutageRules(gone, force_delete_after, priority_at_least),
                progress=progress,
                stopped=stopped,
            )
    print_report(report, output, table)
    is_unknown = report.survives and report.n_unplayed > 0
    end(is_asked=is_exit_code, is_yes=report.survives, is_undecided=is_unknown or report.verdicts.are_split)
