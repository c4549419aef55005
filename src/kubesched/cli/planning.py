"""What the commands of planning share: which cluster and scheduler are asked, in which forms a report is printed.

Next: one module per command; `kubesched.planning` for the answers.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, Protocol

import click
from click.core import ParameterSource

from kubesched.cli.live import ServerChoice, live_option, server_options
from kubesched.cli.output import (
    colour_option,
    format_option,
    print_answer,
    print_csv,
    print_markdown,
    print_record,
    say_warning,
    told_in_a_line,
)
from kubesched.cli.report_file import report_file_option, write_report
from kubesched.cli.scenario import AskedScenario, seed_option, tie_break_option
from kubesched.cli.scheduler_choice import ChosenScheduler, SchedulerChoice, scheduler_options

if TYPE_CHECKING:
    from kubesched.explanation.layout import Style
    from kubesched.planning.catalogue import Catalogue
    from kubesched.planning.plan.planner import PlanWatch
    from kubesched.simulator.column_table import ColumnTable
    from kubesched.simulator.loading import SimulationInput, SourcedObject
    from kubesched.simulator.trial import LoadedWorld

NO_EXIT = 1
"""The answer is no."""
UNDECIDED_EXIT = 3
"""It ended before there was an answer to rely on."""


@dataclass(frozen=True, slots=True)
class AskedCluster:
    """The cluster and the scheduler that a command line names."""

    filenames: tuple[str, ...]
    server: ServerChoice
    scheduler: SchedulerChoice
    seed: int
    tie_break: str
    replicas: str = "current"
    ignore: tuple[str, ...] = ()

    def read(self, *, needs_nodes: bool = True) -> tuple[SimulationInput, ChosenScheduler]:
        """Whatever is wrong with it is a KubeschedError; warnings are printed."""
        from kubesched.cli.files import InputError
        from kubesched.k8s.model.core import Node

        if self.scheduler.reads_stdin and "-" in self.filenames:
            raise InputError("<stdin>: cannot be both the configuration and the manifests")
        chosen = self.scheduler.read()
        for note in chosen.notes:
            say_warning(note)
        given = AskedScenario(self.filenames, self.server).read(self.replicas, self.ignore, plans=True)
        if needs_nodes and not any(isinstance(item, Node) for item in given.objects):
            raise InputError(f"{', '.join(self.filenames) or 'the cluster'}: there are no nodes")
        return given, chosen

    def world(self, command: str, *, keeps_classes: bool | None = True) -> LoadedWorld:
        """The cluster at rest, for trials by today's scheduler."""
        return self.world_of(*self.read(), command, keeps_classes=keeps_classes)

    def world_of(
        self, given: SimulationInput, chosen: ChosenScheduler, command: str, *, keeps_classes: bool | None = True
    ) -> LoadedWorld:
        """Of what was read."""
        from kubesched.simulator.expansion import expand
        from kubesched.simulator.trial import LoadedWorld

        if chosen.emulation is not None:
            raise click.UsageError(f"--emulate is not for {command}: pods are placed by today's scheduler")
        expanded = expand(given, self.seed)
        for refusal in expanded.refused:
            say_warning(refusal)
        return LoadedWorld(
            expanded.objects,
            chosen.config,
            registry=chosen.registry,
            tie_break=self.tie_break,
            seed=self.seed,
            workloads=expanded.workloads,
            bounds=expanded.bounds,
            guesses=given.guesses,
            node_makers=given.node_makers,
            keeps_classes=keeps_classes,
        )


def cluster_options(command: Callable[..., None]) -> Callable[..., None]:
    """`-f`, `--live` and the like, and the scheduler's options; the command gets them as one `asked`."""

    @click.option(
        "-f",
        "--filename",
        "filenames",
        multiple=True,
        metavar="FILE",
        help="The cluster: a dump, manifests or a directory; - for standard input. Repeatable.",
    )
    @server_options
    @live_option
    @scheduler_options
    @seed_option
    @tie_break_option
    @premise_options
    @wraps(command)
    def with_cluster(
        *args: Any,
        filenames: tuple[str, ...],
        kubeconfig: str | None,
        context: str | None,
        live: bool,
        scheduler: SchedulerChoice,
        seed: int,
        tie_break: str,
        replicas: str,
        ignore: tuple[str, ...],
        **others: Any,
    ) -> None:
        server = ServerChoice(kubeconfig, context, live)
        if not filenames and not server.is_made:
            raise click.UsageError("a cluster is needed: -f FILE, or --live")
        command(*args, asked=AskedCluster(filenames, server, scheduler, seed, tie_break, replicas, ignore), **others)

    return with_cluster


