"""`kubesched optimal`: how near to optimal a cluster is.

Next: `kubesched.planning.optimal`, which measures.
"""

from __future__ import annotations

import click

from kubesched.cli.planning import (
    AskedCluster,
    asked_catalogue,
    catalogue_options,
    cluster_options,
    print_report,
    report_options,
    told_in_a_line,
)


@click.command("optimal")
@cluster_options
@catalogue_options
@click.option("--time-limit", default="60s", show_default=True, metavar="DURATION", help="Stop improving after this.")
@report_options(["resources", "priorities"])
def optimal(
    asked: AskedCluster, catalogues: tuple[str, ...], prices: str | None, time_limit: str, output: str, table: str
) -> None:
    """How near to optimal a cluster is: fewest nodes, least cost, fragmentation, stranded room, pods by priority.

    \b
    kubesched optimal -f dump.json
    kubesched optimal -f dump.json --catalogue aws.json
    """
    with told_in_a_line():
        from kubesched.k8s.model.times import DurationError, span_s
        from kubesched.planning.optimal import measure
        from kubesched.planning.plan.model import PlanError
        from kubesched.planning.plan.planner import PlanWatch

        try:
            limit_s = span_s(time_limit)
        except DurationError as error:
            raise PlanError(f"--time-limit: {error}") from None
        catalogue = asked_catalogue(catalogues, prices)
        given, chosen = asked.read()
        if chosen.emulation is not None:
            raise click.UsageError("--emulate is not for optimal: pods are placed by today's scheduler")
        watch = PlanWatch(limit_s)
        report = measure(given, catalogue, chosen.config, chosen.registry, watch, asked.seed, asked.tie_break)
    print_report(report, output, table)
