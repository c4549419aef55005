"""Answers in protobuf: what the real server would send, byte by byte, to clients that take nothing else."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import pytest
from apiserver_serving import PODS, TestClient, pod, running
from replayed_exchanges import exchanges_of, scenarios

from kubesched.playground.apiserver.http.protobuf import ProtobufError, decode_envelope, encode_envelope

_PROTOBUF = "application/vnd.kubernetes.protobuf"


def _recorded_bytes() -> list[bytes]:
    found = []
    for exchange in exchanges_of("protobuf"):
        body = exchange["response"].get("body")
        if isinstance(body, dict) and "$binary_base64" in body:
            found.append(base64.b64decode(body["$binary_base64"]))
    return found


def _recorded_objects(scenario: str) -> list[dict[str, Any]]:
    bodies = [exchange["response"].get("body") for exchange in exchanges_of(scenario)]
    return [body for body in bodies if isinstance(body, dict) and body.get("kind")]


def _without_nothing(value: Any) -> Any:
    """Protobuf does not tell what is empty from what is not there."""
    if isinstance(value, list):
        return [_without_nothing(item) for item in value]
    if not isinstance(value, dict):
        return value
    parts = {name: _without_nothing(part) for name, part in value.items() if name not in ("kind", "apiVersion")}
    return {name: part for name, part in parts.items() if part not in (None, "", 0, False, [], {})}


def test_recorded_answers_are_made_again_byte_by_byte() -> None:
    recorded = _recorded_bytes()
    assert recorded
    assert [encode_envelope(decode_envelope(data)) for data in recorded] == recorded


@pytest.mark.parametrize("scenario", scenarios())
def test_every_recorded_object_is_the_same_after_protobuf(scenario: str) -> None:
    for obj in _recorded_objects(scenario):
        try:
            data = encode_envelope(obj)
        except ProtobufError:
            continue  # custom resources, tables and discovery have no messages
        assert _without_nothing(decode_envelope(data)) == _without_nothing(obj), obj["kind"]


async def _ask(client: TestClient, path: str, accept: str) -> tuple[int, str, bytes]:
    headers = {"Authorization": f"Bearer {client.server.token}", "Accept": accept}
    async with client.session.get(client.server.url + path, headers=headers) as response:
        return response.status, response.headers["Content-Type"], await response.read()


def test_objects_lists_and_refusals_are_sent_so() -> None:
    async def body() -> None:
        async with running() as client:
            await client.ask("POST", PODS, pod("a"))
            status, form, data = await _ask(client, f"{PODS}/a", _PROTOBUF)
            assert (status, form) == (200, _PROTOBUF)
            assert decode_envelope(data)["metadata"]["name"] == "a"
            listed = decode_envelope((await _ask(client, PODS, _PROTOBUF))[2])
            assert (listed["kind"], [item["metadata"]["name"] for item in listed["items"]]) == ("PodList", ["a"])
            status, form, data = await _ask(client, f"{PODS}/b", _PROTOBUF)
            assert (status, decode_envelope(data)["message"]) == (404, 'pods "b" not found')
            assert (await _ask(client, f"{PODS}/a", f"{_PROTOBUF},application/json"))[1] == "application/json"

    asyncio.run(body())


def test_watches_tables_and_discovery_are_refused() -> None:
    async def body() -> None:
        async with running() as client:
            table = f"{_PROTOBUF};as=Table;g=meta.k8s.io;v=v1"
            for path, accept in ((f"{PODS}?watch=1", _PROTOBUF), (PODS, table), ("/apis", _PROTOBUF)):
                assert (await _ask(client, path, accept))[0] == 406, path

    asyncio.run(body())
