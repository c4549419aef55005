"""`kubesched plan`: which nodes to buy, at the least cost.

Next: `kubesched.planning.plan`, which plans.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import click

from kubesched.cli.catalogue import read_catalogues
from kubesched.cli.output import say_warning, told_in_a_line
from kubesched.cli.planning import (
    AskedCluster,
    catalogue_options,
    cluster_options,
    end_if_guessed,
    plan_watch,
    print_report,
    report_options,
    runs_options,
    seconds_of_limit,
    selection_options,
)
from kubesched.cli.scenario import jobs_option

if TYPE_CHECKING:
    from kubesched.planning.plan.report import PlanReport
    from kubesched.planning.plan.request import PlanRequest

EXITS = {"yes": 0, "no": 1, "undecided": 3}


def _verify(_context: click.Context, _: click.Parameter, filename: str | None) -> None:
    if filename is None:
        return
    from kubesched.k8s.loaded_cluster import read_file
    from kubesched.planning.plan.certificate import check_certificate
    from kubesched.planning.plan.model import PlanError

    with told_in_a_line():
        data = read_file(filename)
        try:
            record = json.loads(data)
        except (ValueError, RecursionError) as problem:
            raise PlanError(f"{filename}: not JSON: {problem}") from None
        checked = check_certificate(record, filename)
    click.echo(f"{filename}: {checked.text}" if checked.holds else f"{filename}: does not hold: {checked.text}")
    sys.exit(0 if checked.holds else 1)


@click.command("plan")
@click.option(
    "--verify",
    metavar="FILE",
    is_eager=True,
    expose_value=False,
    callback=_verify,
    help="Only check the proof in this certificate.",
)
@cluster_options
@catalogue_options
@click.option("--pool", metavar="NAME", help="Buy only machines of this pool of the catalogue.")
@click.option("--shape", "shapes", multiple=True, metavar="NAME", help="Buy only machines of this name. Repeatable.")
@click.option("--from-scratch", is_flag=True, help="Plan a whole new cluster, without the existing nodes.")
@click.option(
    "--objective", type=click.Choice(["cost", "nodes"]), default="cost", show_default=True, help="What to minimise."
)
@click.option("--max-nodes", type=click.IntRange(min=1), help="Buy at most this many nodes.")
@click.option("--max-types", type=click.IntRange(min=1), help="Buy at most this many kinds of machines.")
@click.option(
    "--min-nodes-per-zone", type=click.IntRange(min=0), default=0, help="Have at least this many nodes in each zone."
)
@click.option("--spot-share", metavar="SHARE", help="Allow at most this share of the new CPUs to be spot: 60%.")
@click.option("--headroom", metavar="SHARE", help="Keep this share of each new node's CPU and memory free: 15%.")
@click.option(
    "--keep",
    multiple=True,
    metavar="NxSHAPE[@ZONE]",
    help="Room to keep free: 20x500m/1Gi; n-1:zone is as much as any one zone has. Repeatable.",
)
@click.option(
    "--survive", type=click.Choice(["zone", "node"]), help="All pods must still fit after the loss of any one."
)
@click.option(
    "--priority-at-least",
    type=int,
    metavar="N",
    help="With --survive: require it only of pods with at least this priority.",
)
@click.option(
    "--spread",
    type=click.Choice(["literal", "intent"]),
    default="literal",
    show_default=True,
    help="intent: assume an empty node in every zone for spread constraints, as autoscalers do.",
)
@click.option(
    "--arrival",
    type=click.Choice(["together", "later", "rest-later"]),
    default="together",
    show_default=True,
    help="later: pods are pending while the nodes join one by one; rest-later: some nodes exist before them.",
)
@click.option(
    "--fill",
    type=click.Choice(["evenly", "in-turn"]),
    default="evenly",
    show_default=True,
    help="in-turn: some of the nodes get a soft taint (PreferNoSchedule), so that the others are filled first.",
)
@click.option(
    "--follow-weights",
    is_flag=True,
    help="Buy from the heaviest NodePool that fits a pod, as Karpenter does.",
)
@click.option("--ideal", is_flag=True, help="Pack the pods optimally, without asking the scheduler.")
@click.option("--alternatives", type=click.IntRange(min=0), default=0, help="Number of other plans to show.")
@selection_options(
    "Of the existing nodes, use only those with these labels.", "Do not use existing nodes with these labels."
)
@runs_options(orders=5)
@jobs_option
@click.option(
    "--time-limit", default="60s", show_default=True, metavar="DURATION", help="Stop searching after this time."
)
@click.option("--write", metavar="FILE", help="Write the new nodes as manifests, for kubesched up.")
@click.option("--certificate", metavar="FILE", help="Write a proof of the plan, for --verify.")
@report_options(("machines", "nodes", "pending", "alternatives"), "nodes")
def plan(
    asked: AskedCluster,
    catalogues: tuple[str, ...],
    prices: str | None,
    pool: str | None,
    shapes: tuple[str, ...],
    from_scratch: bool,
    objective: str,
    max_nodes: int | None,
    max_types: int | None,
    min_nodes_per_zone: int,
    spot_share: str | None,
    headroom: str | None,
    keep: tuple[str, ...],
    nodes: str,
    exclude_nodes: str,
    survive: str | None,
    priority_at_least: int | None,
    spread: str,
    arrival: str,
    fill: str,
    follow_weights: bool,
    ideal: bool,
    alternatives: int,
    seeds: int,
    orders: int,
    jobs: int,
    time_limit: str,
    write: str | None,
    certificate: str | None,
    output: str,
    table: str,
) -> None:
    """Find the cheapest machines on which the scheduler places every pod, and how near that is to the optimum.

    \b
    kubesched plan -f dump.json -f new.yaml --catalogue aws.json
    kubesched plan -f apps/ --catalogue aws.json --from-scratch --survive zone
    kubesched plan --verify certificate.json
    """
    if not catalogues:
        raise click.UsageError("a catalogue is needed: --catalogue FILE")
    with told_in_a_line():
        from kubesched.cli.files import check_place
        from kubesched.planning.node_groups import NodeSelection
        from kubesched.planning.plan.request import PlanRequest, percent_of

        request = PlanRequest(
            objective=objective,
            pool=pool,
            from_scratch=from_scratch,
            max_nodes=max_nodes,
            max_types=max_types,
            min_nodes_per_zone=min_nodes_per_zone,
            spot_share_percent=None if spot_share is None else percent_of(spot_share, "--spot-share"),
            headroom_percent=0 if headroom is None else percent_of(headroom, "--headroom"),
            keep=keep,
            survive=survive or "",
            priority_at_least=priority_at_least,
            spread=spread,
            arrival=arrival,
            fill=fill,
            follow_weights=follow_weights,
            ideal=ideal,
            alternatives=alternatives,
            seeds=seeds,
            orders=orders,
            seed=asked.seed,
            tie_break=asked.tie_break,
            time_limit_s=seconds_of_limit(time_limit),
            selection=NodeSelection(nodes, exclude_nodes),
        )
        for filename in filter(None, (write, certificate)):
            check_place(filename)
        report = _planned(asked, catalogues, prices, shapes, request, jobs)
        end_if_guessed(report)
        _write_files(report, write, certificate)
    if output == "nodes":
        click.echo(_manifests(report), nl=False)
    else:
        print_report(report, output, table)
    sys.exit(EXITS[report.answer])


def _planned(
    asked: AskedCluster,
    catalogues: tuple[str, ...],
    prices: str | None,
    shapes: tuple[str, ...],
    request: PlanRequest,
    jobs: int,
) -> PlanReport:
    from kubesched.planning.plan.planner import Planner

    given, chosen = asked.read(needs_nodes=False)
    catalogue = read_catalogues(catalogues, prices, given.node_makers)
    if shapes:
        catalogue = catalogue.only(shapes)
    if chosen.emulation is not None:
        raise click.UsageError("--emulate is not for plan: pods are placed by today's scheduler")
    with plan_watch("planning", request.time_limit_s) as watch:
        return Planner(given, catalogue, request, chosen.config, chosen.registry, watch, jobs).plan()


def _write_files(report: PlanReport, write: str | None, certificate: str | None) -> None:
    """Nothing is written for an answer that is not yes."""
    from kubesched.cli.files import write_files

    if report.answer != "yes":
        for name in filter(None, (write, certificate)):
            say_warning(f"{name} is not written: there is no plan")
        return
    if certificate is not None and report.certificate is None:
        say_warning(f"{certificate} is not written: --ideal gives no certificate")
        certificate = None
    files = {write: _manifests(report), certificate: json.dumps(report.certificate, indent=1) + "\n"}
    write_files({filename: text.encode() for filename, text in files.items() if filename is not None})


def _manifests(report: PlanReport) -> str:
    from kubesched.k8s.model.kubernetes_yaml import plain_yaml
    from kubesched.planning.new_nodes import manifest_of

    return "---\n".join(plain_yaml(manifest_of(item)) for item in report.new_objects)
