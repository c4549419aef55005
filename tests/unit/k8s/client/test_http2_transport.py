"""Many requests on one connection: all answered, none taken for another, and honest about what became of each."""

from __future__ import annotations

import asyncio
import gzip
import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from http2_serving import (
    CONTINUATION,
    CREATED,
    DATA,
    GOAWAY,
    HEADERS,
    OK,
    PING,
    PUSH,
    ROOM,
    RST,
    SETTINGS,
    WINDOW,
    Peer,
    React,
    Server,
    answer,
    frame,
    served,
    setting,
)
from loopback_servers import authority, loopback_identity, server_tls, serving

from kubesched.k8s.client import http2_transport
from kubesched.k8s.client.errors import AnswerLost, Unreachable
from kubesched.k8s.client.http2_transport import Http2Transport
from kubesched.k8s.client.rest import RestClient
from kubesched.k8s.client.target import ServerTarget, make_tls_context
from kubesched.k8s.client.transport import Answer


def _says(data: Callable[[int], bytes]) -> React:
    return lambda peer, stream, _: peer.write(data(stream))


async def _post(transport: Http2Transport, body: bytes = b"{}", timeout_s: float = 5.0, epoch: int = 0) -> Answer:
    headers = (("A", "b"), ("Accept-Encoding", "gzip"))
    return await transport.exchange("POST", "/x", headers, body, timeout_s=timeout_s, epoch=epoch)


def _run(server: Server, story: Callable[[Http2Transport], Any], path: str = "") -> Any:
    async def run() -> Any:
        async with served(server, path) as transport:
            return await story(transport)

    return asyncio.run(run())


def test_what_is_said_again_is_a_number_from_then_on() -> None:
    server = Server(_says(answer))

    async def story(transport: Http2Transport) -> None:
        for _ in range(3):
            await transport.exchange("GET", "/pods", (("Authorization", "me"), ("A", "b")), None, timeout_s=5)
        await transport.exchange("POST", "/pods", (("A", "b"), ("C", "d")), b"12", timeout_s=5)
        await transport.exchange("GET", "/pods", (("Authorization", "me"), ("A", "b")), None, timeout_s=5)

    _run(server, story, "/k8s/")
    first, second, third, post, last = server.blocks
    host = first[first.index(b"127.") :].split(b"\x04")[0]
    path = b"\x04\x09/k8s/pods"
    authority = b"\x40\x0a:authority" + bytes((len(host),)) + host
    assert first == b"\x82\x87" + authority + path + b"\x40\x0dauthorization\x02me\x40\x01a\x01b"
    assert second == third == b"\x82\x87\xc0" + path + b"\xbf\xbe"
    assert post == b"\x83\x87\xc0" + path + b"\xbe\x40\x01c\x01d" + b"\x0f\x0d\x012"
    assert last == b"\x82\x87\xc1" + path + b"\xc0\xbf"


def test_a_server_that_keeps_a_smaller_table_is_told_everything() -> None:
    server = Server(_says(answer), setting(1, 100))

    async def story(transport: Http2Transport) -> None:
        await _post(transport)
        await _post(transport)

    _run(server, story)
    first, second = server.blocks
    assert first[:1] == b"\x20"
    assert first[1:] == second
    assert b"\x00\x01a\x01b" in second


def test_requests_share_a_connection_and_leave_together() -> None:
    arrived: list[int] = []
    server = Server(lambda peer, stream, _: arrived.append(stream))

    async def story(transport: Http2Transport) -> list[bytes]:
        asking = [asyncio.create_task(_post(transport, str(number).encode())) for number in range(50)]
        while len(arrived) < 50:
            await asyncio.sleep(0.001)
        mixed = [answer(stream, str(stream).encode()) for stream in arrived]
        random.Random(1).shuffle(mixed)
        server.peers[0].write(b"".join(mixed))
        return [(await one).body for one in asking]

    assert _run(server, story) == [str(stream).encode() for stream in arrived]
    assert len(server.peers) == 1


def test_beyond_what_a_connection_takes_another_is_opened() -> None:
    server = Server(_says(answer), setting(3, 2))

    async def story(transport: Http2Transport) -> list[Answer]:
        return await asyncio.gather(*(_post(transport) for _ in range(9)))

    assert len(_run(server, story)) == 9
    assert 2 <= len(server.peers) <= 5


