"""Requests made to hurt: smuggled, misdirected, swollen, damaged. Each is refused, and the next one is answered."""

from __future__ import annotations

import asyncio
import gzip
import json
import random
import zlib
from collections.abc import Awaitable, Callable

import pytest
from apiserver_serving import PODS, TestClient, pod, serve

_SECRETS = "/api/v1/namespaces/default/secrets"
_HIDDEN = b'{"metadata":{"name":"smuggled"}}'


async def _raw(client: TestClient, data: bytes) -> bytes:
    """All that is answered to these bytes, until the server closes, or has nothing more to say for a while."""
    host, _, port = client.server.url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(data)
    answered = b""
    try:
        while more := await asyncio.wait_for(reader.read(65536), 5.0 if not answered else 0.3):
            answered += more
    except (ConnectionError, TimeoutError):
        pass
    finally:
        writer.close()
    return answered


def _with_client(body: Callable[[TestClient], Awaitable[None]]) -> None:
    async def run(client: TestClient) -> None:
        await body(client)
        assert (await client.ask("GET", PODS)).status == 200

    serve(run)


def _hidden_request(token: str) -> bytes:
    """A request with rights, as a proxy's next client would send it."""
    return (
        b"POST /api/v1/namespaces HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        b"Authorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s" % (token.encode(), len(_HIDDEN), _HIDDEN)
    )


SMUGGLING = {
    "length, then chunked": b"Content-Length: 4\r\nTransfer-Encoding: chunked",
    "chunked, then length": b"Transfer-Encoding: chunked\r\nContent-Length: 4",
    "two lengths": b"Content-Length: 0\r\nContent-Length: 4",
    "two equal lengths in one": b"Content-Length: 4, 4",
    "two lengths in one": b"Content-Length: 0, 4",
    "a length with a sign": b"Content-Length: +4",
    "a length below zero": b"Content-Length: -4",
    "a length in hexadecimal": b"Content-Length: 0x4",
    "a length with a line in it": b"Content-Length:\r\n 4",
    "chunked, twice": b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
    "chunked with something": b"Transfer-Encoding: xchunked",
    "chunked with a tab": b"Transfer-Encoding:\tchunked\x0b",
    "a space before the colon": b"Transfer-Encoding : chunked",
    "a bare line feed": b"X: y\nTransfer-Encoding: chunked",
}


@pytest.mark.parametrize("headers", [pytest.param(headers, id=name) for name, headers in SMUGGLING.items()])
def test_nothing_is_smuggled(headers: bytes) -> None:
    """Where two servers could disagree about the end of a body, the connection ends with the first answer."""

    async def body(client: TestClient) -> None:
        hidden = _hidden_request(client.server.token)
        data = b"POST /api/v1/namespaces HTTP/1.1\r\nHost: x\r\n%s\r\n\r\n0\r\n\r\n%s" % (headers, hidden)
        answered = await _raw(client, data)
        assert answered.startswith((b"HTTP/1.1 4", b"HTTP/1.0 4"))
        assert b" 500 " not in answered
        if b"HTTP/1.1 201" in answered:
            assert answered.count(b"HTTP/1.1 ") == 2, "the second request stood by itself, as the first had no body"
        else:
            assert (await client.ask("GET", "/api/v1/namespaces/smuggled")).status == 404

    _with_client(body)


PATHS = [
    "/version/..%2fapi/v1/namespaces/default/secrets",
    "/version/../api/v1/namespaces/default/secrets",
    "/healthz/..;/api/v1/namespaces/default/secrets",
    "/healthz/%2e%2e/api/v1/namespaces/default/secrets",
    "/healthz%2f..%2fapi/v1/namespaces/default/secrets",
    "//api/v1/namespaces/default/secrets",
    "/./api/v1/namespaces/default/secrets",
    "/api//v1/namespaces/default/secrets",
    "/api/v1//namespaces/default/secrets",
    "/api/v1/namespaces/default//secrets",
    "/api/v1/namespaces/default/secrets/",
    "/api/v1/namespaces/default/secrets/.",
    "/api/v1/namespaces/default/secrets%00",
    "/api/v1/namespaces/default/secrets%20",
    "/api/v1/namespaces/default/secrets%3fwatch",
    "/api/v1/namespaces/default/pods/../secrets",
    "/api/v1/namespaces/default/pods/..%2fsecrets",
    "/API/v1/namespaces/default/secrets",
    "/api/v1/namespaces/%64efault/secrets",
    "/livez/../../../../etc/passwd",
    "/openapi/v3/..%2f..%2f..%2fetc%2fpasswd",
]


