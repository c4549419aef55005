"""`kubesched up` as a user starts it, in a process of its own, and kubectl beside it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

OLDEST_KUBECTL = (1, 27)
"""Before that, kubectl reads what a server's objects look like only in a form that this server does not speak."""

WITHIN_S = 90.0
STDERR = "stderr.txt"


@dataclass(frozen=True, slots=True)
class Said:
    """What a command said, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def all(self) -> str:
        return self.out + self.err


class RunningPlayground:
    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        self._process = process
        self._folder = folder
        self.told = self._read_until("Press Ctrl-C to stop everything.")

    @property
    def kubeconfig(self) -> Path:
        return Path(self._told(r"export KUBECONFIG=(.*)"))

    @property
    def page_url(self) -> str:
        return self._told(r"web page +(.*)")

    def environment(self) -> dict[str, str]:
        """For commands that talk to it; nothing of the user's own is read."""
        return {**os.environ, "KUBECONFIG": str(self.kubeconfig), "HOME": str(self._folder)}

    def kubectl(self, *arguments: str, stdin: str = "", **environment: str) -> Said:
        found = shutil.which("kubectl")
        assert found is not None
        return _run([found, *arguments], {**self.environment(), **environment}, stdin)

    def does(self, line: str, stdin: str = "") -> str:
        """What kubectl says; it must end well."""
        said = self.kubectl(*line.split(), stdin=stdin)
        assert said.code == 0, said.all
        return said.out

    def until(self, line: str, text: str) -> str:
        """Asks again and again until the answer has this text."""
        deadline_s = time.monotonic() + WITHIN_S
        while text not in (said := self.does(line)):
            assert time.monotonic() < deadline_s, said
        return said

    @contextmanager
    def watching(self, line: str) -> Iterator[Iterator[str]]:
        """Lines of a kubectl that does not end by itself."""
        command = [str(shutil.which("kubectl")), *line.split()]
        process = subprocess.Popen(command, env=self.environment(), stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            yield iter(process.stdout)
        finally:
            process.terminate()
            process.communicate(timeout=WITHIN_S)

    def stop(self, number: int = signal.SIGINT) -> Said:
        self._process.send_signal(number)
        out, _ = self._process.communicate(timeout=WITHIN_S)
        return Said(self._process.returncode, out, self.logged)

    @property
    def logged(self) -> str:
        """What it has written to standard error."""
        return (self._folder / STDERR).read_text()

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.communicate(timeout=WITHIN_S)

    def _read_until(self, last: str) -> str:
        assert self._process.stdout is not None
        lines: list[str] = []
        for line in self._process.stdout:
            lines.append(line)
            if line.startswith(last):
                return "".join(lines)
        raise AssertionError(f"kubesched up ended: {''.join(lines)}{self.logged}")

    def _told(self, pattern: str) -> str:
        found = re.search(pattern, self.told)
        assert found is not None, self.told
        return found[1].strip()


@contextmanager
def playground(folder: Path, *options: str) -> Iterator[RunningPlayground]:
    """On a free port; without --data or --in-memory it keeps its cluster in the folder."""
    kept = () if "--data" in options or "--in-memory" in options else ("--data", str(folder / "data"))
    quick = ("--start-delay", "0.1", "--stop-delay", "0.1")
    with (folder / STDERR).open("w") as stderr:  # a pipe that nobody empties would stop it when it is full
        process = subprocess.Popen(
            [sys.executable, "-m", "kubesched", "up", "--port", "0", *kept, *quick, *options],
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            env={**os.environ, "HOME": str(folder)},
        )
    running = RunningPlayground(process, folder)
    try:
        yield running
    finally:
        running.kill()


def kubesched(*arguments: str, stdin: str = "") -> Said:
    return _run([sys.executable, "-m", "kubesched", *arguments], dict(os.environ), stdin)


def why_no_kubectl() -> str:
    """Why it cannot be used; empty if it can."""
    found = shutil.which("kubectl")
    if found is None:
        return "not tested with kubectl: there is none on this machine (make e2e-setup, or install it)"
    said = _run([found, "version", "--client", "-o", "json"], dict(os.environ), "").out
    version = re.search(r'"gitVersion": "v(\d+)\.(\d+)', said)
    if version is None or (int(version[1]), int(version[2])) < OLDEST_KUBECTL:
        return f"not tested with kubectl: the one on this machine is older than {OLDEST_KUBECTL[0]}.{OLDEST_KUBECTL[1]}"
    return ""


def _run(command: list[str], environment: dict[str, str], stdin: str) -> Said:
    done = subprocess.run(
        command, env=environment, input=stdin, capture_output=True, text=True, timeout=WITHIN_S, check=False
    )
    return Said(done.returncode, done.stdout, done.stderr)
