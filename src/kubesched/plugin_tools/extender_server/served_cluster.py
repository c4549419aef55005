"""The cluster that plugins look at, kept up to date; and the nodes that a call is about, as rows of its table.

A cluster that is followed has nodes, pods and everything else by itself, by list and watch, as the scheduler does; a
request then only says which nodes. Where it carries whole nodes, these are taken as it has them for the time of the
call: kube-scheduler may know a node that did not come here yet, or know it as it was. Without a followed cluster the
nodes of the request are all there is.

Next: `verdicts`; `kubesched.k8s.client.list_watch` for how a kind is followed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import msgspec
import numpy as np

from kubesched.framework.nodes import NodeTable
from kubesched.k8s.client.errors import ApiError
from kubesched.k8s.client.list_watch import Pace, scheduler_informers
from kubesched.k8s.client.resources import resource_of
from kubesched.k8s.client.rest import RestClient
from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.meta import KubeObject, PodKey
from kubesched.k8s.model.requests import AmountError
from kubesched.plugin_tools.extender_server.messages import NodesRequest, RequestError
from kubesched.scheduler.cluster import Cluster


@dataclass(frozen=True, slots=True)
class NodeScope:
    """`nodes` are those of the request that are known; `unknown` the names of the others."""

    nodes: NodeTable
    unknown: list[str]


class ServedCluster:
    """What plugins look at. `is_followed` says that it is kept up to date by watches, `is_ready` whether it was listed
    by now."""

    def __init__(self, cluster: Cluster, is_ready: Callable[[], bool] = lambda: True, *, is_followed: bool) -> None:
        self.cluster = cluster
        self.is_ready = is_ready
        self.is_followed = is_followed

    @contextmanager
    def nodes_of(self, request: NodesRequest) -> Iterator[NodeScope]:
        if request.nodes is None:
            yield self._scope(request.node_names)
            return
        nodes = [given.node for given in request.nodes]
        replaced: list[tuple[Node, Node | None]] = []
        try:
            if not self.is_followed:
                self._remove_others(nodes)
            self._take_over(nodes, replaced)
            yield self._scope(request.node_names)
        finally:
            if self.is_followed:
                self._give_back(replaced)

    def _scope(self, names: list[str]) -> NodeScope:
        rows = self.cluster.table.rows
        known = [rows[name] for name in names if name in rows]
        unknown = [name for name in names if name not in rows]
        return NodeScope(self.cluster.nodes.take(np.array(known, dtype=np.intp)), unknown)

    def _take_over(self, nodes: list[Node], replaced: list[tuple[Node, Node | None]]) -> None:
        """Puts nodes in that are other than here; `replaced` takes them, each with the node as it was here."""
        for node in nodes:
            known = self._known(node.name)
            if _is_same(node, known):
                continue
            try:
                self.cluster.put(node)
            except AmountError as error:
                raise RequestError(f"node {node.name}: {error}") from None
            replaced.append((node, known))

    def _remove_others(self, nodes: list[Node]) -> None:
        names = {node.name for node in nodes}
        for left in [node for node in self.cluster.table.nodes if node.name not in names]:
            self.cluster.remove(left)

    def _give_back(self, replaced: list[tuple[Node, Node | None]]) -> None:
        for node, known in replaced:
            if known is None:
                self.cluster.remove(node)
            else:
                self.cluster.put(known)

    def _known(self, name: str) -> Node | None:
        row = self.cluster.table.rows.get(name)
        return None if row is None else self.cluster.table.nodes[row]


def _is_same(node: Node, known: Node | None) -> bool:
    if known is None:
        return False
    theirs, ours = node.metadata, known.metadata
    if theirs.resource_version and ours.resource_version:
        return theirs.uid == ours.uid and theirs.resource_version == ours.resource_version
    return node == known


NAME = "kubesched-extender"

_log = logging.getLogger("kubesched.extender")
_decode_pod = msgspec.json.Decoder(Pod).decode
_PODS = resource_of(Pod)


class ClusterFollower:
    """An informer's handler. `start` it, wait for `synced`, and `stop` it at the end."""

    def __init__(self, cluster: Cluster, client: RestClient, pace: Pace | None = None) -> None:
        self._cluster = cluster
        self.client = client
        self._informers = scheduler_informers(client, NAME, pace)

    @property
    def has_synced(self) -> bool:
        return self._informers.has_synced

    def start(self) -> None:
        self._informers.add_handler(self)
        self._informers.start()

    async def synced(self) -> None:
        """Until everything was listed once."""
        await self._informers.wait_for_sync(NAME)

    async def stop(self) -> None:
        await self._informers.stop()

    async def read_pod(self, key: PodKey) -> Pod | None:
        """As the API server has it; None if it has none. Raises what the client raises."""
        namespace, _, name = key.partition("/")
        try:
            return _decode_pod(await self.client.request("GET", _PODS.path(namespace, name)))
        except ApiError as answer:
            if answer.is_not_found:
                return None
            raise

    # -- facts ---------------------------------------------------------------------------------------------------------

    def put(self, item: KubeObject) -> None:
        try:
            self._cluster.put(item)
        except Exception as problem:  # noqa: BLE001  one object that cannot be used must not stop the others
            fields = {"kind": type(item).__name__, "object": item.key, "err": str(problem)}
            _log.error("Could not take in object", extra={"fields": fields})

    def remove(self, item: KubeObject) -> None:
        self._cluster.remove(item)