@pytest.mark.parametrize("path", PATHS)
def test_no_path_leads_past_authorization(path: str) -> None:
    """A stranger may read health and version. He reads nothing else, however it is written."""

    async def body(client: TestClient) -> None:
        secret = {"metadata": {"name": "s"}, "data": {"password": "aHVudGVyMg=="}}
        assert (await client.ask("POST", _SECRETS, secret)).status == 201
        answered = await _raw(client, f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        status = int(answered.split(b" ", 2)[1])
        assert status in (301, 400, 401, 403, 404), answered
        assert b"aHVudGVyMg" not in answered and b"root:" not in answered

    _with_client(body)


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_a_small_body_does_not_swell(encoding: str) -> None:
    """60 MB of spaces fit into 60 kB: refused like any body that is too large."""
    swollen = b'{"metadata":{"name":"x"}}' + b" " * 60_000_000
    packed = gzip.compress(swollen, 6) if encoding == "gzip" else zlib.compress(swollen, 6)
    del swollen

    async def body(client: TestClient) -> None:
        refused = await client.ask("POST", "/api/v1/namespaces", packed, Content_Encoding=encoding)
        assert refused.status in (400, 413, 415)
        twice = await client.ask("POST", "/api/v1/namespaces", gzip.compress(packed), Content_Encoding="gzip, gzip")
        assert twice.status in (400, 413, 415)

    _with_client(body)


def test_damaged_protobuf_is_refused_three_hundred_times() -> None:
    """Bytes changed, left out, doubled and cut: an object, or a refusal that a client understands."""
    chance = random.Random(300)
    names = b"\x0a\x02v1\x12\x09ConfigMap"
    metadata = b"\x0a\x03abc\x2a\x04data\x5a\x0a\x0a\x03app\x12\x03web"
    message = b"\x0a%c%s\x12\x08\x0a\x01k\x12\x03val" % (len(metadata), metadata)
    whole = b"k8s\x00\x0a%c%s\x12%c%s" % (len(names), names, len(message), message)

    def damaged() -> bytes:
        data = bytearray(whole)
        for _ in range(chance.randint(1, 4)):
            place = chance.randrange(4, len(data))
            match chance.randrange(4):
                case 0:
                    data[place] = chance.randrange(256)
                case 1:
                    del data[place]
                case 2:
                    data[place:place] = data[place : place + chance.randrange(1, 9)]
                case _:
                    del data[max(place, 6) :]
            if len(data) < 6:
                break
        return bytes(data)

    async def body(client: TestClient) -> None:
        seen: dict[int, int] = {}
        for _ in range(300):
            answered = await client.ask(
                "POST",
                "/api/v1/namespaces/default/configmaps?dryRun=All",
                damaged(),
                Content_Type="application/vnd.kubernetes.protobuf",
            )
            assert answered.status == 201 or 400 <= answered.status < 500, answered.body
            assert answered.body["kind"] in ("ConfigMap", "Status")
            seen[answered.status] = seen.get(answered.status, 0) + 1
        assert len(seen) > 1, seen

    _with_client(body)


HEADERS = {
    "a token that is no text": b"Authorization: Bearer \xff\xfe",
    "a user agent that is no text": b"User-Agent: \xff\xfe/1",
    "a user to be that is no text": b"Impersonate-User: \xff",
    "a group to be that is no text": b"Impersonate-User: a\r\nImpersonate-Group: \xff",
    "more of a user that is no text": b"Impersonate-User: a\r\nImpersonate-Extra-%ff: \xff",
    "an accept that is no text": b"Accept: \xff",
    "a media type that is no text": b"Content-Type: \xff",
}


@pytest.mark.parametrize("header", [pytest.param(header, id=name) for name, header in HEADERS.items()])
def test_headers_may_hold_any_bytes(header: bytes) -> None:
    async def body(client: TestClient) -> None:
        token = b"" if b"Authorization" in header else b"Authorization: Bearer %s\r\n" % client.server.token.encode()
        data = (
            b"POST /api/v1/namespaces HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%s%s\r\n"
            b"Content-Length: %d\r\n\r\n%s" % (token, header, len(_HIDDEN), _HIDDEN)
        )
        answered = await _raw(client, data)
        assert answered.startswith((b"HTTP/1.1 2", b"HTTP/1.1 4")), answered

    _with_client(body)


def test_an_object_larger_than_etcd_takes_is_refused_in_its_words() -> None:
    async def body(client: TestClient) -> None:
        large = pod("large")
        large["spec"]["containers"][0]["command"] = ["x" * 1_600_000]
        refused = await client.ask("POST", PODS, json.dumps(large).encode())
        assert (refused.status, refused.message) == (500, "etcdserver: request is too large")
        assert "reason" not in refused.body
        large["spec"]["containers"][0]["command"] = ["x" * 1_400_000]
        assert (await client.ask("POST", PODS, json.dumps(large).encode())).status == 201
        too_long = await client.ask("POST", PODS, b" " * 3_200_000)
        assert (too_long.status, too_long.message) == (413, "Request entity too large: limit is 3145728")

    _with_client(body)
