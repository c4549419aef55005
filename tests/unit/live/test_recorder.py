"""A live cluster recorded and shadowed, while our own scheduler binds pods in it."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from live_copies import SCHEDULER, scheduling

from harness.scripted_server import Fault, ScriptedServer, until
from kubesched.k8s.client.target import ServerTarget
from kubesched.live.cluster_reader import ClusterReadError
from kubesched.live.recorder import check_readable, follow, write_to
from kubesched.live.shadow import Shadow, serving
from kubesched.older.config.emulation import GivenConfiguration
from kubesched.simulator.recording.lines import RecordingWriter
from kubesched.simulator.recording.reader import BoundSeen, GapSeen, RecordingReader
from kubesched.simulator.replay.judge import BindingJudge
from kubesched.simulator.replay.library import open_replay

CONFIG = (
    GivenConfiguration.read(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"schedulerName": SCHEDULER}],
        },
        None,
        None,
        None,
    )
    .as_of_today()
    .config
)
N_PODS = 40


def _node(i: int) -> dict[str, Any]:
    amounts = {"cpu": str(4 + i % 3), "memory": "16Gi", "pods": "110"}
    return {"kind": "Node", "metadata": {"name": f"node-{i}", "uid": f"n{i}"}, "status": {"allocatable": amounts}}


def _pod(i: int) -> dict[str, Any]:
    requests = {"requests": {"cpu": f"{100 + i % 4 * 50}m", "memory": "64Mi"}}
    container = {"name": "c", "image": "i", "env": [{"name": "A", "value": "planted"}], "resources": requests}
    return {
        "kind": "Pod",
        "metadata": {"name": f"pod-{i}", "namespace": "default", "uid": f"p{i}"},
        "spec": {"schedulerName": SCHEDULER, "containers": [container]},
    }


async def _bind_all(server: ScriptedServer) -> None:
    for i in range(N_PODS):
        server.put(_pod(i))
        await asyncio.sleep(0)
    await until(lambda: all(pod["spec"].get("nodeName") for pod in server.objects("Pod")))


def test_a_recording_of_our_own_scheduler_replays_with_full_agreement(tmp_path: Path) -> None:
    path = tmp_path / "day.jsonl.gz"

    async def story() -> None:
        async with ScriptedServer() as server:
            for i in range(8):
                server.put(_node(i))
            writer = RecordingWriter(path, ["Pod", "Node"], time.time())
            stopping = asyncio.Event()
            recording = asyncio.create_task(
                follow(
                    ServerTarget(url=server.url),
                    write_to(writer),
                    stopping=stopping,
                    every=lambda: writer.flush(time.time()),
                    every_s=0.05,
                )
            )
            async with scheduling(server):
                await asyncio.sleep(0.3)
                await _bind_all(server)
                await until(lambda: writer.n_bindings == N_PODS)
            stopping.set()
            await recording
            writer.close()

    asyncio.run(story())
    found = open_replay(path, CONFIG)
    assert (found.n_decided, found.n_agreed) == (N_PODS, N_PODS)
    assert sum(isinstance(event, BoundSeen) for event in RecordingReader(path)) == N_PODS


def test_a_watch_that_broke_is_a_gap() -> None:
    events: list[Any] = []

    async def story() -> None:
        async with ScriptedServer() as server:
            server.put(_node(0))
            stopping = asyncio.Event()
            following = asyncio.create_task(
                follow(ServerTarget(url=server.url), events.append, stopping=stopping, every=lambda: None, every_s=0.05)
            )
            await until(lambda: any(getattr(event, "item", None) for event in events))
            server.faults.rule = lambda request: Fault(drop=True) if "/nodes" in request.path else None
            server.end_watches()
            await asyncio.sleep(0.2)
            server.faults.rule = None
            server.put(_node(1))
            await until(lambda: any(isinstance(event, GapSeen) for event in events))
            stopping.set()
            await following

    asyncio.run(story())
    (gap,) = [event for event in events if isinstance(event, GapSeen)]
    assert gap.kind == "Node" and gap.from_s <= gap.at_s and gap.why


def test_a_shadow_agrees_and_serves_what_it_found() -> None:
    async def story() -> tuple[str, dict[str, Any], str]:
        async with ScriptedServer() as server:
            for i in range(8):
                server.put(_node(i))
            shadow = Shadow(BindingJudge(CONFIG))
            stopping = asyncio.Event()
            following = asyncio.create_task(
                follow(
                    ServerTarget(url=server.url),
                    shadow.take,
                    stopping=stopping,
                    every=shadow.pass_time,
                    every_s=0.05,
                )
            )
            async with scheduling(server):
                await asyncio.sleep(0.3)
                await _bind_all(server)
                await asyncio.sleep(0.2)
            stopping.set()
            await following
            shadow.finish()
            async with serving(shadow, ("127.0.0.1", 0)) as url, aiohttp.ClientSession() as session:
                answers = []
                for page in ("", "report", "metrics"):
                    async with session.get(url + page) as answer:
                        answers.append(await answer.text())
            return answers[0], json.loads(answers[1]), answers[2]

    page, report, metrics = asyncio.run(story())
    assert f"Agrees in all {N_PODS} decisions." in page
    assert (report["decided"], report["agreement"]) == (N_PODS, 1.0)
    assert "kubesched_shadow_agreement_ratio 1.000000" in metrics


def test_a_cluster_that_does_not_answer_is_told_at_once() -> None:
    with pytest.raises(ClusterReadError, match="cannot list nodes"):
        asyncio.run(check_readable(ServerTarget(url="http://127.0.0.1:9")))
