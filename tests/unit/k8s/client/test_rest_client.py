"""Requests to a server on loopback: what is sent, what comes back, what is repeated."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Awaitable, Callable, Sequence

import pytest
from aiohttp import web
from loopback_servers import serving

from kubesched.k8s.client.aiohttp_transport import AiohttpTransport
from kubesched.k8s.client.errors import AnswerLost, ApiError, ClientConfigError, Unreachable
from kubesched.k8s.client.rest import RestClient, RetryPolicy
from kubesched.k8s.client.target import Headers, ServerTarget
from kubesched.k8s.client.transport import StreamTransport

MakeTransport = Callable[[ServerTarget], StreamTransport | None]
OWN: MakeTransport = lambda target: None  # noqa: E731 - a name for a column of a table
AIOHTTP: MakeTransport = AiohttpTransport
both_transports = pytest.mark.parametrize(
    "make_transport", [pytest.param(OWN, id="own http1"), pytest.param(AIOHTTP, id="aiohttp")]
)


class Script:
    """Answers with the given answers one after another, the last one forever; remembers requests and pauses."""

    def __init__(self, *answers: tuple[int, dict[str, str], bytes]) -> None:
        self.answers = list(answers)
        self.seen: list[tuple[str, str, bytes]] = []
        self.headers: list[dict[str, list[str]]] = []
        self.pauses: list[float] = []

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.seen.append((request.method, request.raw_path, await request.read()))
        self.headers.append({name.lower(): request.headers.getall(name) for name in request.headers})
        status, headers, body = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return web.Response(status=status, headers=headers, body=body)

    async def pause(self, for_s: float) -> None:
        self.pauses.append(for_s)

    def client(self, url: str, make_transport: MakeTransport = OWN, **options: object) -> RestClient:
        target = ServerTarget(url, **options)  # type: ignore[arg-type]
        retries = RetryPolicy(max_attempts=3, draw=lambda: 1.0)
        return RestClient(target, qps=0, retries=retries, sleep=self.pause, transport=make_transport(target))


def _play(
    script: Script,
    story: Callable[[RestClient], Awaitable[object]],
    make_transport: MakeTransport = OWN,
    **options: object,
) -> None:
    async def run() -> None:
        async with serving(script.handle) as url:
            client = script.client(url, make_transport, **options)
            try:
                await story(client)
            finally:
                await client.close()

    asyncio.run(run())


@both_transports
def test_a_request_arrives_as_it_was_given(make_transport: MakeTransport) -> None:
    script = Script((201, {}, b'{"ok":true}'))

    async def story(client: RestClient) -> None:
        params = {"fieldManager": "a b&c", "dryRun": "All"}
        answer = await client.request(
            "PATCH", "/api/v1/pods/ü x", params=params, body=b"{}", content_type="application/merge-patch+json"
        )
        assert answer == b'{"ok":true}'

    _play(script, story, make_transport)
    assert script.seen == [("PATCH", "/api/v1/pods/%C3%BC%20x?fieldManager=a+b%26c&dryRun=All", b"{}")]
    headers = script.headers[0]
    assert headers["content-type"] == ["application/merge-patch+json"]
    assert headers["accept"] == ["application/json"]
    assert headers["accept-encoding"] == ["identity"]
    assert headers["user-agent"][0].startswith("kubesched/")


@both_transports
def test_gzip_is_used_only_when_asked_for(make_transport: MakeTransport) -> None:
    script = Script((200, {"Content-Encoding": "gzip"}, gzip.compress(b"x" * 1000)))

    async def story(client: RestClient) -> None:
        assert await client.request("GET", "/list", gzip=True) == b"x" * 1000

    _play(script, story, make_transport)
    assert script.headers[0]["accept-encoding"] == ["gzip"]
    assert "content-type" not in script.headers[0]


@both_transports
def test_a_large_answer_comes_whole(make_transport: MakeTransport) -> None:
    body = bytes(range(256)) * 20_000

    async def story(client: RestClient) -> None:
        assert await client.request("POST", "/echo", body=body[:500_000]) == body

    _play(Script((200, {}, body)), story, make_transport)


Reply = tuple[int, dict[str, str], bytes]
BUSY: Reply = (429, {"Retry-After": "2"}, b"busy")
BROKEN: Reply = (500, {}, b"broken")
LATER: Reply = (503, {"Retry-After": "1"}, b"later")
FINE: Reply = (200, {}, b"fine")


@both_transports
@pytest.mark.parametrize(
    ("method", "answers", "n_seen", "pauses", "status"),
    [
        pytest.param("GET", [BROKEN, BUSY, FINE], 3, [0.25, 2.0], None, id="a read until it is answered"),
        pytest.param("GET", [BROKEN], 3, [0.25, 0.5], 500, id="a read not forever"),
        pytest.param("POST", [BUSY, LATER, FINE], 3, [2.0, 1.0], None, id="a write that the server did not do"),
        pytest.param("POST", [BROKEN, FINE], 1, [], 500, id="a write that may have been done, never"),
        pytest.param("PUT", [(409, {}, b"")], 1, [], 409, id="a conflict, never"),
        pytest.param("GET", [(301, {"Location": "/y"}, b"")], 1, [], 301, id="a redirect is not followed"),
    ],
)
def test_what_is_repeated(
    make_transport: MakeTransport,
    method: str,
    answers: Sequence[Reply],
    n_seen: int,
    pauses: list[float],
    status: int | None,
) -> None:
    script = Script(*answers)

    async def story(client: RestClient) -> None:
        body = None if method == "GET" else b"{}"
        if status is None:
            assert await client.request(method, "/x", body=body) == b"fine"
            return
        with pytest.raises(ApiError) as refused:
            await client.request(method, "/x", body=body)
        assert refused.value.status == status

    _play(script, story, make_transport)
    assert (len(script.seen), script.pauses) == (n_seen, pauses)


@both_transports
@pytest.mark.parametrize(("method", "n_seen"), [("GET", 3), ("POST", 1), ("PUT", 1), ("DELETE", 1), ("PATCH", 1)])
def test_a_write_whose_answer_was_lost_is_never_repeated(
    make_transport: MakeTransport, method: str, n_seen: int
) -> None:
    """The connection is a kept one, which is where HTTP libraries like to repeat by themselves."""
    script = Script(FINE)

    async def handle(request: web.Request) -> web.StreamResponse:
        answer = await script.handle(request)
        if request.path == "/lost":
            assert request.transport is not None
            request.transport.abort()
        return answer

    async def run() -> None:
        async with serving(handle) as url:
            client = script.client(url, make_transport)
            await client.request("GET", "/first")
            with pytest.raises(AnswerLost):
                await client.request(method, "/lost", body=None if method == "GET" else b"{}")
            await client.close()

    asyncio.run(run())
    assert [seen[:2] for seen in script.seen[1:]] == [(method, "/lost")] * n_seen


@both_transports
def test_a_server_that_does_not_answer_in_time_is_an_answer_lost(make_transport: MakeTransport) -> None:
    async def handle(_request: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        return web.Response()

    async def run() -> None:
        async with serving(handle) as url:
            client = Script(FINE).client(url, make_transport)
            with pytest.raises(AnswerLost, match="timeout"):
                await client.request("POST", "/x", body=b"{}", timeout_s=0.05)
            await client.close()

    asyncio.run(run())


@both_transports
def test_a_server_that_is_not_there_is_unreachable(make_transport: MakeTransport) -> None:
    script = Script(FINE)

    async def run() -> None:
        async with serving(script.handle) as url:
            pass
        client = script.client(url, make_transport)
        for method in ("GET", "POST"):
            with pytest.raises(Unreachable, match="connection refused; check that the API server runs there"):
                await client.request(method, "/x")
        await client.close()

    asyncio.run(run())
    assert script.pauses == [0.25, 0.5], "the read was repeated, the write not"


class Renewing:
    """Credentials that have a new token after each 401, for as long as there are tokens."""

    connection_epoch = 0

    def __init__(self, *tokens: str) -> None:
        self._logins: list[Headers] = [(("Authorization", f"Bearer {token}"),) for token in tokens]
        self.n_renewed = 0
        self.is_closed = False

    async def headers(self) -> Headers:
        return self._logins[0]

    async def renew(self, used: Headers, epoch: int) -> bool:
        if used is not self._logins[0]:
            return True
        if len(self._logins) == 1:
            return False
        self.n_renewed += 1
        self._logins.pop(0)
        return True

    def advice(self) -> str:
        return "get a new token"

    async def close(self) -> None:
        self.is_closed = True


def _wants(token: str) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def handle(request: web.Request) -> web.StreamResponse:
        if request.headers.get("Authorization") == f"Bearer {token}":
            return web.Response(body=b"fine\n")
        return web.Response(status=401, body=b"Unauthorized")

    return handle


@both_transports
def test_an_expired_token_is_renewed_once_for_all_requests(make_transport: MakeTransport) -> None:
    credentials = Renewing("old", "new")

    async def run() -> None:
        async with serving(_wants("new")) as url:
            client = Script(FINE).client(url, make_transport, credentials=credentials)
            answers = await asyncio.gather(*(client.request("POST", "/x", body=b"{}") for _ in range(5)))
            assert answers == [b"fine\n"] * 5
            async with client.stream("/watch", {}) as lines:
                assert [line async for line in lines] == [b"fine"]
            await client.close()

    asyncio.run(run())
    assert credentials.n_renewed == 1
    assert credentials.is_closed


@pytest.mark.parametrize("token", ["s3\r\ncret", "s3\ncret"])
def test_a_token_with_a_line_break_is_refused_without_showing_it(token: str) -> None:
    async def run() -> None:
        client = Script(FINE).client("http://127.0.0.1:1", credentials=Renewing(token), source="context a of /f")
        with pytest.raises(ClientConfigError, match=r"^context a of /f: .* Authorization has a line break") as refused:
            await client.request("GET", "/x")
        assert "cret" not in str(refused.value)
        await client.close()

    asyncio.run(run())


@both_transports
@pytest.mark.parametrize("tokens", [("old",), ("old", "older")], ids=["cannot be renewed", "renewed in vain"])
def test_credentials_that_stay_refused_say_what_to_do(make_transport: MakeTransport, tokens: tuple[str, ...]) -> None:
    async def run() -> None:
        async with serving(_wants("new")) as url:
            client = Script(FINE).client(url, make_transport, credentials=Renewing(*tokens), source="context a of /f")
            with pytest.raises(ApiError) as refused:
                await client.request("GET", "/x")
            assert refused.value.is_unauthorized
            assert refused.value.message == (
                f"{url} does not accept the credentials of context a of /f: Unauthorized; get a new token"
            )
            await client.close()

    asyncio.run(run())
