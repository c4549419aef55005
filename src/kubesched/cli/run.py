"""`kubesched run`: schedules a real cluster, with the flags of kube-scheduler.

Once the flags are known, the server is asked for its long lists; what they mean, and all that schedules, is imported
while it prepares them. Ends with 0 when it is told to stop, 1 when it lost the lease or cannot serve, and 2 when its
flags or files are wrong.

Next: `kubesched.live.live_scheduler`.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kubesched.cli.output import ERROR_EXIT, say_error
from kubesched.k8s.client.errors import ClientConfigError
from kubesched.k8s.client.kubeconfig import is_in_cluster, load_in_cluster_target, load_target
from kubesched.k8s.client.target import ServerTarget
from kubesched.k8s.model.manifests import collector_paused
from kubesched.live.head_start import ListsAhead, NamedServer, ask_ahead, likely_server
from kubesched.live.logs import configure_logs
from kubesched.live.options.command import FlagsCommand, GivenFlags, with_flags
from kubesched.live.serving.settings import ServingError
from kubesched.scheduler.config import ConfigError
from kubesched.simulator.recording.lines import RecordingError

if TYPE_CHECKING:
    from kubesched.live.options import RunOptions

LOST_EXIT = 1

_log = logging.getLogger("kubesched.run")


@click.command("run", cls=FlagsCommand)
@with_flags
def run(given: GivenFlags) -> None:
    """Schedule a live cluster, instead of kube-scheduler or beside it."""
    try:
        code = asyncio.run(_run(given))
    except (ConfigError, ClientConfigError, ServingError, RecordingError) as error:
        say_error(str(error))
        sys.exit(ERROR_EXIT)
    if code:
        sys.exit(code)


async def _run(given: GivenFlags) -> int:
    async with ask_ahead(likely_server(given)) as ahead:
        await asyncio.to_thread(_import_the_rest)
        options = await _complete(given)
        if options.write_config_to is not None:
            from kubesched.live.options import write_configuration

            write_configuration(options.configuration, options.write_config_to, options.emulation)
            return 0
        configure_logs(options.logs.verbosity, options.logs.format, vmodule=options.logs.vmodule)
        for warning in options.warnings:
            _log.warning(warning)
        if options.emulation is not None:
            from kubesched.older.config.running import start_lines

            for level, line in start_lines(options.emulation):
                _log.info(line, extra={"v": level})
        return await _schedule(options, ahead)


def _import_the_rest() -> None:
    """Python's collector would look at what was imported again and again, a tenth of the time; nothing of it goes."""
    with collector_paused():
        import kubesched.live.live_scheduler  # noqa: F401


async def _complete(given: GivenFlags) -> RunOptions:
    """With the Policy that is in the cluster, if the flags name one there."""
    from kubesched.live.options import read_options

    options = read_options(given)
    if options.policy_config_map is None:
        return options
    from kubesched.live.live_scheduler import read_policy

    return read_options(given, await read_policy(_cluster(options), options.policy_config_map))


async def _schedule(options: RunOptions, ahead: ListsAhead | None) -> int:
    from kubesched.live.live_scheduler import LeadershipLost, LiveScheduler
    from kubesched.live.logs import start_lines as lines
    from kubesched.live.serving.sources import BuildInfo

    emulated = "" if options.emulation is None else options.emulation.generation.version
    lines.STARTING.write(BuildInfo().git_version, emulated, options.leader_election.leader_elect)
    more_pages = None
    if options.serves_web_page:
        from kubesched.playground.web.page import LivePage

        more_pages = LivePage
    if ahead is not None and ahead.server == _named_server(options):
        target, lists = ahead.target, ahead.lists
    else:
        target, lists = _cluster(options), None
    scheduler = LiveScheduler(options, target, review_target=_reviewer(options), more_pages=more_pages, ahead=lists)
    events = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        events.add_signal_handler(number, scheduler.stop)
    if hasattr(signal, "SIGUSR2"):
        events.add_signal_handler(signal.SIGUSR2, scheduler.log_state)
    try:
        await scheduler.run()
    except LeadershipLost:
        lines.LEADER_ELECTION_LOST.write()
        return LOST_EXIT
    lines.TERMINATING.write()
    return 0


def _named_server(options: RunOptions) -> NamedServer:
    return NamedServer(options.client_connection.kubeconfig, options.context, options.master)


def _cluster(options: RunOptions) -> ServerTarget:
    """As kube-scheduler finds it: the kubeconfig that is named, else the cluster whose pod this is, else kubectl's."""
    named = options.kubeconfig is not None or options.master or options.context
    if not named and is_in_cluster(os.environ):
        _log.warning("Neither --kubeconfig nor --master was specified. Using the inClusterConfig.")
        return load_in_cluster_target()
    return load_target(options.kubeconfig, options.context or None, options.master or None)


def _reviewer(options: RunOptions) -> ServerTarget | None:
    """Who is asked about tokens and permissions of those that ask us; None: nobody."""
    named: Path | None = options.authentication_kubeconfig or options.authorization_kubeconfig
    if named is not None:
        return load_target(named)
    return load_in_cluster_target() if is_in_cluster(os.environ) else None
