"""Commands against a server on 127.0.0.1 that has the objects of a test: what they print, and what they asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click
import yaml
from click.testing import CliRunner, Result

from harness.scripted_server import ScriptedServer
from kubesched.cli.main import main

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "explain"

Manifest = dict[str, Any]


def example_objects() -> list[Manifest]:
    """What the example's files have, without the kinds that scheduling does not look at."""
    documents = [item for path in sorted(EXAMPLE.glob("*.yaml")) for item in yaml.safe_load_all(path.read_text())]
    items = [item for document in documents if document for item in document.get("items", [document])]
    return [item for item in items if item["kind"] != "Deployment"]


def write_kubeconfig(path: Path, url: str, *, namespace: str = "", token: str = "") -> Path:
    """With one context, `test`, which is the current one."""
    context = {"cluster": "c", "user": "u", **({"namespace": namespace} if namespace else {})}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {"token": token} if token else {}}],
        "contexts": [{"name": "test", "context": context}],
    }
    path.write_text(yaml.safe_dump(config))
    return path


class LiveCluster:
    """A kubeconfig in the test's directory, and a server that runs for the length of a command."""

    def __init__(self, directory: Path, objects: Iterable[Manifest], **context: str) -> None:
        self.kubeconfig = directory / "kubeconfig"
        self.source = f'context "test" of {self.kubeconfig}'
        self.server = ScriptedServer(now=lambda: "2026-01-01T00:00:00Z")
        self._context = context
        for item in objects:
            self.server.put(item)

    def run(
        self,
        *arguments: str | Path,
        command: click.Command = main,
        stdin: bytes | None = None,
        meanwhile: Callable[[], None] | None = None,
    ) -> Result:
        """$KUBECONFIG is this cluster's. `meanwhile` happens after the server has started."""

        async def scenario() -> Result:
            async with self.server:
                write_kubeconfig(self.kubeconfig, self.server.url, **self._context)
                if meanwhile is not None:
                    meanwhile()
                runner = CliRunner(env={"KUBECONFIG": str(self.kubeconfig)})
                return await asyncio.to_thread(runner.invoke, command, list(map(str, arguments)), input=stdin)

        return asyncio.run(scenario())


def the_one_error(result: Result, exit_code: int = 2) -> str:
    assert (result.exit_code, result.stdout) == (exit_code, ""), result.output
    assert result.stderr.count("\n") == 1 and result.stderr.startswith("error: "), result.stderr
    return result.stderr.removeprefix("error: ").rstrip("\n")
