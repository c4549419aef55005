"""`kubesched outage`: whether a cluster survives the failure of a zone, a pool or a node.

Next: `kubesched.planning.outage`, which plays the failures.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from kubesched.cli.live import ServerChoice, live_option, server_options
from kubesched.cli.output import ERROR_EXIT, colour_option, print_answer, print_record, say_error, say_warning
from kubesched.cli.scheduler_choice import SchedulerChoice, scheduler_options
from kubesched.cli.simulate import given_cluster

if TYPE_CHECKING:
    from kubesched.planning.outage import OutageReport
    from kubesched.simulator.options import SimulationOptions

NO_EXIT = 1
"""The answer is no."""


@click.command("outage")
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
@click.option(
    "--every",
    metavar="zone|pool|node|LABEL",
    help="Fail each zone, pool, node, or value of a label, one at a time. The default is zone.",
)
@click.option(
    "--fail",
    multiple=True,
    metavar="WHAT",
    help="Fail zone=NAME, pool=NAME, node/NAME or LABEL=VALUE. Repeatable: all fail together.",
)
@click.option("--pairs", is_flag=True, help="With --every: fail every two of them together.")
@click.option("--gone", is_flag=True, help="Delete the failed nodes as well, as a cloud does.")
@click.option("--priority-at-least", type=int, metavar="N", help="Only pods of this priority or more count.")
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
    type=click.Choice(["text", "wide", "json", "yaml"]),
    default="text",
    show_default=True,
    help="wide shows every case, and all that is missing in each.",
)
@colour_option
@click.option("--exit-code", "is_exit_code", is_flag=True, help="Exit with 1 if a case leaves pods without a node.")
def outage(
    filenames: tuple[str, ...],
    kubeconfig: str | None,
    context: str | None,
    live: bool,
    every: str | None,
    fail: tuple[str, ...],
    pairs: bool,
    gone: bool,
    priority_at_least: int | None,
    scheduler: SchedulerChoice,
    seed: int,
    tie_break: str,
    output: str,
    is_exit_code: bool,
) -> None:
    """Find out whether the cluster survives the failure of any zone, pool or node.

    \b
    kubesched outage -f dump.json
    kubesched outage -f dump.json --every node
    kubesched outage -f dump.json --fail zone=a --fail node/b-7
    """
    from kubesched.k8s.errors import KubeschedError
    from kubesched.planning.outage_text import render_outage
    from kubesched.simulator.options import SimulationOptions

    server = ServerChoice(kubeconfig, context, live)
    if not filenames and not server.is_made:
        raise click.UsageError("a cluster is needed: -f FILE, or --live")
    if pairs and every is None:
        raise click.UsageError("--pairs needs --every")
    options = SimulationOptions(seed=seed, tie_break=tie_break)
    wanted = "zone" if every is None and not fail else every
    try:
        report = _play(filenames, server, scheduler, options, wanted, fail, pairs, gone, priority_at_least)
    except KubeschedError as error:
        say_error(str(error))
        sys.exit(ERROR_EXIT)
    if output in ("json", "yaml"):
        print_record(report.to_dict(), output)
    else:
        print_answer(lambda style: render_outage(report, style), output)
    if is_exit_code and not report.survives:
        sys.exit(NO_EXIT)


def _play(
    filenames: tuple[str, ...],
    server: ServerChoice,
    scheduler: SchedulerChoice,
    options: SimulationOptions,
    every: str | None,
    fail: tuple[str, ...],
    pairs: bool,
    gone: bool,
    priority_at_least: int | None,
) -> OutageReport:
    from kubesched.k8s.model.core import Node
    from kubesched.planning.outage import OutagePlayer, failure_cases
    from kubesched.simulator.loading import load

    chosen = scheduler.read()
    for note in chosen.notes:
        say_warning(note)
    given = load(given_cluster(filenames, server))
    nodes = [item for item in given.objects if isinstance(item, Node)]
    cases = failure_cases(nodes, every, fail, pairs=pairs)
    player = OutagePlayer(given, chosen.config, options, chosen.registry, chosen.emulation)
    return player.play(cases, every=every, gone=gone, priority_at_least=priority_at_least)
