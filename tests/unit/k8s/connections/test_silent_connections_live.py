"""300 silent connections at a file limit of 256, others are answered, and little logged."""

from __future__ import annotations

import contextlib
import http.client
import re
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[int, str, Path]]:
    """Port, token and log of a server that may open 256 files."""
    log, kubeconfig = tmp_path / "log", tmp_path / "kubeconfig"
    options = f"--in-memory --port 0 --write-kubeconfig {kubeconfig}"
    command = f"ulimit -n 256; exec {sys.executable} -m kubesched apiserver {options}"
    with log.open("w") as out, subprocess.Popen(["sh", "-c", command], stderr=out) as process:
        try:
            port = 0
            while not port:
                assert process.poll() is None, log.read_text()
                found = re.search(r"serving on https://127\.0\.0\.1:(\d+)", log.read_text())
                port = int(found.group(1)) if found else 0
            token = yaml.safe_load(kubeconfig.read_text())["users"][0]["user"]["token"]
            yield port, token, log
        finally:
            process.terminate()
            process.wait()


def test_silent_connections_lock_nobody_out_and_fill_no_log(server: tuple[int, str, Path]) -> None:
    port, token, log = server
    with contextlib.ExitStack() as opened:
        for _ in range(300):
            opened.enter_context(socket.create_connection(("127.0.0.1", port)))
        for _ in range(10):
            asking = http.client.HTTPSConnection("127.0.0.1", port, context=ssl._create_unverified_context())
            asking.request("GET", "/api/v1/namespaces", headers={"Authorization": f"Bearer {token}"})
            assert asking.getresponse().status == 200
            asking.close()
    assert len(log.read_text()) < 4000
