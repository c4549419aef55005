"""The long lists, asked for before anything else is done: the server prepares them while the rest is imported.

Nodes and pods come whole and compressed from the server's cache, at a fraction of what a streamed list costs to read.
Nothing depends on it: what is refused, or does not come, is listed by its informer, which then says what is wrong.

Next: `kubesched.k8s.client.list_watch.reflector`, which takes a list that was asked for ahead.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import yaml

from kubesched.k8s.client.errors import ClientConfigError
from kubesched.k8s.client.kubeconfig import load_target
from kubesched.k8s.client.list_watch import exchange
from kubesched.k8s.client.list_watch.informers import SCHEDULER_OPTIONS
from kubesched.k8s.client.resources import resource_of
from kubesched.k8s.client.rest import RestClient, RetryPolicy
from kubesched.k8s.client.target import ServerTarget
from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.kubernetes_yaml import load_document
from kubesched.k8s.model.meta import KubeObject
from kubesched.live.options.command import GivenFlags

LONG_LISTS: tuple[type[KubeObject], ...] = (Pod, Node)


class NamedServer(NamedTuple):
    """What flags and configuration say about where the server is; empty: nothing."""

    kubeconfig: str
    context: str
    master: str


class ListsAhead(NamedTuple):
    """`lists` are on their way from the `target`, which was found by `server`."""

    server: NamedServer
    target: ServerTarget
    lists: Mapping[type[KubeObject], asyncio.Task[bytes]]


def likely_server(given: GivenFlags) -> NamedServer | None:
    """As the flags, or the configuration file, name it; None if they name none, or if no list is wanted yet. Whether
    they are right is found out later."""
    if given.get("write-config-to"):
        return None
    kubeconfig = given.get("kubeconfig", "")
    if path := given.get("config"):
        try:
            config = load_document(Path(path).read_bytes())
            if config.get("delayCacheUntilActive"):
                return None
            kubeconfig = config["clientConnection"]["kubeconfig"]
        except (OSError, yaml.YAMLError, AttributeError, LookupError, TypeError):
            return None
    if not (isinstance(kubeconfig, str) and kubeconfig):
        return None
    return NamedServer(kubeconfig, given.get("context", ""), given.get("master", ""))


@asynccontextmanager
async def ask_ahead(server: NamedServer | None) -> AsyncIterator[ListsAhead | None]:
    """Until the end of this, lists may come."""
    if server is None:
        yield None
        return
    try:
        target = load_target(Path(server.kubeconfig), server.context or None, server.master or None)
    except ClientConfigError:
        yield None
        return
    async with RestClient(target, qps=-1, retries=RetryPolicy(max_attempts=1)) as client:
        lists = {kind: asyncio.create_task(_ask(client, kind), name=f"list {kind.__name__}") for kind in LONG_LISTS}
        try:
            yield ListsAhead(server, target, lists)
        finally:
            for task in lists.values():
                task.cancel()
            await asyncio.gather(*lists.values(), return_exceptions=True)


async def _ask(client: RestClient, kind: type[KubeObject]) -> bytes:
    params = exchange.list_params(SCHEDULER_OPTIONS.get(kind, exchange.ListOptions()), exchange.FROM_CACHE, 0)
    path = resource_of(kind).path()
    return await client.request("GET", path, params=params, timeout_s=exchange.LIST_TIMEOUT_S, gzip=True)
