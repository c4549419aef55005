"""Bodies that would freeze or fill the server are refused in its words, and nobody else waits while they are read."""

from __future__ import annotations

import asyncio
import gzip
import threading
from typing import Any

import pytest
from apiserver_serving import PODS, TestClient, pod, serve

from kubesched.playground.apiserver.http.bodies import LARGE_BYTES, LARGE_YAML_BYTES, decoded

REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
"""What every account may create, whatever else it may not."""

NOBODY = {"Impersonate_User": "nobody", "Impersonate_Group": "system:authenticated"}
BOMB = b"a: &a [1,1,1,1,1,1,1,1,1]\n" + b"".join(
    b"%c: &%c [%b]\n" % (sign + 1, sign + 1, b",".join([b"*%c" % sign] * 9)) for sign in range(ord("a"), ord("k"))
)
FLAT = b"kind: SelfSubjectAccessReview\nspec:\n" + b"- a\n" * 700_000
ALIASES = b"a: &a 1\nb: [%b]" % (b"*a," * 900_000)
NESTED = b"[" * 200_000
BLOCKS = b"- " * 200_000
ZIPPED = gzip.compress(b"{" + b" " * (64 << 20) + b"}")


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        pytest.param(BOMB, 400, "yaml: document contains excessive aliasing", id="a bomb of aliases"),
        pytest.param(ALIASES, 400, "yaml: document contains excessive aliasing", id="a million aliases"),
        pytest.param(FLAT, 400, "yaml: more than 100,000 values", id="a flat list"),
        pytest.param(NESTED, 400, "yaml: exceeded max depth of 500", id="nested lists"),
        pytest.param(BLOCKS, 400, "yaml: exceeded max depth of 500", id="nested blocks"),
        pytest.param(b"a: &a [*a]", 400, "yaml: anchor 'a' value contains itself", id="a list in itself"),
        pytest.param(b"a: " + b"9" * 6000, 400, "yaml: a number has more than 4,300 digits", id="6,000 digits"),
        pytest.param(b"a: \xff", 400, "yaml: invalid leading UTF-8 octet", id="no UTF-8"),
        pytest.param(b"a" * (3 << 20) + b"a", 413, "limit is 3145728", id="one byte too many"),
    ],
)
def test_yaml_of_an_account_without_rights(body: bytes, status: int, says: str) -> None:
    async def check(client: TestClient) -> None:
        for path, expected in ((REVIEWS, status), (PODS, 403)):
            answer = await client.ask("POST", path, body, Content_Type="application/yaml", **NOBODY)
            assert (answer.status, answer.body["kind"]) == (expected, "Status")
            assert says in answer.message or expected == 403
        healthy = await client.ask("POST", PODS, pod("a"))
        assert healthy.status == 201

    serve(check)


@pytest.mark.parametrize(
    ("body", "headers", "says"),
    [
        pytest.param(b'{"a":"\xff"', {}, "unexpected end of JSON input", id="broken, and no UTF-8"),
        pytest.param(b"\xff\xfe", {}, "invalid character", id="no UTF-8"),
        pytest.param(ZIPPED, {"Content_Encoding": "gzip"}, "invalid character '\\x1f'", id="a gzip bomb"),
        pytest.param(b"\x1f\x8bnot", {"Content_Encoding": "gzip"}, "invalid character '\\x1f'", id="broken gzip"),
        pytest.param(b"{}", {"Content_Encoding": "deflate"}, "", id="an encoding that nobody asked for"),
        pytest.param(b'{"a":' * 100_000, {}, "exceeded max depth", id="nested JSON"),
    ],
)
def test_json_that_is_none(body: bytes, headers: dict[str, str], says: str) -> None:
    async def check(client: TestClient) -> None:
        answer = await client.ask("POST", PODS, body, **headers)
        assert answer.body["kind"] == "Status"
        assert answer.status in (400, 422), answer.body
        assert says in answer.message

    serve(check)


def test_broken_characters_in_texts_are_replaced_as_by_the_real_server() -> None:
    async def check(client: TestClient) -> None:
        body = b'{"metadata":{"name":"a","annotations":{"x":"\xff"}},"data":{"k":"\xc3\x28"}}'
        answer = await client.ask("POST", "/api/v1/namespaces/default/configmaps", body)
        assert (answer.status, answer.body["data"]) == (201, {"k": "\ufffd("})

    serve(check)


@pytest.mark.parametrize(
    ("content_type", "size"),
    [("application/yaml", LARGE_YAML_BYTES), ("application/apply-patch+yaml", LARGE_YAML_BYTES), ("", LARGE_BYTES)],
)
def test_the_loop_goes_on_while_a_large_body_is_decoded(content_type: str, size: int) -> None:
    """The decoder waits for something that only the loop can do."""

    async def story() -> None:
        went_on = threading.Event()

        def decode(data: bytes) -> Any:
            return went_on.wait(timeout=60), len(data)

        asyncio.get_running_loop().call_soon(went_on.set)
        data = b"a" * size
        assert await decoded(data, content_type, decode, data) == (True, size)

    asyncio.run(story())


def test_a_small_body_is_decoded_at_once() -> None:
    async def story() -> int:
        return await decoded(b"{}", "application/json", threading.get_ident)

    assert asyncio.run(story()) == threading.get_ident()
