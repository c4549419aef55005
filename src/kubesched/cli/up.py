"""`kubesched up`: a whole cluster on this machine, or, with `--once`, for as long as it takes to schedule some files.

Ends with 0 when it is told to stop, or when all pods found a place; with 1 when a pod did not, and with 2 when options
or files are wrong.

With `--reload`, plugins of the running scheduler are read again when their files change. A file that cannot be used is
reported; the plugins that run stay then, and so does the cluster in any case.

Next: `kubesched.playground.playground`; `kubesched.scheduler.build`, which replaces plugins.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
import textwrap
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kubesched.cli.nodes import delay_options, documents_of_files, shape_options
from kubesched.cli.output import ERROR_EXIT, PENDING_EXIT, say_error
from kubesched.cli.scheduler_choice import class_cache_option, plugin_option
from kubesched.cli.watching import LOOK_EVERY_S

if TYPE_CHECKING:
    from kubesched.playground.hollow_nodes.fleet import NodeShape
    from kubesched.playground.playground import Playground, PlaygroundSettings

DEFAULT_NODES = 3
DEFAULT_PORT = 6443


@click.command("up")
@click.option(
    "--nodes",
    "n_nodes",
    type=click.IntRange(0),
    help=f"Number of hollow nodes.  [default: {DEFAULT_NODES} in a new cluster]",
)
@click.option(
    "-f",
    "--filename",
    "filenames",
    multiple=True,
    metavar="FILE",
    help="Manifests to create in the cluster; - for standard input. Repeatable.",
)
@click.option("--config", metavar="FILE", help="A KubeSchedulerConfiguration for the scheduler.")
@click.option(
    "--feature-gates",
    multiple=True,
    metavar="NAME=BOOL,...",
    help="Feature gates of the scheduler and the controllers. Repeatable.",
)
@click.option(
    "--emulate",
    default="",
    metavar="VERSION",
    help="Version of kube-scheduler to emulate; with 1.37, the API server serves its pod groups, too.",
)
@plugin_option
@click.option("--reload", "is_reloading", is_flag=True, help="Reload plugin files when they change.")
@class_cache_option
@click.option(
    "--data", metavar="DIR", help="Directory that holds the cluster's state.  [default: ~/.local/state/kubesched]"
)
@click.option("--in-memory", is_flag=True, help="Keep the cluster in memory; it is lost on exit.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help=f"Port of the API server; 0 picks a free one.  [default: {DEFAULT_PORT}]",
)
@click.option("--once", is_flag=True, help="Schedule the given manifests, print where the pods went, and exit.")
@click.option(
    "--timeout", type=click.FloatRange(min=0.1), default=120.0, show_default=True, help="Timeout of --once, in seconds."
)
@click.option("--merge-kubeconfig", is_flag=True, help="Also add the cluster to $KUBECONFIG or ~/.kube/config.")
@shape_options
@delay_options
def up(
    n_nodes: int | None,
    filenames: tuple[str, ...],
    config: str | None,
    feature_gates: tuple[str, ...],
    emulate: str,
    plugin_files: tuple[str, ...],
    is_reloading: bool,
    no_class_cache: bool,
    data: str | None,
    in_memory: bool,
    port: int | None,
    once: bool,
    timeout: float,
    merge_kubeconfig: bool,
    cpu: str,
    memory: str,
    pods: int,
    zones: int,
    start_delay: float,
    stop_delay: float,
) -> None:
    """Start a local cluster for kubectl: API server, controllers, hollow nodes and the scheduler.

    With --once, the cluster is deleted afterwards, and the exit code is 1 if a pod stayed pending.
    """
    from kubesched.playground.hollow_nodes.fleet import NodeShape
    from kubesched.playground.hollow_nodes.pod_plays import Delays

    if once and (data is not None or not filenames):
        raise click.UsageError("--once needs -f, and keeps no state: remove --data")
    if once and is_reloading:
        raise click.UsageError("--once exits by itself: remove --reload")
    if in_memory and data is not None:
        raise click.UsageError("specify either --data or --in-memory")
    delays = Delays(min(start_delay, 0.05), min(stop_delay, 0.05)) if once else Delays(start_delay, stop_delay)
    with _errors_in_one_line(), _directory(data, in_memory or once) as directory:
        shape = NodeShape(cpu, memory, pods, zones).checked()
        chosen_port = port if port is not None else (0 if once else DEFAULT_PORT)
        settings = _settings(directory, in_memory or once, chosen_port, is_passing=once)
        settings = _with_content(settings, shape, n_nodes, filenames, config)
        settings = replace(settings, delays=delays, plugin_files=plugin_files, keeps_classes=not no_class_cache)
        settings = replace(settings, feature_gates=feature_gates, emulate=emulate)
        with _quiet_logs():
            code = asyncio.run(_run_once(settings, timeout) if once else _run(settings, merge_kubeconfig, is_reloading))
    if code:
        sys.exit(code)


def _settings(directory: Path, in_memory: bool, port: int, is_passing: bool) -> PlaygroundSettings:
    from kubesched.playground.apiserver.server import ServerSettings
    from kubesched.playground.playground import PlaygroundSettings

    server = ServerSettings(None if in_memory else directory, port=port)
    return PlaygroundSettings(server, directory / "kubeconfig", has_server_process=not is_passing)


def _with_content(
    settings: PlaygroundSettings, shape: NodeShape, n_nodes: int | None, filenames: tuple[str, ...], config: str | None
) -> PlaygroundSettings:
    from kubesched.playground.manifests import split_nodes

    nodes, objects = split_nodes(documents_of_files(filenames))
    made = [*nodes, *shape.bodies(n_nodes or 0)]
    usual = list(shape.bodies(DEFAULT_NODES)) if n_nodes is None and not nodes else []
    chosen = None if config is None else Path(config)
    return replace(settings, nodes=made, first_nodes=usual, objects=objects, scheduler_config=chosen)


@contextmanager
def _directory(data: str | None, is_passing: bool) -> Iterator[Path]:
    from kubesched.cli.files import InputError

    if is_passing:
        with tempfile.TemporaryDirectory(prefix="kubesched-") as folder:
            yield Path(folder)
        return
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    path = Path(data) if data is not None else state / "kubesched"
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except FileExistsError:
        raise InputError(f"--data {path}: not a directory") from None
    except OSError as problem:
        raise InputError(f"--data {path}: {problem.strerror or problem}") from None
    yield path.absolute()


@contextmanager
def _errors_in_one_line() -> Iterator[None]:
    from kubesched.cli.files import InputError
    from kubesched.k8s.model.quantity import QuantityError
    from kubesched.live.options import FlagError
    from kubesched.live.serving.settings import ServingError
    from kubesched.playground.hollow_nodes.fleet import NodeRefusedError
    from kubesched.playground.manifests import InvalidManifestError
    from kubesched.playground.playground import InvalidKubeconfigError, PartEndedError
    from kubesched.scheduler.config import ConfigError

    problems = (
        PartEndedError,
        ConfigError,
        FlagError,
        InputError,
        InvalidKubeconfigError,
        InvalidManifestError,
        NodeRefusedError,
        QuantityError,
        ServingError,
        OSError,
    )
    try:
        yield
    except problems as error:
        say_error(" ".join(str(error).split()))
        sys.exit(ERROR_EXIT)


@contextmanager
def _quiet_logs() -> Iterator[None]:
    """Warnings and errors only: the command itself prints what runs where. Afterwards logging is as before."""
    import logging

    from kubesched.live.logs import configure_logs

    root, ours = logging.getLogger(), logging.getLogger("kubesched")
    handlers, level = list(root.handlers), ours.level
    configure_logs()
    ours.setLevel(logging.WARNING)
    try:
        yield
    finally:
        root.handlers[:] = handlers
        ours.setLevel(level)


async def _run(settings: PlaygroundSettings, merge_kubeconfig: bool, is_reloading: bool) -> int:
    from kubesched.playground.playground import Playground, merge_into, usual_path

    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with Playground(settings) as playground:
        if merge_kubeconfig:
            merge_into(usual_path(dict(os.environ)), settings.kubeconfig)
        page = await playground.start_page()
        _tell(playground, settings, page.url)
        reloading = asyncio.create_task(reload_plugins(playground)) if is_reloading else None
        await playground.run_until(stopped)
        if reloading is not None:
            reloading.cancel()
        click.echo("stopping", err=True)
    return 0


def _tell(playground: Playground, settings: PlaygroundSettings, page_url: str) -> None:
    n_nodes = playground.n_nodes
    click.echo(f"The cluster is ready: {n_nodes} {'node' if n_nodes == 1 else 'nodes'}. In another terminal, run")
    click.echo(f"\nexport KUBECONFIG={settings.kubeconfig}\n")
    kept = "in memory" if settings.server.data is None else f"kept in {settings.server.data}"
    rows = (
        ("web page", page_url),
        ("API server", f"{playground.url} ({kept})"),
        ("kubelets", "hollow: pods are reported as running, no container is started; every node you create gets one"),
        ("scheduler", ", ".join(playground.scheduler.loop.schedulers)),
        ("controllers", _named_first(playground.controllers.names)),
    )
    for name, what in rows:
        lines = textwrap.wrap(what, 100, break_long_words=False, break_on_hyphens=False)
        click.echo(f"{name:<12} " + f"\n{'':13}".join(lines))
    click.echo("\nPress Ctrl-C to stop everything.")


_KNOWN_CONTROLLERS = ("deployment", "replicaset", "statefulset", "daemonset", "job", "cronjob")


def _named_first(names: Sequence[str]) -> str:
    """Those of workloads, which everybody knows, and how many others there are."""
    known = [name for name in _KNOWN_CONTROLLERS if name in names]
    return f"{', '.join(known)} and {len(names) - len(known)} more"


async def _run_once(settings: PlaygroundSettings, timeout_s: float) -> int:
    from kubesched.k8s.model.core import Pod
    from kubesched.playground.playground import Playground
    from kubesched.playground.settling import Outcome, wait_settled

    async with Playground(settings) as playground:
        view = playground.controllers.view
        is_settled = await wait_settled(
            view, lambda: playground.controllers.is_idle, timeout_s, held_back=playground.held_back
        )
        outcome = Outcome.of(view.of(Pod).values(), playground.held_back())
    for line in outcome.lines():
        click.echo(line)
    if not is_settled:
        say_error(f"not every pod was scheduled or rejected within {timeout_s:g} s")
    return PENDING_EXIT if outcome.n_pending or not is_settled else 0


def _until_next_look() -> Awaitable[None]:
    return asyncio.sleep(LOOK_EVERY_S)


async def reload_plugins(playground: Playground, pause: Callable[[], Awaitable[None]] = _until_next_look) -> None:
    """Until it is cancelled."""
    from kubesched.scheduler.config import ConfigError
    from kubesched.scheduler.plugin_loading import WatchedFiles

    watched = WatchedFiles(playground.plugin_paths)
    while True:
        await pause()
        changed = watched.changed()
        if not changed:
            continue
        try:
            playground.scheduler.reload_plugins()
        except ConfigError as error:
            say_error(f"{error}\nstill running the previous plugins")
        else:
            names = ", ".join(playground.scheduler.assembled.outside.classes)
            click.echo(f"{', '.join(map(str, changed))} changed: reloaded {names}")
