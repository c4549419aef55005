"""What the commands share that play a cluster in virtual time: which cluster, which seed, how ties are broken.

Next: `simulate`, `sweep`, `compare`; `planning` for the commands that ask about a cluster at rest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from kubesched.cli.live import ServerChoice, live_option, read_cluster_files, read_live, server_options
from kubesched.cli.output import say_warning

if TYPE_CHECKING:
    from kubesched.k8s.model.manifests import Manifests
    from kubesched.simulator.loading import SimulationInput


class SpanOfTime(click.ParamType[float]):
    """`90s`, `24h`, `1h30m`: a span of time, in seconds."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        from kubesched.k8s.model.times import Duration, DurationError

        if isinstance(value, float):
            return value
        try:
            seconds = Duration.parse(str(value)).seconds
        except DurationError:
            self.fail(f"{value!r} is not a duration such as 90s, 24h or 1h30m", param, ctx)
        if seconds < 0:
            self.fail(f"{value!r} is negative", param, ctx)
        return seconds


SPAN = SpanOfTime()

seed_option = click.option(
    "--seed",
    type=int,
    default=0,
    show_default=True,
    help="Seed for random choices; the same seed gives the same result.",
)
tie_break_option = click.option(
    "--tie-break",
    type=click.Choice(["random", "name"]),
    default="random",
    show_default=True,
    help="How to choose among nodes with equal scores: at random (by the seed), or the first by name.",
)
until_option = click.option(
    "--until", type=SPAN, help="Stop after this much virtual time; workloads that never end stop after 24h."
)
seeds_option = click.option(
    "--seeds", type=click.IntRange(min=1), default=10, show_default=True, help="Number of seeds."
)
jobs_option = click.option(
    "--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Number of processes."
)


def latency_options(command: Callable[..., None]) -> Callable[..., None]:
    """`--bind-latency` and `--start-latency`."""
    bind = click.option("--bind-latency", type=SPAN, default="0s", show_default=True, help="How long a binding takes.")
    start = click.option(
        "--start-latency",
        type=SPAN,
        default="0s",
        show_default=True,
        help="How long a pod takes from bound to running.",
    )
    return bind(start(command))


@dataclass(frozen=True, slots=True)
class AskedScenario:
    """The cluster, workloads and scenarios that a command line names."""

    filenames: tuple[str, ...]
    server: ServerChoice

    def read(self, replicas: str = "current", ignore: tuple[str, ...] = (), *, plans: bool = False) -> SimulationInput:
        """As it is, or as it is supposed to be. Whatever is wrong with it is a KubeschedError; warnings are printed."""
        from kubesched.simulator.loading import load

        return load(given_cluster(self.filenames, self.server, plans=plans), replicas, ignore)


def scenario_options(command: Callable[..., None]) -> Callable[..., None]:
    """`-f`, `--live` and the like; the command gets them as one `scenario`."""

    @click.option(
        "-f",
        "--filename",
        "filenames",
        required=True,
        multiple=True,
        metavar="FILE",
        help="Manifests of the cluster, workloads and scenarios: YAML or JSON, a dump, a directory; - for standard "
        "input. Repeatable.",
    )
    @server_options
    @live_option
    @wraps(command)
    def with_scenario(
        *args: Any, filenames: tuple[str, ...], kubeconfig: str | None, context: str | None, live: bool, **others: Any
    ) -> None:
        command(*args, scenario=AskedScenario(filenames, ServerChoice(kubeconfig, context, live)), **others)

    return with_scenario


def given_cluster(filenames: tuple[str, ...], server: ServerChoice, *, plans: bool = False) -> Manifests:
    """The cluster of the files, or of the server with the files' workloads on top; who `plans` also gets what
    autoscalers read. Warnings are printed."""
    from kubesched.simulator.loading import LOADED_KINDS, SIMULATED_KINDS
    from kubesched.simulator.virtual.controllers import MAKES_PODS

    kinds = LOADED_KINDS if plans else SIMULATED_KINDS
    if server.is_made:
        given = read_live(server.target(), filenames, kinds=kinds, changed=MAKES_PODS)
    else:
        given = read_cluster_files(filenames, kinds)
    for warning in (*given.server_warnings, *given.file_warnings):
        say_warning(warning)
    return given.found
