"""The extender server put together: plugins, a cluster to look at, writes for those who bind, and the socket.

Next: `kubesched.plugin_tools.extender_server`, whose parts these are.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import click

from kubesched.cli.files import InputError, read_bytes, source_name
from kubesched.cli.output import say_warning
from kubesched.framework.effects import BindPod, EvictPod, Failed, PatchPodStatus
from kubesched.k8s.client.errors import ClientConfigError
from kubesched.k8s.client.kubeconfig import is_in_cluster, load_in_cluster_target, load_target
from kubesched.k8s.client.rest import RestClient
from kubesched.k8s.client.target import ServerTarget
from kubesched.live.logs import configure_logs
from kubesched.live.writes.object_writes import PodWrites
from kubesched.older.config.emulation import GivenConfiguration
from kubesched.plugin_tools.extender_server.outside_profiles import (
    Endpoint,
    OutsideProfiles,
    build_outside_profiles,
    configuration_yaml,
    extender_configuration,
)
from kubesched.plugin_tools.extender_server.routes import MOST_BYTES, CallMetrics, ExtenderPages
from kubesched.plugin_tools.extender_server.served_cluster import ClusterFollower, ServedCluster
from kubesched.plugin_tools.extender_server.server import (
    CallerRules,
    ExtenderServer,
    ListenSettings,
    token_from,
    url_of,
)
from kubesched.plugin_tools.extender_server.verdicts import PluginBinder, PluginVerdictService
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.plugin_loading import assemble

_LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True, slots=True)
class ServingChoice:
    """What was asked for on the command line."""

    listen: ListenSettings
    config_file: str | None
    plugin_files: tuple[str, ...]
    kubeconfig: str | None
    context: str | None
    follows: bool
    url_prefix: str | None
    binds: bool
    only_prints: bool
    token_file: Path | None = None
    lets_anybody_in: bool = False
    most_bytes: int = MOST_BYTES


async def serve(choice: ServingChoice) -> None:
    """Until it is told to stop. Raises `InputError`, `ConfigError`, `NoPluginsError`, `ListenError` and
    `TokenFileError`."""
    cluster = Cluster()
    profiles = _profiles(choice, cluster)
    rules = _caller_rules(choice)
    _warn(choice, profiles)
    if choice.only_prints:
        click.echo(_snippet(choice, profiles, url_of(choice.listen, choice.listen.port), rules), nl=False)
        return
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with AsyncExitStack() as parts:
        follower = _follower(choice, cluster, parts)
        served = ServedCluster(cluster, _is_synced(follower), is_followed=follower is not None)
        server = _server(choice, served, profiles, follower, rules)
        await server.start()
        parts.push_async_callback(server.stop)
        click.echo(_snippet(choice, profiles, server.url, rules), nl=False)
        click.echo(
            f"serving plugins on {server.url}; start kube-scheduler with the configuration printed on standard output",
            err=True,
        )
        configure_logs()
        if follower is not None:
            follower.start()
            parts.push_async_callback(follower.stop)
            await _first(follower.synced(), stopped.wait())
            gc.collect()
            gc.freeze()  # what was listed stays: the collector need not look at it again and again
        await stopped.wait()


# -- plugins -----------------------------------------------------------------------------------------------------------


def _profiles(choice: ServingChoice, cluster: Cluster) -> OutsideProfiles:
    name = choice.config_file
    source = "" if name is None else source_name(name)
    given = GivenConfiguration(None if name is None else read_bytes(name), config_source=source)
    converted = given.as_of_today()
    for note in converted.notes:
        say_warning(note)
    built = assemble(converted.config, source, files=choice.plugin_files)
    outside = built.outside.classes.keys()
    return build_outside_profiles(cluster, built.config, built.registry, outside, source)


def _warn(choice: ServingChoice, profiles: OutsideProfiles) -> None:
    for plugin, extension_points in profiles.unserved.items():
        say_warning(f"{plugin}: kube-scheduler does not call extenders for {', '.join(extension_points)}: ignored")
    if profiles.binds and not choice.follows:
        say_warning("without a cluster nothing can be bound: preBind, bind and postBind are ignored")
    where = choice.listen.bind_address
    if choice.lets_anybody_in:
        say_warning(f"anyone who can reach {where} may call the plugins and bind pods: remove --insecure-allow-anybody")
    elif where not in _LOOPBACK and choice.listen.cert_file is None:
        say_warning(f"the token is sent to {where} unencrypted: consider --tls-cert-file and --client-ca-file")
    has_own_key = choice.lets_anybody_in or choice.token_file is not None or choice.listen.client_ca_file is not None
    if choice.only_prints and not has_own_key:
        say_warning("no server will accept the printed token: use --token-file, here and when serving")


def _caller_rules(choice: ServingChoice) -> CallerRules:
    names = frozenset(name for name in (_host_of(choice.url_prefix), choice.listen.bind_address) if name)
    if choice.lets_anybody_in:
        return CallerRules(host_names=names)
    if choice.listen.client_ca_file is not None:
        return CallerRules(takes_certificates=True, host_names=names)
    return CallerRules(token_from(choice.token_file), host_names=names)


def _host_of(url: str | None) -> str:
    return "" if url is None else urlsplit(url).hostname or ""


def _snippet(choice: ServingChoice, profiles: OutsideProfiles, url: str, rules: CallerRules) -> str:
    cert_file, client_ca = choice.listen.cert_file, choice.listen.client_ca_file
    endpoint = Endpoint(
        (choice.url_prefix or url).rstrip("/"),
        ca_file="" if cert_file is None else str(cert_file.absolute()),
        asks_for_certificate=client_ca is not None,
        token=rules.token,
    )
    extender = extender_configuration(profiles, endpoint, is_followed=choice.follows, binds=choice.binds)
    return configuration_yaml(extender, list(profiles.by_name))


# -- the cluster -------------------------------------------------------------------------------------------------------


def _follower(choice: ServingChoice, cluster: Cluster, parts: AsyncExitStack) -> ClusterFollower | None:
    if not choice.follows:
        return None
    client = RestClient(_target(choice), qps=0)  # kube-scheduler sets the pace, and does not wait for long
    parts.push_async_callback(client.close)
    return ClusterFollower(cluster, client)


def _target(choice: ServingChoice) -> ServerTarget:
    """The kubeconfig that is named, else the cluster whose pod this is, else kubectl's."""
    try:
        if not (choice.kubeconfig or choice.context) and is_in_cluster(os.environ):
            return load_in_cluster_target()
        return load_target(None if choice.kubeconfig is None else Path(choice.kubeconfig), choice.context)
    except ClientConfigError as error:
        raise InputError(f"{error}; or use --no-cluster, to see only what requests contain") from None


def _is_synced(follower: ClusterFollower | None) -> Callable[[], bool]:
    return lambda: follower is None or follower.has_synced


def _server(
    choice: ServingChoice,
    served: ServedCluster,
    profiles: OutsideProfiles,
    follower: ClusterFollower | None,
    rules: CallerRules,
) -> ExtenderServer:
    service = PluginVerdictService(served, profiles)
    binder = None
    if follower is not None:
        writes = PodWrites(follower.client, served.cluster.find_pod)
        binder = PluginBinder(served, service, _carried_out_by(writes), follower.read_pod)
    pages = ExtenderPages(service, binder, served.is_ready, CallMetrics(served.cluster), rules, choice.most_bytes)
    return ExtenderServer(choice.listen, pages.application())


def _carried_out_by(writes: PodWrites) -> Callable[[object], Awaitable[object]]:
    async def carry_out(action: object) -> object:
        match action:
            case BindPod():
                return await writes.bind(action)
            case EvictPod():
                return await writes.evict(action)
            case PatchPodStatus():
                await writes.patch_status(action)
                return None
        return Failed(f"the extender server does not carry out {type(action).__name__}")

    return carry_out


async def _first(*works: Awaitable[object]) -> None:
    """Until one of them is done; the others are left off."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
