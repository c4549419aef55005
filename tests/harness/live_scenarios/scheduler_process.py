"""`kubesched run` as a process of its own, with profiles and a lease that no other scheduler has.

Next: `__main__`.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ENDS_WITHIN_S = 20.0
QPS = 5000


@dataclass(slots=True)
class SchedulerProcess:
    process: subprocess.Popen[bytes]
    log_path: Path

    @property
    def has_ended(self) -> bool:
        return self.process.poll() is not None

    def cpu_s(self) -> float | None:
        """Used so far; None where the system does not tell."""
        try:
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return None
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def configuration(
    scheduler_names: Iterable[str], lease_name: str, kubeconfig: Path | None = None, **election: Any
) -> dict[str, Any]:
    """A KubeSchedulerConfiguration with one profile for each name."""
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(kubeconfig or ""), "qps": QPS, "burst": QPS},
        "leaderElection": {"leaderElect": True, "resourceName": lease_name, **election},
        "profiles": [{"schedulerName": name} for name in scheduler_names],
    }


@asynccontextmanager
async def scheduler_process(
    kubeconfig: Path, scheduler_names: Iterable[str], lease_name: str, folder: Path
) -> AsyncIterator[SchedulerProcess]:
    """Runs for as long as this lasts, then is told to end."""
    config_path, log_path = folder / "scheduler.yaml", folder / "scheduler.log"
    config_path.write_text(yaml.safe_dump(configuration(scheduler_names, lease_name, kubeconfig.resolve())))
    command = [sys.executable, "-m", "kubesched", "run", f"--config={config_path}", "--secure-port=0"]
    with log_path.open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield SchedulerProcess(process, log_path)
    finally:
        process.terminate()
        try:
            await asyncio.to_thread(process.wait, ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            await asyncio.to_thread(process.wait)
