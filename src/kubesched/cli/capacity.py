"""`kubesched capacity`: how many more copies of a pod fit, and what stops the next one.

Next: `kubesched.planning.capacity`, which counts.
"""

from __future__ import annotations

import sys

import click

from kubesched.cli.output import print_record
from kubesched.cli.planning import NO_EXIT, AskedCluster, cluster_options, told_in_a_line
from kubesched.cli.report_file import is_report_asked, report_file_option, write_report


@click.command("capacity")
@cluster_options
@click.option("--pod", metavar="FILE|NS/NAME", help="The pod: a manifest, or a pod of the cluster to copy.")
@click.option(
    "--shape", "--shapes", "shapes", multiple=True, metavar="CPU/MEMORY", help="Or amounts: 500m/1Gi. Repeatable."
)
@click.option(
    "--workload",
    "workloads",
    multiple=True,
    metavar="KIND/NS/NAME",
    help="Or more replicas of a workload: deployment/shop/web. Repeatable.",
)
@click.option("--every", type=click.Choice(["workload"]), help="Or more replicas of each workload, one at a time.")
@click.option(
    "--app",
    "app_files",
    multiple=True,
    metavar="FILE",
    help="Or whole copies of an application: its manifests, a directory. Repeatable.",
)
@click.option(
    "--inflate", type=click.Choice(["replicas"]), help="Or how far all workloads can grow together, in percent."
)
@click.option("--step", metavar="PERCENT", help="Grow in steps of this much; 1% by default.")
@click.option(
    "--by", multiple=True, metavar="zone|pool|LABEL", help="Ask each group of nodes by itself, too. Repeatable."
)
@click.option(
    "--quota",
    type=click.Choice(["apply", "ignore"]),
    default="apply",
    show_default=True,
    help="Whether ResourceQuotas and LimitRanges hold for the copies.",
)
@click.option("--max", "most", type=click.IntRange(min=1), help="Try no more copies than this.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "wide", "json", "yaml", "prometheus"]),
    default="text",
    show_default=True,
    help="wide shows every node; prometheus prints metrics.",
)
@report_file_option
@click.option("--exit-code", "is_exit_code", is_flag=True, help="Exit with 1 if none fits.")
def capacity(
    asked: AskedCluster,
    pod: str | None,
    shapes: tuple[str, ...],
    workloads: tuple[str, ...],
    every: str | None,
    app_files: tuple[str, ...],
    inflate: str | None,
    step: str | None,
    by: tuple[str, ...],
    quota: str,
    most: int | None,
    output: str,
    is_exit_code: bool,
) -> None:
    """Count how many more copies of a pod fit, on which nodes, and what stops the next one.

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
    from kubesched.planning.report_pages import capacity_page

    if inflate is not None:
        if pod is not None or shapes or workloads or every or app_files or by or most is not None:
            raise click.UsageError("--inflate asks for all workloads together: no --pod, --by, --max or the like")
        if output == "prometheus" or is_report_asked():
            raise click.UsageError("--inflate prints text, json or yaml, and writes no report")
        _print_growth(asked, step or "1%", quota == "apply", output, is_exit_code)
        return
    if step is not None:
        raise click.UsageError("--step needs --inflate")
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
            quota=quota == "apply",
            most=most or MOST_COPIES,
        )
    if output in ("json", "yaml"):
        print_record(report.to_dict(), output)
    elif output == "prometheus":
        click.echo(report.to_prometheus(), nl=False)
    else:
        click.echo(report.text(wide=output == "wide"))
    write_report(lambda command: capacity_page(command, report))
    if is_exit_code and not report.fits:
        sys.exit(NO_EXIT)


def _print_growth(asked: AskedCluster, step: str, has_quota: bool, output: str, is_exit_code: bool) -> None:
    from fractions import Fraction

    from kubesched.planning.growth import growth

    try:
        percent = Fraction(step.removesuffix("%"))
    except (ValueError, ZeroDivisionError):
        raise click.UsageError(f'--step "{step}" is no percentage, such as 5%') from None
    with told_in_a_line():
        report = growth(asked.world("capacity"), step=percent, quota=has_quota)
    if output in ("json", "yaml"):
        print_record(report.to_dict(), output)
    else:
        click.echo(str(report))
    if is_exit_code and not report.n_more:
        sys.exit(NO_EXIT)
