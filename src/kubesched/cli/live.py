"""Commands on a live cluster: the options that choose it, and reading it instead of files, or beneath them.

The server is only read. What stands in the way is an `InputError` of one line that names the context. Nothing heavy is
imported before a cluster is asked for: help stays quick.

Next: `kubesched.live.cluster_reader`, which asks the server.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from kubesched.k8s.client.target import ServerTarget
    from kubesched.k8s.model.manifests import Kinds, Manifests
    from kubesched.k8s.model.meta import KubeObject
    from kubesched.live.cluster_reader import ClusterReader, ClusterReading

F = TypeVar("F", bound=Callable[..., Any])

MAX_ATTEMPTS = 3
FIRST_PAUSE_S = 0.1
"""Somebody sits and waits: better an early answer that the server is away than a late one."""

_NAMESAKES_SHOWN = 3


def server_options(command: F) -> F:
    """`--kubeconfig` and `--context`, as kubectl has them."""
    kubeconfig = click.option(
        "--kubeconfig", metavar="FILE", help="Kubeconfig to use instead of $KUBECONFIG and ~/.kube/config."
    )
    context = click.option("--context", metavar="NAME", help="Context to use instead of the current one.")
    return kubeconfig(context(command))


def live_option(command: F) -> F:
    """`--live`, for commands that read files too."""
    option = click.option("--live", is_flag=True, help="Also read the live cluster; objects in files are added to it.")
    return option(command)


@dataclass(frozen=True, slots=True)
class ServerChoice:
    """Which server was asked for on the command line."""

    kubeconfig: str | None = None
    context: str | None = None
    live: bool = False

    @property
    def is_made(self) -> bool:
        return self.live or self.kubeconfig is not None or self.context is not None

    def target(self) -> ServerTarget:
        from kubesched.cli.files import InputError
        from kubesched.k8s.client.errors import ClientConfigError
        from kubesched.k8s.client.kubeconfig import load_target

        try:
            return load_target(None if self.kubeconfig is None else Path(self.kubeconfig), self.context)
        except ClientConfigError as error:
            raise InputError(str(error)) from None


@dataclass(slots=True)
class GivenCluster:
    """What a command works on, where it came from, and what to warn of: of the files, and of the server."""

    found: Manifests
    source: str
    file_warnings: list[str] = field(default_factory=list)
    server_warnings: list[str] = field(default_factory=list)


def read_files(filenames: Sequence[str], kinds: Kinds | None = None) -> GivenCluster:
    from kubesched.cli.files import read_manifests, source_name
    from kubesched.k8s.model.manifests import KINDS

    found, warnings = read_manifests(filenames, KINDS if kinds is None else kinds)
    return GivenCluster(found, ", ".join(map(source_name, filenames)), warnings)


def read_cluster_files(filenames: Sequence[str], kinds: Kinds | None = None) -> GivenCluster:
    """Files that are a whole cluster: if they are a dump, what was left out of it is warned of."""
    from kubesched.k8s.dumped_kinds import missing_in
    from kubesched.k8s.model.apps import WORKLOAD_KINDS

    given = read_files(filenames, kinds)
    is_simulation = WORKLOAD_KINDS.keys() <= given.found.kinds.keys()
    given.file_warnings += missing_in(given.found, given.source, is_simulation=is_simulation)
    return given


def read_live(
    target: ServerTarget,
    filenames: Sequence[str] = (),
    *,
    kinds: Kinds | None = None,
    pod: str = "",
    changed: Container[type[KubeObject]] = (),
) -> GivenCluster:
    """The cluster behind the target, with the objects of the files in it; these replace what has their names. Of the
    kinds in `changed`, both are there, the server's first: what changes an object needs to know what it was.

    A `pod` (`namespace/name`) that is in neither is an InputError, raised before the rest is read.
    """
    import asyncio

    files = read_files(filenames, kinds) if filenames else _no_files(kinds)
    reading = asyncio.run(_read(target, "" if _has_pod(files.found, pod) else pod, files.found.kinds))
    replaced = {(type(item), item.key) for item in files.found.objects if type(item) not in changed}
    kept = [item for item in reading.objects if (type(item), item.key) not in replaced]
    found = files.found
    found.objects[:0] = kept
    found.dumped = set(reading.dumped)
    found.sources.update({id(item): target.source for item in kept})
    source = ", ".join(part for part in (target.source, files.source) if part)
    return GivenCluster(found, source, files.file_warnings, reading.warnings)


def _no_files(kinds: Kinds | None) -> GivenCluster:
    from kubesched.k8s.model.manifests import KINDS, Manifests

    return GivenCluster(Manifests(kinds=KINDS if kinds is None else kinds), "")


def _has_pod(found: Manifests, pod: str) -> bool:
    from kubesched.k8s.model.core import Pod

    return any(isinstance(item, Pod) and item.key == pod for item in found.objects)


async def _read(target: ServerTarget, pod: str, kinds: Kinds) -> ClusterReading:
    from kubesched.cli.files import InputError
    from kubesched.k8s.client.errors import ClientConfigError
    from kubesched.k8s.client.rest import RestClient, RetryPolicy
    from kubesched.k8s.loaded_cluster import UnreachableClusterError
    from kubesched.live.cluster_reader import ClusterReader, ClusterReadError, ClusterUnreachableError

    _keep_logs_quiet()
    client = RestClient(target, retries=RetryPolicy(max_attempts=MAX_ATTEMPTS, first_pause_s=FIRST_PAUSE_S))
    try:
        return await _read_with(ClusterReader(client, target.source), target.source, pod, set(kinds.values()))
    except (ClusterReadError, ClientConfigError) as failure:
        kind = UnreachableClusterError if isinstance(failure, ClusterUnreachableError) else InputError
        raise kind(" ".join(str(failure).split())) from None
    finally:
        await client.close()


def _keep_logs_quiet() -> None:
    """The command's own warnings and errors say what the client would log."""
    logger = logging.getLogger("kubesched")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())


async def _read_with(reader: ClusterReader, source: str, pod: str, kinds: set[type[KubeObject]]) -> ClusterReading:
    from kubesched.cli.files import InputError

    if not pod:
        return await reader.read(kinds)
    namesakes = await reader.pods_named(pod.partition("/")[2])
    asked = next((item for item in namesakes if item.key == pod), None)
    if asked is None:
        others = ", ".join([item.key for item in namesakes][:_NAMESAKES_SHOWN])
        raise InputError(f"{source}: pod {pod} does not exist" + (f"; there is {others}" if others else ""))
    reading = await reader.read(kinds)
    if asked.is_terminal:  # the reading leaves out finished pods; what is said of one needs it
        reading.objects.append(asked)
    return reading
