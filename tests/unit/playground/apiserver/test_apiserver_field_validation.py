"""fieldValidation: fields that a kind does not know and fields given twice, refused, warned of or passed over."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from apiserver_serving import TestClient, running

_MAPS = "/api/v1/namespaces/default/configmaps"
_PREFIX = 'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: '
_JSON = '{"a":1,"metadata":{"name":"x","name":"m","zz":1},"data":{"k":"1","k":"2"},"b":{"q":1,"q":2},"a":2}'
_YAML = "metadata:\n  name: m\nfoo: 1\nbar: 2\ndata:\n  k: '1'\n  k: '2'\n"
_YAML_ERROR = "yaml: unmarshal errors:\n  "
_MERGE, _STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"
_OPERATIONS, _APPLY = "application/json-patch+json", "application/apply-patch+yaml"


def _with_map(check: Callable[[TestClient], Awaitable[None]]) -> None:
    async def body() -> None:
        async with running() as client:
            await client.ask("POST", _MAPS, {"metadata": {"name": "m"}, "data": {"k": "0"}})
            await check(client)

    asyncio.run(body())


def _warnings(headers: Any) -> list[str]:
    return [text.removeprefix('299 - "')[:-1].replace('\\"', '"') for text in headers.getall("Warning", [])]


@pytest.mark.parametrize(
    ("form", "text", "findings"),
    [
        pytest.param(
            "application/json",
            _JSON,
            [
                'unknown field "a"',
                'duplicate field "metadata.name"',
                'unknown field "metadata.zz"',
                'duplicate field "data.k"',
                'unknown field "b"',
            ],
            id="JSON in the order of the text",
        ),
        pytest.param(
            "application/yaml",
            _YAML,
            [
                'yaml: unmarshal errors:\n  line 7: key "k" already set in map',
                'unknown field "bar"',
                'unknown field "foo"',
            ],
            id="YAML by lines, then by name",
        ),
    ],
)
def test_bodies_are_refused_warned_of_or_passed_over(form: str, text: str, findings: list[str]) -> None:
    async def check(client: TestClient) -> None:
        path = f"{_MAPS}/m?dryRun=All&fieldValidation="
        strict = await client.ask("PUT", path + "Strict", text, Content_Type=form)
        assert (strict.status, strict.message) == (400, _PREFIX + ", ".join(findings))
        warned = await client.ask("PUT", path + "Warn", text, Content_Type=form)
        expected = [
            line.strip() for one in findings for line in one.removeprefix("yaml: unmarshal errors:\n").split("\n")
        ]
        assert (warned.status, warned.body["data"], _warnings(warned.headers)) == (200, {"k": "2"}, expected)
        ignored = await client.ask("PUT", path + "Ignore", text, Content_Type=form)
        assert (ignored.status, _warnings(ignored.headers)) == (200, [])

    _with_map(check)


@pytest.mark.parametrize(
    ("form", "text", "findings"),
    [
        pytest.param(
            _MERGE,
            '{"foo":1,"data":{"b":"1","b":"2"},"bar":1}',
            ['duplicate field "data.b"', 'unknown field "bar"', 'unknown field "foo"'],
            id="a merge patch",
        ),
        pytest.param(
            _STRATEGIC,
            '{"data":{"b":"1","b":"2"},"foo":1}',
            ['duplicate field "data.b"', 'unknown field "foo"'],
            id="a strategic merge patch",
        ),
        pytest.param(
            _OPERATIONS,
            '[{"op":"add","op":"add","path":"/data/b","value":"2","x":1}]',
            ['json patch duplicate field "[0].op"', 'json patch unknown field "[0].x"'],
            id="a JSON patch",
        ),
        pytest.param(
            _APPLY,
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata:\n  b: '1'\n  b: '2'\n",
            ['line 6: key "b" already set in map'],
            id="an apply",
        ),
    ],
)
def test_patches_are_looked_through_as_bodies_are(form: str, text: str, findings: list[str]) -> None:
    async def check(client: TestClient) -> None:
        path = f"{_MAPS}/m?dryRun=All&fieldManager=me&fieldValidation="
        warned = await client.ask("PATCH", path + "Warn", text, Content_Type=form)
        assert (warned.status, warned.body["data"]["b"], _warnings(warned.headers)) == (200, "2", findings)
        strict = await client.ask("PATCH", path + "Strict", text, Content_Type=form)
        assert strict.status == (400 if form == _APPLY else 422)
        assert strict.message.endswith(", ".join(findings))

    _with_map(check)


def test_a_body_full_of_unknown_fields_gets_a_hundred_warnings_and_no_more_text_than_fits() -> None:
    async def check(client: TestClient) -> None:
        many = json.dumps({"metadata": {"name": "a"}, **{f"f{at}": 1 for at in range(100_000)}}).encode()
        answered = await client.ask("POST", f"{_MAPS}?dryRun=All", many)
        assert (answered.status, len(_warnings(answered.headers))) == (201, 100)
        long = {"metadata": {"name": "a"}, **{"x" * 300 + str(at): 1 for at in range(100)}}
        told = _warnings((await client.ask("POST", f"{_MAPS}?dryRun=All", long)).headers)
        assert {len(text) for text in told} == {256}
        assert len(told) == 16

    _with_map(check)


def test_odd_letters_in_names_are_told_as_go_writes_them() -> None:
    async def check(client: TestClient) -> None:
        answered = await client.ask("POST", _MAPS, '{"metadata":{"name":"a"},"\\u0007\\u00ad":1}')
        assert (answered.status, _warnings(answered.headers)) == (201, ['unknown field "\\\\a\\\\u00ad"'])

    _with_map(check)
