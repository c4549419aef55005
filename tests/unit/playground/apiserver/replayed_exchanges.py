"""Sends recorded requests to a server and tells where it answers otherwise than kube-apiserver did.

Uids, versions, times, tokens and generated names differ between servers: in requests the recorded ones are replaced by
those of the live server, in answers they are compared by their form. ``test_apiserver_replay.py`` has the expectations.
"""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import aiohttp
import yarl
from apiserver_serving import TestClient

_DATA = Path(__file__).parents[3] / "data" / "apiserver_exchanges"
_UID = re.compile(r"\b(?![12]1111111-)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_TIME = re.compile(r"\b(?!2026-01-01T|2020-01-01T)\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_VERSION = re.compile(
    r"(resource version: |current: |ResourceVersion in record \(|resourceVersion\\*\":\\*\"|resourceVersion: "
    r"|ResourceVersion in object meta: )\d+( \(\d+\))?"
)
_AGE = re.compile(r"^(\d+[smhdy]){1,2}( ago)?$|^<invalid>$")
_SMALLEST_REAL_VERSION = 10
_LONGEST_WAIT_S = 10.0
_TIME_FOR_MORE_S = 0.05  # events that were not recorded would come now


def scenarios() -> list[str]:
    return sorted(path.name.partition(".")[0] for path in _DATA.glob("*.gz"))


def exchanges_of(scenario: str) -> list[dict[str, Any]]:
    text = gzip.decompress((_DATA / f"{scenario}.jsonl.gz").read_bytes()).decode()
    return [json.loads(line) for line in text.splitlines()]


@dataclass
class _LiveNames:
    """What the live server calls things that the recorded one named otherwise."""

    texts: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    list_versions: dict[str, str] = field(default_factory=dict)
    times: dict[tuple[str, str], str] = field(default_factory=dict)

    def learn(self, recorded: Any, live: Any) -> None:
        if isinstance(recorded, dict) and isinstance(live, dict):
            one, other = recorded.get("metadata"), live.get("metadata")
            if isinstance(one, dict) and isinstance(other, dict):
                is_list = isinstance(recorded.get("items"), list) or recorded.get("kind") == "Table"
                self._learn_metadata(one, other, self.list_versions if is_list else self.versions)
            for name in recorded.keys() & live.keys():
                self.learn(recorded[name], live[name])
        elif isinstance(recorded, list) and isinstance(live, list):
            for one, other in zip(recorded, live, strict=False):
                self.learn(one, other)

    def _learn_metadata(self, recorded: dict[str, Any], live: dict[str, Any], versions: dict[str, str]) -> None:
        if recorded.get("resourceVersion") and live.get("resourceVersion"):
            versions[recorded["resourceVersion"]] = live["resourceVersion"]
        for name in ("creationTimestamp", "deletionTimestamp"):
            if recorded.get(name) and live.get(name):
                self.times[recorded.get("uid", ""), name] = live[name]
        names = ["uid", "continue"] + (["name"] if "generateName" in recorded else [])
        for name in names:
            one, other = recorded.get(name), live.get(name)
            if isinstance(one, str) and isinstance(other, str) and one and one != other:
                self.texts[one] = other

    def learn_at(self, recorded: Any, live: Any, pointer: str) -> None:
        for one, other in zip(_at(recorded, pointer), _at(live, pointer), strict=False):
            if isinstance(one, str) and isinstance(other, str) and one != other and len(one) > 6:
                self.texts[one] = other

    def text(self, value: str) -> str:
        for recorded, live in self.texts.items():
            value = value.replace(recorded, live)
        return value

    def value(self, value: Any) -> Any:
        if isinstance(value, dict):
            uid = value.get("uid", "")
            return {name: self._field(name, item, uid) for name, item in value.items()}
        if isinstance(value, list):
            return [self.value(item) for item in value]
        return self.text(value) if isinstance(value, str) else value

    def _field(self, name: str, item: Any, uid: Any) -> Any:
        if name == "resourceVersion" and isinstance(item, str):
            return self.versions.get(item, self.list_versions.get(item, item))
        if isinstance(uid, str) and (uid, name) in self.times:
            return self.times[uid, name]
        return self.value(item)

    def path(self, recorded: str) -> str:
        path, mark, query = recorded.partition("?")
        terms = []
        for term in query.split("&") if mark else ():
            name, equals, value = term.partition("=")
            plain = unquote(value)
            if name == "resourceVersion":
                wanted = self.list_versions.get(plain, self.versions.get(plain, plain))
            else:
                wanted = self.text(plain)
            terms.append(name + equals + (quote(wanted) if wanted != plain else value))
        return self.text(path) + mark + "&".join(terms)


def _at(value: Any, pointer: str) -> Iterator[Any]:
    found = [value]
    for step in filter(None, pointer.split("/")):
        found = [inner for outer in found for inner in _below(outer, step)]
    return iter(found)


def _below(value: Any, step: str) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values()) if step == "*" else [value[step]] if step in value else []
    if isinstance(value, list):
        return value if step == "*" else [value[int(step)]] if step.isdigit() and int(step) < len(value) else []
    return []


