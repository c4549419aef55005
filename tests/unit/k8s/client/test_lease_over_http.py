"""The elector and the event recorder with the real client, against a server on loopback."""

from __future__ import annotations

import asyncio

from harness.scripted_server import ScriptedServer
from harness.scripted_server.routing import SERVED_KINDS
from kubesched.k8s.client.event_forms import NORMAL, CoreV1Form, EventsV1Form, EventToRecord, choose_form, pod_reference
from kubesched.k8s.client.event_recorder import EventRecorder
from kubesched.k8s.client.leader_election import ElectionTiming, LeaderCallbacks, LeaderElector, make_election_client
from kubesched.k8s.client.lease import LeaseLock
from kubesched.k8s.client.rest import RestClient
from kubesched.k8s.client.target import ServerTarget

LEASES = "leases"


def test_one_leads_and_hands_over_when_it_is_stopped() -> None:
    async def scene() -> None:
        async with ScriptedServer() as server:
            timing = ElectionTiming(1.0, 0.5, 0.05)
            client = make_election_client(ServerTarget(url=server.url), timing)
            core = EventRecorder(client, CoreV1Form())
            recording = asyncio.create_task(core.run())
            led: asyncio.Queue[str] = asyncio.Queue()

            def elector(name: str) -> LeaderElector:
                callbacks = LeaderCallbacks(on_started_leading=lambda: led.put_nowait(name), record_event=core.record)
                return LeaderElector(LeaseLock(client, name), timing, callbacks)

            first, second = elector("one"), elector("two")
            running = asyncio.create_task(first.run())
            assert await asyncio.wait_for(led.get(), 5) == "one"
            waiting = asyncio.create_task(second.run())
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            assert not first.may_write()
            assert await asyncio.wait_for(led.get(), 5) == "two"
            lease = server.get(LEASES, "kube-scheduler", "kube-system")
            assert lease is not None and lease["spec"]["holderIdentity"] == "two"
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            lease = server.get(LEASES, "kube-scheduler", "kube-system")
            assert lease is not None and lease["spec"]["holderIdentity"] == ""
            await core.drain(5)
            notes = [request.json["message"] for request in server.requests if request.path.endswith("/events")]
            assert notes == ["one became leader", "one stopped leading", "two became leader", "two stopped leading"]
            recording.cancel()
            await asyncio.gather(recording, return_exceptions=True)
            await client.close()

    asyncio.run(scene())


def test_events_and_their_series_arrive() -> None:
    async def scene() -> None:
        async with ScriptedServer() as server:
            client = RestClient(ServerTarget(url=server.url))
            recorder = EventRecorder(client, EventsV1Form("host"))
            running = asyncio.create_task(recorder.run())
            pod = pod_reference("default", "web", "u1")
            for _ in range(2):
                recorder.record(EventToRecord(pod, NORMAL, "Scheduled", "Binding", "done", "default-scheduler"))
                await recorder.drain(5)
            stored = [request.json for request in server.requests]
            assert stored[0]["note"] == "done"
            assert stored[1]["series"]["count"] == 2
            assert recorder.n_written == 2
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await client.close()

    asyncio.run(scene())


def test_a_server_without_events_v1_gets_core_events() -> None:
    async def scene() -> None:
        older = [kind for kind in SERVED_KINDS if kind.group != "events.k8s.io"]
        async with ScriptedServer(kinds=older) as server:
            client = RestClient(ServerTarget(url=server.url))
            assert isinstance(await choose_form(client, "host"), CoreV1Form)
            await client.close()

    asyncio.run(scene())
