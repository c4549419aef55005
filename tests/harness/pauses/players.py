"""The processes: `kubesched apiserver`, and copies of `kubesched run` that are started again when they end.

Next: `scene`.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from harness.live_scenarios.scheduler_process import ENDS_WITHIN_S, configuration

SCHEDULER = "paused-scheduler"
_START_AGAIN_S = 1.0
_LOG_LINES = 40


class Server:
    """`wait_until_serving` before it is used."""

    def __init__(self, folder: Path) -> None:
        self.kubeconfig = folder / "kubeconfig"
        self._log = (folder / "server.log").open("w+b")
        command = [sys.executable, "-m", "kubesched", "apiserver", "--in-memory", "--port", "0"]
        command += ["--write-kubeconfig", str(self.kubeconfig)]
        self.process = subprocess.Popen(command, stdout=self._log, stderr=self._log)

    async def wait_until_serving(self) -> None:
        path = Path(self._log.name)
        while "serving on" not in path.read_text():
            if self.process.poll() is not None:
                raise RuntimeError(f"the server did not start: {path.read_text()}")
            await asyncio.sleep(0.1)

    async def end(self) -> None:
        await _end(self.process)
        self._log.close()


class Copy:
    """One copy of the scheduler. When it ends by itself, it is started again, as a kubelet or systemd would."""

    def __init__(self, name: str, server: Server, folder: Path, election: Mapping[str, Any]) -> None:
        self.log_path = folder / f"{name}.log"
        self.n_starts = 0
        config = configuration([SCHEDULER], SCHEDULER, server.kubeconfig, **election)
        del config["clientConnection"]["qps"], config["clientConnection"]["burst"]  # as it comes
        self._config_path = folder / f"{name}.yaml"
        self._config_path.write_text(yaml.safe_dump(config))
        self._log = self.log_path.open("wb")
        self.process = self._start()
        self._keeping = asyncio.create_task(self._keep())

    def _start(self) -> subprocess.Popen[bytes]:
        self.n_starts += 1
        command = [sys.executable, "-m", "kubesched", "run", f"--config={self._config_path}", "--secure-port=0"]
        return subprocess.Popen(command, stdout=self._log, stderr=self._log)

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(0.1)
            if self.process.poll() is not None:
                await asyncio.sleep(_START_AGAIN_S)
                self.process = self._start()

    async def leads(self) -> None:
        while "Successfully acquired lease" not in self.log_path.read_text():
            await asyncio.sleep(0.1)

    def last_words(self) -> str:
        lines = self.log_path.read_text().splitlines()
        return "\n".join([f"{self.log_path.name}:", *lines[-_LOG_LINES:]])

    async def end(self) -> None:
        self._keeping.cancel()
        await _end(self.process)
        self._log.close()


def stop(process: subprocess.Popen[bytes]) -> None:
    os.kill(process.pid, signal.SIGSTOP)


def go_on(process: subprocess.Popen[bytes]) -> None:
    os.kill(process.pid, signal.SIGCONT)


async def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        go_on(process)
        process.terminate()
    try:
        await asyncio.to_thread(process.wait, ENDS_WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()
        await asyncio.to_thread(process.wait)