def premise_options(command: Callable[..., None]) -> Callable[..., None]:
    """`--replicas` and `--ignore`: what the cluster is supposed to be like."""
    replicas = click.option(
        "--replicas",
        type=click.Choice(["current", "min", "max"]),
        default="current",
        show_default=True,
        help="Replicas of autoscaled workloads: current, or the minimum or maximum of their HorizontalPodAutoscalers.",
    )
    ignore = click.option(
        "--ignore",
        type=click.Choice(["pending", "daemons", "static", "budgets"]),
        multiple=True,
        help="Leave out pending pods, DaemonSet pods, static pods or PodDisruptionBudgets. Repeatable.",
    )
    return replicas(ignore(command))


def catalogue_options(command: Callable[..., None]) -> Callable[..., None]:
    files = click.option(
        "--catalogue", "catalogues", multiple=True, metavar="FILE", help="Catalogue of machines and prices. Repeatable."
    )
    prices = click.option("--prices", metavar="FILE", help="Prices: CSV with instanceType,zone,capacityType,hourly.")
    return files(prices(command))


def asked_catalogue(
    files: tuple[str, ...], prices: str | None, makers: Sequence[SourcedObject] = ()
) -> Catalogue | None:
    """None if none was named. `makers` are the NodePools of the cluster."""
    from kubesched.cli.catalogue import read_catalogues

    if not files and prices is not None:
        raise click.UsageError("--prices needs --catalogue")
    return read_catalogues(files, prices, makers) if files else None


keep_option = click.option(
    "--keep",
    multiple=True,
    metavar="NxSHAPE[@ZONE]|FILE",
    help="Room to keep free: 20x500m/1Gi, or a file with CapacityBuffers. Repeatable.",
)


def runs_options(orders: int = 1) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """`--seeds` and `--orders`."""
    seeds_option = click.option(
        "--seeds",
        type=click.IntRange(min=1),
        default=1,
        show_default=True,
        help="Number of seeds to try; a yes is a yes with all.",
    )
    orders_option = click.option(
        "--orders",
        type=click.IntRange(min=1),
        default=orders,
        show_default=True,
        help="Number of orders of arrival to try; a yes is a yes in all.",
    )

    def with_options(command: Callable[..., None]) -> Callable[..., None]:
        return seeds_option(orders_option(command))

    return with_options


