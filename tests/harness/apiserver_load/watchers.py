"""A process that watches all pods over several streams and reads every byte.

Says "ready" when all streams are open, and what it read as JSON when every stream had the number of events that it was
told to expect. `run.py` starts it.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from harness.apiserver_load.raw_http import open_stream, read_access


class WatcherProcess:
    """The watchers, seen from outside."""

    def __init__(self, kubeconfig: Path, n_streams: int, version: str, n_events: int) -> None:
        command = [sys.executable, "-m", __name__, str(kubeconfig), str(n_streams), version, str(n_events)]
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        assert self._process.stdout is not None
        if self._process.stdout.readline().strip() != "ready":
            raise RuntimeError("the watchers did not start")

    def finish(self) -> dict[str, Any]:
        """Waits until they have all events."""
        told, _ = self._process.communicate()
        if self._process.returncode:
            raise RuntimeError("the watchers failed")
        found: dict[str, Any] = json.loads(told)
        return found


async def _watch(kubeconfig: Path, n_streams: int, version: str, n_events: int) -> None:
    access = read_access(kubeconfig)
    path = f"/api/v1/pods?watch=true&allowWatchBookmarks=true&resourceVersion={version}"
    streams = await asyncio.gather(*(open_stream(access, path, n_events) for _ in range(n_streams)))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    await asyncio.gather(*(stream.complete for stream in streams))
    n_bytes = sum(stream.n_bytes for stream in streams)
    n_lines = [stream.n_lines for stream in streams]
    sys.stdout.write(json.dumps({"done_at_s": time.monotonic(), "bytes": n_bytes, "events": n_lines}))


if __name__ == "__main__":
    asyncio.run(_watch(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4])))
