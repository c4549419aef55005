"""`kubesched capacity`: how many more copies of a pod fit, and what stops the next one.

Next: `kubesched.planning.capacity`, which counts.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from kubesched.cli.live import ServerChoice, live_option, server_options
from kubesched.cli.output import ERROR_EXIT, print_record, say_error, say_warning
from kubesched.cli.scheduler_choice import SchedulerChoice, scheduler_options
from kubesched.cli.simulate import given_cluster

if TYPE_CHECKING:
    from kubesched.simulator.trial import LoadedWorld

NONE_FIT_EXIT = 1


@click.command("capacity")
@click.option(
    "-f",
    "--filename",
    "filenames",
    multiple=True,
    metavar="FILE",
    help="The cluster: a dump, manifests, a directory; - for standard input. Repeatable.",
)
@server_options
@live_option
@click.option("--pod", metavar="FILE|NS/NAME", help="The pod: a manifest, or a pod of the cluster to copy.")
@click.option(
    "--shape", "--shapes", "shapes", multiple=True, metavar="CPU/MEMORY", help="Or amounts: 500m/1Gi. Repeatable."
)
@click.option(
    "--by", multiple=True, metavar="zone|pool|LABEL", help="Ask each group of nodes by itself, too. Repeatable."
)
@click.option("--max", "most", type=click.IntRange(min=1), help="Try no more copies than this.")
@scheduler_options
@click.option("--seed", type=int, default=0, show_default=True, help="Seed; the same seed gives the same result.")
@click.option(
    "--tie-break",
    type=click.Choice(["random", "name"]),
    default="random",
    show_default=True,
    help="How to choose among equally good nodes: at random (by the seed), or the first by name.",
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "wide", "json", "yaml", "prometheus"]),
    default="text",
    show_default=True,
    help="wide shows every node; prometheus prints metrics.",
)
@click.option("--exit-code", "is_exit_code", is_flag=True, help="Exit with 1 if none fits.")
def capacity(
    filenames: tuple[str, ...],
    kubeconfig: str | None,
    context: str | None,
    live: bool,
    pod: str | None,
    shapes: tuple[str, ...],
    by: tuple[str, ...],
    most: int | None,
    scheduler: SchedulerChoice,
    seed: int,
    tie_break: str,
    output: str,
    is_exit_code: bool,
) -> None:
    """Count how many more copies of a pod fit, on which nodes, and what stops the next one.

    \b
    kubesched capacity -f dump.json --pod web.yaml
    kubesched capacity -f dump.json --shape 500m/1Gi --shape 2/8Gi --by zone
    """
    from kubesched.k8s.errors import KubeschedError
    from kubesched.planning.capacity import MOST_COPIES
    from kubesched.planning.capacity import capacity as count

    server = ServerChoice(kubeconfig, context, live)
    if not filenames and not server.is_made:
        raise click.UsageError("a cluster is needed: -f FILE, or --live")
    if pod is None and not shapes:
        raise click.UsageError("a pod is needed: --pod FILE, or --shape 500m/1Gi")
    try:
        world = _world(filenames, server, scheduler, seed, tie_break)
        report = count(world, pod, shapes=shapes, by=by, most=most or MOST_COPIES)
    except KubeschedError as error:
        say_error(str(error))
        sys.exit(ERROR_EXIT)
    if output in ("json", "yaml"):
        print_record(report.to_dict(), output)
    elif output == "prometheus":
        click.echo(report.to_prometheus(), nl=False)
    else:
        click.echo(report.text(wide=output == "wide"))
    if is_exit_code and not report.fits:
        sys.exit(NONE_FIT_EXIT)


def _world(
    filenames: tuple[str, ...], server: ServerChoice, scheduler: SchedulerChoice, seed: int, tie_break: str
) -> LoadedWorld:
    from kubesched.simulator.expansion import expand
    from kubesched.simulator.loading import load
    from kubesched.simulator.trial import LoadedWorld

    chosen = scheduler.read()
    if chosen.emulation is not None:
        raise click.UsageError("--emulate is not for capacity: copies are placed by today's scheduler")
    for note in chosen.notes:
        say_warning(note)
    given = expand(load(given_cluster(filenames, server)), seed)
    for refusal in given.refused:
        say_warning(refusal)
    return LoadedWorld(given.objects, chosen.config, registry=chosen.registry, tie_break=tie_break, seed=seed)
