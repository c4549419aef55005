"""`kubesched apiserver`: the embedded Kubernetes API server, for kubectl, schedulers and tests.

Serves on loopback with TLS and a token of its own until it is interrupted. The server itself is
`kubesched.playground.apiserver`.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

import click

from kubesched.cli.output import ERROR_EXIT, say_error
from kubesched.live.logs import configure_logs
from kubesched.playground.apiserver.kinds.registry import TODAY, VERSIONS
from kubesched.playground.apiserver.server import ApiServer, ServerSettings, ease_collector
from kubesched.playground.apiserver.storage.memory import HistoryLimits
from kubesched.playground.apiserver.storage.sqlite import DataDirectoryError


@click.command()
@click.option("--data", type=click.Path(file_okay=False, path_type=Path), help="Keep objects in this directory.")
@click.option("--in-memory", is_flag=True, help="Keep objects in memory only; they are lost on exit.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=6443,
    show_default=True,
    help="Port to listen on; 0 picks a free one.",
)
@click.option("--bind-address", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--insecure-http", is_flag=True, help="Serve plain HTTP, loopback only; for tests and benchmarks.")
@click.option(
    "--history",
    type=click.IntRange(min=1),
    default=HistoryLimits().changes,
    show_default=True,
    help="Number of changes to keep for watches that resume.",
)
@click.option(
    "--emulate",
    "version",
    type=click.Choice(VERSIONS),
    default=TODAY,
    show_default=True,
    help="Version of Kubernetes whose kinds are served.",
)
@click.option(
    "--write-kubeconfig", type=click.Path(dir_okay=False, path_type=Path), help="Write a kubeconfig to this file."
)
def apiserver(
    data: Path | None,
    in_memory: bool,
    port: int,
    bind_address: str,
    insecure_http: bool,
    history: int,
    version: str,
    write_kubeconfig: Path | None,
) -> None:
    """Run the embedded Kubernetes API server."""
    if (data is None) == (not in_memory):
        raise click.UsageError("specify either --data or --in-memory")
    if insecure_http and bind_address not in ("127.0.0.1", "::1", "localhost"):
        raise click.UsageError("--insecure-http serves on loopback only")
    history_kept = HistoryLimits(changes=history)
    settings = ServerSettings(data, bind_address, port, not insecure_http, history_kept, version=version)
    configure_logs()
    asyncio.run(_serve(settings, write_kubeconfig))


async def _serve(settings: ServerSettings, kubeconfig: Path | None) -> None:
    try:
        server = ApiServer(settings)
        await server.start()
    except DataDirectoryError as problem:
        say_error(str(problem))
        sys.exit(ERROR_EXIT)
    except OSError as error:
        raise click.ClickException(settings.why_not_serving(error)) from None
    ease_collector()
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    if kubeconfig is not None:
        try:
            server.write_kubeconfig(kubeconfig)
        except OSError as error:
            await server.stop()
            raise click.ClickException(f"--write-kubeconfig {kubeconfig}: {error.strerror}") from None
        click.echo(f"export KUBECONFIG={kubeconfig}", err=True)
    click.echo(f"serving on {server.url}", err=True)
    await stopped.wait()
    await server.stop()
