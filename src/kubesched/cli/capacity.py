"""`kubesched capacity`: how many more copies of a pod fit, what stops the next one, and what would let more fit.

Next: `kubesched.planning.capacity`, which counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kubesched.cli.output import told_in_a_line
from kubesched.cli.planning import (
    AskedCluster,
    cluster_options,
    end,
    keep_option,
    print_report,
    report_options,
    runs_options,
    selection_options,
)
from kubesched.cli.scenario import jobs_option

if TYPE_CHECKING:
    from fractions import Fraction


_ALONE = ("pod", "shapes", "workloads", "every", "app_files", "by", "nodes", "exclude_nodes", "most", "keep")
"""Options that ask about something else than the growth of everything."""


@click.command("capacity")
@cluster_options
@click.option("--pod", metavar="FILE|NS/NAME", help="Pod to count: a manifest, or a pod of the cluster to copy.")
@click.option(
    "--shape",
    "--shapes",
    "shapes",
    multiple=True,
    metavar="CPU/MEMORY",
    help="Count pods that request this much: 500m/1Gi, or cpu=1,nvidia.com/gpu=1. Several: 500m/1Gi,2/8Gi. Repeatable.",
)
@click.option(
    "--workload",
    "workloads",
    multiple=True,
    metavar="KIND/NS/NAME",
    help="Count more replicas of this workload: deployment/shop/web. Repeatable.",
)
@click.option(
    "--every", type=click.Choice(["workload"]), help="Count more replicas of each workload, one workload at a time."
)
@click.option(
    "--app",
    "app_files",
    multiple=True,
    metavar="FILE",
    help="Count whole copies of an application: a manifest or a directory. Repeatable.",
)
@click.option(
    "--inflate",
    type=click.Choice(["replicas", "requests"]),
    help="Find how far all workloads can grow together, in percent.",
)
@click.option("--step", metavar="PERCENT", help="Step size for --inflate.  [default: 1%]")
@click.option(
    "--by",
    multiple=True,
    metavar="zone|pool|namespace|LABEL",
    help="Also count for each group of nodes, or in each namespace, separately; several with commas. Repeatable.",
)
@selection_options("Use only nodes with these labels: pool=workers.", "Leave out nodes with these labels.")
@click.option(
    "--quota",
    type=click.Choice(["apply", "ignore"]),
    default="apply",
    show_default=True,
    help="Whether ResourceQuotas and LimitRanges apply to the copies.",
)
@click.option(
    "--preemption",
    type=click.Choice(["never", "count"]),
    default="never",
    show_default=True,
    help="count: copies may preempt pods that fit elsewhere.",
)
@click.option("--let-lose", is_flag=True, help="With --preemption count: also preempt pods that fit nowhere else.")
@click.option("--max", "most", type=int, help="Stop counting at this many.  [default: 100000]")
@runs_options()
@jobs_option
@keep_option
@report_options(["fits", "by_node", "remedies", "victims"])
@click.option("--exit-code", "is_exit_code", is_flag=True, help="Exit with 1 if no copy fits.")
@click.pass_context
def capacity(
    context: click.Context,
    asked: AskedCluster,
    pod: str | None,
    shapes: tuple[str, ...],
    workloads: tuple[str, ...],
    every: str | None,
    app_files: tuple[str, ...],
    inflate: str | None,
    step: str | None,
    by: tuple[str, ...],
    nodes: str,
    exclude_nodes: str,
    quota: str,
    preemption: str,
    let_lose: bool,
    most: int | None,
    seeds: int,
    orders: int,
    jobs: int,
    keep: tuple[str, ...],
    output: str,
    table: str,
    is_exit_code: bool,
) -> None:
    """Count how many more copies of a pod fit, on which nodes, what stops the next one, and what would let more fit.

    \b
    kubesched capacity -f dump.json --pod web.yaml
    kubesched capacity -f dump.json --shape 500m/1Gi --shape 2/8Gi --by zone
    kubesched capacity -f dump.json --workload deployment/shop/web
    kubesched capacity -f dump.json --every workload
    kubesched capacity -f dump.json --app rendered.yaml
    kubesched capacity -f dump.json --inflate replicas --step 5%
    """
    from kubesched.planning.capacity import MOST_COPIES
    from kubesched.planning.capacity import capacity as count
    from kubesched.planning.growth import growth

    if let_lose and preemption != "count":
        raise click.UsageError("--let-lose needs --preemption count")
    if inflate is not None:
        if (
            any(context.params[name] not in (None, "", ()) for name in _ALONE)
            or preemption != "never"
            or seeds * orders * jobs > 1
        ):
            raise click.UsageError("--inflate asks for all workloads together: no --pod, --by, --max or the like")
        with told_in_a_line():
            grown = growth(
                asked.world("capacity"),
                what=inflate,
                step=_percent(step or "1%"),
                quota=quota == "apply",
                seed=asked.seed,
            )
        print_report(grown, output, "growth")
        end(is_asked=is_exit_code, is_yes=bool(grown.percent))
        return
    if step is not None:
        raise click.UsageError("--step needs --inflate")
    shapes = tuple(one for text in shapes for one in (text.split(",") if "=" not in text else [text]))
    by = tuple(one for text in by for one in text.split(","))
    if pod is None and not shapes and not workloads and not app_files and every is None:
        raise click.UsageError("a pod is needed: --pod FILE, --shape 500m/1Gi, or --workload deployment/shop/web")
    with told_in_a_line():
        report = count(
            asked.world("capacity"),
            pod,
            shapes=shapes,
            workloads=workloads,
            every=every is not None,
            app=app_files,
            by=by,
            nodes=nodes,
            exclude_nodes=exclude_nodes,
            quota=quota == "apply",
            preemption=preemption,
            let_lose=let_lose,
            most=MOST_COPIES if most is None else most,
            seeds=seeds,
            orders=orders,
            keep=keep,
            remedies=output != "prometheus",
            seed=asked.seed,
            jobs=jobs,
        )
    print_report(report, output, table)
    end(is_asked=is_exit_code, is_yes=bool(report.fits), is_undecided=report.verdicts.are_split)


def _percent(text: str) -> Fraction:
    from fractions import Fraction

    try:
        return Fraction(text.removesuffix("%"))
    except (ValueError, ZeroDivisionError):
        raise click.UsageError(f'--step "{text}" is no percentage, such as 5%') from None
