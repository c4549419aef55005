"""Thousands of objects with something wrong or changed are answered as kube-apiserver v1.36.4 answered them."""

from __future__ import annotations

import asyncio
import copy
import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest
from apiserver_serving import Answered, TestClient, running

from kubesched.playground.apiserver.verbs.request import Api

_DATA = Path(__file__).parents[3] / "data" / "apiserver_changes" / "changes.jsonl.gz"
_MERGE_PATCH = "application/merge-patch+json"
_UID = re.compile(r"(?!1111)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r"(?!2026-01-01)20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_VERSION = re.compile(r'resourceVersion\\*"\s*:\s*\\*"\d+')


def _comparable(value: Any) -> Any:
    """Without what differs from run to run."""
    if isinstance(value, dict):
        return {name: _comparable(one) for name, one in value.items() if name != "resourceVersion"}
    if isinstance(value, list):
        return [_comparable(one) for one in value]
    if not isinstance(value, str):
        return value
    value = _VERSION.sub('resourceVersion":"<rv>', _UID.sub("<uid>", value))
    return _TIME.sub("<time>", value)


class _Replay:
    def __init__(self, client: TestClient) -> None:
        self._client = client
        self._versions: dict[str, str] = {}

    async def set_up(self, requests: list[dict[str, Any]]) -> None:
        for one in requests:
            answered = await self._send(one["method"], one["path"], one["body"])
            assert answered.status in (200, 201), f"{one['path']}: {answered.body}"

    async def answers_alike(self, exchange: dict[str, Any]) -> bool:
        body = copy.deepcopy(exchange["body"])
        if exchange["method"] == "PUT":
            body["metadata"]["resourceVersion"] = await self._version(exchange["path"].removesuffix("/status"))
        path = exchange["path"] + "?dryRun=All&fieldManager=lab"
        answered = await self._send(exchange["method"], path, body)
        warnings = answered.headers.getall("Warning", [])
        return (answered.status, _comparable(answered.body), warnings) == (
            exchange["status"],
            exchange["answer"],
            exchange.get("warnings", []),
        )

    async def _send(self, method: str, path: str, body: Any) -> Answered:
        kind = _MERGE_PATCH if method == "PATCH" else "application/json"
        text = json.dumps(body, separators=(",", ":"))
        return await self._client.ask(method, path, text, Content_Type=kind, User_Agent="Python/3.11 aiohttp")

    async def _version(self, path: str) -> str:
        if path not in self._versions:
            self._versions[path] = (await self._client.ask("GET", path)).body["metadata"]["resourceVersion"]
        return self._versions[path]


def test_changed_objects_are_answered_as_by_the_real_server(monkeypatch: pytest.MonkeyPatch) -> None:
    first, *exchanges = map(json.loads, gzip.decompress(_DATA.read_bytes()).splitlines())

    async def body() -> tuple[list[str], list[str]]:
        worse, better = [], []
        async with running() as client:
            replay = _Replay(client)
            await replay.set_up(first["setup"])
            # the real server was asked long after the objects were made
            monkeypatch.setattr(Api, "now", lambda _: "2027-01-01T00:00:00Z")
            for number, exchange in enumerate(exchanges):
                told = f"{number} {exchange['method']} {exchange['path']} {json.dumps(exchange['answer'])[:300]}"
                is_alike = await replay.answers_alike(exchange)
                if not is_alike and not exchange.get("differs"):
                    worse.append(told)
                elif is_alike and exchange.get("differs"):
                    better.append(told)
        return worse, better

    worse, better = asyncio.run(body())
    assert not worse, f"{len(worse)} are answered otherwise now:\n" + "\n".join(worse[:10])
    assert not better, f"{len(better)} no longer differ:\n" + "\n".join(better[:10])
    n_alike = sum(not exchange.get("differs") for exchange in exchanges)
    assert n_alike / len(exchanges) > 0.97
