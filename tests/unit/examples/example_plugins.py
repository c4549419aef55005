"""The examples, as their tests use them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from types import ModuleType
from typing import Any, ClassVar

import yaml

import kubesched
from kubesched.scheduler.plugin_loading import plugins_from_files

EXAMPLES = Path(__file__).parents[3] / "examples"
PLUGIN_FILES = {
    "ten-lines": "avoid_spot.py",
    "metrics": "load_aware.py",
    "gpu-packing": "gpu_packing.py",
    "carbon-aware": "carbon_aware.py",
    "gang": "gang.py",
    "model-score": "model_score.py",
    "scratch-volume": "scratch_volume.py",
}


def plugin_of(folder: str) -> Any:
    """The plugin class of an example."""
    (plugin,) = plugins_from_files([EXAMPLES / folder / PLUGIN_FILES[folder]], enable=True).classes.values()
    return plugin


def module_of(plugin: Any) -> Any:
    """All that the plugin's file defines."""
    method = next(value for value in vars(plugin).values() if hasattr(value, "__globals__"))
    module = ModuleType(plugin.__module__)
    vars(module).update(method.__globals__)
    return module


def objects_of(folder: str, *files: str) -> list[dict[str, Any]]:
    texts = [(EXAMPLES / folder / file).read_text() for file in files or ("cluster.yaml",)]
    return [document for text in texts for document in yaml.safe_load_all(text)]


def config_with(plugin: str, args: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"pluginConfig": [{"name": plugin, "args": args}]}],
    }


def placed(objects: list[dict[str, Any]], pod: str, plugins: list[Any], args: dict[str, Any] | None = None) -> Any:
    """What was decided for the pod."""
    config = config_with(plugins[0].name, args) if args is not None else None
    decision = kubesched.explain(objects, pod, config, plugins=plugins).decision
    assert decision is not None
    return decision


def raw_scores(decision: Any, plugin: str) -> dict[str, int]:
    """By node, as the plugin gave them."""
    (found,) = [scores for scores in decision.scored.by_plugin if scores.plugin == plugin]
    return dict(zip(decision.scored.nodes.names, found.raw.tolist(), strict=True))


class AnsweringHandler(BaseHTTPRequestHandler):
    """Answers with `body`, once `may_answer` is set."""

    body: ClassVar[bytes] = b"{}"
    status: ClassVar[int] = 200
    may_answer: ClassVar[Event]
    asked: ClassVar[list[str]]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        self.may_answer.wait()
        with suppress(ConnectionError):  # who asked may have gone meanwhile
            self.send_response(self.status)
            self.end_headers()
            self.wfile.write(self.body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def local_server(body: bytes, status: int = 200) -> Iterator[tuple[str, type[AnsweringHandler]]]:
    """A server on this machine that gives every request the same answer; its address, and its handler to change it."""
    ready = Event()
    ready.set()
    handler = type("Handler", (AnsweringHandler,), {"body": body, "status": status, "may_answer": ready, "asked": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", handler
    finally:
        ready.set()
        server.shutdown()
        thread.join()
        server.server_close()
