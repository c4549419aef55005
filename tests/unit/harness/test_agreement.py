"""The workload of `make agreement`, on an embedded API server with our own scheduler in the place of the other one."""

from __future__ import annotations

import asyncio
from random import Random

from harness.agreement.cluster import Server
from harness.agreement.pods import KINDS, NAMESPACES, PodMaker
from harness.agreement.workload import Workload
from harness.live_scenarios.volume_controller import volume_controller
from kubesched.k8s.client.credentials.stored import StaticCredentials
from kubesched.k8s.client.rest import RestClient
from kubesched.k8s.client.target import ServerTarget
from kubesched.live.live_scheduler import LiveScheduler
from kubesched.live.options import parse_flags, read_options
from kubesched.live.recorder import RecordedInformers
from kubesched.older.config.emulation import GivenConfiguration
from kubesched.playground.apiserver.server import ApiServer, ServerSettings
from kubesched.simulator.recording.reader import BoundSeen, Recorded
from kubesched.simulator.replay.agreement import Agreement
from kubesched.simulator.replay.judge import BindingJudge
from kubesched.simulator.replay.library import judged

N_BINDINGS = 150


def test_pods_of_all_kinds_are_made_by_turns() -> None:
    maker = PodMaker(Random(1), lambda: ["n0", "n1"])
    made = [maker.make() for _ in range(2 * len(KINDS))]
    assert {one.kind for one in made} == set(KINDS) and len(KINDS) >= 33
    assert {one.namespace for one in made} <= set(NAMESPACES)
    assert len({one.name for one in made}) == len(made)
    again = PodMaker(Random(1), lambda: ["n0", "n1"])
    assert [again.make() for _ in range(2 * len(KINDS))] == made


def test_a_scheduler_that_binds_them_is_agreed_with() -> None:
    """Every kind is admitted and bound, pods are preempted, and the judge has nothing to say."""
    found, workload = asyncio.run(_played())
    states = workload.states
    assert states.n_bound >= N_BINDINGS and states.n_nominated > 5 and workload.nodes.n_changes > 0
    assert found.n_decided >= N_BINDINGS
    assert [one.to_dict() for one in found.differences] == []


async def _played() -> tuple[Agreement, Workload]:
    server = ApiServer(ServerSettings(data=None, tls=False))
    await server.start()
    events: list[Recorded] = []
    target = ServerTarget(
        url=server.url, credentials=StaticCredentials((("Authorization", f"Bearer {server.token}"),), "")
    )
    scheduler = LiveScheduler(read_options(parse_flags(["--leader-elect=false", "--secure-port=0"])), target)
    try:
        async with RestClient(target, qps=-1) as client, volume_controller(client):
            workload = Workload(Server(client), n_nodes=14, n_bindings=N_BINDINGS, rate=1_000, seed=1)
            await workload.prepare()
            followed = RecordedInformers(client, events.append)
            await followed.start()
            running = asyncio.create_task(scheduler.run())
            await workload.run(lambda text: None)
            while sum(isinstance(one, BoundSeen) for one in events) < N_BINDINGS:
                await asyncio.sleep(0.05)
            scheduler.stop()
            await running
            await followed.stop()
    finally:
        await server.stop()
    config = GivenConfiguration.read(None, None, None, None).as_of_today().config
    return judged(BindingJudge(config), events), workload
