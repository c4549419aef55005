"""`kubesched debug`: steps through the journal of a scheduler (`kubesched run --record`), attempt by attempt.

Next: `kubesched.simulator.replay.exact`, which plays it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kubesched.cli.output import ERROR_EXIT, say_error
from kubesched.cli.report_file import is_report_asked, report_option_for, write_report
from kubesched.cli.scheduler_choice import plugin_option

if TYPE_CHECKING:
    from kubesched.k8s.model.meta import PodKey
    from kubesched.simulator.replay.exact import Attempt, ExactReplay

HELP = """\
n, next [N]    the next attempt, or the next N
p, pod NAME    to the next attempt of this pod (namespace/name)
f, failed      to the next attempt that finds no node
t, to SECONDS  to this many seconds after the beginning
c, continue    to the end
w, why [NAME]  why the pod goes where it goes, or nowhere, as the cluster is now
q, queue       which pods wait, and in which queue
s, state       how many nodes, pods and effects there are
x, exit"""
_MOST_LISTED = 20


@click.command("debug")
@click.argument("directory", metavar="DIR")
@plugin_option
@click.option(
    "-c",
    "--command",
    "commands",
    multiple=True,
    metavar="COMMAND",
    help="Run this command instead of asking for one, then exit. Repeatable.",
)
@report_option_for(
    "Write a self-contained page with a time slider: the cluster, the queue and the reasons at each attempt. It opens "
    "where the commands end."
)
def debug(directory: str, plugin_files: tuple[str, ...], commands: tuple[str, ...]) -> None:
    """Step through what a scheduler did, from the journal that `kubesched run --record DIR` kept.

    \b
    kubesched debug journal/
    kubesched debug journal/ -c "pod shop/web-1" -c why
    kubesched debug journal/ -c "to 90" --report incident.html
    """
    from kubesched.k8s.errors import KubeschedError
    from kubesched.planning.moments_page import MomentsPage
    from kubesched.simulator.replay.exact import ExactReplay, Moments

    try:
        replay = ExactReplay(Path(directory), plugin_files)
        stepper = Stepper(replay)
        is_asked = is_report_asked()
        for command in commands or (() if is_asked else _typed()):
            if not stepper.do(command):
                return
        if is_asked:
            moments = Moments.of(replay, stepper.attempts)
            write_report(lambda name: MomentsPage(f"{name} {directory}", moments))
            click.echo(replay.headline)
    except KubeschedError as error:
        say_error(str(error))
        sys.exit(ERROR_EXIT)


def _typed() -> Iterator[str]:
    """What somebody types, until they have enough."""
    click.echo("h shows the commands.", err=True)
    while True:
        if sys.stdin.isatty():
            click.echo("(kubesched) ", nl=False, err=True)
        line = sys.stdin.readline()
        if not line:
            return
        yield line


class Stepper:
    """A replay, and where it stands."""

    def __init__(self, replay: ExactReplay) -> None:
        self._replay = replay
        self.attempts = replay.attempts()
        self._last: Attempt | None = None

    def do(self, line: str) -> bool:
        """False if that was the last command."""
        word, _, rest = line.strip().partition(" ")
        argument = rest.strip()
        match word:
            case "":
                pass
            case "x" | "exit" | "quit":
                return False
            case "n" | "next":
                self._next(argument)
            case "p" | "pod":
                self._until(lambda attempt: attempt.pod == argument, f"no more attempts of {argument}")
            case "f" | "failed":
                self._until(lambda attempt: not attempt.node, "no more attempts that find no node")
            case "t" | "to":
                self._to(argument)
            case "c" | "continue":
                self._until(lambda attempt: False, "")
            case "w" | "why":
                self._why(argument)
            case "q" | "queue":
                self._queue()
            case "s" | "state":
                self._state()
            case "h" | "help" | "?":
                click.echo(HELP)
            case _:
                click.echo(f"{word}: no such command; h shows them")
        return True

    def _next(self, argument: str) -> None:
        n = int(argument) if argument.isdigit() else 1
        for _ in range(n):
            attempt = next(self.attempts, None)
            if attempt is None:
                self._ended()
                return
            self._show(attempt)

    def _until(self, is_wanted: Callable[[Attempt], bool], otherwise: str) -> None:
        for attempt in self.attempts:
            if is_wanted(attempt):
                self._show(attempt)
                return
        if otherwise:
            click.echo(f"{otherwise}.")
        self._ended()

    def _to(self, argument: str) -> None:
        try:
            seconds = float(argument.removesuffix("s"))
        except ValueError:
            click.echo(f"to: {argument!r} is not a number of seconds")
            return
        began_s = self._replay.header.started_s
        self._until(lambda attempt: attempt.at_s - began_s >= seconds, "")

    def _show(self, attempt: Attempt) -> None:
        self._last = attempt
        elapsed_s = attempt.at_s - self._replay.header.started_s
        click.echo(f"{elapsed_s:9.3f}s  {attempt}")

    def _ended(self) -> None:
        click.echo(f"End of the journal. {self._replay.headline}")

    def _why(self, argument: str) -> None:
        pod = argument or ("" if self._last is None else self._last.pod)
        if not pod:
            click.echo("why: which pod? namespace/name")
            return
        try:
            click.echo(self._replay.why(pod))
        except KeyError:
            known = self._replay.loop.cluster.find_pod(_key(pod))
            told = f"is on {known.spec.node_name}" if known is not None and known.spec.node_name else "is not known now"
            click.echo(f"{pod} {told}; why answers for pods that wait.")

    def _queue(self) -> None:
        for name, pods in self._replay.queue():
            more = f" and {len(pods) - _MOST_LISTED} more" if len(pods) > _MOST_LISTED else ""
            click.echo(f"{name:<14}{len(pods):>6}  {', '.join(pods[:_MOST_LISTED])}{more}".rstrip())

    def _state(self) -> None:
        replay, cluster = self._replay, self._replay.loop.cluster
        n_pending = len(cluster.pending) - cluster.n_assumed
        click.echo(
            f"{cluster.table.n} nodes, {cluster.n_pods} pods on nodes ({cluster.n_assumed} of them on their way), "
            f"{n_pending} pending; {replay.n_attempts} attempts and {replay.n_effects} effects so far"
        )


def _key(pod: str) -> PodKey:
    from kubesched.k8s.model.meta import PodKey

    return PodKey(pod)
