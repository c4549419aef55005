"""Our own connections: kept, shared, limited, and honest about what became of a request."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from kubesched.k8s.client import http1_connection
from kubesched.k8s.client.errors import AnswerLost, Unreachable
from kubesched.k8s.client.http1_transport import Http1Transport
from kubesched.k8s.client.target import ServerTarget
from kubesched.k8s.client.transport import Answer

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Wire:
    """A server that does with each request what `react` says, and remembers connections and requests."""

    def __init__(self, react: Callable[[Wire, asyncio.Transport, bytes], None]) -> None:
        self.react = react
        self.requests: list[bytes] = []
        self.open: list[asyncio.Transport] = []
        self.n_connections = 0

    def protocol(self) -> asyncio.Protocol:
        return _WireProtocol(self)


class _WireProtocol(asyncio.Protocol):
    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._wire.n_connections += 1
        self._wire.open.append(transport)

    def data_received(self, data: bytes) -> None:
        self._wire.requests.append(data)
        self._wire.react(self._wire, self._transport, data)


@asynccontextmanager
async def _wired(wire: Wire, path: str = "", max_connections: int = 64) -> AsyncIterator[Http1Transport]:
    server = await asyncio.get_running_loop().create_server(wire.protocol, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    transport = Http1Transport(ServerTarget(f"http://127.0.0.1:{port}{path}"), max_connections)
    try:
        yield transport
    finally:
        await transport.close()
        for connection in wire.open:
            connection.abort()
        server.close()
        await server.wait_closed()


def _reply(data: bytes) -> Callable[[Wire, asyncio.Transport, bytes], None]:
    return lambda wire, transport, request: transport.write(data)


async def _get(transport: Http1Transport, path: str = "/x", timeout_s: float = 5.0, epoch: int = 0) -> Answer:
    return await transport.exchange("GET", path, (("A", "b"),), None, timeout_s=timeout_s, epoch=epoch)


def test_a_request_is_written_as_http() -> None:
    wire = Wire(_reply(OK))

    async def story() -> None:
        async with _wired(wire, "/k8s/clusters/one/") as transport:
            await transport.exchange("POST", "/api?x=y", (("A", "b"), ("A", "ü")), b"body", timeout_s=5)
            await _get(transport)

    asyncio.run(story())
    first, second = (request.split(b"\r\n") for request in wire.requests)
    assert first[0] == b"POST /k8s/clusters/one/api?x=y HTTP/1.1"
    assert first[1].startswith(b"Host: 127.0.0.1:")
    assert first[2:] == [b"A: b", "A: ü".encode(), b"Content-Length: 4", b"", b"body"]
    assert second[0] == b"GET /k8s/clusters/one/x HTTP/1.1"
    assert second[2:] == [b"A: b", b"", b""]


def test_connections_are_kept_and_never_more_than_allowed() -> None:
    wire = Wire(_reply(OK))

    async def story() -> None:
        async with _wired(wire, max_connections=3) as transport:
            answers = await asyncio.gather(*(_get(transport) for _ in range(30)))
            assert {answer.body for answer in answers} == {b"ok"}

    asyncio.run(story())
    assert len(wire.requests) == 30
    assert wire.n_connections == 3


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", id="that says close"),
        pytest.param(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", id="of an old server"),
    ],
)
def test_a_connection_is_not_kept_after_an_answer(reply: bytes) -> None:
    wire = Wire(_reply(reply))

    async def story() -> None:
        async with _wired(wire, max_connections=1) as transport:
            for _ in range(3):
                assert (await _get(transport)).body == b"ok"

    asyncio.run(story())
    assert wire.n_connections == 3


def test_a_new_epoch_uses_new_connections() -> None:
    wire = Wire(_reply(OK))

    async def story() -> None:
        async with _wired(wire) as transport:
            for epoch in (0, 0, 1, 1):
                await _get(transport, epoch=epoch)

    asyncio.run(story())
    assert wire.n_connections == 2


def test_who_waits_with_a_new_epoch_does_not_get_an_old_connection() -> None:
    def only_first_waits(wire: Wire, transport: asyncio.Transport, _request: bytes) -> None:
        if len(wire.requests) > 1:
            transport.write(OK)

    wire = Wire(only_first_waits)

    async def story() -> None:
        async with _wired(wire, max_connections=1) as transport:
            before = asyncio.ensure_future(_get(transport, epoch=0))
            while not wire.requests:
                await asyncio.sleep(0)
            after = asyncio.ensure_future(_get(transport, epoch=1))
            await asyncio.sleep(0)
            wire.open[0].write(OK)
            assert [answer.body for answer in await asyncio.gather(before, after)] == [b"ok", b"ok"]

    asyncio.run(story())
    assert wire.n_connections == 2


def test_a_connection_the_server_closed_while_idle_is_not_used() -> None:
    wire = Wire(_reply(OK))

    async def story() -> None:
        async with _wired(wire) as transport:
            await _get(transport)
            wire.open[0].close()
            while wire.open[0].is_closing() and not _noticed(transport):
                await asyncio.sleep(0)
            assert (await _get(transport)).body == b"ok"

    asyncio.run(story())
    assert wire.n_connections == 2


def _noticed(transport: Http1Transport) -> bool:
    return all(not connection.can_be_reused for connection in transport._pool._idle)


@pytest.mark.parametrize(
    ("react", "why"),
    [
        pytest.param(lambda w, t, r: t.abort(), "closed|reset|broke", id="the server hangs up"),
        pytest.param(
            lambda w, t, r: (t.write(OK[:-1]), t.close()), "middle of the answer", id="half an answer and the end"
        ),
        pytest.param(lambda w, t, r: t.write(b"220 smtp ready\r\n\r\n"), "not HTTP", id="another protocol"),
        pytest.param(lambda w, t, r: None, "timeout after 0.05 s", id="silence"),
        pytest.param(lambda w, t, r: t.write(OK[:-1]), "timeout after 0.05 s", id="half an answer and silence"),
    ],
)
def test_a_request_that_was_sent_and_not_answered_is_lost(
    react: Callable[[Wire, asyncio.Transport, bytes], None], why: str
) -> None:
    wire = Wire(react)

    async def story() -> None:
        async with _wired(wire) as transport:
            with pytest.raises(AnswerLost, match=rf"no answer from http://127.0.0.1:\d+ to GET /x: .*({why})"):
                await _get(transport, "/x?token=1", timeout_s=0.05)

    asyncio.run(story())
    assert len(wire.requests) == 1


def test_after_a_lost_answer_the_next_request_gets_its_own() -> None:
    """A late answer to an abandoned request must never be taken for the answer to another."""

    def slow_first(wire: Wire, transport: asyncio.Transport, _request: bytes) -> None:
        if len(wire.requests) > 1:
            transport.write(OK)

    wire = Wire(slow_first)

    async def story() -> None:
        async with _wired(wire, max_connections=1) as transport:
            first = asyncio.ensure_future(_get(transport))
            while not wire.requests:
                await asyncio.sleep(0)
            first.cancel()
            await asyncio.gather(first, return_exceptions=True)
            assert (await _get(transport)).body == b"ok"

    asyncio.run(story())
    assert wire.n_connections == 2


def test_bytes_that_nobody_asked_for_end_the_connection() -> None:
    wire = Wire(lambda w, t, r: t.write(OK))

    async def story() -> None:
        async with _wired(wire) as transport:
            await _get(transport)
            wire.open[0].write(OK)
            while not _noticed(transport):
                await asyncio.sleep(0)
            assert (await _get(transport)).body == b"ok"

    asyncio.run(story())
    assert wire.n_connections == 2


def test_waiting_for_a_connection_in_vain_is_unreachable_and_leaves_no_hole() -> None:
    def only_first_waits(wire: Wire, transport: asyncio.Transport, _request: bytes) -> None:
        if len(wire.requests) > 1:
            transport.write(OK)

    wire = Wire(only_first_waits)

    async def story() -> None:
        async with _wired(wire, max_connections=1) as transport:
            holder = asyncio.ensure_future(_get(transport))
            while not wire.requests:
                await asyncio.sleep(0)
            with pytest.raises(Unreachable):
                await _get(transport, timeout_s=0.02)
            wire.open[0].write(OK)
            await holder
            assert (await _get(transport)).body == b"ok"

    asyncio.run(story())
    assert len(wire.requests) == 2


def test_a_refused_connection_says_what_to_check() -> None:
    async def story() -> None:
        server = await asyncio.get_running_loop().create_server(asyncio.Protocol, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        server.close()
        await server.wait_closed()
        transport = Http1Transport(ServerTarget(f"http://127.0.0.1:{port}", source="context a of /f"))
        with pytest.raises(Unreachable) as refused:
            await _get(transport)
        assert str(refused.value) == (
            f"cannot reach the API server at http://127.0.0.1:{port}: connection refused; "
            "check that the API server runs there and that context a of /f has the right port"
        )
        await transport.close()

    asyncio.run(story())


@pytest.mark.parametrize("seed", range(5))
def test_no_connection_gets_lost_whatever_is_given_up(seed: int) -> None:
    """Requests are cancelled, time out, break and succeed in any order; afterwards all connections can be had again."""
    chance = random.Random(seed)

    def moody(_wire: Wire, transport: asyncio.Transport, request: bytes) -> None:
        mood = 1.0 if b"/calm" in request else chance.random()
        if mood < 0.2:
            transport.abort()
        elif mood < 0.4:
            transport.write(OK[:-1])
        elif mood < 0.6:
            transport.write(OK.replace(b"Content", b"Connection: close\r\nContent"))
        else:
            transport.write(OK)

    wire = Wire(moody)

    async def story() -> None:
        async with _wired(wire, max_connections=3) as transport:
            tasks = [asyncio.ensure_future(_get(transport, timeout_s=chance.choice([0.001, 0.05]))) for _ in range(60)]
            for task in tasks:
                if chance.random() < 0.3:
                    await asyncio.sleep(0)
                    task.cancel()
            outcomes = await asyncio.gather(*tasks, return_exceptions=True)
            kinds = (Answer, AnswerLost, Unreachable, asyncio.CancelledError)
            assert all(isinstance(outcome, kinds) for outcome in outcomes)
            calm = await asyncio.gather(*(_get(transport, "/calm") for _ in range(3)))
            assert [answer.body for answer in calm] == [b"ok"] * 3
            pool = transport._pool
            assert (pool._n_free + len(pool._idle), list(pool._waiting)) == (3, [])
            assert len(pool._all) == len(pool._idle)

    asyncio.run(story())


def test_a_connection_that_cannot_be_made_lets_the_next_one_try() -> None:
    async def story() -> None:
        server = await asyncio.get_running_loop().create_server(asyncio.Protocol, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        server.close()
        await server.wait_closed()
        transport = Http1Transport(ServerTarget(f"http://127.0.0.1:{port}"), max_connections=2)
        outcomes = await asyncio.gather(*(_get(transport) for _ in range(9)), return_exceptions=True)
        assert all(isinstance(outcome, Unreachable) for outcome in outcomes)
        assert transport._pool._n_free == 2
        await transport.close()

    asyncio.run(story())


STREAM = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


async def _stream_of(*writes: bytes) -> bytes:
    """What is read of a watch whose answer comes in these pieces."""

    def react(_wire: Wire, transport: asyncio.Transport, _data: bytes) -> None:
        for number, piece in enumerate(writes):
            asyncio.get_running_loop().call_later(0.001 * number, transport.write, piece)

    async with _wired(Wire(react)) as transport, transport.open_stream("/w", (), timeout_s=5.0) as opened:
        assert not isinstance(opened, Answer)
        parts = []
        while part := await opened.read():
            parts.append(part)
        return b"".join(parts)


@pytest.mark.parametrize("seed", range(8))
def test_a_stream_is_the_same_however_it_was_cut(seed: int) -> None:
    dice = random.Random(seed)
    lines = [b"x" * dice.randint(0, 60) + b"\n" for _ in range(20)]
    body = STREAM + b"".join(b"%x\r\n%b\r\n" % (len(line), line) for line in lines) + b"0\r\n\r\n"
    cuts = sorted(dice.sample(range(1, len(body)), 12))
    pieces = [body[start:stop] for start, stop in zip((0, *cuts), (*cuts, len(body)), strict=True)]
    assert asyncio.run(_stream_of(*pieces)) == b"".join(lines)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        pytest.param(STREAM + b"2\r\nokXX", "a chunk does not end where it should", id="too long a chunk"),
        pytest.param(STREAM + b"-2\r\nok\r\n", "a chunk without a size", id="a negative size"),
        pytest.param(b"HTTP/9 hello\r\n\r\n", "the answer is not HTTP/1.1", id="another protocol"),
    ],
)
def test_a_stream_that_makes_no_sense_is_an_answer_lost(answer: bytes, why: str) -> None:
    with pytest.raises(AnswerLost, match=why):
        asyncio.run(_stream_of(answer))


def test_of_a_stream_that_nobody_reads_little_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http1_connection, "_MOST_UNREAD", 1000)
    chunk = b"3e8\r\n" + b"x" * 1000 + b"\r\n"
    n_chunks = 20_000

    def react(_wire: Wire, transport: asyncio.Transport, _data: bytes) -> None:
        transport.write(STREAM + chunk * n_chunks + b"0\r\n\r\n")

    async def run() -> None:
        wire = Wire(react)
        async with _wired(wire) as transport, transport.open_stream("/w", (), timeout_s=5.0) as opened:
            await asyncio.sleep(0.2)
            assert wire.open[0].get_write_buffer_size() > 0  # the server could not get rid of all
            assert not isinstance(opened, Answer)
            n_read = 0
            while part := await opened.read():
                n_read += len(part)
            assert n_read == 1000 * n_chunks

    asyncio.run(run())
