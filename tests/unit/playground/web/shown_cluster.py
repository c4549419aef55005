"""A page on objects that the test holds in its hands, and a client with its key."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import msgspec
from msgspec.structs import replace

from kubesched.explanation.explain import COMPLETE_SEARCH, NotExplainableError, explain_pending
from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.meta import PodKey
from kubesched.k8s.model.resource import ResourceClaim, ResourceSlice
from kubesched.playground.web.page import WebPage, WebSettings
from kubesched.playground.web.sources import RecordedPod, WebSources
from kubesched.scheduler import config as configuration
from kubesched.scheduler.build import build_schedulers
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.engine.score import ByName

NOW_S = 1_800_000_000.0
PAUSE_S = 0.01


def node(
    name: str, zone: str = "a", *, amounts: dict[str, str] | None = None, ready: str = "True", **spec: Any
) -> Node:
    manifest = {
        "metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": zone}},
        "spec": spec,
        "status": {
            "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"} | (amounts or {}),
            "conditions": [{"type": "Ready", "status": ready}],
        },
    }
    return msgspec.convert(manifest, Node)


def pod(
    name: str, node_name: str = "", phase: str = "Pending", *, asks: dict[str, str] | None = None, **metadata: Any
) -> Pod:
    requests = {"cpu": "500m", "memory": "1Gi"} | (asks or {})
    manifest = {
        "metadata": {"name": name, "namespace": "shop", "uid": name, **metadata},
        "spec": {"containers": [{"name": "c", "resources": {"requests": requests}}], "nodeName": node_name},
        "status": {"phase": phase},
    }
    return msgspec.convert(manifest, Pod)


@dataclass
class ShownCluster:
    """Change it, and the page shows it."""

    nodes: dict[str, Node] = field(default_factory=dict)
    pods: dict[str, Pod] = field(default_factory=dict)
    claims: list[ResourceClaim] = field(default_factory=list)
    slices: list[ResourceSlice] = field(default_factory=list)
    queue: dict[str, Any] = field(default_factory=dict)
    decisions: list[dict[str, Any]] = field(default_factory=list)
    recorded: RecordedPod = field(default_factory=RecordedPod)
    n_looks: int = 0
    """How often somebody opened the page."""

    def put(self, *items: Node | Pod) -> None:
        for item in items:
            if isinstance(item, Node):
                self.nodes[item.key] = item
            else:
                self.pods[item.key] = item

    def report(self, asked: Pod) -> dict[str, Any]:
        """What the scheduler would say about a pod that waits."""
        cluster = Cluster()
        placed = [one for one in self.pods.values() if one.spec.node_name and one.key != asked.key]
        for item in (*self.nodes.values(), *placed, replace(asked, spec=replace(asked.spec, node_name=""))):
            cluster.put(item)
        config = configuration.default()
        scheduler = build_schedulers(cluster, config, ByName(), percentage=COMPLETE_SEARCH)["default-scheduler"]
        return explain_pending(cluster, scheduler, cluster.pending[PodKey(asked.key)], config).report()

    def sources(self) -> WebSources:
        async def explain(namespace: str, name: str) -> dict[str, Any]:
            key = PodKey(f"{namespace}/{name}")
            if key not in self.pods:
                raise NotExplainableError(f"pod {key} is not known to the scheduler")
            return self.report(self.pods[key])

        async def recorded(_namespace: str, _name: str) -> RecordedPod:
            return self.recorded

        return WebSources(
            nodes=lambda: self.nodes.values(),
            pods=lambda: self.pods.values(),
            claims=lambda: self.claims,
            slices=lambda: self.slices,
            queue=lambda: self.queue,
            explain=explain,
            recorded=recorded,
            decisions=lambda pod, after: {
                "decisions": [one for one in self.decisions if one["number"] > after and pod in ("", one["pod"])],
                "made": len(self.decisions),
                "kept": len(self.decisions),
            },
            looked_at=self._looked_at,
        )

    def _looked_at(self) -> None:
        self.n_looks += 1


@asynccontextmanager
async def serving(cluster: ShownCluster) -> AsyncIterator[WebPage]:
    page = WebPage(WebSettings(pause_s=PAUSE_S, now_s=lambda: NOW_S), cluster.sources())
    await page.start()
    try:
        yield page
    finally:
        await page.stop()


@asynccontextmanager
async def client_of(page: WebPage, *, has_key: bool = True) -> AsyncIterator[aiohttp.ClientSession]:
    headers = {"Authorization": f"Bearer {page.key.text}"} if has_key else {}
    jar = aiohttp.CookieJar(unsafe=True)  # cookies of an address, not of a name
    async with aiohttp.ClientSession(page.address, headers=headers, cookie_jar=jar) as client:
        yield client
