"""A page on objects that the test holds in its hands, and a client with its key."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import msgspec

from kubesched.explanation.explain import NotExplainableError
from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.resource import ResourceClaim, ResourceSlice
from kubesched.playground.web.page import WebPage, WebSettings
from kubesched.playground.web.sources import RecordedPod, WebSources

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
    recorded: RecordedPod = field(default_factory=RecordedPod)

    def put(self, *items: Node | Pod) -> None:
        for item in items:
            if isinstance(item, Node):
                self.nodes[item.key] = item
            else:
                self.pods[item.key] = item

    def sources(self) -> WebSources:
        async def explain(namespace: str, name: str, *, as_text: bool) -> str:
            assert as_text
            key = f"{namespace}/{name}"
            if key not in self.pods:
                raise NotExplainableError(f"pod {key} is not known to the scheduler")
            return f"Pod {key} does not fit on any of {len(self.nodes)} nodes."

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
        )


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
