"""`kubesched shadow`: compares our decisions with those of the scheduler that runs in a live cluster. Read only.

Next: `kubesched.live.shadow`.
"""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

import click

from kubesched.cli.live import ServerChoice, server_options
from kubesched.cli.output import (
    ERROR_EXIT,
    UNREACHABLE_EXIT,
    colour_option,
    format_option,
    print_answer,
    print_record,
    say_error,
    say_warning,
)
from kubesched.cli.planning import NO_EXIT
from kubesched.cli.record import stop_signal
from kubesched.cli.scenario import SPAN
from kubesched.cli.scheduler_choice import ChosenScheduler, SchedulerChoice, scheduler_options

if TYPE_CHECKING:
    from kubesched.k8s.client.target import ServerTarget
    from kubesched.simulator.recording.reader import Recorded
    from kubesched.simulator.replay.agreement import Agreement
    from kubesched.simulator.replay.judge import Judgement

_EVERY_S = 0.5


@click.command("shadow")
@server_options
@scheduler_options
@click.option("--for", "for_s", type=SPAN, help="Stop after this time; without it, on Ctrl-C.")
@click.option(
    "--listen", metavar="HOST:PORT", help="Serve a page, JSON (/report) and metrics (/metrics) at this address."
)
@format_option("Format of the report at the end; wide shows every difference.")
@colour_option
@click.option("--exit-code", "is_exit_code", is_flag=True, help="Exit with 1 if a decision differs.")
def shadow(
    kubeconfig: str | None,
    context: str | None,
    scheduler: SchedulerChoice,
    for_s: float | None,
    listen: str | None,
    output: str,
    is_exit_code: bool,
) -> None:
    """Decide on every pod that a live cluster's scheduler binds, and report each different decision.

    \b
    kubesched shadow --for 1h
    kubesched shadow --config new.yaml --listen 127.0.0.1:9090
    """
    from kubesched.k8s.errors import KubeschedError
    from kubesched.live.cluster_reader import ClusterReadError
    from kubesched.simulator.replay.agreement import render_agreement

    address = None if listen is None else _address(listen)
    try:
        chosen = scheduler.read()
        for note in chosen.notes:
            say_warning(note)
        target = ServerChoice(kubeconfig, context).target()
        found = asyncio.run(_follow(target, chosen, for_s, address, is_telling=output == "text"))
    except ClusterReadError as error:
        say_error(str(error))
        sys.exit(UNREACHABLE_EXIT)
    except (KubeschedError, OSError) as error:
        say_error(str(error))
        sys.exit(ERROR_EXIT)
    if output in ("json", "yaml"):
        print_record(found.to_dict(), output)
    else:
        print_answer(lambda style: render_agreement(found, style), output)
    if is_exit_code and found.n_agreed < found.n_decided:
        sys.exit(NO_EXIT)


def _address(listen: str) -> tuple[str, int]:
    host, _, port = listen.rpartition(":")
    if not port.isdigit() or int(port) > 65535:
        raise click.UsageError(f"--listen: {listen!r} is not HOST:PORT")
    return host.strip("[]") or "127.0.0.1", int(port)


async def _follow(
    target: ServerTarget,
    chosen: ChosenScheduler,
    for_s: float | None,
    address: tuple[str, int] | None,
    *,
    is_telling: bool,
) -> Agreement:
    from kubesched.live.recorder import check_readable, follow
    from kubesched.live.shadow import Shadow, serving
    from kubesched.simulator.recording.reader import Synced
    from kubesched.simulator.replay.judge import BindingJudge

    await check_readable(target)
    judge = BindingJudge(chosen.config, registry=chosen.registry, emulation=chosen.emulation)
    watcher = Shadow(judge, _tell if is_telling else lambda judgement: None)
    async with serving(watcher, address) as url:

        def take(event: Recorded) -> None:
            watcher.take(event)
            if isinstance(event, Synced) and (sys.stderr.isatty() or url):
                where = f" Page: {url}" if url else ""
                click.echo(f"Following {target.source} from now on. Ctrl-C ends with a report.{where}", err=True)

        await follow(target, take, stopping=stop_signal(), for_s=for_s, every=watcher.pass_time, every_s=_EVERY_S)
    return watcher.finish()


def _tell(judgement: Judgement) -> None:
    """As it is found, beside the report at the end."""
    from kubesched.simulator.replay.agreement import difference_line
    from kubesched.simulator.replay.judge import BindingVerdict

    if judgement.verdict in (BindingVerdict.DIFFERS, BindingVerdict.INFEASIBLE):
        click.echo(difference_line(judgement), err=True)
