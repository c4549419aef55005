"""Writes that leave at once, without a task: each is told once what became of it, or was called off."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable
from math import inf

import pytest
from http2_serving import HEADERS, OK, RST, React, Server, answer, frame, served, setting

from kubesched.k8s.client.errors import AnswerLost, ApiError
from kubesched.k8s.client.rest import Again, RateLimiter, RestClient
from kubesched.k8s.client.target import ServerTarget

Outcome = bytes | ApiError | AnswerLost | Again


class Client:
    """A client with a connection that is open, which has logged in; and what it was told."""

    def __init__(self, rest: RestClient) -> None:
        self.rest = rest
        self.told: list[Outcome] = []

    def begin(self, left_s: float = inf, tell: Callable[[Outcome], None] | None = None) -> Callable[[], None] | None:
        return self.rest.begin("POST", "/x", b"{}", "application/json", tell or self.told.append, lambda: left_s)

    async def outcome(self) -> Outcome:
        while not self.told:
            await asyncio.sleep(0.001)
        (told,) = self.told
        return told


def play(react: React, story: Callable[[Client], Awaitable[None]], **options: object) -> Server:
    """The first request is answered; the others as `react` does."""
    is_first = True

    def reacts(peer: object, stream: int, body: bytes) -> None:
        nonlocal is_first
        (_agrees if is_first else react)(peer, stream, body)  # type: ignore[arg-type]
        is_first = False

    server = Server(reacts, setting(3, 100))

    async def run() -> None:
        async with served(server) as transport:
            rest = RestClient(ServerTarget("http://127.0.0.1:1"), transport=transport, **{"qps": -1, **options})  # type: ignore[arg-type]
            client = Client(rest)
            assert client.begin() is None, "there is no connection yet"
            await rest.request("GET", "/x")
            await story(client)

    asyncio.run(run())
    return server


_agrees: React = lambda peer, stream, _: peer.write(answer(stream))  # noqa: E731


def _says(status: int, more: bytes = b"") -> React:
    block = b"\x08\x03" + str(status).encode() + more
    return lambda peer, stream, _: peer.write(answer(stream, b"{}", block))


RETRY_AFTER = b"\x00\x0bretry-after\x012"


def test_what_was_begun_is_answered_without_a_task() -> None:
    async def story(client: Client) -> None:
        tasks = asyncio.all_tasks()
        assert all(client.begin() is not None for _ in range(50))
        assert asyncio.all_tasks() == tasks and client.told == []
        while len(client.told) < 50:
            await asyncio.sleep(0.001)
        assert client.told == [b"ok"] * 50
        assert client.rest.n_answers == {("200", "GET"): 1, ("200", "POST"): 50}

    server = play(_agrees, story)
    assert len(server.peers) == 1 and server.resets() == []


@pytest.mark.parametrize("status", [403, 404, 409, 500, 503])
def test_a_refusal_is_told(status: int) -> None:
    async def story(client: Client) -> None:
        assert client.begin() is not None
        refusal = await client.outcome()
        assert isinstance(refusal, ApiError) and refusal.status == status
        assert client.rest.n_answers[str(status), "POST"] == 1

    play(_says(status), story)


@pytest.mark.parametrize(
    ("status", "more", "pause_s"), [(401, b"", 0.0), (429, RETRY_AFTER, 2.0), (503, RETRY_AFTER, 2.0)]
)
def test_what_the_server_did_not_do_may_be_asked_for_again(status: int, more: bytes, pause_s: float) -> None:
    async def story(client: Client) -> None:
        assert client.begin() is not None
        assert await client.outcome() == Again(pause_s)

    play(_says(status, more), story)


def test_a_request_that_the_server_did_not_look_at_may_be_sent_again() -> None:
    async def story(client: Client) -> None:
        assert client.begin() is not None
        assert await client.outcome() == Again(0.0)

    play(lambda peer, stream, _: peer.write(frame(RST, 0, stream, struct.pack(">I", 7))), story)


def test_when_the_connection_breaks_all_answers_are_lost() -> None:
    async def story(client: Client) -> None:
        for _ in range(3):
            assert client.begin() is not None
        while len(client.told) < 3:
            await asyncio.sleep(0.001)
        assert all(isinstance(one, AnswerLost) for one in client.told)
        assert client.begin() is None, "the next one needs a connection"

    play(lambda peer, *_: peer.transport.abort(), story)


def test_one_that_is_not_answered_in_time_is_lost_and_ends_the_connection_for_others() -> None:
    async def story(client: Client) -> None:
        assert client.begin(left_s=0.05) is not None
        lost = await client.outcome()
        assert isinstance(lost, AnswerLost) and "timeout after 0.05 s" in str(lost)
        assert client.begin() is None

    assert play(lambda *_: None, story).resets() == [struct.pack(">I", 8)]


def test_each_has_a_time_of_its_own() -> None:
    """One timer is for all of them."""

    async def story(client: Client) -> None:
        order: list[float] = []
        for left_s in (0.15, 0.05, 5.0, 0.1):
            assert client.begin(left_s, lambda _, left_s=left_s: order.append(left_s)) is not None  # type: ignore[misc]
        while len(order) < 3:
            await asyncio.sleep(0.001)
        assert sorted(order) == [0.05, 0.1, 0.15]

    play(lambda *_: None, story)


def test_who_calls_off_is_told_nothing() -> None:
    async def story(client: Client) -> None:
        call_off = client.begin()
        assert call_off is not None
        call_off()
        assert client.begin() is not None
        await client.outcome()
        await asyncio.sleep(0.01)
        assert client.told == [b"ok"]

    def late(peer: object, stream: int, _: bytes) -> None:
        peer.write(answer(1 + 2 * 1) + frame(HEADERS, 5, stream, OK) if stream == 3 else answer(stream))  # type: ignore[attr-defined]

    assert play(late, story).resets() == [struct.pack(">I", 8)]


def test_who_cannot_take_an_answer_does_not_cost_the_others_theirs() -> None:
    problems: list[object] = []

    def breaks(_: object) -> None:
        raise ZeroDivisionError("planted")

    async def story(client: Client) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: problems.append(context["exception"]))
        assert client.begin(tell=breaks) is not None and client.begin() is not None
        assert await client.outcome() == b"ok"

    assert len(play(_agrees, story).peers) == 1
    assert [str(problem) for problem in problems] == ["planted"]


def test_nothing_is_begun_without_time_left() -> None:
    async def story(client: Client) -> None:
        assert client.begin(left_s=0.0) is None
        assert client.begin(left_s=-1.0) is None

    assert len(play(_agrees, story).blocks) == 1


def test_nothing_is_begun_before_its_turn_by_the_rate() -> None:
    now_s = 0.0

    async def story(client: Client) -> None:
        nonlocal now_s
        assert [client.begin() is not None for _ in range(4)] == [True, True, False, False]
        now_s = 1.0
        assert [client.begin() is not None for _ in range(2)] == [True, False]

    play(_agrees, story, limiter=RateLimiter(1, 3, clock=lambda: now_s))


def test_how_to_log_in_is_asked_again_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(client: Client) -> None:
        monkeypatch.setattr("kubesched.k8s.client.rest._LOGIN_KEPT_S", -1.0)
        assert client.begin() is None
        monkeypatch.undo()
        assert client.begin() is not None

    play(_agrees, story)


def test_after_a_new_login_the_connection_is_not_used() -> None:
    async def story(client: Client) -> None:
        client.rest.target.credentials.connection_epoch = 1  # type: ignore[misc]
        try:
            assert client.begin() is None
        finally:
            client.rest.target.credentials.connection_epoch = 0  # type: ignore[misc]

    play(_agrees, story)
