"""The live scheduler as an older one: the same loop and writes, other decisions."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from harness.live_scenarios import ScenarioSize, run_scenario
from harness.live_scenarios.volume_controller import volume_controller
from harness.scripted_server import ScriptedServer, until
from kubesched.k8s.client.list_watch import Pace
from kubesched.k8s.client.rest import RestClient
from kubesched.k8s.client.target import ServerTarget
from kubesched.live.live_scheduler import LiveScheduler
from kubesched.live.options import parse_flags, read_options
from kubesched.testing import make

SCHEDULER = "kubesched-test"
SIZE = ScenarioSize(n_nodes=5, n_pods=15)


async def _hurried_sleep(for_s: float) -> None:
    await asyncio.sleep(for_s / 50.0)


@asynccontextmanager
async def _running(version: str) -> AsyncIterator[RestClient]:
    """A client of the server for which the scheduler of a version decides."""
    flags = [f"--emulate={version}", f"--scheduler-name={SCHEDULER}", "--leader-elect=false", "--secure-port=0"]
    async with ScriptedServer() as server:
        target = ServerTarget(url=server.url)
        scheduler = LiveScheduler(read_options(parse_flags(flags)), target, pace=Pace(sleep=_hurried_sleep))
        running = asyncio.create_task(scheduler.run())
        client = RestClient(target, qps=0)
        try:
            await until(lambda: scheduler.is_scheduling.is_set() or running.done())
            yield client
        finally:
            await client.close()
            scheduler.stop()
            await running


async def _story(version: str, name: str) -> None:
    async with _running(version) as client, volume_controller(client):
        await run_scenario(client, name, SCHEDULER, SIZE, patience_s=20.0, victims_are_told_names=True)


@pytest.mark.parametrize("version", ["1.14", "1.19"])
@pytest.mark.parametrize("name", ["plain", "affinity", "preemption", "volumes"])
def test_a_scenario_of_live_clusters_passes_under_emulation(version: str, name: str) -> None:
    asyncio.run(_story(version, name))


async def _condition_as_written(version: str) -> dict[str, object]:
    path = "/api/v1/namespaces/default/pods"
    async with _running(version) as client:
        pod = make.pod("p", cpu="1", spec={"schedulerName": SCHEDULER})
        await client.request("POST", path, body=json.dumps(pod).encode())
        while True:
            shown = json.loads(await client.request("GET", f"{path}/p"))
            for condition in shown["status"].get("conditions", ()):
                if condition["type"] == "PodScheduled":
                    return dict(condition)
            await asyncio.sleep(0.01)


def test_the_time_of_the_attempt_is_written_in_1_13_alone() -> None:
    assert asyncio.run(_condition_as_written("1.14")).get("lastProbeTime") is None
    condition = asyncio.run(_condition_as_written("1.13"))
    assert condition["lastProbeTime"]
    assert (condition["reason"], condition["message"]) == ("Unschedulable", "no nodes available to schedule pods")