@pytest.mark.parametrize("step", [1, 2, 7])
def test_an_answer_may_come_in_pieces(step: int) -> None:
    body = gzip.compress(b"body")
    whole = (
        frame(HEADERS, 4, 1, b"\x08\x03103")
        + frame(HEADERS, 8 | 32, 1, b"\x02" + b"\0\0\0\0\x01" + b"\x08\x03" + b"\0\0")
        + frame(CONTINUATION, 0, 1, b"201")
        + frame(CONTINUATION, 4, 1, b"\x0f\x0b\x04gzip\x0f\x26\x015")
        + frame(DATA, 8, 1, b"\x01" + body[:9] + b"\0")
        + frame(99, 0, 1, b"unknown")
        + frame(DATA, 0, 1, body[9:])
        + frame(HEADERS, 5, 1, b"\x00\x01t\x01v")
    )

    pouring = []

    def pour(peer: Peer, _stream: int, _body: bytes) -> None:
        async def slowly() -> None:
            for at in range(0, len(whole), step):
                peer.write(whole[at : at + step])
                await asyncio.sleep(0)

        pouring.append(asyncio.ensure_future(slowly()))

    found = _run(Server(pour), _post)
    assert found == Answer(201, {"content-encoding": "gzip", "retry-after": "5"}, b"body")


def test_a_body_waits_for_the_windows_of_its_server() -> None:
    body = random.Random(2).randbytes(300_000)
    came: list[int] = []

    server = Server(lambda peer, stream, got: peer.write(answer(stream, b"%d" % (got == body))))

    async def story(transport: Http2Transport) -> Answer:
        asking = asyncio.create_task(_post(transport, body))
        while not asking.done():
            await asyncio.sleep(0.002)
            came.append(sum(len(payload) for kind, _, _, payload in server.frames if kind == DATA))
            if server.peers:
                stream = len(came) % 2
                server.peers[0].write(frame(WINDOW, 0, stream, struct.pack(">I", 20_000)))
        return await asking

    assert _run(server, story).body == b"1"
    assert 65_535 in came


def test_windows_that_are_set_wider_hold_for_what_is_under_way() -> None:
    server = Server(lambda peer, stream, got: peer.write(answer(stream, b"%d" % len(got))), setting(4, 9))

    async def story(transport: Http2Transport) -> Answer:
        asking = asyncio.create_task(_post(transport, b"x" * 5_000))
        while not any(kind == DATA for kind, *_ in server.frames):
            await asyncio.sleep(0.001)
        server.peers[0].write(frame(SETTINGS, 0, 0, setting(4, 10_000)))
        return await asking

    assert _run(server, story).body == b"5000"


def test_a_server_that_keeps_asking_is_answered() -> None:
    def react(peer: Peer, stream: int, _body: bytes) -> None:
        peer.write(frame(PING, 0, 0, b"12345678") + frame(SETTINGS, 0, 0) + answer(stream))

    server = Server(react)

    async def story(transport: Http2Transport) -> None:
        await _post(transport)
        await _post(transport)

    _run(server, story)
    assert (PING, 1, 0, b"12345678") in server.frames
    assert (SETTINGS, 1, 0, b"") in server.frames


# -- what became of a request ------------------------------------------------------------------------------------------


def _once(first: Callable[[int], bytes]) -> React:
    pieces = [first]

    def react(peer: Peer, stream: int, _body: bytes) -> None:
        peer.write(pieces.pop()(stream) if pieces else answer(stream))

    return react


NOT_LOOKED_AT = [
    pytest.param(lambda stream: frame(RST, 0, stream, struct.pack(">I", 7)), id="refused"),
    pytest.param(lambda stream: frame(GOAWAY, 0, 0, struct.pack(">II", 0, 0)), id="beyond the last"),
]


@pytest.mark.parametrize("refusal", NOT_LOOKED_AT)
def test_what_the_server_did_not_look_at_is_sent_once_more(refusal: Callable[[int], bytes]) -> None:
    server = Server(_once(refusal))
    assert _run(server, _post).body == b"ok"
    assert len(server.blocks) == 2


