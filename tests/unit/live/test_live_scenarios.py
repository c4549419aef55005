"""The live scheduler passes the scenarios that also run on real clusters, with faults in the way, too."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

import pytest
from live_copies import SCHEDULER, scheduling

from harness.live_scenarios import SCENARIOS, ScenarioSize, run_scenario
from harness.live_scenarios.volume_controller import volume_controller
from harness.scripted_server import Fault, RecordedRequest, ScriptedServer
from kubesched.k8s.client.rest import RestClient
from kubesched.k8s.client.target import ServerTarget

SIZE = ScenarioSize(n_nodes=20, n_pods=60)

Plan = Callable[[ScriptedServer], object]


def play(name: str, plan: Plan = lambda server: None, size: ScenarioSize = SIZE) -> None:
    async def story() -> None:
        async with ScriptedServer() as server, scheduling(server):
            client = RestClient(ServerTarget(url=server.url), qps=0)
            plan(server)
            try:
                async with volume_controller(client):
                    await run_scenario(client, name, SCHEDULER, size, patience_s=20.0)
                for kind in ("Pod", "Node", "PersistentVolume", "PersistentVolumeClaim", "Namespace"):
                    assert server.objects(kind) == []
            finally:
                await client.close()

    asyncio.run(story())


def strike_choices(server: ScriptedServer, fault: Fault) -> None:
    """The first few times that a volume is chosen for a claim."""

    def rule(request: RecordedRequest) -> Fault | None:
        if fault.hits == 3 or request.verb != "patch" or b"claimRef" not in request.body:
            return None
        fault.hits += 1
        return fault

    server.faults.rule = rule


@pytest.mark.parametrize("name", list(SCENARIOS))
def test_scenario_passes(name: str) -> None:
    play(name)


@pytest.mark.parametrize(
    ("name", "plan"),
    [
        pytest.param(
            "volumes",
            partial(strike_choices, fault=Fault(status=409)),
            id="volumes that somebody else changed meanwhile",
        ),
        pytest.param(
            "volumes",
            partial(strike_choices, fault=Fault(drop=True, after=True)),
            id="volumes that were chosen without our hearing of it",
        ),
        pytest.param(
            "preemption",
            lambda server: server.drop_next("DELETE", "/pods/", after=True, times=3),
            id="evictions that were done without our hearing of it",
        ),
        pytest.param(
            "node-comes",
            lambda server: server.fail_next("PATCH", "/status", status=500, times=3),
            id="conditions that the server failed to write",
        ),
        pytest.param(
            "node-comes",
            lambda server: server.fail_next("PATCH", "/status", status=429, retry_after_s=1, times=3),
            id="conditions that the server was too busy to write",
        ),
    ],
)
def test_scenario_passes_with_faults(name: str, plan: Plan) -> None:
    play(name, plan, ScenarioSize(n_nodes=6, n_pods=12))
