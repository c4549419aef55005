"""`kubesched upgrade`: whether a rolling upgrade of nodes finishes, and what blocks it.

Next: `kubesched.planning.upgrade`, which plays it.
"""

from __future__ import annotations

import click

from kubesched.cli.output import counted_progress, told_in_a_line
from kubesched.cli.planning import (
    AskedCluster,
    asked_catalogue,
    catalogue_options,
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


class CountOrPercent(click.ParamType[str]):
    """`1` or `10%`."""

    name = "number"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value)
        if not text.removesuffix("%").isdecimal():
            self.fail(f"{text!r} is neither a number nor a percentage such as 10%", param, ctx)
        return text


COUNT = CountOrPercent()


@click.command("upgrade")
@cluster_options
@click.option("--pool", metavar="NAME", help="Upgrade only the nodes of this pool.")
@click.option(
    "--preset",
    type=click.Choice(["gke", "aks", "eks", "capi", "karpenter-drift", "reboot"]),
    help="Start from the defaults of this service or tool; the options below override them.",
)
@click.option("--max-surge", type=COUNT, metavar="N|PERCENT", help="Extra nodes during the upgrade.  [default: 1]")
@click.option(
    "--max-unavailable",
    type=COUNT,
    metavar="N|PERCENT",
    help="Nodes that may be missing during the upgrade.  [default: 0]",
)
@click.option("--drain-timeout", type=SPAN, metavar="DURATION", help="How long a drain may take.  [default: 1h]")
@click.option(
    "--on-timeout",
    type=click.Choice(["stop", "force", "skip"]),
    help="After the drain timeout: stop, delete the pods despite their budgets, or skip the node.  [default: stop]",
)
@click.option("--boot", type=SPAN, metavar="DURATION", help="How long a new machine takes to join.  [default: 2m]")
@click.option("--soak", type=SPAN, metavar="DURATION", help="How long to wait after each new node.  [default: 0s]")
@click.option(
    "--order", type=click.Choice(["name", "zone", "age", "least-pods"]), help="Order of the nodes.  [default: name]"
)
@click.option("--to-shape", metavar="NAME", help="Replace the nodes by this shape of the catalogue.")
@catalogue_options
@click.option("--find-surge", is_flag=True, help="Also find the smallest surge that finishes.")
@click.option("--find-order", is_flag=True, help="Also find the order with the fewest moves.")
@selection_options("Upgrade only nodes with these labels: pool=workers.", "Leave out nodes with these labels.")
@keep_option
@runs_options()
@jobs_option
@click.option(
    "--time-limit", type=SPAN, metavar="DURATION", help="Stop after this time, and report what was found so far."
)
@report_options(("tries", "stuck", "timeline"))
@click.option("--exit-code", "is_exit_code", is_flag=True, help="Exit with 1 if the upgrade does not finish.")
def upgrade(
    asked: AskedCluster,
    pool: str | None,
    preset: str | None,
    max_surge: str | None,
    max_unavailable: str | None,
    drain_timeout: float | None,
    on_timeout: str | None,
    boot: float | None,
    soak: float | None,
    order: str | None,
    to_shape: str | None,
    catalogues: tuple[str, ...],
    prices: str | None,
    find_surge: bool,
    find_order: bool,
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
    """Simulate a rolling upgrade of nodes: whether it finishes, what blocks it, how often pods move.

    \b
    kubesched upgrade -f dump.json --pool workers --preset gke
    kubesched upgrade -f dump.json --max-surge 10% --drain-timeout 30m --find-surge
    """
    from kubesched.planning.node_groups import NodeSelection
    from kubesched.planning.rolling_upgrade import strategy_of
    from kubesched.planning.several_runs import Runs
    from kubesched.planning.upgrade import UpgradePlayer
    from kubesched.simulator.options import SimulationOptions

    with told_in_a_line():
        strategy = strategy_of(
            preset,
            max_surge=_number(max_surge),
            max_unavailable=_number(max_unavailable),
            drain_timeout_s=drain_timeout,
            on_timeout=on_timeout,
            boot_s=boot,
            soak_s=soak,
            order=order,
        )
        catalogue = asked_catalogue(catalogues, prices)
        given, chosen = asked.read()
        options = SimulationOptions(seed=asked.seed, tie_break=asked.tie_break)
        with stoppable(time_limit) as stopped, counted_progress("nodes upgraded") as progress:
            player = UpgradePlayer(
                given,
                chosen.config,
                options,
                chosen.registry,
                chosen.emulation,
                catalogue,
                to_shape,
                pool,
                progress,
                stopped,
                jobs,
                NodeSelection(nodes, exclude_nodes),
                keep,
                Runs(asked.seed, seeds, orders),
            )
            report = player.report(strategy, preset, find_surge=find_surge, find_order=find_order)
    print_report(report, output, table)
    is_unknown = report.outcome.is_stopped or report.outcome.verdicts.are_split
    end(is_asked=is_exit_code, is_yes=report.finishes, is_undecided=is_unknown)


def _number(text: str | None) -> int | str | None:
    return int(text) if text is not None and text.isdecimal() else text
