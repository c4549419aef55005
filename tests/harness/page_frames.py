"""How smoothly the page draws: frame times of a real browser while pods are bound, by `make page-frames`.

A cluster of 5,000 nodes and 50,000 pods by default, in memory, with 100 pods bound a second. While it runs, the page is
looked at as people do: standing still, scrolled, and with a pending pod open, which colours every node. A frame's time
is that from one `requestAnimationFrame` to the next; 16.7 ms is what a screen asks for. Ends with 1 if the 95th
percentile of a part is above the bound.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from harness.headless_browser import CHROMIUM, NOTICE, OpenPage, open_page
from kubesched.k8s.model.core import Node, Pod
from kubesched.playground.web.page import WebPage, WebSettings
from kubesched.playground.web.sources import WebSources

BOUND_MS = 34.0
_TICK_S = 0.05

_FRAMES = """new Promise((resolve) => {
  const times = []; let last = performance.now(); const until = last + %d;
  const step = (now) => { times.push(now - last); last = now; %s
    if (now < until) requestAnimationFrame(step); else resolve(times.slice(2)); };
  requestAnimationFrame(step);
})"""
_SCROLLING = "scrollTo(0, (Math.sin(times.length / 120) + 1) / 2 * (document.body.scrollHeight - innerHeight));"


class GrowingCluster:
    """Nodes, pods that run on them, and pods that are bound one after another."""

    def __init__(self, n_nodes: int, n_pods: int) -> None:
        self._n_nodes = n_nodes
        self.nodes = {f"node-{i:04}": _node(i) for i in range(n_nodes)}
        self.pods = {f"app/pod-{i}": _pod(f"pod-{i}", f"node-{i % n_nodes:04}") for i in range(n_pods)}
        self.pods["app/waiting"] = _pod("waiting", "", cpu="500")
        self._new = itertools.count()

    def bind_one(self) -> None:
        """A new pod on its node; the oldest of the new ones ends, so that the cluster stays as large as it is."""
        i = next(self._new)
        self.pods[f"app/new-{i}"] = _pod(f"new-{i}", f"node-{i * 37 % self._n_nodes:04}")
        self.pods.pop(f"app/new-{i - 1000}", None)

    def sources(self) -> WebSources:
        waiting = {"pod": "app/waiting", "attempts": 3, "unschedulablePlugins": ["NodeResourcesFit"]}
        return WebSources(
            nodes=lambda: self.nodes.values(),
            pods=lambda: self.pods.values(),
            queue=lambda: {"unschedulable": [waiting]},
            explain=self._explain,
        )

    async def _explain(self, namespace: str, name: str) -> dict[str, Any]:
        """Half of the nodes could take it, with scores; the rest in two groups. What matters is how it is drawn."""
        names = list(self.nodes)
        full, closed, free = (
            names[: len(names) // 4],
            names[len(names) // 4 : len(names) // 2],
            names[len(names) // 2 :],
        )
        nodes = {node: {"fit": True, "total": 300 + at % 100} for at, node in enumerate(free)}
        nodes |= {node: {"fit": False} for node in (*full, *closed)}
        groups = [_group("cpu: requested 500, free 2 to 14", full), _group("cordoned", closed)]
        return {
            "pod": f"{namespace}/{name}",
            "scheduler": "default-scheduler",
            "headline": "needs 500 cpus",
            "cause": {"kind": "resources", "text": "", "remedy": ""},
            "groups": groups,
            "changes": [],
            "explanation": {"nodes": nodes, "best": [free[0]], "message": "", "preemption": None},
            "numbers": {},
        }


def _group(summary: str, nodes: list[str]) -> dict[str, Any]:
    rejection = {"plugin": "NodeResourcesFit", "code": "Unschedulable", "reasons": [summary]}
    return {"summary": summary, "nearness": "", "count": len(nodes), "rejections": [rejection], "nodes": nodes}


def _node(i: int) -> Node:
    amounts = {"cpu": "32", "memory": "128Gi", "pods": "110"} | ({"nvidia.com/gpu": "8"} if i % 10 == 0 else {})
    labels = {"topology.kubernetes.io/zone": f"zone-{i % 3}", "kubernetes.io/hostname": f"node-{i:04}"}
    manifest = {
        "metadata": {"name": f"node-{i:04}", "labels": labels},
        "status": {"allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]},
    }
    return msgspec.convert(manifest, Node)


def _pod(name: str, node_name: str, cpu: str = "500m") -> Pod:
    container = {"name": "c", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
    manifest = {
        "metadata": {"name": name, "namespace": "app", "uid": name},
        "spec": {"containers": [container], "nodeName": node_name},
        "status": {"phase": "Running" if node_name else "Pending"},
    }
    return msgspec.convert(manifest, Pod)


@asynccontextmanager
async def binding(cluster: GrowingCluster, per_second: float) -> AsyncIterator[None]:
    async def bind() -> None:
        due = 0.0
        while True:
            due += per_second * _TICK_S
            while due >= 1:
                cluster.bind_one()
                due -= 1
            await asyncio.sleep(_TICK_S)

    task = asyncio.create_task(bind())
    try:
        yield
    finally:
        task.cancel()


async def measure(n_nodes: int, n_pods: int, per_second: float, seconds: float) -> dict[str, list[float]]:
    """Frame times in milliseconds, by what is done meanwhile."""
    cluster = GrowingCluster(n_nodes, n_pods)
    page = WebPage(WebSettings(), cluster.sources())
    await page.start()
    try:
        with tempfile.TemporaryDirectory() as folder:
            async with open_page(page.url, Path(folder) / "browser") as browser, binding(cluster, per_second):
                await browser.wait_for("document.querySelectorAll('.tile').length > 0")
                return await _look(browser, int(seconds * 1000))
    finally:
        await page.stop()


async def _look(browser: OpenPage, for_ms: int) -> dict[str, list[float]]:
    found = {"still": await browser.evaluate(_FRAMES % (for_ms, ""))}
    found["scrolled"] = await browser.evaluate(_FRAMES % (for_ms, _SCROLLING))
    await browser.evaluate("scrollTo(0, 0); location.hash = 'pod=app/waiting'")
    await browser.wait_for("document.querySelector('.coloured')")
    found["coloured"] = await browser.evaluate(_FRAMES % (for_ms, ""))
    return found


def percentile(times: list[float], share: float) -> float:
    return sorted(times)[min(len(times) - 1, int(len(times) * share))]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=50_000)
    parser.add_argument("--per-second", type=float, default=100.0)
    parser.add_argument("--seconds", type=float, default=10.0)
    given = parser.parse_args()
    if CHROMIUM is None:
        sys.stderr.write(f"{NOTICE}\n")
        return 2
    found = asyncio.run(measure(given.nodes, given.pods, given.per_second, given.seconds))
    sys.stdout.write(
        f"{given.nodes} nodes, {given.pods} pods, {given.per_second:g} pods bound a second; "
        f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n"
    )
    for part, times in found.items():
        half, most = percentile(times, 0.5), percentile(times, 0.95)
        sys.stdout.write(
            f"{part:10} {len(times):5} frames, half {half:.1f} ms, 95 % {most:.1f} ms, worst {max(times):.0f} ms\n"
        )
    return int(any(percentile(times, 0.95) > BOUND_MS for times in found.values()))


if __name__ == "__main__":
    sys.exit(main())
