"""`kubesched nodes`: hollow nodes for any API server, with kubelets that say that pods run.

Next: `kubesched.playground.hollow_nodes.fleet`.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from kubesched.cli.live import ServerChoice, server_options
from kubesched.cli.output import ERROR_EXIT, UNREACHABLE_EXIT, say_error

if TYPE_CHECKING:
    from kubesched.k8s.client.target import ServerTarget
    from kubesched.playground.hollow_nodes.fleet import FleetSettings

F = TypeVar("F", bound=Callable[..., Any])


def shape_options(command: F) -> F:
    """What nodes look like that are made by number."""
    for option in (
        click.option(
            "--zones",
            type=click.IntRange(0),
            default=3,
            show_default=True,
            help="Number of zones to spread the nodes over.",
        ),
        click.option(
            "--pods", type=click.IntRange(1), default=110, show_default=True, help="Pod capacity of each node."
        ),
        click.option("--memory", default="32Gi", show_default=True, help="Memory of each node."),
        click.option("--cpu", default="8", show_default=True, help="CPUs of each node."),
    ):
        command = option(command)
    return command


def delay_options(command: F) -> F:
    seconds = click.FloatRange(min=0)
    stop = click.option(
        "--stop-delay", type=seconds, default=1.0, show_default=True, help="Seconds until a deleted pod is gone."
    )
    start = click.option(
        "--start-delay", type=seconds, default=1.0, show_default=True, help="Seconds until a bound pod is ready."
    )
    return start(stop(command))


@click.command("nodes")
@click.option("--count", type=click.IntRange(1), help="Number of nodes to create, all identical.")
@click.option(
    "-f",
    "--filename",
    "filenames",
    multiple=True,
    metavar="FILE",
    help="Manifests of nodes to run; - for standard input. Repeatable.",
)
@click.option("--prefix", default="node-", show_default=True, help="Name prefix of the created nodes.")
@shape_options
@delay_options
@server_options
def nodes(
    count: int | None,
    filenames: tuple[str, ...],
    prefix: str,
    cpu: str,
    memory: str,
    pods: int,
    zones: int,
    start_delay: float,
    stop_delay: float,
    kubeconfig: str | None,
    context: str | None,
) -> None:
    """Run hollow nodes in a cluster: they register, renew their leases, and report their pods as running.

    A pod runs for as long as its annotation kubesched.dev/duration says, or until it is deleted. The nodes stay
    registered when this command ends; their leases then expire.
    """
    from kubesched.cli.files import InputError
    from kubesched.k8s.model.quantity import QuantityError
    from kubesched.playground.hollow_nodes.fleet import FleetSettings, NodeShape
    from kubesched.playground.hollow_nodes.pod_plays import Delays

    if count is None and not filenames:
        raise click.UsageError("specify --count or -f")
    try:
        shape = NodeShape(cpu, memory, pods, zones, prefix).checked()
        bodies = [*shape.bodies(count or 0), *nodes_of_files(filenames)]
        target = ServerChoice(kubeconfig, context).target()
    except (InputError, QuantityError, ValueError) as error:
        say_error(str(error))
        sys.exit(ERROR_EXIT)
    code = asyncio.run(_play(target, bodies, FleetSettings(Delays(start_delay, stop_delay))))
    if code:
        sys.exit(code)


def nodes_of_files(filenames: tuple[str, ...]) -> list[dict[str, Any]]:
    from kubesched.playground.manifests import split_nodes

    return split_nodes(documents_of_files(filenames))[0]


def documents_of_files(filenames: tuple[str, ...]) -> list[dict[str, Any]]:
    """All objects of these files, whole. Raises InputError and InvalidManifestError."""
    from kubesched.cli.files import expanded, read_bytes, source_name
    from kubesched.playground.manifests import read_documents

    found: list[dict[str, Any]] = []
    for filename in expanded(filenames):
        found.extend(read_documents(read_bytes(filename), source_name(filename)))
    return found


async def _play(target: ServerTarget, bodies: list[dict[str, Any]], settings: FleetSettings) -> int:
    from kubesched.k8s.client.errors import AnswerLost, ApiError, ClientConfigError, Unreachable
    from kubesched.k8s.client.rest import RestClient
    from kubesched.playground.hollow_nodes.fleet import KubeletFleet, NodeRefusedError

    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    client = RestClient(target, qps=0)
    fleet = KubeletFleet(client, settings)
    try:
        n_nodes = await fleet.start(bodies)
        click.echo(f"{n_nodes} hollow nodes in {target.url}; press Ctrl-C to stop their kubelets", err=True)
        await stopped.wait()
    except (NodeRefusedError, ClientConfigError) as error:
        say_error(str(error))
        return ERROR_EXIT
    except (Unreachable, AnswerLost) as failure:
        say_error(" ".join(str(failure).split()))
        return UNREACHABLE_EXIT
    except ApiError as failure:
        say_error(" ".join(str(failure).split()))
        return ERROR_EXIT
    finally:
        await fleet.stop()
        await client.close()
    return 0