def _comparable(value: Any, name: str = "") -> Any:
    if isinstance(value, dict):
        return {_plain(key) if len(key) > 30 else key: _comparable_field(key, item) for key, item in value.items()}
    if isinstance(value, list):
        items = [_comparable(item, name) for item in value]
        if name == "managedFields":  # sorted by the clock, which differs
            items.sort(key=lambda one: (one.get("operation", ""), one.get("manager", ""), one.get("subresource", "")))
        return items
    return _plain(value) if isinstance(value, str) else value


def _comparable_field(name: str, item: Any) -> Any:
    if name == "resourceVersion" and isinstance(item, str) and item.isdigit() and int(item) > _SMALLEST_REAL_VERSION:
        return "<version>"
    if name == "continue" and item:
        return "<continue>"
    if name == "cells" and isinstance(item, list):
        return ["<age>" if isinstance(cell, str) and _AGE.match(cell) else _comparable(cell) for cell in item]
    return _comparable(item, name)


def _plain(text: str) -> str:
    text = _TIME.sub(lambda found: "<micros>" if found[1] else "<time>", _UID.sub("<uid>", text))
    return _VERSION.sub(r"\1<version>", text)


def _without(value: Any, pointers: list[str]) -> Any:
    for pointer in pointers:
        if pointer == "":
            return "<volatile>"
        *outer, last = pointer.strip("/").split("/")
        for holder in _at(value, "/".join(outer)):
            keys = list(holder) if last == "*" and isinstance(holder, dict) else [last]
            for key in keys if isinstance(holder, dict) else ():
                if key in holder:
                    holder[key] = "<volatile>"
    return value


def _is_plain_bookmark(event: dict[str, Any]) -> bool:
    return event.get("type") == "BOOKMARK" and "k8s.io/initial-events-end" not in json.dumps(event)


