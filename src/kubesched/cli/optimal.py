"""`kubesched optimal`: how near to optimal a cluster is.

Next: `kubesched.planning.optimal`, which measures.
"""

from __future__ import annotations

import click

from kubesched.cli.output import told_in_a_line
from kubesched.cli.planning import (
    AskedCluster,
    asked_catalogue,
    catalogue_options,
    cluster_options,
    keep_option,
    plan_watch,
    print_report,
    report_options,
    runs_options,
    seconds_of_limit,
    selection_options,
)


@click.command("optimal")
@cluster_options
@catalogue_options
@click.option(
    "--time-limit", default="60s", show_default=True, metavar="DURATION", help="Stop searching after this time."
)
@selection_options("Measure only nodes with these labels.", "Leave out nodes with these labels.")
@keep_option
@runs_options()
@report_options(["resources", "priorities", "moves"])
def optimal(
    asked: AskedCluster,
    catalogues: tuple[str, ...],
    prices: str | None,
    time_limit: str,
    nodes: str,
    exclude_nodes: str,
    keep: tuple[str, ...],
    seeds: int,
    orders: int,
    output: str,
    table: str,
) -> None:
    """Measure how far a cluster is from optimal: nodes, cost, fragmentation, stranded room, pods by priority.

    \b
    kubesched optimal -f dump.json
    kubesched optimal -f dump.json --catalogue aws.json
    """
    with told_in_a_line():
        from kubesched.planning.node_groups import NodeSelection
        from kubesched.planning.optimal import measure
        from kubesched.planning.several_runs import Runs

        limit_s = seconds_of_limit(time_limit)
        catalogue = asked_catalogue(catalogues, prices)
        given, chosen = asked.read()
        if chosen.emulation is not None:
            raise click.UsageError("--emulate is not for optimal: pods are placed by today's scheduler")
        with plan_watch("measuring", limit_s) as watch:
            report = measure(
                given,
                catalogue,
                chosen.config,
                chosen.registry,
                watch,
                Runs(asked.seed, seeds, orders),
                asked.tie_break,
                keep,
                NodeSelection(nodes, exclude_nodes),
            )
    print_report(report, output, table)