def selection_options(nodes: str, exclude_nodes: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """`--nodes` and `--exclude-nodes`; each command says what becomes of the nodes."""
    wanted = click.option("--nodes", default="", metavar="SELECTOR", help=nodes)
    unwanted = click.option("--exclude-nodes", default="", metavar="SELECTOR", help=exclude_nodes)

    def with_options(command: Callable[..., None]) -> Callable[..., None]:
        return wanted(unwanted(command))

    return with_options


spot_option = click.option(
    "--spot-to-spot", is_flag=True, help="Karpenter's feature gate SpotToSpotConsolidation: spot may replace spot."
)


def _choose_strictness(ctx: click.Context, _: click.Parameter, is_strict: bool) -> None:
    ctx.meta[_STRICT] = is_strict


_STRICT = "kubesched.cli.strict"
strict_option = click.option(
    "--strict",
    is_flag=True,
    callback=_choose_strictness,
    expose_value=False,
    help="Fail if anything about the cluster had to be guessed.",
)


def end_if_guessed(report: PlanningReport) -> None:
    """With `--strict`."""
    from kubesched.simulator.guesses import check_unguessed

    if click.get_current_context().meta.get(_STRICT):
        with told_in_a_line():
            check_unguessed(report)


class PlanningReport(Protocol):
    """What can be printed in every form."""

    @property
    def headline(self) -> str: ...
    @property
    def assumptions(self) -> tuple[str, ...]: ...
    @property
    def tables(self) -> Mapping[str, ColumnTable]: ...
    def to_dict(self) -> dict[str, Any]: ...
    def to_prometheus(self) -> str: ...
    def render(self, style: Style) -> str: ...


def report_options(tables: Sequence[str], *further: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """`-o`, `--table`, `--report` and `--color`; the first table is the one printed if none is named. `further` are
    forms that this command prints itself."""

    def with_options(command: Callable[..., None]) -> Callable[..., None]:
        told = "wide shows everything; csv prints one table (--table); html is what --report writes."
        form = format_option(told, "csv", "markdown", "html", "prometheus", *further)
        table = click.option(
            "--table",
            type=click.Choice(list(tables)),
            default=tables[0],
            show_default=True,
            help="Table to print as csv.",
        )
        return form(table(strict_option(report_file_option(colour_option(command)))))

    return with_options


def is_given(parameter: str) -> bool:
    """Whether the command line says it, rather than the default."""
    source = click.get_current_context().get_parameter_source(parameter)
    return source not in (None, ParameterSource.DEFAULT)


def chosen_table(tables: Mapping[str, ColumnTable], name: str) -> str:
    """The one that is asked for; by default, the first that this report has."""
    if name in tables:
        return name
    if is_given("table"):
        raise click.UsageError(f"--table {name} is not in this report, which has {', '.join(tables)}")
    return next(iter(tables))


def print_report(report: PlanningReport, output: str, table: str) -> None:
    """And writes the page, if one is asked for; nothing, if something was guessed and nothing is to be."""
    from kubesched.planning.report_pages import planning_page

    end_if_guessed(report)
    if output in ("json", "yaml"):
        print_record(report.to_dict(), output)
    elif output == "csv":
        print_csv(report.tables[chosen_table(report.tables, table)])
    elif output == "markdown":
        print_markdown(report.headline, report.tables, report.assumptions)
    elif output == "prometheus":
        click.echo(report.to_prometheus(), nl=False)
    elif output == "html":
        click.echo(planning_page(f"kubesched {click.get_current_context().info_name}", report).to_html(), nl=False)
    else:
        print_answer(report.render, output)
    write_report(lambda command: planning_page(command, report))


def end(*, is_asked: bool, is_yes: bool, is_undecided: bool = False) -> None:
    """With `--exit-code`: 3 if nobody knows yet, or it depends on chance; 1 if the answer is no."""
    if is_asked and (is_undecided or not is_yes):
        sys.exit(UNDECIDED_EXIT if is_undecided else NO_EXIT)


def seconds_of_limit(text: str) -> float:
    """What `--time-limit` says."""
    from kubesched.cli.files import InputError
    from kubesched.k8s.model.times import DurationError, span_s

    try:
        return span_s(text)
    except DurationError as error:
        raise InputError(f"--time-limit: {error}") from None


@contextmanager
def plan_watch(what: str, limit_s: float) -> Iterator[PlanWatch]:
    """The search ends after this time, or at the first Ctrl-C, with the best so far; the next Ctrl-C ends the program.
    A bar on standard error shows how it goes, if somebody looks."""
    from kubesched.planning.plan.planner import PlanWatch

    with interruptible() as is_interrupted:
        watch = PlanWatch(limit_s, is_interrupted=is_interrupted)
        if not sys.stderr.isatty():
            yield watch
            return
        from rich.console import Console
        from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(what, total=limit_s)
            watch.told = lambda text: bar.update(
                task, description=f"{what}: {text}", completed=limit_s - watch.left_s, refresh=True
            )
            yield watch


@contextmanager
def stoppable(limit_s: float | None) -> Iterator[Callable[[], str]]:
    """Says why the best so far is to be the answer: `interrupted` after the first Ctrl-C, `time` after the limit."""
    begun_s = time.monotonic()
    with interruptible() as is_interrupted:

        def stopped() -> str:
            if is_interrupted():
                return "interrupted"
            return "time" if limit_s is not None and time.monotonic() - begun_s >= limit_s else ""

        yield stopped


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """The first Ctrl-C asks for the best so far; the next one ends the program."""
    pressed = False

    def press(_signal: int, _frame: object) -> None:
        nonlocal pressed
        if pressed:
            raise KeyboardInterrupt
        pressed = True

    try:
        before = signal.signal(signal.SIGINT, press)
    except ValueError:  # not in the main thread
        yield lambda: False
        return
    try:
        yield lambda: pressed
    finally:
        signal.signal(signal.SIGINT, before)