@dataclass
class Replay:
    """One scenario against one server; ``differing`` says which steps were answered otherwise, and how."""

    client: TestClient
    differing: dict[int, str] = field(default_factory=dict)
    _live: _LiveNames = field(default_factory=_LiveNames)

    async def run(self, exchanges: list[dict[str, Any]]) -> dict[int, str]:
        watches: list[tuple[dict[str, Any], asyncio.Task[None], asyncio.Event]] = []
        for exchange in exchanges:
            if "watch" in exchange:
                opened, may_close = asyncio.Event(), asyncio.Event()
                task = asyncio.create_task(self._watch(exchange, opened, may_close))
                watches.append((exchange, task, may_close))
                await asyncio.wait_for(opened.wait(), _LONGEST_WAIT_S)
            else:
                await self._ask(exchange)
            for watched, task, may_close in list(watches):
                if watched["watch"]["close_after_step"] <= exchange["step"]:
                    may_close.set()
                    await task
                    watches.remove((watched, task, may_close))
        return self.differing

    def _headers(self, request: dict[str, Any]) -> dict[str, str]:
        headers = {"User-Agent": "rec/1.0", **(request.get("headers") or {})}
        auth = self._live.text(request.get("auth", f"Bearer {self.client.server.token}"))
        return headers if auth == "none" else {**headers, "Authorization": auth}

    def _url(self, request: dict[str, Any]) -> yarl.URL:
        return yarl.URL(self.client.server.url + self._live.path(request["path"]), encoded=True)

    async def _ask(self, exchange: dict[str, Any]) -> None:
        request = exchange["request"]
        sent = request.get("body")
        data: bytes | None = None
        if isinstance(sent, dict) and "$binary_base64" in sent:
            data = base64.b64decode(sent["$binary_base64"])
        elif sent is not None:
            replaced = self._live.value(sent)
            data = (replaced if isinstance(replaced, str) else json.dumps(replaced)).encode()
        skipped = ["Content-Type", "Accept", "Accept-Encoding"]
        async with self.client.session.request(
            request["method"], self._url(request), data=data, headers=self._headers(request), skip_auto_headers=skipped
        ) as response:
            self._judge(exchange, response.status, _parsed(await response.read()))

    async def _watch(self, exchange: dict[str, Any], opened: asyncio.Event, may_close: asyncio.Event) -> None:
        request, recorded = exchange["request"], exchange["response"].get("events")
        n_wanted = len([event for event in recorded or [] if not _is_plain_bookmark(event)])
        lines: list[bytes] = []

        async def read(response: aiohttp.ClientResponse) -> None:
            while line := await response.content.readline():
                lines.append(line)

        async with self.client.session.get(self._url(request), headers=self._headers(request)) as response:
            opened.set()
            reading = asyncio.create_task(read(response))
            if recorded is None:
                await asyncio.wait_for(reading, _LONGEST_WAIT_S)
            else:
                await may_close.wait()
                await _until(lambda: reading.done() or len(_told(lines)) >= n_wanted)
                await asyncio.wait((reading,), timeout=_TIME_FOR_MORE_S)
                reading.cancel()
            body = _told(lines) if recorded is not None else _parsed(b"".join(lines))
            self._judge(exchange, response.status, body)

    def _judge(self, exchange: dict[str, Any], status: int, live: Any) -> None:
        wanted, volatile = exchange["response"], exchange.get("volatile") or []
        recorded = wanted.get("body")
        if "events" in wanted:
            recorded = [event for event in wanted["events"] if not _is_plain_bookmark(event)]
        self._live.learn(recorded, live)
        for pointer in filter(None, volatile):
            self._live.learn_at(recorded, live, pointer)
        expected = _without(_comparable(self._live.value(recorded)), volatile)
        found = _without(_comparable(live), volatile)
        if (status, found) != (wanted["status"], expected):
            told = f"{exchange['name']}: {wanted['status']} {_first_difference(expected, found)}"
            self.differing[exchange["step"]] = f"{told} (status {status})"


async def _until(is_done: Any) -> None:
    deadline = asyncio.get_running_loop().time() + 3
    while not is_done() and asyncio.get_running_loop().time() < deadline:
        await asyncio.sleep(0.005)


def _told(lines: list[bytes]) -> list[Any]:
    events = [json.loads(line) for line in lines]
    return [event for event in events if not _is_plain_bookmark(event)]


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data) if data else None
    except ValueError:
        pass
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"$binary_base64": base64.b64encode(data).decode()}


def _first_difference(one: Any, other: Any, path: str = "") -> str:
    if isinstance(one, dict) and isinstance(other, dict):
        for name in [*one, *other]:
            if one.get(name) != other.get(name):
                return _first_difference(one.get(name), other.get(name), f"{path}/{name}")
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for place, (inner, outer) in enumerate(zip(one, other, strict=True)):
            if inner != outer:
                return _first_difference(inner, outer, f"{path}/{place}")
    return f"{path}: {json.dumps(one)[:400]}\n  not {json.dumps(other)[:400]}"
