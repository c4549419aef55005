"""The embedded server answers as kube-apiserver v1.36.4 answered: recorded requests, compared field by field."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest
from apiserver_serving import TestClient, running

_DATA = Path(__file__).parents[2] / "data" / "apiserver_exchanges"
_UID = re.compile(r"\b(?![12]1111111-)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_TIME = re.compile(r"\b(?!2026-01-01T|2020-01-01T)\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_VERSION = re.compile(r"(ResourceVersion in object meta: )\d+")
_AGE = re.compile(r"^(\d+[smhdy]){1,2}( ago)?$")

KNOWN = {
    "binding": {14, 15, 16},  # the real server answers these mistakes of the client with 500
    "protobuf": {18, 20},  # answers are never protobuf
}
"""Steps that are answered otherwise on purpose."""


def _learn(recorded: Any, live: Any, known: dict[str, str]) -> None:
    """Remembers which live uid, version, name or token stands for which recorded one."""
    if isinstance(recorded, dict) and isinstance(live, dict):
        for name, value in recorded.items():
            other = live.get(name)
            if (
                name in ("uid", "resourceVersion", "token", "continue")
                and isinstance(value, str)
                and isinstance(other, str)
            ) or (name == "name" and "generateName" in recorded and isinstance(value, str) and isinstance(other, str)):
                known[value] = other
            else:
                _learn(value, other, known)
    elif isinstance(recorded, list) and isinstance(live, list):
        for one, other in zip(recorded, live, strict=False):
            _learn(one, other, known)


def _replaced(value: Any, known: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {name: _replaced(item, known) for name, item in value.items()}
    if isinstance(value, list):
        return [_replaced(item, known) for item in value]
    if isinstance(value, str):
        for recorded, live in known.items():
            if len(recorded) > 5 or value == recorded:
                value = value.replace(recorded, live)
    return value


def _comparable(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: "<version>" if name == "resourceVersion" and item else _comparable(item)
            for name, item in value.items()
            if name != "managedFields"
        }
    if isinstance(value, list):
        return [_comparable(item) for item in value]
    if isinstance(value, str):
        value = _TIME.sub(lambda found: "<micros>" if found[1] else "<time>", _UID.sub("<uid>", value))
        return "<age>" if _AGE.match(value) else _VERSION.sub(r"\1<version>", value)
    return value


def _without(value: Any, pointers: list[str]) -> Any:
    for pointer in pointers:
        if pointer == "":
            return "<volatile>"
        _blank(value, pointer.strip("/").split("/"))
    return value


def _blank(value: Any, path: list[str]) -> None:
    first, *rest = path
    keys: list[Any] = []
    if isinstance(value, dict):
        keys = list(value) if first == "*" else [first] if first in value else []
    elif isinstance(value, list):
        keys = list(range(len(value))) if first == "*" else []
    for key in keys:
        if rest:
            _blank(value[key], rest)
        else:
            value[key] = "<volatile>"


def _body(sent: Any, known: dict[str, str]) -> Any:
    if isinstance(sent, dict) and "$binary_base64" in sent:
        return base64.b64decode(sent["$binary_base64"])
    replaced = _replaced(sent, known)
    return replaced.encode() if isinstance(replaced, str) else replaced


async def _replay(client: TestClient, exchanges: list[dict[str, Any]]) -> dict[int, str]:
    """The steps that are answered otherwise, with the two answers."""
    known: dict[str, str] = {}
    differing: dict[int, str] = {}
    for exchange in exchanges:
        request, wanted = exchange["request"], exchange["response"]
        headers = dict(request.get("headers") or {})
        if "auth" in request:
            headers["Authorization"] = "" if request["auth"] == "none" else _replaced(request["auth"], known)
        data = _body(request.get("body"), known)
        if data is not None and "Content-Type" not in headers:
            headers["Content-Type"] = ""
        headers.setdefault("User-Agent", "rec/1.0")
        answer = await client.ask(request["method"], _replaced(request["path"], known), data, **headers)
        live = answer.body.decode() if isinstance(answer.body, bytes) else answer.body
        _learn(wanted["body"], live, known)
        volatile = exchange.get("volatile") or []
        expected = _without(_comparable(_replaced(wanted["body"], known)), volatile)
        found = _without(_comparable(live), volatile)
        if (answer.status, found) != (wanted["status"], expected):
            differing[exchange["step"]] = (
                f"{exchange['name']}: {wanted['status']} {expected}\n  not {answer.status} {found}"
            )
    return differing


@pytest.mark.parametrize("scenario", sorted(path.name.partition(".")[0] for path in _DATA.glob("*.gz")))
def test_recorded_requests_are_answered_as_by_the_real_server(scenario: str) -> None:
    lines = gzip.decompress((_DATA / f"{scenario}.jsonl.gz").read_bytes()).decode().splitlines()

    async def body() -> dict[int, str]:
        async with running() as client:
            return await _replay(client, [json.loads(line) for line in lines])

    differing = asyncio.run(body())
    surprising = {step: text for step, text in differing.items() if step not in KNOWN.get(scenario, set())}
    assert not surprising, "\n".join(f"{step} {text}" for step, text in surprising.items())
