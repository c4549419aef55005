"""A scheduler at the highest verbosity, with every kind of secret in its hands: none of them is in its log."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import socket
import ssl
import sys
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from kubesched.playground.apiserver.server import ApiServer, ServerSettings

PASSWORD = "hunter2-of-the-extender"
INTRUDER = "intruder-token-0123456789"
SECRET = "content-of-a-secret"
ANNOTATION = "annotation-that-looks-like-bearer 0123456789abcdef0123456789abcdef"
NODE = {
    "metadata": {"name": "n"},
    "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "100"}},
}
POD = {
    "metadata": {"name": "p", "annotations": {"note": ANNOTATION}},
    "spec": {"containers": [{"name": "c", "image": "i", "env": [{"name": "PASSWORD", "value": SECRET}]}]},
}


class _Api:
    """The administrator, and what he can see."""

    def __init__(self, server: ApiServer, session: aiohttp.ClientSession) -> None:
        self._server, self._session = server, session

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        headers = {"Authorization": f"Bearer {self._server.token}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body)
        trust = ssl.create_default_context(cadata=self._server.ca_pem.decode())
        url = self._server.url + path
        async with self._session.request(method, url, data=data, headers=headers, ssl=trust) as answer:
            return await answer.json(content_type=None)

    async def until_decided(self) -> None:
        """The extender cannot be reached, so an event tells of the failure, or the pod is bound."""
        while True:
            events = await self.ask("GET", "/api/v1/namespaces/default/events")
            if events["items"]:
                return
            await asyncio.sleep(0.1)


def _configuration(folder: Path, kubeconfig: Path) -> Path:
    extender = {"urlPrefix": f"http://kubesched:{PASSWORD}@127.0.0.1:9", "filterVerb": "filter", "httpTimeout": "1s"}
    content = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        "leaderElection": {"leaderElect": True},
        "extenders": [extender],
    }
    file = folder / "config.yaml"
    file.write_text(yaml.safe_dump(content))
    return file


async def _intrude(port: int) -> None:
    async with aiohttp.ClientSession() as session:
        for path in ("/metrics", "/configz", "/healthz"):
            headers = {"Authorization": f"Bearer {INTRUDER}", "Cookie": f"session={INTRUDER}"}
            async with session.get(f"https://127.0.0.1:{port}{path}", ssl=False, headers=headers) as answer:
                assert answer.status in (200, 401, 403)


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_no_secret_is_logged_at_the_highest_verbosity(tmp_path: Path, log_format: str) -> None:
    async def scene() -> tuple[str, str, str]:
        server = ApiServer(ServerSettings())
        await server.start()
        kubeconfig = tmp_path / "kubeconfig"
        server.write_kubeconfig(kubeconfig)
        config = _configuration(tmp_path, kubeconfig)
        port = _free_port()
        flags = ["--v=9", f"--logging-format={log_format}", f"--secure-port={port}", "--bind-address=127.0.0.1"]
        command = [sys.executable, "-m", "kubesched", "run", f"--config={config}", *flags]
        process = await asyncio.create_subprocess_exec(
            *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        try:
            async with aiohttp.ClientSession() as session:
                api = _Api(server, session)
                data = {"password": base64.b64encode(SECRET.encode()).decode()}
                await api.ask("POST", "/api/v1/namespaces/default/secrets", {"metadata": {"name": "s"}, "data": data})
                await api.ask("POST", "/api/v1/nodes", NODE)
                await api.ask("POST", "/api/v1/namespaces/default/pods", POD)
                await api.until_decided()
                await _intrude(port)
                told = json.dumps(await api.ask("GET", "/api/v1/namespaces/default/events"))
        finally:
            process.terminate()
            said, _ = await process.communicate()
            await server.stop()
        return said.decode(), told, server.token

    said, told, token = asyncio.run(asyncio.wait_for(scene(), 120))
    assert "FailedScheduling" in told and "kubesched:***@127.0.0.1:9" in told
    assert ('"v":4' in said) if log_format == "json" else ("/metrics" in said), "it was talkative"
    encoded = base64.b64encode(f"kubesched:{PASSWORD}".encode()).decode()
    for secret in (token, PASSWORD, encoded, INTRUDER, SECRET, base64.b64encode(SECRET.encode()).decode()):
        assert secret not in said
        assert secret not in told
    assert not re.search(r"PRIVATE KEY|0123456789abcdef0123456789abcdef", said)


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])