@pytest.mark.parametrize("refusal", NOT_LOOKED_AT)
def test_refused_again_it_has_not_arrived(refusal: Callable[[int], bytes]) -> None:
    server = Server(_says(refusal))
    with pytest.raises(Unreachable, match=r"refused|ended"):
        _run(server, _post)
    assert len(server.blocks) == 2


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(lambda stream: frame(RST, 0, stream, struct.pack(">I", 2)), id="reset"),
        pytest.param(lambda stream: frame(HEADERS, 4, stream, OK) + frame(RST, 0, stream, b"\0\0\0\0"), id="cut off"),
        pytest.param(lambda stream: frame(HEADERS, 5, stream, b""), id="no status"),
        pytest.param(lambda stream: frame(HEADERS, 5, stream, b"\x84"), id="a path for a status"),
        pytest.param(lambda stream: frame(HEADERS, 5, stream, b"\x08\x03abc"), id="a word for a status"),
        pytest.param(lambda stream: frame(HEADERS, 5, stream, b"\x8d\xff\xff\xff\xff\xff\xff"), id="a large number"),
        pytest.param(lambda stream: frame(HEADERS, 5, stream, b"\x8d\xbe"), id="a table that we do not keep"),
        pytest.param(lambda stream: frame(HEADERS, 5, stream, b"\x8d\x0f\x0b\x09gzip"), id="half a header"),
        pytest.param(lambda stream: frame(DATA, 1, stream, b"x"), id="a body without a head"),
        pytest.param(lambda stream: frame(DATA, 9, stream, b"\x05x"), id="too much padding"),
        pytest.param(lambda stream: frame(HEADERS, 0, stream, OK) + frame(PING, 0, 0, b"12345678"), id="interrupted"),
        pytest.param(lambda stream: frame(CONTINUATION, 4, stream, OK), id="a continuation of nothing"),
        pytest.param(lambda stream: frame(PUSH, 4, stream, b"\0\0\0\2" + OK), id="a push"),
        pytest.param(lambda stream: frame(SETTINGS, 0, 0, b"\0"), id="half a setting"),
        pytest.param(lambda stream: frame(RST, 0, stream, b"\0"), id="half a reset"),
        pytest.param(lambda stream: b"HTTP/1.1 400 Bad Request\r\n\r\n", id="HTTP/1.1"),
        pytest.param(
            lambda stream: frame(HEADERS, 4, stream, b"\x88\x0f\x0b\x04gzip") + frame(DATA, 1, stream, b"x"),
            id="damaged gzip",
        ),
    ],
)
def test_what_has_no_whole_answer_may_have_come_about(data: Callable[[int], bytes]) -> None:
    server = Server(_once(data))

    async def story(transport: Http2Transport) -> Answer:
        with pytest.raises(AnswerLost, match="POST /x"):
            await _post(transport)
        return await _post(transport)

    assert _run(server, story).body == b"ok"


def test_no_answer_is_left_when_a_connection_breaks() -> None:
    def react(peer: Peer, _stream: int, _body: bytes) -> None:
        if len(server.blocks) == 10:
            peer.transport.abort()

    server = Server(react)

    async def story(transport: Http2Transport) -> list[object]:
        return await asyncio.gather(*(_post(transport) for _ in range(10)), return_exceptions=True)

    assert [type(outcome) for outcome in _run(server, story)] == [AnswerLost] * 10


def test_what_was_answered_before_the_connection_ended_counts() -> None:
    def react(peer: Peer, _stream: int, _body: bytes) -> None:
        if len(server.blocks) == 2:
            goes = frame(GOAWAY, 0, 0, struct.pack(">II", 3, 0))
            peer.write(goes + answer(1) + answer(3, block=CREATED))

    server = Server(react)

    async def story(transport: Http2Transport) -> list[Answer]:
        both = await asyncio.gather(_post(transport), _post(transport))
        server.react = _says(answer)
        return [*both, await _post(transport)]

    assert [found.status for found in _run(server, story)] == [200, 201, 200]
    assert len(server.peers) == 2


def test_after_a_timeout_others_take_another_connection() -> None:
    server = Server(_once(lambda stream: b""))

    async def story(transport: Http2Transport) -> Answer:
        with pytest.raises(AnswerLost, match=r"timeout after 0\.05 s"):
            await _post(transport, timeout_s=0.05)
        return await _post(transport)

    assert _run(server, story).body == b"ok"
    assert len(server.peers) == 2


def test_who_gives_up_tells_the_server_and_leaves_the_others_alone() -> None:
    server = Server(lambda *_: None)

    async def story(transport: Http2Transport) -> bytes:
        given_up, other = asyncio.create_task(_post(transport)), asyncio.create_task(_post(transport))
        while len(server.blocks) < 2:
            await asyncio.sleep(0.001)
        given_up.cancel()
        while not server.resets():
            await asyncio.sleep(0.001)
        server.peers[0].write(answer(1, b"late") + answer(3, b"mine"))
        return (await other).body

    assert _run(server, story) == b"mine"
    assert server.resets() == [struct.pack(">I", 8)]
    assert len(server.peers) == 1


