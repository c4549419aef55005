"""`make bench-live`, on an embedded API server."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from kubesched.playground.apiserver.server import ApiServer, ServerSettings

REPO = Path(__file__).parents[3]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="processes are looked up in /proc")
def test_told_to_end_it_ends_the_scheduler_whose_turn_it_is(tmp_path: Path) -> None:
    asyncio.run(_ended(tmp_path / "kubeconfig"))


async def _ended(kubeconfig: Path) -> None:
    server = ApiServer(ServerSettings(data=None, tls=False))
    await server.start()
    server.write_kubeconfig(kubeconfig)
    command = [sys.executable, "-m", "harness.live_bench", str(kubeconfig), "--nodes", "2", "--pods", "2"]
    bench = await asyncio.create_subprocess_exec(*command, env={**os.environ, "PYTHONPATH": str(REPO / "tests")})
    try:
        async with asyncio.timeout(60):
            while not (schedulers := _children(bench.pid)):
                await asyncio.sleep(0.02)
            bench.send_signal(signal.SIGTERM)
            assert await bench.wait() == 128 + signal.SIGTERM
        assert not any(Path(f"/proc/{pid}").exists() for pid in schedulers)
    finally:
        if bench.returncode is None:
            bench.kill()
        await server.stop()


def _children(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
