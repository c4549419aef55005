"""The OpenAPI v2 document as protobuf: what kubectl reads from it is what the document says."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from apiserver_serving import TestClient, running

from kubesched.playground.apiserver.http.discovery import encode_document
from kubesched.playground.apiserver.http.protobuf import fields_of
from kubesched.playground.apiserver.kinds.registry import ALL_KINDS
from kubesched.playground.apiserver.openapi import documents

_PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
_NAMED = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_PODS = "/api/v1/namespaces/{namespace}/pods/{name}"


def _all(data: bytes, *numbers: int) -> list[Any]:
    """Every value at a path of field numbers."""
    found: list[Any] = [data]
    for number in numbers:
        found = [value for outer in found for at, value in fields_of(outer) if at == number]
    return found


def _named(pairs: list[bytes]) -> dict[str, bytes]:
    return {_all(pair, 1)[0].decode(): _all(pair, 2)[0] for pair in pairs}


def _extensions(data: bytes, number: int) -> dict[str, Any]:
    return {name: json.loads(_all(value, 2)[0]) for name, value in _named(_all(data, number)).items()}


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return documents.document_v2(ALL_KINDS)


@pytest.fixture(scope="module")
def encoded(document: dict[str, Any]) -> bytes:
    return encode_document(document)


def test_every_definition_keeps_its_properties_references_and_extensions(
    document: dict[str, Any], encoded: bytes
) -> None:
    definitions = _named(_all(encoded, 9, 1))
    assert definitions.keys() == document["definitions"].keys()
    for name, schema in document["definitions"].items():
        properties = _named(_all(definitions[name], 25, 1))
        assert properties.keys() == schema.get("properties", {}).keys(), name
        assert [text.decode() for text in _all(definitions[name], 19)] == schema.get("required", []), name
        assert _extensions(definitions[name], 31) == {k: v for k, v in schema.items() if k.startswith("x-")}, name
        for key, prop in schema.get("properties", {}).items():
            assert [text.decode() for text in _all(properties[key], 1)] == [prop[r] for r in prop if r == "$ref"]
            assert [text.decode() for text in _all(properties[key], 22, 1)] == [prop[r] for r in prop if r == "type"]
            assert _extensions(properties[key], 31) == {k: v for k, v in prop.items() if k.startswith("x-")}
            if isinstance(prop.get("items"), dict) and "$ref" in prop["items"]:
                assert _all(properties[key], 23, 1, 1) == [prop["items"]["$ref"].encode()]


def test_every_path_keeps_its_operations_and_their_parameters(document: dict[str, Any], encoded: bytes) -> None:
    numbers = {"get": 2, "put": 3, "post": 4, "delete": 5, "patch": 8}
    paths = _named(_all(encoded, 8, 2))
    assert paths.keys() == document["paths"].keys()
    for path, item in document["paths"].items():
        for verb, number in numbers.items():
            assert [text.decode() for text in _all(paths[path], number, 5)] == [
                item[v]["operationId"] for v in item if v == verb
            ]
    patch = _all(paths[_PODS], 8)[0]
    queries = {text.decode() for text in _all(patch, 8, 1, 2, 3, 4)}
    assert {"dryRun", "fieldManager", "fieldValidation", "force"} <= queries
    assert _all(patch, 8, 1, 1, 2) == [b"body"]
    assert b"application/strategic-merge-patch+json" in _all(patch, 7)
    gvk = {"group": "", "kind": "Pod", "version": "v1"}
    assert _extensions(patch, 13)["x-kubernetes-group-version-kind"] == gvk
    assert _named(_all(patch, 9, 1)).keys() == {"200", "401"}
    assert _all(paths[_PODS], 9, 1, 2, 4, 4) == [b"name", b"namespace"]


def test_numbers_truths_and_values_of_any_form_are_kept() -> None:
    schema = {"type": "integer", "minimum": -1.5, "maxLength": 300, "uniqueItems": True, "enum": [1, "a", None]}
    outer = {"properties": {"p": schema}, "additionalProperties": True, "items": {"type": "string"}, "default": {}}
    data = encode_document({"definitions": {"D": outer}})
    found = _all(data, 9, 1, 2)[0]
    inner = _all(found, 25, 1, 2)[0]
    assert _all(found, 21, 2) == [1]
    assert _all(found, 23, 1, 22, 1) == [b"string"]
    assert _all(found, 5, 2) == [b"{}\n"]
    assert (_all(inner, 11), _all(inner, 16)) == ([300], [1])
    assert [json.loads(text) for text in _all(inner, 20, 2)] == [1, "a", None]
    assert _all(inner, 9) == [bytes.fromhex("000000000000f8bf")]


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        pytest.param(_PROTOBUF, _NAMED, id="as kubectl asks"),
        pytest.param(_NAMED, _NAMED, id="by its newer name"),
        pytest.param(f"application/json;q=0.5,{_PROTOBUF}", _NAMED, id="rather than JSON"),
        pytest.param(f"{_PROTOBUF};q=0.1,application/json", "application/json", id="JSON rather"),
        pytest.param("*/*", "application/json", id="whatever there is"),
    ],
)
def test_the_form_is_the_one_that_the_client_likes_best(accept: str, form: str) -> None:
    async def body() -> None:
        async with running() as client:
            answered = await _asked(client, accept)
            assert (answered[0], answered[1]) == (200, form)
            assert answered[2] and await _asked(client, accept, answered[2]) == (304, None, answered[2])

    asyncio.run(body())


async def _asked(client: TestClient, accept: str, mark: str = "") -> tuple[int, str | None, str]:
    headers = {"Authorization": f"Bearer {client.server.token}", "Accept": accept, "If-None-Match": mark}
    async with client.session.get(client.server.url + "/openapi/v2", headers=headers) as response:
        form = response.headers.get("Content-Type") if response.status == 200 else None
        return response.status, form, response.headers.get("Etag", "")


def test_a_form_that_does_not_exist_is_refused() -> None:
    async def body() -> None:
        async with running() as client:
            assert (await _asked(client, "text/html"))[0] == 406

    asyncio.run(body())
