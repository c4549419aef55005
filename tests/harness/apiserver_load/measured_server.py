"""The measured server: `kubesched apiserver` as a process, its processor time and memory as the system counts them.

Next: `run.py`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from harness.apiserver_load.raw_http import ServerAccess, read_access

_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


class MeasuredServer:
    """`kubesched apiserver` on one data directory."""

    def __init__(self, data: Path, options: tuple[str, ...] = ()) -> None:
        self.kubeconfig = data.parent / f"{data.name}.kubeconfig"
        self.kubeconfig.unlink(missing_ok=True)
        command = [sys.executable, "-m", "kubesched", "apiserver", "--data", str(data), "--port", "0"]
        command += ["--write-kubeconfig", str(self.kubeconfig), *options]
        self._began_s = time.monotonic()
        self._process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)

    def wait_until_serving(self) -> float:
        """Returns how long it took since the start of the process."""
        assert self._process.stderr is not None
        told = []
        for line in self._process.stderr:
            told.append(line)
            if line.startswith("serving on"):
                return time.monotonic() - self._began_s
        raise RuntimeError("the server did not start: " + "".join(told))

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def access(self) -> ServerAccess:
        return read_access(self.kubeconfig)

    def cpu_s(self) -> float:
        """Processor time used so far, of all threads."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS_A_SECOND

    def memory_mb(self) -> dict[str, int]:
        """Resident memory now and at most."""
        lines = dict(line.split(":", 1) for line in Path(f"/proc/{self.pid}/status").read_text().splitlines())
        return {name: int(lines[key].split()[0]) // 1024 for name, key in (("now", "VmRSS"), ("peak", "VmHWM"))}

    def kill(self) -> None:
        """kill -9: the server gets no chance to tidy up."""
        self._process.kill()
        self._process.wait()
        if self._process.stderr is not None:
            self._process.stderr.close()
