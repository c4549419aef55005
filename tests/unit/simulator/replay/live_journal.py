"""The journal of a live scheduler on a scripted server."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from harness.scripted_server import ScriptedServer, until
from kubesched.k8s.client.target import ServerTarget
from kubesched.live.live_scheduler import LiveScheduler
from kubesched.live.options import parse_flags, read_options

N_PODS = 30
N_NODES = 6


def write_journal(directory: Path, *more: str) -> None:
    """It binds thirty pods, and has one that fits nowhere."""

    async def story() -> None:
        async with ScriptedServer() as server:
            for i in range(N_NODES):
                amounts = {"cpu": "8", "memory": "32Gi", "pods": "110"}
                server.put({"kind": "Node", "metadata": {"name": f"n{i}"}, "status": {"allocatable": amounts}})
            flags = ["--leader-elect=false", "--secure-port=0", f"--record={directory}", *more]
            scheduler = LiveScheduler(read_options(parse_flags(flags)), ServerTarget(url=server.url))
            running = asyncio.create_task(scheduler.run())
            await until(scheduler.is_scheduling.is_set)
            for i in range(N_PODS):
                server.put(_pod(f"p{i}", "200m"))
            server.put(_pod("huge", "100"))
            await until(lambda: sum(bool(pod["spec"].get("nodeName")) for pod in server.objects("Pod")) == N_PODS)
            await until(lambda: bool((server.get("Pod", "huge", "default") or {}).get("status")))
            scheduler.stop()
            await running

    asyncio.run(story())


def _pod(name: str, cpu: str) -> dict[str, Any]:
    container = {
        "name": "c",
        "env": [{"name": "PLANTED", "value": "planted"}],
        "resources": {"requests": {"cpu": cpu}},
    }
    metadata = {"name": name, "namespace": "default", "uid": name, "annotations": {"planted": "planted"}}
    return {"kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}
