"""Pods are created, somebody stands still for a while, and goes on: then every pod must be bound, and none twice.

Next: `__main__`.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from harness.live_scenarios.site import ScenarioSize, Site
from harness.pauses.players import SCHEDULER, Copy, Server, go_on, stop
from kubesched.k8s.client.errors import AnswerLost, ApiError, Unreachable
from kubesched.k8s.client.kubeconfig import load_target
from kubesched.k8s.client.rest import RestClient

PODS_A_NODE = 10
_BEFORE = 0.4
"""So many of the pods are there when the pause begins; the rest come while it lasts, if the server takes them."""
_LOOK_EVERY_S = 0.2


class Paused(StrEnum):
    """Who stands still."""

    ONLY = "the only scheduler"
    LEADER = "the leader of two schedulers"
    SERVER = "the API server"


class PodsLostError(Exception):
    """Says which, and what else is wrong; one line for each finding."""


@dataclass(frozen=True, slots=True)
class Scene:
    paused: Paused
    for_s: float
    n_pods: int = 200
    within_s: float = 30.0
    """After waking, all must be bound."""
    election: Mapping[str, Any] = field(default_factory=dict)
    """Other timings than the default."""


@dataclass(frozen=True, slots=True)
class PauseOutcome:
    n_bound: int
    seen_after_s: float
    """How long after waking all were seen to be bound; some may have been before."""
    n_starts: int
    """Of all copies together."""


async def play(scene: Scene) -> PauseOutcome:
    """Raises `PodsLostError`."""
    with tempfile.TemporaryDirectory(prefix="pauses-") as name:
        folder = Path(name)
        server = Server(folder)
        copies: list[Copy] = []
        try:
            await server.wait_until_serving()
            client = RestClient(load_target(server.kubeconfig), qps=0)
            try:
                site = Site(client, "pauses", SCHEDULER, ScenarioSize(-(-scene.n_pods // PODS_A_NODE), scene.n_pods))
                await site.open()
                await site.add_nodes(cpu=PODS_A_NODE)
                for number in range(2 if scene.paused is Paused.LEADER else 1):
                    copies.append(Copy(f"scheduler-{number}", server, folder, scene.election))
                    if not number:
                        await copies[0].leads()
                try:
                    return await _play(scene, site, server, copies)
                except PodsLostError as lost:
                    raise PodsLostError("\n".join([str(lost), *(copy.last_words() for copy in copies)])) from None
            finally:
                await client.close()
        finally:
            for copy in copies:
                await copy.end()
            await server.end()


async def _play(scene: Scene, site: Site, server: Server, copies: list[Copy]) -> PauseOutcome:
    stopped = server.process if scene.paused is Paused.SERVER else copies[0].process
    n_before = int(scene.n_pods * _BEFORE)
    await _create(site, 0, n_before)
    stop(stopped)
    try:
        creating = asyncio.create_task(_create(site, n_before, scene.n_pods))
        await asyncio.sleep(scene.for_s)
    finally:
        go_on(stopped)
    woke_s = time.monotonic()
    await creating
    bound_s = await _all_bound(scene, site, woke_s)
    await _check(scene, site)
    await site.pods.stop()
    return PauseOutcome(scene.n_pods, bound_s - woke_s, sum(copy.n_starts for copy in copies))


async def _create(site: Site, first: int, last: int) -> None:
    """A server that stands still is asked again."""
    for number in range(first, last):
        name = f"pod-{number}"
        site.pods.expect(name)
        while True:
            try:
                await site.create(site.pod(name, cpu="1"))
            except ApiError as problem:
                if not problem.is_already_exists:
                    raise
            except (Unreachable, AnswerLost):
                continue
            break


async def _nodes(site: Site) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["spec"].get("nodeName", "") for pod in await site.listed("Pod")}


async def _all_bound(scene: Scene, site: Site, woke_s: float) -> float:
    """When it was seen. All may have been bound while one stood still."""
    while True:
        nodes = await _nodes(site)
        now_s = time.monotonic()
        missing = sorted(name for name, node in nodes.items() if not node)
        if not missing and len(nodes) == scene.n_pods:
            return now_s
        if now_s > woke_s + scene.within_s:
            shown = f"{' '.join(missing[:5])} …" if len(missing) > 5 else " ".join(missing)
            raise PodsLostError(f"{len(missing)} pods are not bound {scene.within_s:g} s after waking: {shown}")
        await asyncio.sleep(_LOOK_EVERY_S)


async def _check(scene: Scene, site: Site) -> None:
    nodes = await _nodes(site)
    found = [f"{node} has {n} pods of {PODS_A_NODE}" for node, n in Counter(nodes.values()).items() if n > PODS_A_NODE]
    told = Counter(
        event["regarding"]["name"]
        for event in await site.listed("Event")
        if event["reason"] == "Scheduled" and event["regarding"]["kind"] == "Pod"
    )
    found += [f"{name} was told to be scheduled {n} times" for name, n in told.items() if n > 1]
    if len(nodes) != scene.n_pods:
        found.append(f"{len(nodes)} pods, not {scene.n_pods}")
    if found:
        raise PodsLostError("\n".join(found))