def test_a_new_client_certificate_takes_a_new_connection() -> None:
    server = Server(_says(answer))

    async def story(transport: Http2Transport) -> None:
        for epoch in (0, 0, 1, 1):
            await _post(transport, epoch=epoch)

    _run(server, story)
    assert len(server.peers) == 2


def test_a_connection_that_was_idle_for_long_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http2_transport, "IDLE_CONNECTION_S", 0.3)
    server = Server(_says(answer))

    async def story(transport: Http2Transport) -> None:
        await _post(transport)
        await asyncio.sleep(0.4)
        await _post(transport)

    _run(server, story)
    assert len(server.peers) == 2


def test_a_server_that_hangs_up_before_it_says_anything_is_out_of_reach() -> None:
    async def story() -> None:
        listening = await asyncio.get_running_loop().create_server(_HangsUp, "127.0.0.1", 0)
        port = listening.sockets[0].getsockname()[1]
        transport = Http2Transport(ServerTarget(f"http://127.0.0.1:{port}"))
        try:
            with pytest.raises(Unreachable, match="cannot reach the API server"):
                await _post(transport)
        finally:
            await transport.close()
            listening.close()
            await listening.wait_closed()

    asyncio.run(story())


class _HangsUp(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.close()


def test_noise_breaks_nothing_but_the_connection() -> None:
    dice = random.Random(3)

    def noise(stream: int) -> bytes:
        good = answer(stream) + frame(SETTINGS, 0, 0, setting(3, 50)) + frame(WINDOW, 0, 0, ROOM)
        at = dice.randrange(len(good))
        return good[:at] + dice.randbytes(dice.randrange(1, 30)) + good[at:]

    server = Server(_says(noise))

    async def story(transport: Http2Transport) -> set[type]:
        outcomes = set()
        for _ in range(200):
            (outcome,) = await asyncio.gather(_post(transport, timeout_s=0.02), return_exceptions=True)
            outcomes.add(type(outcome))
        return outcomes

    assert _run(server, story) <= {Answer, AnswerLost, Unreachable}


# -- which servers are spoken to so ------------------------------------------------------------------------------------


async def _protocol(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    tls = request.transport.get_extra_info("ssl_object")
    return web.Response(text=f"{tls.selected_alpn_protocol()}\n")


def test_a_server_without_http2_is_spoken_to_as_ever(tmp_path: Path) -> None:
    tls = server_tls(tmp_path, loopback_identity())
    tls.set_alpn_protocols(["http/1.1"])

    async def story() -> None:
        async with serving(_protocol, tls) as url:
            target = ServerTarget(url, make_tls_context(authorities=authority().certificate))
            async with RestClient(target, qps=-1, writes_much=True) as client:
                answers = await asyncio.gather(*(client.request("POST", "/", body=b"{}") for _ in range(20)))
                assert set(answers) == {b"http/1.1\n"}

    asyncio.run(story())


def test_requests_are_shared_and_watches_are_not(tmp_path: Path) -> None:
    """With a server that can do both, over one context."""
    tls = server_tls(tmp_path, loopback_identity())
    tls.set_alpn_protocols(["h2", "http/1.1"])
    server = Server(_says(answer))

    def speaks() -> asyncio.Protocol:
        return _Either(server)

    async def story() -> None:
        listening = await asyncio.get_running_loop().create_server(speaks, "127.0.0.1", 0, ssl=tls)
        port = listening.sockets[0].getsockname()[1]
        target = ServerTarget(f"https://127.0.0.1:{port}", make_tls_context(authorities=authority().certificate))
        async with RestClient(target, qps=-1, writes_much=True) as client:
            for _ in range(2):
                assert (
                    await asyncio.gather(*(client.request("POST", "/", body=b"{}") for _ in range(20))) == [b"ok"] * 20
                )
                async with client.stream("/", {}) as lines:
                    assert [line async for line in lines] == [b"http/1.1"]
        listening.close()
        await listening.wait_closed()

    asyncio.run(story())
    assert len(server.peers) == 1


class _Either(asyncio.Protocol):
    """Speaks what was agreed on."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._peer: Peer | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._agreed = transport.get_extra_info("ssl_object").selected_alpn_protocol()
        if self._agreed == "h2":
            self._peer = Peer(self._server)
            self._peer.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        if self._peer is not None:
            self._peer.data_received(data)
        else:
            line = f"{self._agreed}\n".encode()
            self._transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(line), line))
